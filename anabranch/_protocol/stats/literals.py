"""Which SQL literals can be compared with a column's values exactly, and as which values.

Knows how Spark casts a column and a literal to one type before it compares them. Knows nothing of files or statistics.
Pure. Guarantee: a result other than None is exact: for every value of the column, comparing with the returned points
gives the same as Spark's comparison with the literals, with ANSI rules and without. If the common type could round
either side (a ``long`` and a large double, decimals that need more than 38 digits together), or depends on the session
(a timestamp and a string), the result is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, isfinite, isnan
from typing import Any

import pyarrow as pa

from anabranch._protocol.predicates import Value, date_of
from anabranch._protocol.schema.lengths import pads
from anabranch._protocol.schema.types import INTEGERS, DataType, Field, arrow_type, decimal_of, digits_of

_COLLATIONS = "__COLLATIONS"
_MAX_DIGITS = 38
_EXACT_DOUBLE = 2**53
_EXACT_FLOAT = 2**24
_LONGS = (-(2**63), 2**63 - 1)


def domain(field: Field) -> pa.DataType | None:
    """The Arrow type in which values of this column are compared; None if they never are.

    All integers are compared as int64, both floating types as float64. A ``char(n)`` column, which Spark pads before it
    compares, and a string with a collation have no usable order.
    """
    if field.type in INTEGERS:
        return pa.int64()
    if field.type in ("float", "double"):
        return pa.float64()
    if not _has_bytewise_order(field) or not _is_ordered(field.type):
        return None
    return arrow_type(field.type)


def _is_ordered(data_type: DataType) -> bool:
    plain = ("string", "boolean", "date", "timestamp", "timestamp_ntz")
    return data_type in plain or decimal_of(data_type) is not None


def _has_bytewise_order(field: Field) -> bool:
    return not pads(field) and _COLLATIONS not in field.metadata


def members(field: Field, values: Iterable[Value]) -> list[Any] | None:
    """The values of the column that ``column IN (values)`` accepts; None of ``values`` may be NULL.

    Returns: Python values of the column's `domain`, without literals that no value equals (2.5 for a ``long``), in
    ascending order; None if the comparison is uncertain.
    """
    literals = list(values)
    if domain(field) is None:
        return None
    if digits_of(field.type) is not None:
        points = _lattice_members(field.type, literals)
    else:
        points = [_plain(field.type, literal) for literal in literals]
    return None if points is None or None in points else sorted(set(points))


def limit(field: Field, op: str, value: Value) -> tuple[str, Any] | bool | None:
    """The inequality on the column's own values that ``column op value`` means; ``op`` is one of ``< <= > >=``.

    Returns: operator and a Python value of the column's `domain`; True if every value that is not NULL satisfies it;
    False if none does; None if the comparison is uncertain.

    Example:
        >>> limit(Field("x", "long"), "<", Decimal("2.5"))
        ('<', 3)
    """
    if domain(field) is None:
        return None
    if digits_of(field.type) is not None:
        return _lattice_limit(field.type, op, value)
    point = _plain(field.type, value)
    return None if point is None else (op, point)


# -- integers and decimals: points on a lattice ------------------------------------------------------------------------


def _lattice_members(data_type: DataType, literals: Sequence[Value]) -> list[Any] | None:
    if not _exact_together(data_type, literals):
        return None
    steps = [_steps(data_type, literal) for literal in literals]
    low, high = _range(data_type)
    return [_point(data_type, int(step)) for step in steps if step.denominator == 1 and low <= step <= high]


def _lattice_limit(data_type: DataType, op: str, value: Value) -> tuple[str, Any] | bool | None:
    if not _exact_together(data_type, [value]):
        return None
    steps = _steps(data_type, value)
    # On integers, x < 2.5 is x < 3, and x <= 2.5 is x <= 2; > and >= mirror them.
    step = ceil(steps) if op in ("<", ">=") else floor(steps)
    low, high = _range(data_type)
    if step > high or step < low:
        return (step > high) == (op in ("<", "<="))
    return op, _point(data_type, step)


def _steps(data_type: DataType, value: Any) -> Fraction:
    return Fraction(value) * 10 ** (digits_of(data_type) or (0, 0))[1]


def _range(data_type: DataType) -> tuple[int, int]:
    digits = decimal_of(data_type)
    return (1 - 10 ** digits[0], 10 ** digits[0] - 1) if digits else _LONGS


def _point(data_type: DataType, step: int) -> int | Decimal:
    digits = decimal_of(data_type)
    return Decimal((int(step < 0), tuple(map(int, str(abs(step)))), -digits[1])) if digits else step


def _exact_together(data_type: DataType, literals: Sequence[Value]) -> bool:
    """Whether Spark's common type of the column and all these literals represents each of their values exactly."""
    if not all(isinstance(literal, int | Decimal | float) and not isinstance(literal, bool) for literal in literals):
        return False
    if any(isinstance(literal, float) for literal in literals):  # then Spark casts all to double
        small = all(not isinstance(literal, Decimal) and abs(literal) < _EXACT_DOUBLE for literal in literals)  # type: ignore[arg-type]
        return small and data_type in INTEGERS
    if not all(isfinite(literal) for literal in literals if isinstance(literal, Decimal)):
        return False
    digits = [digits_of(data_type) or (0, 0), *(_literal_digits(literal) for literal in literals)]
    return max(before for before, _ in digits) + max(after for _, after in digits) <= _MAX_DIGITS


def _literal_digits(value: Any) -> tuple[int, int]:
    if isinstance(value, int):
        width = 10 if -(2**31) <= value < 2**31 else 20 if _LONGS[0] <= value <= _LONGS[1] else len(str(abs(value)))
        return width, 0
    return max(value.adjusted() + 1, 0), max(-value.as_tuple().exponent, 0)


# -- all other types ---------------------------------------------------------------------------------------------------


def _plain(data_type: DataType, value: Value) -> Any | None:
    """The literal as a value of the column; None if they cannot be compared exactly."""
    if data_type in ("float", "double"):
        return _as_double(data_type, value)
    if data_type == "date" and isinstance(value, str):
        return _as_date(value)
    fits = {
        "string": isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value),
        "boolean": isinstance(value, bool),
        "date": type(value) is date,
        "timestamp": isinstance(value, datetime) and value.utcoffset() is not None,
        "timestamp_ntz": isinstance(value, datetime) and value.tzinfo is None,
    }
    return value if fits[str(data_type)] else None


def _as_double(data_type: DataType, value: Value) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | float):
        return None
    # Without ANSI rules Spark compares an integer and a float as floats, with them as doubles.
    if data_type == "float" and isinstance(value, int) and abs(value) > _EXACT_FLOAT:
        return None
    if not isinstance(value, float) and abs(value) >= 10**_MAX_DIGITS:
        return None
    return None if isnan(value) else float(value) + 0.0  # -0.0 becomes 0.0, so that equal numbers have equal bits


def _as_date(text: str) -> date | None:
    try:
        return date_of(text)
    except TypeError:
        return None
