"""Trees: what file skipping can use of a condition.

Every part that is not known for certain is `Unknown`. A node with an argument that is not looked at here (a negation
folded into it, an ESCAPE) is not known.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from anabranch.protocol.predicates import Always, And, Compare, In, IsNull, Not, Or, Predicate, StartsWith, Unknown
from anabranch.protocol.schema import INTEGERS, Struct
from anabranch.sql.context import Context
from anabranch.sql.tokens import DIALECT


def parsed(text: str) -> exp.Expr | None:
    """The tree of a condition, read as what stands behind WHERE; None where sqlglot cannot read it so."""
    try:
        statements = sqlglot.parse(f"SELECT 1 WHERE ({text}\n)", dialect=DIALECT)
    except (SqlglotError, RecursionError):
        return None
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        return None
    where = statements[0].args.get("where")
    others = [
        name for name, value in statements[0].args.items() if value and name not in ("expressions", "where", "kind")
    ]
    return where.this.this if where and isinstance(where.this, exp.Paren) and not others else None


def columns_of(tree: exp.Expr, schema: Struct) -> frozenset[str] | None:
    """The top-level columns that are named; None where some name is none (a variable, a lambda's argument)."""
    names = set()
    for column in tree.find_all(exp.Column):
        first = column.parts[0].name
        found = schema.find(first)
        if found is None or (len(column.parts) > 1 and isinstance(found.type, str)):
            return None
        names.add(found.name)
    return frozenset(names)


_UNDERSTOOD = frozenset({"this", "expression", "expressions", "low", "high"})


def _is_whole(tree: exp.Expr) -> bool:
    """Whether a node has only arguments that are looked at here: some versions fold NOT, ESCAPE or ANY into a node."""
    return all(not value or name in _UNDERSTOOD for name, value in tree.args.items())


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


def predicate_of(tree: exp.Expr, context: Context) -> Predicate:
    """What skipping can use of a tree; every part that it does not know is `Unknown`."""
    if not _is_whole(tree):
        return Unknown()
    match tree:
        case exp.Paren():
            return predicate_of(tree.this, context)
        case exp.And():
            return And((predicate_of(tree.left, context), predicate_of(tree.right, context)))
        case exp.Or():
            return Or((predicate_of(tree.left, context), predicate_of(tree.right, context)))
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
    operator = _OPERATORS.get(type(tree))
    if operator is None or not isinstance(tree, exp.Binary):
        return Unknown()
    return _compare(operator, tree.left, tree.right, context)


def _compare(operator: str, left: exp.Expr, right: exp.Expr, context: Context) -> Predicate:
    if (name := _column_name(left, context)) is not None and (value := literal_of(right, context)) is not None:
        return _comparison(name, operator, value[0], context)
    if (name := _column_name(right, context)) is not None and (value := literal_of(left, context)) is not None:
        return _comparison(name, _FLIPPED[operator], value[0], context)
    return Unknown()


def _comparison(name: str, operator: str, value: Any, context: Context) -> Predicate:
    """A comparison; for ``<=>`` only with a literal of the column's own kind: a text that is no date becomes NULL
    without ANSI rules, and then equals the NULLs of a date column.
    """
    column = context.schema.field(name).type
    kinds = [kind for kind, columns in _KINDS.items() if column in columns]
    if operator == "<=>" and value is not None and type(value) not in kinds:
        return Unknown()
    return Compare(name, operator, value)  # type: ignore[arg-type]


_KINDS: Mapping[type, tuple[str, ...]] = {
    int: INTEGERS,
    str: ("string",),
    bool: ("boolean",),
    dt.date: ("date",),
    dt.datetime: ("timestamp",),
}


def _is_null(tree: exp.Is, context: Context) -> Predicate:
    name = _column_name(tree.this, context)
    return IsNull(name) if name is not None and isinstance(tree.expression, exp.Null) else Unknown()


def _in(tree: exp.In, context: Context) -> Predicate:
    name, values = _column_name(tree.this, context), [literal_of(value, context) for value in tree.expressions]
    if name is None or not values or any(value is None for value in values):
        return Unknown()
    return In(name, tuple(value[0] for value in values if value is not None))


def _between(tree: exp.Between, context: Context) -> Predicate:
    low, high = tree.args["low"], tree.args["high"]
    return And((_compare(">=", tree.this, low, context), _compare("<=", tree.this, high, context)))


def _like(tree: exp.Like, context: Context) -> Predicate:
    name, pattern = _column_name(tree.this, context), literal_of(tree.expression, context)
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
            return (-inner[0],) if inner and type(inner[0]) in (int, float, Decimal) else None
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
            return _timestamp(text, context.tzinfo)
    except (ValueError, KeyError):
        return None
    return None


def _timestamp(text: str, zone: dt.tzinfo | None) -> tuple[Any] | None:
    match = re.fullmatch(r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(\.\d{1,6})?( UTC|Z)?", text)
    if not match:
        return None
    micros = (match[3] or ".0")[1:].ljust(6, "0")
    naive = dt.datetime.fromisoformat(f"{match[1]}T{match[2]}.{micros}")
    if match[4]:
        return (naive.replace(tzinfo=dt.timezone.utc),)
    if zone is None:
        return None
    first, second = (naive.replace(tzinfo=zone, fold=fold).astimezone(dt.timezone.utc) for fold in (0, 1))
    return (first,) if first == second else None  # a clock change makes it ambiguous
