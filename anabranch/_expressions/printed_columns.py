"""PySpark Columns: what can be derived from their printed form.

Columns have no public tree. A print that is certain is parsed as syntax (`printed_syntax`); elsewhere a literal may
hold anything, even what looks like a call or an operator, so any word that could be a call counts as one. Names have no
quotes: a print that may hold the name of a column that is no word, such as ``57``, is not parsed.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from anabranch._expressions.computations import Reading, resolve_computation, resolve_in_session
from anabranch._expressions.context import Context
from anabranch._expressions.printed_syntax import Named, parts_of, syntax_of
from anabranch._expressions.tokens import BARE_FUNCTIONS, CLOCKS, OPERATORS, SPECIAL_MOMENTS
from anabranch._protocol.conditions import Condition
from anabranch._protocol.expressions import syntax as S
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.expressions.resolving import Columns
from anabranch._protocol.expressions.spelling import to_sql
from anabranch._protocol.expressions.tree import Apply, Expression, SparkOnly
from anabranch._protocol.predicates import Unknown
from anabranch._protocol.schema.leaves import leaves_of
from anabranch._protocol.schema.types import Struct
from anabranch._protocol.store_assignment import ComputedExpression
from anabranch.errors import InvalidArgument, NotBuilt

_PLAIN = re.compile(r"^Column<'(.*)'>$", re.DOTALL)
_ARGUMENT = re.compile(
    r"columnnodeexpression\(UnresolvedAttribute\(List\(([^()]*)\),(?:(?!columnnodeexpression\()[^'])*?,None,None\)\)\)"
)
"""Spark's print of the argument of a Python function, with details of the place in the code that only the JVM has."""
_FRAME = re.compile(r"(?<![\w.`])__anabranch_[0-9a-f]{16}_(?:v|asof)\d*(?:_of[0-9a-f]{16})?(?:_at[0-9a-f]{16})?\.")
"""The alias of every frame of a table's rows, in the print of a column taken from one: ``df["id"]``."""
_QUERY = re.compile(
    r"(?<![`.])\bselect\b(?!\s*(?:[,)]|$))|subquery"
    r"|\(\s*\[(?:\]|(?:(?!\(\s*\[)[^\]])*: )|\(\s*(?:from|table|values)\b(?!\s*[,)])",
    re.IGNORECASE,
)
"""A DataFrame inside a Column prints as ``([id: bigint])``; an element of an array as ``a[0]``; a column that is called
``select`` has a comma, a parenthesis or nothing behind it, with which no query begins."""
_HIDDEN_CALL = re.compile(r"`\s*\(|--|/\*")
_ODD_QUOTES = re.compile(r"[\"\\]|--|/\*")
_WINDOW = re.compile(r"\bover\b", re.IGNORECASE)
_OUTSIDE_THE_ROW = re.compile(r"_metadata|__anabranch", re.IGNORECASE)
_OPERATORS = OPERATORS | {"isnull", "isnotnull", "cast"}
_NAME = re.compile(r"[A-Za-z_]\w*")
_UNAMBIGUOUS = re.compile(r"[A-Za-z_][\w ]*")
"""Names that no expression resembles."""
_DOTTED = re.compile(r"(?:[A-Za-z_]\w*|`[^`]+`)(?:\.(?:[A-Za-z_]\w*|`[^`]+`))*")
_RESERVED = re.compile(
    "and|or|not|null|true|false|case|when|then|else|end|in|is|like|between|exists|interval", re.IGNORECASE
)
_BEFORE_PARENTHESIS = re.compile(r"(?<![^\s(),'\"])([^\s(),'\"]++)\s*+\(")
_ENDS_LIKE_A_CALL = re.compile(r"[\w>]*?[A-Za-z_>\]]")
"""Matches the text before a parenthesis, reversed."""
_JOINING = ("and", "or", "not")
_AMBIGUOUS = Reading("", Computation(SparkOnly("what a Column prints may mean two things")))


def column_condition(column: Any, context: Context, alias: str | None = None, *, queries: bool = False) -> Condition:
    """A Column as a condition over the table's columns.

    Args:
        alias: a name by which it may refer to the table.

    Raises:
        NotBuilt: it holds a subquery, and ``queries`` does not allow it.
    """
    text, _ = _print_column(column)
    sql = _to_sql(column, text, names_in(context.schema, alias), context.tzinfo)
    if queries and _has_query(text):
        return Condition(text=_readable(text), predicate=Unknown(), row_local=False, expression=column, asks=True)
    _refuse_query(text)
    predicate, computation = resolve_in_session(column_reading(column, context, alias), context)
    row_local = computation.reason is None or is_row_local(column)
    return Condition(sql, predicate, row_local, expression=column, columns=None, computation=computation)


def column_value(column: Any, context: Context, alias: str | None = None) -> Computation:
    """The computation of a Column that is to be assigned, or the reason why there is none.

    Raises:
        NotBuilt: it holds a subquery or a window.
    """
    check_assigned(column)
    return resolve_in_session(column_reading(column, context, alias), context)[1]


def column_reading(
    column: Any,
    context: Context,
    alias: str | None = None,
    known: Named | None = None,
    columns: Columns | None = None,
) -> Reading:
    """Parse the print of a Column.

    Args:
        alias: a name by which it may refer to the table.
        known, columns: resolve printed names, and the names in syntax, if these are not the table's columns.
    """
    text, is_plain = _print_column(column)
    if not _is_open(text, is_plain) or _has_confusing_name(text, _names_in(context.schema)):
        return _AMBIGUOUS
    named, bare = known or names_in(context.schema, alias), _is_bare(column)
    numbers = (_as_double, _as_decimal if "/(" in text else str)  # elsewhere a decimal equals a whole number
    # Without a zone, since a timestamp is printed in the JVM's zone, which is not known here.
    parses = [syntax_of(text, named, quotes=not bare, number=number) for number in numbers]
    if parses[0] is None or parses[1] is None or (bare and not _is_unambiguous(parses[0])):
        return _AMBIGUOUS
    first, second = (resolve_computation(parse, context, columns) for parse in parses if parse is not None)
    return Reading("", replace(first, tree=_join_trees(first.tree, second.tree)), parses[0])


def _as_double(number: str) -> str:
    return f"{number}D" if "." in number else number


def _as_decimal(number: str) -> str:
    return number if number.endswith("L") else f"{number}BD"


def _join_trees(one: Expression, other: Expression) -> Expression:
    """The common part of two trees that were parsed from one print."""
    if one == other:
        return one
    if isinstance(one, Apply) and isinstance(other, Apply) and one.function.name == other.function.name in _JOINING:
        return replace(one, arguments=tuple(map(_join_trees, one.arguments, other.arguments)))
    return SparkOnly("a number that a Column prints may be a decimal", type=one.type)


def names_in(schema: Struct, alias: str | None = None) -> Named:
    """Resolve printed names to the columns of a table, and members of them."""

    def resolve_name(word: str) -> tuple[str, ...] | None:
        parts = parts_of(word) or ()
        if len(parts) > 1 and alias is not None and parts[0].lower() == alias.lower():
            parts = parts[1:]
        match = schema.find(parts[0]) if parts else None
        is_clear = _DOTTED.fullmatch(word) or (len(parts) == 1 and match and _UNAMBIGUOUS.fullmatch(match.name))
        return parts if match is not None and is_clear else None

    return resolve_name


def is_row_local(column: Any) -> bool:
    """Whether a Column calls nothing, so that its row alone decides its value."""
    text, is_plain = _print_column(column)
    return _is_open(text, is_plain) and not _calls(text)


def _is_open(text: str, is_plain: bool) -> bool:
    """Whether a print shows all parts of a Column."""
    return is_plain and not _HIDDEN_CALL.search(text) and not _OUTSIDE_THE_ROW.search(text)


def _is_bare(column: Any) -> bool:
    """Whether a Column prints texts without quotes."""
    return ".connect." in type(column).__module__


def _is_unambiguous(node: S.Syntax) -> bool:
    """Whether a print without quotes is unambiguous: names are compared with whole numbers."""
    match node:
        case S.Operation("and" | "or" | "not", parts):
            return all(map(_is_unambiguous, parts))
        case S.Operation("=" | "<=>" | "<" | "<=" | ">" | ">=" | "!=", (S.Name(), S.Literal("number", number))):
            return "." not in number
    return False


def check_assigned(column: Any) -> None:
    """Refuse a Column that is to be assigned, if it may depend on other rows than its own.

    Raises:
        NotBuilt: it holds a subquery or a window.
    """
    text, _ = _print_column(column)
    _refuse_query(text)
    if _WINDOW.search(_without_strings(text)):
        raise NotBuilt(what=f"a window in the assignment {text}", instead="Compute it first, and join the result.")


def expression_text(expression: Any) -> str:
    """A Column as SQL where its print is certain, else its print, for people; a text is returned as it is."""
    if isinstance(expression, ComputedExpression):
        expression = expression.expression
    if isinstance(expression, str):
        return expression
    return _to_sql(expression, _print_column(expression)[0], split_dotted)


def split_dotted(word: str) -> tuple[str, ...] | None:
    """The parts of a printed name that consists of words."""
    return parts_of(word) if _DOTTED.fullmatch(word) else None


def _to_sql(column: Any, text: str, named: Named, zone: dt.tzinfo | None = None) -> str:
    syntax = syntax_of(text, named, zone, quotes=not _is_bare(column))
    return (
        _readable(text) if syntax is None else to_sql(syntax, lambda name: ".".join(map(_quote_if_needed, name.parts)))
    )


def _quote_if_needed(name: str) -> str:
    return name if _NAME.fullmatch(name) and not _RESERVED.fullmatch(name) else f"`{name}`"


def _readable(text: str) -> str:
    """The print for people, without the details that only the JVM has: ``f(t.id)``. A Column is parsed before, since
    without its arguments' spelling a Python function may look like one of Spark's.
    """
    return _ARGUMENT.sub(lambda match: ".".join(match[1].split(", ")), text)


def _print_column(column: Any) -> tuple[str, bool]:
    try:
        printed = str(column)
    except Exception as error:  # Spark prints by functions that call themselves: a stack overflow, on some thread
        reason = f"Spark cannot print it ({type(error).__name__}); is it nested too deep?"
        raise InvalidArgument(option="condition", value="a Column", reason=reason) from None
    match = _PLAIN.match(printed)
    return (_FRAME.sub("", match[1]), True) if match else (printed, False)


def _has_query(text: str) -> bool:
    return _QUERY.search(_without_strings(text)) is not None


def _refuse_query(text: str) -> None:
    if _has_query(text):
        raise NotBuilt(what=f"a subquery in {text}", instead="Collect its result first, and state it as values.")


def _without_strings(text: str) -> str:
    """The text with its quoted literals emptied, where it is certain which texts are literals."""
    return text if _ODD_QUOTES.search(text) else re.sub("'[^']*'", "''", text)


def _names_in(schema: Struct) -> Iterator[str]:
    """The names of columns, and of members of structs."""
    return (name for leaf in leaves_of(schema.fields) for name in leaf.names)


def _has_confusing_name(text: str, names: Iterable[str]) -> bool:
    """Whether a print may hold the name of a column that can be mistaken for something else: ``F.col("57")`` prints as
    the number does.
    """
    odd = (re.escape(name) for name in names if not _NAME.fullmatch(name))
    return any(re.search(rf"(?<![\w-]){name}(?!\w)", text, re.IGNORECASE) for name in odd)


def _calls(text: str) -> frozenset[str]:
    """The words that could be calls, or functions of the current time."""
    before = (name for name in _BEFORE_PARENTHESIS.findall(text) if _ENDS_LIKE_A_CALL.match(name[::-1]))
    names = {name.lower() for name in before if re.search(r"\w", name)}
    words = {word.lower() for word in re.findall(r"[A-Za-z_]\w*", text)}
    return frozenset(names - _OPERATORS) | (words & (CLOCKS.keys() | BARE_FUNCTIONS | SPECIAL_MOMENTS))
