"""PySpark Columns: what their printed form lets one know.

Columns have no public tree. In print a literal may hold anything, even what looks like a call or an operator: so a word
that could be a call counts as one wherever it stands, and for skipping only a print without any quote is read. Names
have no quotes either: a print that may hold the name of a column that is no word, such as ``57``, is not read.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from anabranch.errors import InvalidArgument, NotBuilt
from anabranch.expressions.context import Context
from anabranch.expressions.printed_sql import sql_of
from anabranch.expressions.tokens import BARE_FUNCTIONS, CLOCKS, OPERATORS, SPECIAL_MOMENTS
from anabranch.protocol.conditions import Condition
from anabranch.protocol.expressions.computation import computation_of_predicate
from anabranch.protocol.predicates import And, Compare, Not, Or, Predicate, Unknown
from anabranch.protocol.schema.leaves import leaves_of
from anabranch.protocol.schema.types import Struct
from anabranch.protocol.storing import ComputedText

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
_TOKEN = re.compile(r"\s*([A-Za-z_][\w.]*|-?[0-9]+(?=L?\b)|<=>|<=|>=|!=|==|[=<>!(),])L?")
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
_SEPARATORS = frozenset("(),")
_MOST_NESTED = 50
_LITERAL_WORDS = frozenset({"true", "false", "null"})

Named = Callable[[str], str | None]
"""Which column of the table a printed name is; None for none of its top-level columns."""


def column_condition(
    column: Any, context: Context, named: Named = str, *, queries: bool = False, others: Iterable[str] = ()
) -> Condition:
    """A Column as a condition; its names are the table's own, unless ``named`` says otherwise.

    Args:
        others: the names of columns that are not the table's, such as those of a source.

    Raises:
        NotBuilt: it holds a subquery, and may not hold ``queries``.
    """
    text, is_plain = _printed(column)
    shown = _as_sql(column, text, _named_in(context.schema, named), context.tzinfo) or _readable(text)
    if queries and _has_query(text):
        return Condition(text=_readable(text), predicate=Unknown(), row_local=False, expression=column, asks=True)
    _refuse_query(text)
    is_open = is_plain and not _HIDDEN_CALL.search(text) and not _NOT_OF_THE_ROW.search(text)
    row_local = is_open and not _calls(text)
    is_clear = row_local and not _names_oddly(text, (*_names_in(context.schema), *others))
    predicate = _printed_predicate(text, context, named) if is_clear else Unknown()
    computation = computation_of_predicate(predicate, context.schema)
    return Condition(shown, predicate, row_local, expression=column, columns=None, computation=computation)


def bare_names(alias: str, schema: Struct) -> Named:
    """How a printed name means a column of a table that has an alias: ``t.x`` is ``x``, as ``x`` is.

    A column that is called ``t.x`` prints the same, so where there is one nothing is known of such a name.
    """
    prefix = f"{alias}.".lower()
    is_open = not any(name.lower().startswith(prefix) for name in schema.names)

    def bare(word: str) -> str | None:
        if not word.lower().startswith(prefix):
            return word
        return word[len(prefix) :] if is_open else None

    return bare


def check_assigned(column: Any) -> None:
    """Refuse a Column that is to be assigned, if it may depend on other rows than its own.

    Raises:
        NotBuilt: it holds a subquery or a window.
    """
    text, _ = _printed(column)
    _refuse_query(text)
    if _WINDOW.search(_without_strings(text)):
        raise NotBuilt(what=f"a window in the assignment {text}", instead="Compute it first, and join the result.")


def printed(expression: Any) -> str:
    """A Column as SQL where its print says that, else what it prints, for people; a text as it is."""
    if isinstance(expression, str | ComputedText):
        return str(expression)
    text = _printed(expression)[0]
    return _as_sql(expression, text, lambda word: word if _DOTTED.fullmatch(word) else None) or _readable(text)


def _as_sql(column: Any, text: str, named: Named, zone: dt.tzinfo | None = None) -> str | None:
    is_connect = ".connect." in type(column).__module__  # which prints texts without quotes
    return sql_of(text, named, zone, quotes=not is_connect)


def _named_in(schema: Struct, named: Named) -> Named:
    """Columns of the table, and members of them, by printed names."""

    def known(word: str) -> str | None:
        top = next(filter(None, (schema.find(each) for each in (word, named(word) or ""))), None)
        if top is not None:
            return None if not _CLEAR.fullmatch(top.name) else _quoted(top.name)
        bare = (named(word) or "") if _DOTTED.fullmatch(word) else ""
        return bare if bare and schema.find(bare.split(".")[0].strip("`")) is not None else None

    return known


def _quoted(name: str) -> str:
    return name if _NAME.fullmatch(name) and not _RESERVED.fullmatch(name) else f"`{name}`"


def _readable(text: str) -> str:
    """The same without what only the JVM knows: ``f(t.id)``. For people: what a Column means is read before, since
    without its arguments' spelling a function of Python may look like one of Spark's.
    """
    return _ARGUMENT.sub(lambda found: ".".join(found[1].split(", ")), text)


def _printed(column: Any) -> tuple[str, bool]:
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


def _printed_predicate(text: str, context: Context, named: Named) -> Predicate:
    """What skipping can use of ``and(>(id, 5), <(id, 9))``: integer columns against whole numbers."""
    tree = _whole_tree(text)
    return Unknown() if tree is None else _printed_meaning(tree, context, named)


def equalities(column: Any) -> list[tuple[str, str]]:
    """The pairs of words that a Column requires to be equal, ``(t.id, s.id)``; for messages only."""
    text, is_plain = _printed(column)
    return list(_equal_words(_whole_tree(text))) if is_plain else []


def _equal_words(tree: Any) -> Iterator[tuple[str, str]]:
    for part in _printed_chain(tree, "and"):
        match part:
            case ["=", str() as left, str() as right]:
                yield left, right


def _whole_tree(text: str) -> Any | None:
    """The tree of a print that holds nothing but words, whole numbers, operators and calls."""
    tokens, end, text = [], 0, text.rstrip()
    while end < len(text):
        match = _TOKEN.match(text, end)
        if match is None:
            return None
        tokens.append("=" if match[1] == "==" else match[1])  # as Spark Connect prints it
        end = match.end()
    return _printed_tree(tokens)


def _printed_tree(tokens: list[str]) -> Any | None:
    """The expression of a print, as a word or as ``[operator, argument, …]``; however deep it is, nothing calls itself.
    None where it is not put together so.
    """
    whole: list[Any] = [""]
    opened, expects = [whole], True  # an argument comes next, and no comma
    for i, token in enumerate(tokens):
        if token == ")" and not expects and len(opened) > 1:
            opened.pop()
        elif token == "," and not expects and len(opened) > 1:
            expects = True
        elif token == "(" and i and tokens[i - 1] not in _SEPARATORS and not expects:
            call = [str(opened[-1].pop()).lower()]
            opened[-1].append(call)
            opened.append(call)
            expects = True
        elif token not in _SEPARATORS and expects:
            opened[-1].append(token)
            expects = False
        else:
            return None
    return whole[1] if len(opened) == 1 and len(whole) == 2 and not expects else None


def _printed_chain(tree: Any, operator: str) -> list[Any]:
    """The parts that AND, or OR, joins, however many."""
    found, left = [], [tree]
    while left:
        match left.pop():
            case [first, one, other] if first == operator:
                left += [other, one]
            case part:
                found.append(part)
    return found


def _printed_meaning(tree: Any, context: Context, named: Named, depth: int = 0) -> Predicate:
    if depth > _MOST_NESTED:
        return Unknown()
    match tree:
        case ["and" | "or" as operator, _, _]:
            parts = (_printed_meaning(part, context, named, depth + 1) for part in _printed_chain(tree, operator))
            return And(tuple(parts)) if operator == "and" else Or(tuple(parts))
        case ["!" | "not", inner]:
            return Not(_printed_meaning(inner, context, named, depth + 1))
        case [("=" | "<=>" | "<" | "<=" | ">" | ">=" | "!=") as operator, str() as left, str() as right]:
            name, value = _integer_column(left, context, named), _whole_number(right)
            return Unknown() if name is None or value is None else Compare(name, operator, value)
    return Unknown()


def _integer_column(word: str, context: Context, named: Named) -> str | None:
    name = None if word.lower() in _LITERAL_WORDS else named(word)
    is_name = name is not None and _NAME.fullmatch(name) is not None
    found = context.schema.find(name) if name is not None and is_name else None
    return found.name if found is not None and found.type in ("byte", "short", "integer", "long") else None


def _whole_number(word: str) -> int | None:
    return int(word) if re.fullmatch(r"-?[0-9]+", word) else None
