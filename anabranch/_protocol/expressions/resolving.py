"""Resolving: turns the syntax of an expression into a tree of columns, functions and types.

Knows the table of functions and Spark's typing rules. Guarantee: a part that is not `SparkOnly` has the type and the
arguments that Spark gives it, whatever the session's settings; a `SparkOnly` part has the reason why only Spark
computes it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isinf

from anabranch._protocol.expressions import (  # noqa: F401 - they fill the table
    arrays,
    comparisons,
    conditionals,
    datetime_patterns,
    datetimes,
    digests,
    numbers,
    texts,
)
from anabranch._protocol.expressions import syntax as S
from anabranch._protocol.expressions.casts import CAST, cast_fit
from anabranch._protocol.expressions.common_types import (
    FLOAT_INTEGERS,
    MOMENTS,
    MOST_DIGITS,
    WIDTHS,
    is_canonical_text,
    is_date,
)
from anabranch._protocol.expressions.intervals import DIFFERENCE, MOVE, span_of
from anabranch._protocol.expressions.table import TABLE, Argument, ArgumentsNotSupported, Function
from anabranch._protocol.expressions.tree import Apply, Constant, Expression, SparkOnly
from anabranch._protocol.predicates import date_of
from anabranch._protocol.schema.types import INTEGERS, VOID, DataType, decimal_of

_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("tinyint", "byte"), "byte"),
    **dict.fromkeys(("smallint", "short"), "short"),
    **dict.fromkeys(("int", "integer"), "integer"),
    **dict.fromkeys(("bigint", "long"), "long"),
    **dict.fromkeys(("float", "real"), "float"),
    **dict.fromkeys(("dec", "decimal", "numeric"), "decimal(10,0)"),
    **{name: name for name in ("boolean", "double", "string", "binary", "date", "timestamp_ntz")},
    "timestamp_ltz": "timestamp",
}
"""Types by their SQL names; ``timestamp`` means one of two types (`TIMESTAMPS`)."""
_DECIMAL_TYPE = re.compile(r"(?:decimal|dec|numeric)\((\d+)(?:, (\d+))?\)")
_CASTS = frozenset({"bigint", "boolean", "date", "double", "float", "int", "smallint", "string", "tinyint"})
"""Functions that are casts to the type of their name; ``decimal`` is left to Spark."""
_EXTRACT_FIELDS: Mapping[str, str] = {
    **{name: name for name in ("year", "quarter", "month", "day", "dayofweek", "minute", "hour")},
    **{"years": "year", "quarters": "quarter", "months": "month", "days": "day", "hours": "hour", "minutes": "minute"},
    **{"dow": "dayofweek", "doy": "dayofyear", "week": "weekofyear", "weeks": "weekofyear"},
}
TIMESTAMPS = "spark.sql.timestampType"
TIMESTAMP_TYPES: Mapping[str, str] = {"TIMESTAMP_LTZ": "timestamp", "TIMESTAMP_NTZ": "timestamp_ntz"}
"""The type that TIMESTAMP means, by the value of that setting."""
_COMPARISONS = frozenset({"=", "<=>", "!=", "<", "<=", ">", ">=", "in", "between", "nullif"})
_DATE_FUNCTIONS = {"+": "date_add", "-": "date_sub"}
"""The function that a sign means between a date and an integer."""
_TO_TIMESTAMP = frozenset({"timestamp", "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz"})
_ADDS_UNITS = frozenset({"dateadd", "date_add", "timestampadd"})
_COUNTS_UNITS = frozenset({"datediff", "date_diff", "timestampdiff"})
_PATTERN_PARSERS: Mapping[str | None, str] = {"timestamp": "to_timestamp_ltz", "timestamp_ntz": "to_timestamp_ntz"}
"""The function that parses a text by a pattern, by its result type."""
_FUNCTION_OPERATORS = frozenset({"between", "not"})
"""Operators that Spark may look up as functions."""
_BARE_FUNCTIONS = frozenset(
    """current_catalog current_database current_date current_schema current_time current_timestamp current_timezone
    current_user localtimestamp session_user user""".split()  # noqa: SIM905
)
"""Words that are functions or columns, depending on a setting."""
_NUMBER = re.compile(r"(-?)(\d*(?:\.\d*)?)(e[+-]?\d+)?(bd|[lsydf])?", re.IGNORECASE)
_TIMESTAMP_TEXT = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}:\d{2})(\.\d{1,6})?( UTC|Z)?)?")

_UNCERTAIN = re.compile(r"\$\{|[\ud800-\udfff]")
"""Parts of texts that only Spark reads: a session replaces the first, and the others are halves of characters."""
_FLOAT_DIGITS = 15
"""A number of at most this many digits is on the same side of every integer as its ``double``."""


@dataclass(frozen=True)
class AlteringSetting:
    """A setting that changes the meaning of some entries.

    Attributes:
        usual: the value with which Anabranch computes them.
        entries: the names of the entries.
        alters: whether it changes the meaning for these arguments.
    """

    usual: str
    entries: frozenset[str]
    alters: Callable[[Sequence[Expression]], bool]


def _has_moment_and_text(arguments: Sequence[Expression]) -> bool:
    kinds = {argument.type for argument in arguments if isinstance(argument.type, str)}
    return "string" in kinds and bool(kinds & {*MOMENTS})


def _has_decimal(arguments: Sequence[Expression]) -> bool:
    return any(isinstance(argument.type, str) and decimal_of(argument.type) is not None for argument in arguments)


def _has_decimal_and_whole_literal(arguments: Sequence[Expression]) -> bool:
    is_whole = any(isinstance(argument, Constant) and argument.type in INTEGERS for argument in arguments)
    return is_whole and _has_decimal(arguments)


ALTERING: Mapping[str, AlteringSetting] = {
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": AlteringSetting(
        "false", _COMPARISONS, _has_moment_and_text
    ),
    "spark.sql.legacy.literal.pickMinimumPrecision": AlteringSetting(
        "true", frozenset({*"+-*/%", "pmod"}), _has_decimal_and_whole_literal
    ),
    "spark.sql.legacy.timeParserPolicy": AlteringSetting(
        "corrected",
        frozenset({"date_format", "to_date", "to_timestamp_ltz", "to_timestamp_ntz"}),
        lambda arguments: True,
    ),
    "spark.sql.decimalOperations.allowPrecisionLoss": AlteringSetting("true", frozenset("+-*"), _has_decimal),
}
"""All such settings by name, except those that have their own field in `Scope`."""


def altered_settings(settings: Mapping[str, str]) -> frozenset[str]:
    """The names of those settings whose value differs from the usual one."""
    return frozenset(
        name for name, setting in ALTERING.items() if settings.get(name, setting.usual).lower() != setting.usual
    )


Columns = Callable[[tuple[str, ...]], "Expression | None"]
"""Returns the column, or member of one, that a dotted name means (or a `SparkOnly` with what is certain); None if no
column is certain.
"""


@dataclass(frozen=True)
class Scope:
    """The context in which an expression is resolved.

    Attributes:
        column: resolves names.
        zone: the session's time zone, if its offset never changes.
        altered: the settings that change the meaning of some entries in the session (`ALTERING`).
        timestamp: the type that TIMESTAMP means in the session (`TIMESTAMPS`); None if it is unknown.
        has_usual_quotes: whether quotes and backslashes in texts mean what they do by default; a session's settings
            decide it.
    """

    column: Columns
    zone: dt.tzinfo | None = None
    altered: frozenset[str] = frozenset()
    timestamp: str | None = None
    has_usual_quotes: Callable[[], bool] = lambda: False


def resolve(node: S.Syntax, scope: Scope) -> Expression:
    """Resolve an expression.

    Example:
        >>> scope = Scope(lambda parts: Column(parts[0], "long"))
        >>> resolve(parse_expression("a + 1"), scope).type
        'long'
    """
    return _Resolver(scope).resolve(node)


class _Resolver:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def resolve(self, node: S.Syntax) -> Expression:
        match node:
            case S.Literal():
                return _literal(node, self._scope)
            case S.TypedLiteral():
                return _typed_literal(node, self._scope)
            case S.Name():
                name = ".".join(node.parts)
                is_function = node.quoted == (False,) and name.lower() in _BARE_FUNCTIONS
                column = None if is_function else self._scope.column(node.parts)
                return column if column is not None else SparkOnly(f"the name `{name}` is no column that is certain")
            case S.Operation(operator=("+" | "-") as sign, operands=(one, S.Interval() as other)):
                return self._add_interval(one, other, is_negative=sign == "-")
            case S.Operation(operator="+", operands=(S.Interval() as one, other)):
                return self._add_interval(other, one)
            case S.Operation():
                called = node.operator if node.operator in _FUNCTION_OPERATORS else ""
                operands = [self.resolve(operand) for operand in node.operands]
                return self._apply(node.operator, operands, f"`{node.operator}`", called=called)
            case S.Case():
                return self._case(node)
            case S.Cast():
                return self._cast(node)
            case S.Call():
                return self._call(node)
            case S.Member():
                return self._spark_only(node, "a member of what is computed")
            case S.Subscript():
                return self._apply("[]", [self.resolve(node.operand), self.resolve(node.index)], "`[]`")
            case S.Lambda():
                return self._spark_only(node, "a function of a function")
        return self._spark_only(node, "an interval" if isinstance(node, S.Interval) else "columns in a text")

    def _spark_only(self, node: S.Syntax, reason: str, called: str = "") -> SparkOnly:
        return SparkOnly(
            f"{reason} is computed by Spark", called, tuple(self.resolve(part) for part in S.parts_of(node))
        )

    # -- functions -----------------------------------------------------------------------------------------------------

    def _apply(self, name: str, arguments: Sequence[Expression], shown: str, *, called: str = "") -> Expression:
        entry = TABLE.get(_DATE_FUNCTIONS.get(name, name) if _is_date_and_number(arguments) else name)
        if entry is None:
            return SparkOnly(f"{shown} is not in the table of functions", called, tuple(arguments))
        for setting in self._scope.altered:
            if entry.name in ALTERING[setting].entries and ALTERING[setting].alters(arguments):
                reason = f"by the setting {setting} it means something else"
                return SparkOnly(f"{shown}: {reason}", called, tuple(arguments), _type_of(name), entry.name)
        foreign = next((argument for argument in arguments if isinstance(argument, SparkOnly)), None)
        if foreign is not None and not entry.is_lazy:
            return SparkOnly(foreign.reason, called, tuple(arguments), _type_of(name), entry.name)
        return apply_function(entry, arguments, shown, called)

    def _add_interval(self, moved: S.Syntax, by: S.Interval, *, is_negative: bool = False) -> Expression:
        """Add an interval to a date or timestamp."""
        operand, span = self.resolve(moved), span_of(by, is_negative=is_negative)
        if span is None or operand.type not in MOMENTS or isinstance(operand, SparkOnly):
            parts = (operand, *(self.resolve(piece) for piece in S.parts_of(by)))
            return SparkOnly("an interval is added by Spark", "", parts)
        if operand.type != "date":
            return Apply(MOVE, (operand,), operand.type, (span.unit, span.amount))
        if span.unit not in ("months", "days"):
            return SparkOnly("a date with hours is computed by Spark", "", (operand,))
        name, count = ("add_months", span.amount) if span.unit == "months" else ("date_add", span.days)
        return apply_function(TABLE[name], [operand, Constant(count, "integer")], "`INTERVAL`")

    def _case(self, node: S.Case) -> Expression:
        parts: list[Expression] = []
        for condition, value in node.branches:
            when = self.resolve(condition)
            if node.operand is not None:
                when = self._apply("=", [self.resolve(node.operand), when], "`CASE`")
            parts += [when, self.resolve(value)]
        parts += [] if node.otherwise is None else [self.resolve(node.otherwise)]
        return self._apply("case", parts, "`CASE`")

    def _cast(self, node: S.Cast) -> Expression:
        word = node.type.lower()
        operand, to = self.resolve(node.operand), self._scope.timestamp if word == "timestamp" else type_of(word)
        if to is not None and node.how == "cast":
            return self._cast_to(operand, to)
        function = "timestamp" if word == "timestamp" else "cast" if to is not None else ""
        return SparkOnly(f"`{node.how}` to {word} is computed by Spark", "", (operand,), to, function)

    def _cast_to(self, operand: Expression, to: str, called: str = "") -> Expression:
        if isinstance(operand, SparkOnly):
            return SparkOnly(operand.reason, called, (operand,), to, "cast")
        try:
            cast = coerce(operand, to)
        except ArgumentsNotSupported as error:
            return SparkOnly(f"`CAST`: {error}", called, (operand,), to, "cast")
        # A cast literal is no literal any more, so decimals no longer take as few digits as it has.
        return Apply(CAST, (cast,), to, called=called) if called or isinstance(cast, Constant) else cast

    def _call(self, node: S.Call) -> Expression:
        name, arguments = node.name, [self.resolve(argument) for argument in node.arguments]
        if node.words:
            return self._with_words(node, arguments)
        if len(arguments) == 1 and name in _CASTS:
            return self._cast_to(arguments[0], _TYPES[name], name)
        if len(arguments) == 1 and name == "to_date":
            return self._cast_to(arguments[0], "date", name)
        if len(arguments) == 1 and name in _TO_TIMESTAMP:
            to = self._timestamp_of(name)
            if to is not None:
                return self._cast_to(arguments[0], to, name)
            return SparkOnly(f"`{name}` is computed by Spark", name, tuple(arguments), None, "timestamp")
        if len(arguments) == 2 and name == "to_timestamp" and self._scope.timestamp is not None:
            return self._apply(_PATTERN_PARSERS[self._scope.timestamp], arguments, f"`{name}`", called=name)
        return self._apply(name, arguments, f"`{name}`", called=name)

    def _timestamp_of(self, name: str) -> str | None:
        """The result type of a function of this name; None if an unknown setting decides it."""
        types = {"timestamp": "timestamp", "to_timestamp_ltz": "timestamp", "to_timestamp_ntz": "timestamp_ntz"}
        return types.get(name, self._scope.timestamp)

    def _with_words(self, node: S.Call, arguments: list[Expression]) -> Expression:
        """A call with keywords between its arguments."""
        name, words = node.name, node.words
        if name == "extract":
            field = _EXTRACT_FIELDS.get(words[0].split()[0].lower())
            return self._apply(field or "", arguments, f"`EXTRACT({words[0]} …)`", called=name)
        if name in ("substring", "substr") and set(words) <= {"", "FROM", "FOR", ","}:
            return self._apply(name, arguments, f"`{name}`")
        if name == "position":
            return self._apply(name, arguments, "`POSITION`")
        trims = {"BOTH FROM": "trim", "LEADING FROM": "ltrim", "TRAILING FROM": "rtrim", "FROM": "trim"}
        if name == "trim" and len(words) == 1 and words[0] in trims:
            return self._apply(trims[words[0]], arguments, "`TRIM`")
        if name in _ADDS_UNITS | _COUNTS_UNITS:
            return self._with_unit(name, words[0].removesuffix(" ,"), *arguments)
        return SparkOnly(f"`{name}` in this form is computed by Spark", name, tuple(arguments))

    def _with_unit(self, name: str, unit: str, first: Expression, second: Expression) -> Expression:
        """A call with a unit as its first argument: of the grammar, so that no session has another function for it."""
        foreign = next((argument for argument in (first, second) if isinstance(argument, SparkOnly)), None)
        if foreign is not None:
            return SparkOnly(foreign.reason, "", (first, second))
        word = Constant(unit, "string")
        if name in _ADDS_UNITS:
            return apply_function(MOVE, [second, first, word], f"`{name}`")
        return apply_function(DIFFERENCE, [first, second, word], f"`{name}`")


def _is_date_and_number(arguments: Sequence[Expression]) -> bool:
    kinds = [argument.type for argument in arguments]
    return len(kinds) == 2 and kinds[0] == "date" and kinds[1] in INTEGERS


def apply_function(entry: Function, arguments: Sequence[Expression], shown: str, called: str = "") -> Expression:
    """Apply an entry to arguments, which are cast to the types that it takes."""
    try:
        fit = entry.fit([_to_argument(argument) for argument in arguments])
        takes = [coerce(argument, to) for argument, to in zip(arguments, fit.takes, strict=False)]
    except ArgumentsNotSupported as error:
        return SparkOnly(f"{shown}: {error}", called, tuple(arguments), _type_of(entry.name), entry.name)
    return Apply(entry, tuple(takes), fit.gives, fit.options, called)


def coerce(node: Expression, to: DataType) -> Expression:
    """Cast an expression to a type. Raises ArgumentsNotSupported: only Spark computes this cast."""
    kind = _to_argument(node).type
    if isinstance(node, SparkOnly):
        if kind == to or (kind is None and to == "boolean"):
            return node
        raise ArgumentsNotSupported("an argument has an unknown type")
    if kind == to:
        return node
    if isinstance(node, Constant) and isinstance(to, str) and (constant := _constant(node, to)) is not None:
        return constant
    fit = cast_fit(_to_argument(node), to)
    return Apply(CAST, (node,), fit.gives, fit.options)


def _constant(node: Constant, to: str) -> Constant | None:
    """Convert a constant to another type, if every engine converts it alike."""
    value = node.value
    if value is None:
        return Constant(None, to)
    if node.type in INTEGERS and to in INTEGERS:
        return Constant(value, to) if abs(value) >> WIDTHS[to] == 0 else None
    if node.type == "string" and to in INTEGERS:
        return Constant(int(value), to) if is_canonical_text(value, to) else None
    if node.type == "string" and to == "date":
        return Constant(date_of(value), to) if is_date(value) else None
    exact = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if exact and to == "double":
        return Constant(float(value), to)
    if node.type in INTEGERS and to == "float" and abs(value) <= FLOAT_INTEGERS:
        return Constant(float(value), to)
    if exact and (digits := decimal_of(to)) is not None:
        scale = max(-int(Decimal(value).as_tuple().exponent), 0)
        fits = scale <= digits[1] and Decimal(value).adjusted() + 1 <= digits[0] - digits[1]
        return Constant(Decimal(value), to) if fits or not value else None
    return None


def _to_argument(node: Expression) -> Argument:
    if isinstance(node, Constant):
        return Argument(node.type, (node.value,))
    return Argument(node.type)


def _type_of(name: str) -> DataType | None:
    """The type of an operator's value, if it is the same for all arguments."""
    always = ("=", "!=", "<", "<=", ">", ">=", "<=>", "in", "between", "and", "or", "not", "like", "ilike", "rlike")
    return "boolean" if name in always or name.startswith("is ") else None


# -- types -------------------------------------------------------------------------------------------------------------


def type_of(spelling: str) -> str | None:
    """The type of an SQL spelling; None if it is nested, has a length, or depends on a setting."""
    word = spelling.lower()
    sized = _DECIMAL_TYPE.fullmatch(word)
    if sized is None:
        return _TYPES.get(word)
    precision, scale = int(sized[1]), int(sized[2] or 0)
    return f"decimal({precision},{scale})" if 1 <= precision <= MOST_DIGITS and scale <= precision else None


# -- literals ----------------------------------------------------------------------------------------------------------


def _literal(node: S.Literal, scope: Scope) -> Expression:
    match node.kind:
        case "null":
            return Constant(None, VOID)
        case "boolean":
            return Constant(node.text == "true", "boolean")
        case "number":
            return _number(node.text)
        case "text" if node.is_certain or _is_as_usual(node, scope):
            return Constant(node.text, "string")
        case "text":
            return SparkOnly("Spark's settings decide what a text with quotes or backslashes means", type="string")
    return SparkOnly("bytes are computed by Spark", type="binary")


def _is_as_usual(text: S.Literal, scope: Scope) -> bool:
    """Whether a text with quotes or backslashes means in the session what it does by default."""
    return not text.is_printed and not _UNCERTAIN.search(text.text) and scope.has_usual_quotes()


def _number(text: str) -> Expression:
    match = _NUMBER.fullmatch(text)
    assert match is not None, text
    sign, digits, exponent, suffix = match[1], match[2], match[3] or "", (match[4] or "").lower()
    if suffix in ("l", "s", "y", "") and "." not in digits and not exponent:
        kind = {"l": "long", "s": "short", "y": "byte"}.get(suffix)
        return _whole(int(sign + digits), kind)
    if suffix in ("f", "d") or exponent:
        return _floating(sign + digits + exponent, suffix)
    if suffix in ("l", "s", "y"):
        return SparkOnly("a number with a fraction and the suffix of whole ones is no number to Spark")
    return _decimal(Decimal(sign + digits))


def _whole(value: int, kind: str | None) -> Expression:
    for type_ in (kind,) if kind else ("integer", "long"):
        if -(1 << WIDTHS[type_]) <= value < 1 << WIDTHS[type_]:
            return Constant(value, type_)
    return SparkOnly("a whole number beyond its type is read by Spark") if kind else _decimal(Decimal(value))


def _floating(text: str, suffix: str) -> Expression:
    number = Constant(float(text), "double")
    if isinf(number.value):
        return SparkOnly("a number beyond its type is refused by Spark")
    if suffix == "d":
        return number
    is_known = not suffix and len(Decimal(text).as_tuple().digits) <= _FLOAT_DIGITS
    parts, function = ((number,), "double") if is_known else ((), "")
    return SparkOnly("a number with an exponent is of another type by a setting", "", parts, None, function)


def _decimal(value: Decimal) -> Expression:
    value = value or abs(value)  # a zero of Spark's has no sign
    digits, exponent = value.as_tuple()[1:]
    scale = max(-int(exponent), 0)
    precision = max(len(digits) + max(int(exponent), 0), scale)
    if precision > MOST_DIGITS:
        return SparkOnly("a number of too many digits is read by Spark")
    return Constant(value, f"decimal({max(precision, 1)},{scale})")


def _typed_literal(node: S.TypedLiteral, scope: Scope) -> Expression:
    """Resolve DATE '…' and TIMESTAMP '…' in their full forms."""
    text = node.text
    try:
        literal = _moment(node.kind, text.text, scope) if text.is_certain else None
    except (ValueError, OverflowError):
        literal = None
    return literal or SparkOnly(f"what {node.kind.upper()} {text.spelling} means is read by Spark")


def _moment(kind: str, text: str, scope: Scope) -> Expression | None:
    match = _TIMESTAMP_TEXT.fullmatch(text)
    if match is None or (kind == "date" and (match[2] or match[4])):
        return None
    if kind == "date":
        return Constant(dt.date.fromisoformat(match[1]), "date")
    micros = (match[3] or ".0")[1:].ljust(6, "0")
    local = dt.datetime.fromisoformat(f"{match[1]}T{match[2] or '00:00:00'}.{micros}")
    if kind == "timestamp" and not match[4]:
        kind = scope.timestamp or kind
    if kind == "timestamp_ntz":
        return None if match[4] else Constant(local, kind)
    if match[4]:
        return Constant(local.replace(tzinfo=dt.UTC), "timestamp")
    # By a setting ``timestamp`` means a local time; read as an instant it is the same.
    if scope.zone is None:
        reason = "the instant of a local time is uncertain where the offset of the session's time zone changes"
        return SparkOnly(reason, "", (Constant(local, "timestamp_ntz"),), None, "timestamp")
    return Constant(local.replace(tzinfo=scope.zone).astimezone(dt.UTC), "timestamp")
