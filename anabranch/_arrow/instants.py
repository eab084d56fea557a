"""Days and instants in files of other writers: timestamps of 96 bits, and days that are counted by the Julian calendar.

Imports pyarrow only: this module travels to executors by value. Guarantees: a timestamp of 96 bits is read as Spark
reads it, to the microsecond; a file whose writer may have counted Julian days is read only where no value is so old
that the calendars differ.

Source: Spark's "datetimeRebaseModeInRead" and "int96RebaseModeInRead", and what its writer notes in footers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch._protocol.unsupported import Unsupported

_VERSION = b"org.apache.spark.version"
_JULIAN = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_GREGORIAN_SINCE = b"3.1.0"
_SAME_SINCE = pa.scalar(dt.datetime(1900, 1, 2, tzinfo=dt.UTC), pa.timestamp("us", "UTC"))
"""From then on both calendars, and the zones of both, agree; Spark's tables of differences end a day before."""


def open_parquet(source: Any, **options: Any) -> pq.ParquetFile:
    """Open a data file; timestamps of 96 bits are microseconds, since their nanoseconds would not reach beyond 2262."""
    return pq.ParquetFile(source, coerce_int96_timestamp_unit="us", **options)


def may_count_julian_days(footer: pq.FileMetaData) -> bool:
    """Whether a file's writer may have counted old days by the Julian calendar, as Spark before version 3 did."""
    metadata: Mapping[bytes, bytes] = footer.metadata or {}
    return any(key in metadata for key in _JULIAN) or metadata.get(_VERSION, _GREGORIAN_SINCE) < _GREGORIAN_SINCE


def refuse_old_days(batch: pa.RecordBatch) -> None:
    """Raises Unsupported if a day or instant is so old that the calendars count it differently."""
    for column in batch.columns:
        for leaf in leaves_of(column, _is_day_or_instant):
            if pc.any(pc.less(leaf, _SAME_SINCE.cast(leaf.type))).as_py():
                raise Unsupported("old dates use the Julian calendar")


def _is_day_or_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def leaves_of(values: pa.Array, matches: Callable[[pa.DataType], bool]) -> Iterator[pa.Array]:
    """The values of the matching types in a column, at any depth."""
    kind = values.type
    if matches(kind):
        yield values
    elif pa.types.is_struct(kind):
        for part in values.flatten():
            yield from leaves_of(part, matches)
    elif pa.types.is_map(kind):
        yield from leaves_of(values.keys, matches)
        yield from leaves_of(values.items, matches)
    elif pa.types.is_list(kind):
        yield from leaves_of(values.values, matches)


def with_instants(kind: pa.DataType, path: str, int96: Collection[str]) -> pa.DataType:
    """The type of a column in a file, with UTC for the timestamps of 96 bits in it: they have no zone in Arrow, and are
    instants in Spark.

    Args:
        path: the column's leaf, or the beginning of its leaves.
        int96: the leaves of 96 bits.
    """
    if not int96:
        return kind
    if pa.types.is_struct(kind):
        members = (field.with_type(with_instants(field.type, f"{path}.{field.name}", int96)) for field in kind)
        return pa.struct(list(members))
    if pa.types.is_map(kind):
        key = kind.key_field.with_type(with_instants(kind.key_type, f"{path}.key_value.key", int96))
        item = kind.item_field.with_type(with_instants(kind.item_type, f"{path}.key_value.value", int96))
        return pa.map_(key, item)
    if pa.types.is_list(kind):
        element = with_instants(kind.value_type, f"{path}.list.element", int96)
        return pa.list_(kind.value_field.with_type(element))
    return pa.timestamp("us", "UTC") if path in int96 else kind
