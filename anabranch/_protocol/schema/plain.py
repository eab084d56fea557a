"""Plain types: those whose values Arrow and Spark represent alike. Pure.

Months (``interval year to month``) are as plain as nested types: Arrow copies them, but no row with them goes from
Arrow to Spark, since PySpark has no Arrow type for them.
"""

from __future__ import annotations

from collections.abc import Iterable

from anabranch._protocol.schema.intervals import DAY_SECOND, YEAR_MONTH
from anabranch._protocol.schema.types import INTEGERS, Array, DataType, Field, Map, Struct, decimal_of

_PLAIN = frozenset(
    {*INTEGERS, "float", "double", "boolean", "string", "binary", "date", "timestamp", "timestamp_ntz", DAY_SECOND}
)


def are_plain(fields: Iterable[Field], *, nested: bool = False) -> bool:
    """Whether Arrow and Spark represent the values of these columns alike; ``nested`` allows nested types and
    months.
    """
    return all(_is_plain(field.type, nested=nested) for field in fields)


def _is_plain(kind: DataType, *, nested: bool) -> bool:
    match kind:
        case Struct():
            return nested and are_plain(kind, nested=True)
        case Array():
            return nested and _is_plain(kind.element, nested=True)
        case Map():
            return nested and _is_plain(kind.key, nested=True) and _is_plain(kind.value, nested=True)
    return kind in _PLAIN or (nested and kind == YEAR_MONTH) or decimal_of(kind) is not None
