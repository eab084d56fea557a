"""Rows in Arrow as the command line prints them: with the values of a session's rows.

Guarantee: a timestamp is its date and time in UTC, without a zone; all other values are as PySpark collects them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from anabranch._cli.rendered_values import cell_text

_AT_ONCE = 1 << 12


@dataclass(frozen=True)
class ArrowRows:
    """Rows that are read as they are consumed.

    Example:
        >>> ArrowRows(["num_affected_rows"], [(3,)]).collect()
        [(3,)]
    """

    columns: Sequence[str] = ()
    rows: Iterable[tuple[Any, ...]] = field(default=(), repr=False)

    @classmethod
    def of(cls, columns: Sequence[str], batches: Iterable[pa.RecordBatch]) -> ArrowRows:
        """The rows of Arrow batches, under these column names."""
        return cls(columns, chain.from_iterable(map(_rows_of, batches)))

    @classmethod
    def whole(cls, table: pa.Table) -> ArrowRows:
        """The rows of a table."""
        return cls.of(table.column_names, table.to_batches())

    def first(self, limit: int | None) -> ArrowRows:
        """At most ``limit`` of the rows; None: all."""
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
    values = column.to_pylist()
    return values if is_plain else [_value(value, column.type) for value in values]


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return value.replace(tzinfo=None)
    if pa.types.is_struct(kind):
        return {member.name: _value(value[member.name], member.type) for member in kind}
    if pa.types.is_map(kind):
        return {_key(_value(key, kind.key_type)): _value(item, kind.item_type) for key, item in value}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_value(item, kind.value_type) for item in value]
    return value


def _key(key: Any) -> Any:
    """A hashable key: the printed text of a key with parts."""
    return cell_text(key) if isinstance(key, dict | list) else key
