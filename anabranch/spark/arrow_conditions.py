"""Conditions on Arrow rows: which rows of a batch a predicate selects, without Spark.

Knows predicates and Arrow's functions. Pure. Guarantee: the rows that are selected are those for which
`anabranch.protocol.predicates.holds` is True, which is what Spark would find; what Arrow cannot compare just so raises
an error of Arrow's, or a Python error that `ERRORS` names, and nothing is said.

NaN equals NaN and is greater than every other number, which Arrow does not know.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from math import isnan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.protocol.predicates import (
    Always,
    And,
    Compare,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
    Value,
    date_of,
    truth_form,
)

ERRORS = (pa.ArrowException, ArithmeticError, ValueError, TypeError, KeyError)
_COMPARED: Mapping[str, Callable[..., Any]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_OF_NAN: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def selected(predicate: Predicate, batch: pa.RecordBatch) -> pa.BooleanArray:
    """For each row whether the predicate is TRUE; never NULL.

    Args:
        predicate: whole, over top-level columns of the batch, and exact for their types (`is_exact`).
        batch: rows under the names of the predicate's columns.

    Raises:
        `ERRORS`: Arrow does not compare these values as Spark does.
    """
    return pc.fill_null(_truth(truth_form(predicate), batch), False)


def _truth(predicate: Predicate, batch: pa.RecordBatch) -> Any:
    """The truth value of each row, NULL where it is NULL or, by `truth_form`, as good as FALSE."""
    match predicate:
        case Always(value):
            return pa.repeat(pa.scalar(value), batch.num_rows)
        case Not(inner):
            return pc.invert(_truth(inner, batch))
        case And(parts):
            return reduce(pc.and_kleene, (_truth(part, batch) for part in parts), _truth(Always(True), batch))
        case Or(parts):
            return reduce(pc.or_kleene, (_truth(part, batch) for part in parts), _truth(Always(False), batch))
        case IsNull(str() as name):
            return pc.is_null(batch.column(name))
        case StartsWith(str() as name, prefix):
            return pc.starts_with(batch.column(name), prefix)
        case In(str() as name, values):
            return _is_in(batch.column(name), values)
        case Compare(str() as name, op, value):
            return _compared(batch.column(name), op, value)
    raise ValueError("nothing is known of a part of the condition")


def _compared(column: Any, op: str, value: Value) -> Any:
    if pa.types.is_floating(column.type) or isinstance(value, float):
        return _compared_as_doubles(column, op, float(value))  # type: ignore[arg-type]
    return _COMPARED[op](*_meeting(column, value))


def _compared_as_doubles(column: Any, op: str, value: float) -> Any:
    doubles = column.cast(pa.float64(), safe=False)
    is_nan = pc.is_nan(doubles)
    if isnan(value):  # of NaN and another number, NaN is the greater one
        return _COMPARED[op](is_nan.cast(pa.int8()), pa.scalar(1, pa.int8()))
    return pc.if_else(is_nan, _OF_NAN[op](1, 0), _COMPARED[op](doubles, pa.scalar(value)))


def _is_in(column: Any, values: Sequence[Value]) -> Any:
    if not values or pa.types.is_floating(column.type) or any(isinstance(each, float | Decimal) for each in values):
        any_of = (_compared(column, "=", each) for each in values)
        return reduce(pc.or_kleene, any_of, pa.repeat(pa.scalar(False), len(column)))
    met = [_meeting(column, each) for each in values]
    wanted = pa.array([each.as_py() for _, each in met], met[0][1].type)
    return pc.if_else(pc.is_valid(column), pc.is_in(met[0][0], value_set=wanted), pa.scalar(None, pa.bool_()))


def _meeting(column: Any, value: Value) -> tuple[Any, pa.Scalar]:
    """The column and the literal in one type that holds the values of both."""
    kind, given = column.type, value
    if pa.types.is_integer(kind) and type(given) is int:
        return column.cast(pa.int64()), pa.scalar(given, pa.int64())
    if pa.types.is_date32(kind) and isinstance(given, str):
        given = date_of(given)
    if not any(of(kind) and type(given) in kinds for of, kinds in _KINDS):
        raise TypeError(f"{kind} and {type(given).__name__} are not compared here")
    return column, pa.scalar(given) if isinstance(given, Decimal | int) else pa.scalar(given, kind)


_KINDS: Sequence[tuple[Callable[[pa.DataType], bool], tuple[type, ...]]] = (
    (pa.types.is_boolean, (bool,)),
    (pa.types.is_string, (str,)),
    (pa.types.is_date32, (dt.date,)),
    (pa.types.is_timestamp, (dt.datetime,)),
    (pa.types.is_integer, (Decimal,)),
    (pa.types.is_decimal, (int, Decimal)),
)
