"""Rows in Arrow as the command line prints them: with the values that the rows of a session have there.

Guarantee: a moment is its date and time in UTC, without a zone; all else is as PySpark collects it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from anabranch._cli.values import cell_text

_AT_ONCE = 1 << 12


@dataclass(frozen=True)
class ArrowRows:
    """Rows that are read as they are taken.

    Example:
        >>> ArrowRows(["num_affected_rows"], [(3,)]).collect()
        [(3,)]
    """

    columns: Sequence[str] = ()
    rows: Iterable[tuple[Any, ...]] = field(default=(), repr=False)

    @classmethod
    def of(cls, columns: Sequence[str], batches: Iterable[pa.RecordBatch]) -> ArrowRows:
        """Rows of Arrow's, under these names."""
        return cls(columns, chain.from_iterable(map(_rows_of, batches)))

    @classmethod
    def whole(cls, table: pa.Table) -> ArrowRows:
        """The rows of a table."""
        return cls.of(table.column_names, table.to_batches())

    def first(self, limit: int | None) -> ArrowRows:
        """No more of them than a number; None: all."""
        return self if limit is None else ArrowRows(self.columns, islice(self.rows, limit))

    def collect(self) -> list[tuple[Any, ...]]:
        """All rows."""
        return list(self.rows)

    def take(self, num: int) -> list[tuple[Any, ...]]:
        """The first rows."""
        return list(islice(self.rows, num))


def _rows_of(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    for start in range(0, batch.num_rows, _AT_ONCE):
        part = batch.slice(start, _AT_ONCE)
        yield from zip(*map(_values, part.columns), strict=True)


def _values(column: pa.Array) -> list[Any]:
    is_plain = not (pa.types.is_nested(column.type) or pa.types.is_timestamp(column.type))
    found = column.to_pylist()
    return found if is_plain else [_value(each, column.type) for each in found]


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return value.replace(tzinfo=None)
    if pa.types.is_struct(kind):
        return {each.name: _value(value[each.name], each.type) for each in kind}
    if pa.types.is_map(kind):
        return {_key(_value(key, kind.key_type)): _value(each, kind.item_type) for key, each in value}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_value(each, kind.value_type) for each in value]
    return value


def _key(key: Any) -> Any:
    """A key that Python takes: of what has parts, that which is printed of it."""
    return cell_text(key) if isinstance(key, dict | list) else key
