"""Days and instants in files of other writers: timestamps of 96 bits, and days that are counted by the Julian calendar.

Imports pyarrow only: this module travels to executors by value. Guarantees: a timestamp of 96 bits is read as Spark
reads it, to the microsecond; a file whose writer may have counted Julian days is read only where no value is so old
that the calendars differ.

Source: Spark's "datetimeRebaseModeInRead" and "int96RebaseModeInRead", and what its writer notes in footers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch._protocol.nested_arrays import leaf_arrays
from anabranch._protocol.unsupported import Unsupported

_VERSION = b"org.apache.spark.version"
_JULIAN = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_GREGORIAN_SINCE = b"3.1.0"
_SAME_SINCE = -2_208_902_400_000_000
"""The second day of 1900, in microseconds. From then on both calendars, and the zones of both, agree: Spark's tables of
differences end a day before.
"""


def open_parquet(source: Any, **options: Any) -> pq.ParquetFile:
    """Open a data file; timestamps of 96 bits are microseconds without a zone, since their nanoseconds would not reach
    beyond 2262.
    """
    return pq.ParquetFile(source, coerce_int96_timestamp_unit="us", **options)


def may_count_julian_days(footer: pq.FileMetaData) -> bool:
    """Whether a file's writer may have counted old days by the Julian calendar, as Spark before version 3 did."""
    metadata: Mapping[bytes, bytes] = footer.metadata or {}
    return any(key in metadata for key in _JULIAN) or metadata.get(_VERSION, _GREGORIAN_SINCE) < _GREGORIAN_SINCE


def refuse_old_days(batch: pa.RecordBatch) -> None:
    """Raises Unsupported if a day or instant is so old that the calendars count it differently."""
    same_since = pa.scalar(_SAME_SINCE, pa.timestamp("us", "UTC"))
    for column in batch.columns:
        for _, leaf in leaf_arrays(column):
            if _is_day_or_instant(leaf.type) and pc.any(pc.less(leaf, same_since.cast(leaf.type))).as_py():
                raise Unsupported("old dates use the Julian calendar")


def _is_day_or_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def are_same_instants(file_type: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether timestamps of a file are those of a column: Spark takes milliseconds too, and for an instant what has no
    zone, as delta-rs once wrote them and as 96 bits are, as one in UTC.
    """
    are_timestamps = pa.types.is_timestamp(file_type) and file_type.unit in ("us", "ms")
    return bool(are_timestamps and (file_type.tz is None or wanted.tz is not None))
