"""Trees: what file skipping can use of a condition.

Every part that is not known for certain is `Unknown`. A node with an argument that is not looked at here (a negation
folded into it, an ESCAPE) is not known.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from anabranch.expressions import terms
from anabranch.expressions.context import Context
from anabranch.expressions.dialect import TokenizedText
from anabranch.expressions.instants import is_fixed
from anabranch.expressions.terms import Column, Term
from anabranch.expressions.tokens import DIALECT, is_misread, reads_one_way, without_strangers
from anabranch.protocol.predicates import Always, And, Compare, In, Not, Or, Predicate, StartsWith, Unknown
from anabranch.protocol.rules.table_rules import char_length
from anabranch.protocol.schema.assignments import spelled
from anabranch.protocol.schema.leaves import leaf_at
from anabranch.protocol.schema.types import INTEGERS, Struct


def columns_of(tree: exp.Expr | None, schema: Struct) -> frozenset[str] | None:
    """The top-level columns that are named; None where some name is none (a variable, a lambda's argument)."""
    names = set()
    for column in () if tree is None else tree.find_all(exp.Column):
        first = column.parts[0].name
        found = schema.find(first)
        if found is None or (len(column.parts) > 1 and isinstance(found.type, str)):
            return None
        names.add(found.name)
    return None if tree is None else frozenset(names)


def conjuncts(text: str, context: Context) -> list[tuple[str, Predicate]]:
    """The parts of a condition that AND joins, each with what skipping can use of it; whole where it cannot be read."""
    given = TokenizedText(text)
    tree, shown = known_tree(given, context), given.tree
    if tree is None or shown is None:
        return [(text, Unknown())]
    parts, texts = _joined(tree), _joined(shown)
    try:
        if len(parts) != len(texts):
            return [(text, predicate_of(tree, context))]
        return [(as_text.sql(DIALECT), predicate_of(part, context)) for part, as_text in zip(parts, texts, strict=True)]
    except (RecursionError, SqlglotError):  # what is long or deep is written by functions that call themselves
        return [(text, Unknown())]


def _joined(tree: exp.Expr) -> list[exp.Expr]:
    found, left = [], [tree]
    while left:
        node = left.pop().unnest()
        if isinstance(node, exp.And):
            left += [node.right, node.left]
        else:
            found.append(node)
    return found


def _chain(tree: exp.Expr, kind: type[exp.And] | type[exp.Or]) -> list[exp.Expr] | None:
    """The parts that AND, or OR, joins side by side, however many; None where one of these nodes is not understood."""
    found, left = [], [tree]
    while left:
        node = left.pop()
        if not isinstance(node, kind):
            found.append(node)
        elif is_whole(node):
            left += [node.right, node.left]
        else:
            return None
    return found


_UNDERSTOOD = frozenset({"this", "expression", "expressions", "low", "high"})


def is_whole(tree: exp.Expr, known: Collection[str] = _UNDERSTOOD) -> bool:
    """Whether a node has only arguments that are looked at: some versions fold NOT, ESCAPE or ANY into a node."""
    return all(not value or name in known for name, value in tree.args.items())


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


def known_tree(text: TokenizedText, context: Context) -> exp.Expr | None:
    """The tree of a condition for skipping: what is no function of Spark's own stands there as an unknown one."""
    if not reads_one_way(text) or not text.is_readable or is_misread(text):
        return None
    return without_strangers(text, context).tree


def readable_tree(
    text: TokenizedText, context: Context, is_known: Callable[[exp.Expr], bool]
) -> tuple[exp.Expr | None, bool]:
    """The `known_tree` of a text, and whether ``is_known`` of its names. That is asked of the known tree first, and of
    the text's own only where a function's arguments can be read in no other way, as in ``extract(YEAR FROM at)``.
    """
    known = known_tree(text, context)
    if known is not None and is_known(known):
        return known, True
    return known, text.tree is not None and is_known(text.tree)


def predicate_of(tree: exp.Expr | None, context: Context) -> Predicate:
    """What skipping can use of a `known_tree`; every part that it does not know is `Unknown`."""
    if isinstance(tree, exp.Column | exp.Dot):
        return _flag(tree, context)
    if isinstance(tree, exp.Like) and tree.args.get("negate"):  # some versions fold NOT into it
        return Not(predicate_of(exp.Like(this=tree.this, expression=tree.expression), context))
    if tree is None or not is_whole(tree):
        return Unknown()
    match tree:
        case exp.Paren():
            return predicate_of(tree.this, context)
        case exp.And():
            parts = _chain(tree, exp.And)
            return Unknown() if parts is None else And(tuple(predicate_of(part, context) for part in parts))
        case exp.Or():
            parts = _chain(tree, exp.Or)
            return Unknown() if parts is None else Or(tuple(predicate_of(part, context) for part in parts))
        case exp.Not():
            return Not(predicate_of(tree.this, context))
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
        case exp.StartsWith():
            return _starts_with(tree, context)
        case exp.NullSafeNEQ():
            return Not(_compare("<=>", tree.left, tree.right, context))
    operator = _OPERATORS.get(type(tree))
    if operator is None or not isinstance(tree, exp.Binary):
        return Unknown()
    return _compare(operator, tree.left, tree.right, context)


def _compare(operator: str, left: exp.Expr, right: exp.Expr, context: Context) -> Predicate:
    for either, other in ((left, right), (right, left)):
        if (char := _char_of(either, context)) is not None:
            return _padded_equal(char, literal_of(other, context), operator)
    if (term := term_of(left, context)) is not None and (value := literal_of(right, context)) is not None:
        return _comparison(term, operator, value[0], context)
    if (term := term_of(right, context)) is not None and (value := literal_of(left, context)) is not None:
        return _comparison(term, _FLIPPED[operator], value[0], context)
    return Unknown()


def _char_of(tree: exp.Expr, context: Context) -> tuple[str, int] | None:
    """The name and the length of a column of char."""
    name = name_of(tree, context)
    length = None if name is None else char_length(context.schema.field(name))
    return None if name is None or length is None else (name, length)


def _padded_equal(char: tuple[str, int], value: tuple[Any] | None, operator: str) -> Predicate:
    """What equality with a text says of a column of char, which is padded when it is compared: what files hold lies
    between the text without the blanks at its end, and with as many as the column takes. No more is certain.
    """
    name, length = char
    if value is None or not isinstance(value[0], str) or operator not in ("=", "<=>", "!="):
        return Unknown()
    shortest = value[0].rstrip(" ")
    if len(shortest) > length or operator == "!=":
        return Unknown()
    longest = shortest.ljust(length)
    return And((Compare(name, ">=", shortest), Compare(name, "<=", longest), Unknown()))


def _comparison(term: Term, operator: str, value: Any, context: Context) -> Predicate:
    """A comparison; for ``<=>`` only with a literal of the column's own kind: a text that is no date becomes NULL
    without ANSI rules, and then equals the NULLs of a date column.
    """
    if not isinstance(term, Column) or (value is not None and _meet_elsewhere(term.type, value)):
        return terms.compared(term, operator, value, context.tzinfo)
    kinds = [kind for kind, columns in _KINDS.items() if term.type in columns]
    if operator == "<=>" and value is not None and type(value) not in kinds:
        return Unknown()
    return Compare(term.name, operator, value)  # type: ignore[arg-type]


def _meet_elsewhere(column: str, value: Any) -> bool:
    """Whether Spark brings a time and a literal of another kind to one type before it compares them."""
    match column:
        case "date":
            return isinstance(value, dt.datetime)
        case "timestamp":
            return isinstance(value, str | dt.date) and not is_fixed(getattr(value, "tzinfo", None))
        case "timestamp_ntz":
            return isinstance(value, str | dt.date)
    return False


_KINDS: Mapping[type, tuple[str, ...]] = {
    int: INTEGERS,
    str: ("string",),
    bool: ("boolean",),
    dt.date: ("date",),
    dt.datetime: ("timestamp",),
}


def _flag(tree: exp.Expr, context: Context) -> Predicate:
    """A boolean column by itself."""
    term = term_of(tree, context)
    return Compare(term.name, "=", True) if isinstance(term, Column) and term.type == "boolean" else Unknown()


def _is_null(tree: exp.Is, context: Context) -> Predicate:
    term = term_of(tree.this, context)
    if term is None and isinstance(tree.expression, exp.Null):
        name = _path(tree.this, context)
        leaf = None if name is None else leaf_at(context.schema, name)  # a list, or a map
        term = None if name is None or leaf is None else Column(name, "")
    return terms.is_null(term) if term is not None and isinstance(tree.expression, exp.Null) else Unknown()


def _in(tree: exp.In, context: Context) -> Predicate:
    if (char := _char_of(tree.this, context)) is not None:
        equal = tuple(_padded_equal(char, literal_of(value, context), "=") for value in tree.expressions)
        return Or(equal or (Unknown(),))
    term, values = term_of(tree.this, context), [literal_of(value, context) for value in tree.expressions]
    if term is None or not values or any(value is None for value in values):
        return Unknown()
    known = tuple(value[0] for value in values if value is not None)
    if isinstance(term, Column) and not any(_meet_elsewhere(term.type, value) for value in known):
        return In(term.name, known)
    return terms.is_one_of(term, known, context.tzinfo)


def _between(tree: exp.Between, context: Context) -> Predicate:
    low, high = tree.args["low"], tree.args["high"]
    return And((_compare(">=", tree.this, low, context), _compare("<=", tree.this, high, context)))


def _like(tree: exp.Like, context: Context) -> Predicate:
    term, pattern = term_of(tree.this, context), literal_of(tree.expression, context)
    if not isinstance(term, Column) or term.type != "string" or pattern is None or not isinstance(pattern[0], str):
        return Unknown()
    prefix, rest = re.fullmatch(r"([^%_]*)(.*)", pattern[0], re.DOTALL).groups()  # type: ignore[union-attr]
    if not rest:
        return Compare(term.name, "=", prefix)
    starts: Predicate = StartsWith(term.name, prefix) if prefix else Unknown()
    return starts if rest.strip("%") == "" else And((starts, Unknown()))


def _starts_with(tree: exp.StartsWith, context: Context) -> Predicate:
    term, prefix = term_of(tree.this, context), literal_of(tree.expression, context)
    if not isinstance(term, Column) or term.type != "string" or prefix is None or not isinstance(prefix[0], str):
        return Unknown()
    return StartsWith(term.name, prefix[0])


# -- what is compared --------------------------------------------------------------------------------------------------

_TYPES: Mapping[Any, str] = {
    exp.DataType.Type.TINYINT: "byte",
    exp.DataType.Type.SMALLINT: "short",
    exp.DataType.Type.INT: "integer",
    exp.DataType.Type.BIGINT: "long",
    exp.DataType.Type.FLOAT: "float",
    exp.DataType.Type.DOUBLE: "double",
    exp.DataType.Type.DATE: "date",
    exp.DataType.Type.TIMESTAMP: "timestamp",
    exp.DataType.Type.TIMESTAMPTZ: "timestamp",
    exp.DataType.Type.TIMESTAMPLTZ: "timestamp",
    exp.DataType.Type.TIMESTAMPNTZ: "timestamp_ntz",
}
_ARGUMENTS: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Cast: frozenset({"this", "to", "_type"}),
    exp.TryCast: frozenset({"this", "to", "_type", "safe"}),
    exp.TsOrDsToDate: frozenset({"this"}),
    exp.Year: frozenset({"this"}),
    exp.TimestampTrunc: frozenset({"this", "unit"}),
    exp.DateTrunc: frozenset({"this", "unit"}),
}


def term_of(tree: exp.Expr, context: Context) -> Term | None:
    """A column, a member of one, or a function of one that never falls; None for all else."""
    tree = tree.unnest()
    if isinstance(tree, exp.Column | exp.Dot):
        name = _path(tree, context)
        leaf = None if name is None or _char_of(tree, context) is not None else leaf_at(context.schema, name)
        return Column(name, leaf.type) if leaf and name is not None and isinstance(leaf.type, str) else None
    known = _ARGUMENTS.get(type(tree))
    if known is None or not is_whole(tree, known):
        return None
    inner = term_of(tree.this, context)
    return None if inner is None else _applied(tree, inner)


def _applied(tree: exp.Expr, inner: Term) -> Term | None:
    match tree:
        case exp.Cast():
            to = _type_name(tree.to)
            return None if to is None else terms.cast(inner, to)
        case exp.TsOrDsToDate():
            return terms.cast(inner, "date") if inner.type in ("date", "timestamp", "timestamp_ntz") else None
        case exp.Year():
            return terms.year(inner)
    unit = tree.args.get("unit")
    if not isinstance(unit, exp.Var | exp.Literal):
        return None
    return terms.truncated(inner, unit.name, "timestamp" if isinstance(tree, exp.TimestampTrunc) else "date")


def _type_name(tree: exp.DataType) -> str | None:
    digits = [each.name for each in tree.expressions]
    if tree.this == exp.DataType.Type.DECIMAL and len(digits) == 2 and all(each.isdigit() for each in digits):
        return f"decimal({digits[0]},{digits[1]})"
    return None if digits else _TYPES.get(tree.this)


def _path(tree: exp.Expr, context: Context) -> Any | None:
    """The name of a column, or the path of a member, as the schema spells it."""
    tree = tree.unnest()
    if not isinstance(tree, exp.Column | exp.Dot) or not all(isinstance(part, exp.Identifier) for part in tree.parts):
        return None
    path = spelled([part.name for part in tree.parts], context.schema)
    return path[0] if path is not None and len(path) == 1 else path


def name_of(tree: exp.Expr, context: Context) -> str | None:
    """The name of a top-level column, as the schema spells it; None for all else."""
    name = _path(tree, context)
    return name if isinstance(name, str) else None


def literal_of(tree: exp.Expr, context: Context) -> tuple[Any] | None:
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
            inner = literal_of(tree.this, context)
            return _negated(inner[0]) if inner else None
        case exp.Cast() if isinstance(tree.this, exp.Literal) and tree.this.is_string and _is_plain_cast(tree):
            return _moment_literal(str(tree.this.this), tree.to.this, context)
    return None


def _is_plain_cast(tree: exp.Cast) -> bool:
    """Whether it says no more than the type, and the type no more than its name."""
    return is_whole(tree, _ARGUMENTS[exp.Cast]) and not tree.to.expressions


def _negated(value: Any) -> tuple[Any] | None:
    if isinstance(value, Decimal):
        return (value.copy_negate() if value else value,)  # a minus would round to the digits of Python's context
    return (-value,) if type(value) in (int, float) else None


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
        if kind == exp.DataType.Type.TIMESTAMPNTZ:
            local = _local(text)
            return None if local is None or local[1] else (local[0],)
        if kind in (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ):
            return _timestamp(text, context.tzinfo)
    except (ValueError, KeyError, OverflowError):
        return None
    return None


def _timestamp(text: str, zone: dt.tzinfo | None) -> tuple[Any] | None:
    """An instant in UTC, or of a zone whose clocks change the local time in it: which instant that is depends on the
    edition of the zones' rules, which Python and Java each have.
    """
    local = _local(text)
    if local is None:
        return None
    naive, is_utc = local
    if is_utc:
        return (naive.replace(tzinfo=dt.UTC),)
    if zone is None:
        return None
    local_to_it = naive.replace(tzinfo=zone)
    return (local_to_it.astimezone(dt.UTC) if is_fixed(zone) else local_to_it,)


def _local(text: str) -> tuple[dt.datetime, bool] | None:
    """The date and time of a text, and whether it says UTC."""
    match = re.fullmatch(r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}:\d{2})(\.\d{1,6})?( UTC|Z)?)?", text)
    if not match:
        return None
    micros = (match[3] or ".0")[1:].ljust(6, "0")
    return dt.datetime.fromisoformat(f"{match[1]}T{match[2] or '00:00:00'}.{micros}"), bool(match[4])
