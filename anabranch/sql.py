"""SQL text: what can be known of a condition before any row is read.

The one room that knows sqlglot. It never evaluates anything and never changes what Spark is asked, with one
exception: ``current_timestamp`` and its like are fixed to one value when a command starts. Guarantee: what it says of
a condition holds whatever Spark makes of it; where a text could mean something else to Spark (another session
setting, a function of that name registered by the user), it says that nothing is known.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from anabranch.errors import InvalidCondition, NotBuilt
from anabranch.protocol.predicates import (
    Always,
    And,
    Compare,
    Condition,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
    Unknown,
)
from anabranch.protocol.schema import Struct

_DIALECT = "databricks"

DETERMINISTIC = frozenset(
    """
    abs acos add_months asin atan atan2 base64 between bigint bin binary bit_count bit_length boolean bround btrim
    case cast cbrt ceil ceiling char_length character_length chr coalesce concat concat_ws contains cos cot crc32
    date date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff
    datepart day dayofmonth dayofweek dayofyear decimal decode degrees div double encode endswith exp extract
    factorial find_in_set float floor format_number format_string from_unixtime from_utc_timestamp get_json_object
    greatest hash hex hour if ifnull ilike in initcap instr int isnan isnotnull isnull last_day lcase least left
    length levenshtein like ln locate log log10 log1p log2 lower lpad ltrim make_date make_timestamp md5 minute
    mod month months_between nanvl negative next_day not nullif nvl nvl2 octet_length overlay pmod position
    positive pow power quarter radians regexp regexp_extract regexp_like regexp_replace repeat replace reverse
    right rint rlike round rpad rtrim second sha sha1 sha2 shiftleft shiftright sign signum sin smallint soundex
    space split_part sqrt startswith string substr substring substring_index tan timestamp tinyint to_date
    to_timestamp translate trim trunc try_cast ucase unbase64 unhex unix_date unix_timestamp upper weekday
    weekofyear when width_bucket xxhash64 year
    """.split()  # noqa: SIM905
)
"""Built-in functions whose value is decided by their arguments and the session's settings alone."""

_KEYWORDS_BEFORE_PAREN = frozenset(
    {"and", "or", "not", "in", "like", "ilike", "rlike", "between", "is", "when", "then", "else"}
)
_CLOCKS = {"current_timestamp": "timestamp", "now": "timestamp", "current_date": "date", "curdate": "date"}
_PLAIN_COLUMN = re.compile(r"^Column<'(.*)'>$", re.DOTALL)


@dataclass(frozen=True)
class Context:
    """What a text's meaning depends on.

    Attributes:
        table: for messages.
        schema: the table's columns.
        now: the command's moment, aware.
        zone: the session's time zone.
        is_builtin: which of these function names still mean Spark's own (a user may have registered others).
    """

    table: str
    schema: Struct
    now: dt.datetime
    zone: str
    is_builtin: Callable[[frozenset[str]], bool]


def condition(text: str, context: Context) -> Condition:
    """A condition in SQL, with what can be known of it.

    Raises:
        InvalidCondition: it is empty, or holds more than one statement.
        NotBuilt: it holds a subquery.
    """
    tokens = _tokens(text, context)
    fixed = _with_fixed_clock(text, tokens, context)
    tree = _parsed(fixed)
    if tree is None:
        return Condition(text=text, predicate=Unknown(), row_local=False, expression=fixed, columns=None)
    if tree.find(exp.Select, exp.Subquery, exp.Exists):
        raise NotBuilt(
            what=f"a subquery in the condition {text}", instead="Collect its result first, and state it as values."
        )
    columns = _columns(tree, context.schema)
    calls = _calls(_tokens(fixed, context))
    row_local = columns is not None and calls <= DETERMINISTIC and (not calls or context.is_builtin(calls))
    sure = columns is not None and not _reads_differently(fixed)
    predicate = _predicate(tree, context) if sure else Unknown()
    return Condition(text=text, predicate=predicate, row_local=row_local, expression=fixed, columns=columns)


def column_condition(column: Any, context: Context) -> Condition:
    """A PySpark ``Column`` as a condition, with what its printed form lets one know.

    Columns have no public tree. In print a literal may hold anything, even what looks like a call or an operator, so
    every word before a parenthesis counts as a call, wherever it stands, and one call suffices not to be row-local.
    For skipping, only a print without any quote is read, as PySpark writes it today: ``and(>(id, 5), <(id, 9))``.

    Raises:
        NotBuilt: it holds a subquery.
    """
    match = _PLAIN_COLUMN.match(str(column))
    text = match[1] if match else str(column)
    if _QUERY.search(text):
        raise NotBuilt(
            what=f"a subquery in the condition {text}", instead="Collect its result first, and state it as values."
        )
    row_local = match is not None and not _printed_calls(text)
    predicate = _printed_predicate(text, context) if row_local else Unknown()
    return Condition(text=text, predicate=predicate, row_local=row_local, expression=column, columns=None)


_QUERY = re.compile(r"\bselect\b|subquery|\bexists\b|\[.*\]", re.IGNORECASE | re.DOTALL)
_PRINTED_OPERATORS = _KEYWORDS_BEFORE_PAREN | {"isnull", "isnotnull", "cast"}
_PRINTED_TOKEN = re.compile(r"\s*([A-Za-z_]\w*|-?\d+(?=L?\b)|<=>|<=|>=|!=|[=<>!(),])L?")


def _printed_calls(text: str) -> frozenset[str]:
    """Whatever could be a call in the printed form of a Column."""
    names = {
        name.lower() for name in re.findall(r"([^\s(),'\"]*[A-Za-z_>\]][\w>]*)\s*\(", text) if re.search(r"\w", name)
    }
    words = {word.lower() for word in re.findall(r"[A-Za-z_]\w*", text)}
    return frozenset(names - _PRINTED_OPERATORS) | (words & (_CLOCKS.keys() | _BARE_FUNCTIONS))


def _printed_predicate(text: str, context: Context) -> Predicate:
    """What skipping can use of ``and(>(id, 5), <(id, 9))``: integer columns against whole numbers."""
    tokens, end = [], 0
    while end < len(text.rstrip()):
        match = _PRINTED_TOKEN.match(text, end)
        if match is None:
            return Unknown()
        tokens.append(match[1])
        end = match.end()
    try:
        tree, rest = _printed_tree(tokens)
    except (IndexError, RecursionError):
        return Unknown()
    return Unknown() if rest else _printed_meaning(tree, context)


def _printed_tree(tokens: list[str]) -> tuple[Any, list[str]]:
    """The first expression of a print, as a word or as ``[operator, argument, …]``, and the tokens after it."""
    first, rest = tokens[0], tokens[1:]
    if rest[:1] != ["("]:
        return first, rest
    arguments = []
    while rest[0] != ")":
        argument, rest = _printed_tree(rest[1:])
        arguments.append(argument)
    return [first.lower(), *arguments], rest[1:]


def _printed_meaning(tree: Any, context: Context) -> Predicate:
    match tree:
        case ["and", left, right]:
            return And((_printed_meaning(left, context), _printed_meaning(right, context)))
        case ["or", left, right]:
            return Or((_printed_meaning(left, context), _printed_meaning(right, context)))
        case ["!" | "not", inner]:
            return Not(_printed_meaning(inner, context))
        case [("=" | "<=>" | "<" | "<=" | ">" | ">=" | "!=") as operator, str() as left, str() as right]:
            name, value = _integer_column(left, context), _whole_number(right)
            return Unknown() if name is None or value is None else Compare(name, operator, value)
    return Unknown()


def _integer_column(word: str, context: Context) -> str | None:
    found = context.schema.find(word)
    return found.name if found is not None and found.type in ("byte", "short", "integer", "long") else None


def _whole_number(word: str) -> int | None:
    return int(word) if re.fullmatch(r"-?\d+", word) else None


# -- tokens ------------------------------------------------------------------------------------------------------------


def _tokens(text: str, context: Context) -> list[Token]:
    if not text.strip():
        raise InvalidCondition(expression=repr(text), table=context.table, reason="it is empty.")
    try:
        tokens = list(sqlglot.tokenize(text, read=_DIALECT))
    except SqlglotError as error:
        raise InvalidCondition(
            expression=text, table=context.table, reason=f"it does not parse ({_first_line(error)})."
        ) from None
    if any(token.token_type == TokenType.SEMICOLON for token in tokens):
        raise InvalidCondition(expression=text, table=context.table, reason="it holds a semicolon.")
    return tokens


def _calls(tokens: list[Token]) -> frozenset[str]:
    """The lower-case names that stand before a parenthesis, as Spark will look them up."""
    pairs = pairwise(tokens)
    names = {
        first.text.lower() for first, second in pairs if second.token_type == TokenType.L_PAREN and _is_word(first.text)
    }
    bare = {token.text.lower() for token in tokens} & (_CLOCKS.keys() | _BARE_FUNCTIONS)
    return frozenset(names - _KEYWORDS_BEFORE_PAREN) | bare


_BARE_FUNCTIONS = frozenset(
    {
        "current_time",
        "current_user",
        "session_user",
        "user",
        "localtimestamp",
        "current_catalog",
        "current_database",
        "current_schema",
    }
)
"""Functions that Spark calls without parentheses."""


def _is_word(text: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z_]\w*", text))


def _with_fixed_clock(text: str, tokens: list[Token], context: Context) -> str:
    """The text with the clock's functions replaced by the command's moment."""
    pieces, end = [], 0
    for i, token in enumerate(tokens):
        kind = _CLOCKS.get(token.text.lower())
        if kind is None or token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) or _is_member(tokens, i):
            continue
        stop = _end_of_empty_call(tokens, i)
        if stop is None or context.schema.find(token.text) is not None:
            continue
        pieces += [text[end : token.start], _moment(kind, context)]
        end = stop + 1
    return "".join([*pieces, text[end:]])


def _is_member(tokens: list[Token], i: int) -> bool:
    return i > 0 and tokens[i - 1].token_type == TokenType.DOT


def _end_of_empty_call(tokens: list[Token], i: int) -> int | None:
    """The last character of ``f()`` or of ``f``; None for a call with arguments, or for ``now`` without parentheses."""
    following = [token.token_type for token in tokens[i + 1 : i + 3]]
    if following[:1] != [TokenType.L_PAREN]:
        return tokens[i].end if tokens[i].text.lower() in ("current_timestamp", "current_date") else None
    return tokens[i + 2].end if following[1:] == [TokenType.R_PAREN] else None


def _moment(kind: str, context: Context) -> str:
    if kind == "date":
        return f"DATE '{context.now.astimezone(ZoneInfo(context.zone)).date().isoformat()}'"
    return f"TIMESTAMP '{context.now.astimezone(dt.timezone.utc).strftime('%Y-%m-%d %H:%M:%S.%f')} UTC'"


def _reads_differently(text: str) -> bool:
    """Whether a session setting could make Spark read a literal in another way."""
    return '"' in text or "\\" in text


# -- trees -------------------------------------------------------------------------------------------------------------


def _parsed(text: str) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(text, dialect=_DIALECT)
    except (SqlglotError, RecursionError):
        return None


def _columns(tree: exp.Expr, schema: Struct) -> frozenset[str] | None:
    """The top-level columns that are named; None where some name is none (a variable, a lambda's argument)."""
    names = set()
    for column in tree.find_all(exp.Column):
        first = column.parts[0].name
        found = schema.find(first)
        if found is None or (len(column.parts) > 1 and isinstance(found.type, str)):
            return None
        names.add(found.name)
    return frozenset(names)


_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "<=>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NEQ: "!=",
}
_FLIPPED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}


def _predicate(tree: exp.Expr, context: Context) -> Predicate:
    """What skipping can use of a tree; every part that it does not know is `Unknown`."""
    match tree:
        case exp.Paren():
            return _predicate(tree.this, context)
        case exp.And():
            return And((_predicate(tree.left, context), _predicate(tree.right, context)))
        case exp.Or():
            return Or((_predicate(tree.left, context), _predicate(tree.right, context)))
        case exp.Not():
            return Not(_predicate(tree.this, context))
        case exp.Boolean():
            return Always(bool(tree.this))
        case exp.Is():
            return _is_null(tree, context)
        case exp.In():
            return _in(tree, context)
        case exp.Between():
            return _between(tree, context)
        case exp.Like():
            return _like(tree, context)
    operator = _OPERATORS.get(type(tree))
    if operator is None or not isinstance(tree, exp.Binary):
        return Unknown()
    return _compare(operator, tree.left, tree.right, context)


def _compare(operator: str, left: exp.Expr, right: exp.Expr, context: Context) -> Predicate:
    if (name := _column_name(left, context)) is not None and (value := _literal(right, context)) is not None:
        return Compare(name, operator, value[0])  # type: ignore[arg-type]
    if (name := _column_name(right, context)) is not None and (value := _literal(left, context)) is not None:
        return Compare(name, _FLIPPED[operator], value[0])  # type: ignore[arg-type]
    return Unknown()


def _is_null(tree: exp.Is, context: Context) -> Predicate:
    name = _column_name(tree.this, context)
    return IsNull(name) if name is not None and isinstance(tree.expression, exp.Null) else Unknown()


def _in(tree: exp.In, context: Context) -> Predicate:
    name, values = _column_name(tree.this, context), [_literal(value, context) for value in tree.expressions]
    if name is None or not values or tree.args.get("query") or any(value is None for value in values):
        return Unknown()
    return In(name, tuple(value[0] for value in values if value is not None))


def _between(tree: exp.Between, context: Context) -> Predicate:
    low, high = tree.args["low"], tree.args["high"]
    if tree.args.get("symmetric"):
        return Unknown()
    return And((_compare(">=", tree.this, low, context), _compare("<=", tree.this, high, context)))


def _like(tree: exp.Like, context: Context) -> Predicate:
    name, pattern = _column_name(tree.this, context), _literal(tree.expression, context)
    if name is None or pattern is None or not isinstance(pattern[0], str):
        return Unknown()
    prefix = re.fullmatch(r"([^%_\\]+)%", pattern[0])
    return StartsWith(name, prefix[1]) if prefix else Unknown()


def _column_name(tree: exp.Expr, context: Context) -> str | None:
    tree = tree.unnest()
    if not isinstance(tree, exp.Column) or len(tree.parts) != 1:
        return None
    found = context.schema.find(tree.name)
    return found.name if found is not None and isinstance(found.type, str) else None


def _literal(tree: exp.Expr, context: Context) -> tuple[Any] | None:
    """The value of a literal in a tuple of one (it may be NULL), or None where it is none."""
    tree = tree.unnest()
    match tree:
        case exp.Null():
            return (None,)
        case exp.Boolean():
            return (bool(tree.this),)
        case exp.Literal():
            return (str(tree.this),) if tree.is_string else _number(str(tree.this))
        case exp.Neg():
            inner = _literal(tree.this, context)
            return (-inner[0],) if inner and isinstance(inner[0], int | float | Decimal) else None
        case exp.Cast() if isinstance(tree.this, exp.Literal) and tree.this.is_string:
            return _moment_literal(str(tree.this.this), tree.to.this, context)
    return None


def _number(text: str) -> tuple[Any] | None:
    if re.fullmatch(r"\d+", text):
        return (int(text),)
    if re.fullmatch(r"\d*\.\d*", text) and text != ".":
        return (Decimal(text),)
    return (float(text),) if re.fullmatch(r"[\d.]+[eE][+-]?\d+", text) else None


def _moment_literal(text: str, kind: Any, context: Context) -> tuple[Any] | None:
    """DATE '…' and TIMESTAMP '…' in their full forms."""
    try:
        if kind == exp.DataType.Type.DATE and re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            return (dt.date.fromisoformat(text),)
        if kind in (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ):
            return _timestamp(text, context.zone)
    except (ValueError, KeyError):
        return None
    return None


def _timestamp(text: str, zone: str) -> tuple[Any] | None:
    match = re.fullmatch(r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(\.\d{1,6})?( UTC|Z)?", text)
    if not match:
        return None
    micros = (match[3] or ".0")[1:].ljust(6, "0")
    naive = dt.datetime.fromisoformat(f"{match[1]}T{match[2]}.{micros}")
    if match[4]:
        return (naive.replace(tzinfo=dt.timezone.utc),)
    first, second = (naive.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(dt.timezone.utc) for fold in (0, 1))
    return (first,) if first == second else None  # a clock change makes it ambiguous


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")
