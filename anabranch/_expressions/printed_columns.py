"""PySpark Columns: what their printed form lets one know.

Columns have no public tree. What a print says for certain is read as syntax (`printed_syntax`); elsewhere a literal may
hold anything, even what looks like a call or an operator, so a word that could be a call counts as one wherever it
stands. Names have no quotes: a print that may hold the name of a column that is no word, such as ``57``, is not read.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from anabranch._expressions.computations import Reading, own, resolve_computation
from anabranch._expressions.context import Context
from anabranch._expressions.printed_syntax import Named, parts_of, syntax_of
from anabranch._expressions.tokens import BARE_FUNCTIONS, CLOCKS, OPERATORS, SPECIAL_MOMENTS
from anabranch._protocol.conditions import Condition
from anabranch._protocol.expressions import syntax as S
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.expressions.resolving import Columns
from anabranch._protocol.expressions.spelling import to_sql
from anabranch._protocol.expressions.tree import Apply, Expression, Foreign
from anabranch._protocol.predicates import Unknown
from anabranch._protocol.schema.leaves import leaves_of
from anabranch._protocol.schema.types import Struct
from anabranch._protocol.storing import Computed
from anabranch.errors import InvalidArgument, NotBuilt

_PLAIN = re.compile(r"^Column<'(.*)'>$", re.DOTALL)
_ARGUMENT = re.compile(
    r"columnnodeexpression\(UnresolvedAttribute\(List\(([^()]*)\),(?:(?!columnnodeexpression\()[^'])*?,None,None\)\)\)"
)
"""How Spark prints the argument of a function of Python: with what the JVM knows of the place in the code."""
_FRAME = re.compile(r"(?<![\w.`])__anabranch_[0-9a-f]{16}_(?:v|asof)\d*(?:_of[0-9a-f]{16})?(?:_at[0-9a-f]{16})?\.")
"""The alias of every frame of a table's rows, as a column prints it that was taken from one: ``df["id"]``."""
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
_NOT_OF_THE_ROW = re.compile(r"_metadata|__anabranch", re.IGNORECASE)
_OPERATORS = OPERATORS | {"isnull", "isnotnull", "cast"}
_NAME = re.compile(r"[A-Za-z_]\w*")
_CLEAR = re.compile(r"[A-Za-z_][\w ]*")
"""Names that no expression looks like."""
_DOTTED = re.compile(r"(?:[A-Za-z_]\w*|`[^`]+`)(?:\.(?:[A-Za-z_]\w*|`[^`]+`))*")
_RESERVED = re.compile(
    "and|or|not|null|true|false|case|when|then|else|end|in|is|like|between|exists|interval", re.IGNORECASE
)
_BEFORE_PARENTHESIS = re.compile(r"(?<![^\s(),'\"])([^\s(),'\"]++)\s*+\(")
_NAMES_A_CALL = re.compile(r"[\w>]*?[A-Za-z_>\]]")
"""Of what stands before a parenthesis, read from its end."""
_JOINING = ("and", "or", "not")
_UNCLEAR = Reading("", Computation(Foreign("what a Column prints may mean two things")))


def column_condition(column: Any, context: Context, alias: str | None = None, *, queries: bool = False) -> Condition:
    """A Column as a condition over the table's columns.

    Args:
        alias: a name by which it may speak of the table.

    Raises:
        NotBuilt: it holds a subquery, and may not hold ``queries``.
    """
    text, _ = _print_column(column)
    shown = _to_sql(column, text, names_in(context.schema, alias), context.tzinfo)
    if queries and _has_query(text):
        return Condition(text=_readable(text), predicate=Unknown(), row_local=False, expression=column, asks=True)
    _refuse_query(text)
    said, computation = own(column_reading(column, context, alias), context)
    row_local = computation.reason is None or is_row_local(column)
    return Condition(shown, said, row_local, expression=column, columns=None, computation=computation)


def column_value(column: Any, context: Context, alias: str | None = None) -> Computation:
    """How a Column that is to be assigned is computed, or why it is not.

    Raises:
        NotBuilt: it holds a subquery or a window.
    """
    check_assigned(column)
    return own(column_reading(column, context, alias), context)[1]


def column_reading(
    column: Any,
    context: Context,
    alias: str | None = None,
    known: Named | None = None,
    columns: Columns | None = None,
) -> Reading:
    """A Column as it is read, by what it prints.

    Args:
        alias: a name by which it may speak of the table.
        known, columns: what printed names, and the names in syntax, mean, if not the table's columns.
    """
    text, is_plain = _print_column(column)
    if not _is_open(text, is_plain) or _names_oddly(text, _names_in(context.schema)):
        return _UNCLEAR
    named, bare = known or names_in(context.schema, alias), _is_bare(column)
    numbers = (_as_double, _as_decimal if "/(" in text else str)  # of others a decimal has the value of a whole number
    # Without a zone, since a moment is printed in that of the JVM, which nothing tells here.
    read = [syntax_of(text, named, quotes=not bare, number=number) for number in numbers]
    if read[0] is None or read[1] is None or (bare and not _is_sure(read[0])):
        return _UNCLEAR
    one, other = (resolve_computation(each, context, columns) for each in read if each is not None)
    return Reading("", replace(one, tree=_either(one.tree, other.tree)), read[0])


def _as_double(number: str) -> str:
    return f"{number}D" if "." in number else number


def _as_decimal(number: str) -> str:
    return number if number.endswith("L") else f"{number}BD"


def _either(one: Expression, other: Expression) -> Expression:
    """What two trees have in common that were read of one print."""
    if one == other:
        return one
    if isinstance(one, Apply) and isinstance(other, Apply) and one.function.name == other.function.name in _JOINING:
        return replace(one, arguments=tuple(map(_either, one.arguments, other.arguments)))
    return Foreign("a number that a Column prints may be a decimal", type=one.type)


def names_in(schema: Struct, alias: str | None = None) -> Named:
    """How printed names mean the columns of a table, and members of them."""

    def resolve_name(word: str) -> tuple[str, ...] | None:
        parts = parts_of(word) or ()
        if len(parts) > 1 and alias is not None and parts[0].lower() == alias.lower():
            parts = parts[1:]
        found = schema.find(parts[0]) if parts else None
        is_clear = _DOTTED.fullmatch(word) or (len(parts) == 1 and found and _CLEAR.fullmatch(found.name))
        return parts if found is not None and is_clear else None

    return resolve_name


def is_row_local(column: Any) -> bool:
    """Whether a Column calls nothing, so that its value is decided by its row alone."""
    text, is_plain = _print_column(column)
    return _is_open(text, is_plain) and not _calls(text)


def _is_open(text: str, is_plain: bool) -> bool:
    """Whether a print shows all that a Column is made of."""
    return is_plain and not _HIDDEN_CALL.search(text) and not _NOT_OF_THE_ROW.search(text)


def _is_bare(column: Any) -> bool:
    """Whether a Column prints texts without quotes."""
    return ".connect." in type(column).__module__


def _is_sure(node: S.Syntax) -> bool:
    """Whether a print without quotes can mean one thing only: names are compared with whole numbers."""
    match node:
        case S.Operation("and" | "or" | "not", parts):
            return all(map(_is_sure, parts))
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
    """A Column as SQL where its print says that, else what it prints, for people; a text as it is."""
    if isinstance(expression, Computed):
        expression = expression.expression
    if isinstance(expression, str):
        return expression
    return _to_sql(expression, _print_column(expression)[0], split_dotted)


def split_dotted(word: str) -> tuple[str, ...] | None:
    """The parts of a printed name that is made of words."""
    return parts_of(word) if _DOTTED.fullmatch(word) else None


def _to_sql(column: Any, text: str, named: Named, zone: dt.tzinfo | None = None) -> str:
    found = syntax_of(text, named, zone, quotes=not _is_bare(column))
    return _readable(text) if found is None else to_sql(found, lambda name: ".".join(map(_quote_if_needed, name.parts)))


def _quote_if_needed(name: str) -> str:
    return name if _NAME.fullmatch(name) and not _RESERVED.fullmatch(name) else f"`{name}`"


def _readable(text: str) -> str:
    """The same without what only the JVM knows: ``f(t.id)``. For people: what a Column means is read before, since
    without its arguments' spelling a function of Python may look like one of Spark's.
    """
    return _ARGUMENT.sub(lambda found: ".".join(found[1].split(", ")), text)


def _print_column(column: Any) -> tuple[str, bool]:
    try:
        shown = str(column)
    except Exception as error:  # Spark prints by functions that call themselves: a stack overflow, on some thread
        reason = f"Spark cannot print it ({type(error).__name__}); is it nested too deep?"
        raise InvalidArgument(option="condition", value="a Column", reason=reason) from None
    match = _PLAIN.match(shown)
    return (_FRAME.sub("", match[1]), True) if match else (shown, False)


def _has_query(text: str) -> bool:
    return _QUERY.search(_without_strings(text)) is not None


def _refuse_query(text: str) -> None:
    if _has_query(text):
        raise NotBuilt(what=f"a subquery in {text}", instead="Collect its result first, and state it as values.")


def _without_strings(text: str) -> str:
    """The text with its quoted literals emptied, where it is certain what is one."""
    return text if _ODD_QUOTES.search(text) else re.sub("'[^']*'", "''", text)


def _names_in(schema: Struct) -> Iterator[str]:
    """The names of columns, and of members of structs."""
    return (name for leaf in leaves_of(schema.fields) for name in leaf.names)


def _names_oddly(text: str, names: Iterable[str]) -> bool:
    """Whether a print may hold the name of a column that can be taken for something else: ``F.col("57")`` prints as
    the number does.
    """
    odd = (re.escape(name) for name in names if not _NAME.fullmatch(name))
    return any(re.search(rf"(?<![\w-]){name}(?!\w)", text, re.IGNORECASE) for name in odd)


def _calls(text: str) -> frozenset[str]:
    """Whatever could be a call, or a moment that passes."""
    before = (name for name in _BEFORE_PARENTHESIS.findall(text) if _NAMES_A_CALL.match(name[::-1]))
    names = {name.lower() for name in before if re.search(r"\w", name)}
    words = {word.lower() for word in re.findall(r"[A-Za-z_]\w*", text)}
    return frozenset(names - _OPERATORS) | (words & (CLOCKS.keys() | BARE_FUNCTIONS | SPECIAL_MOMENTS))
