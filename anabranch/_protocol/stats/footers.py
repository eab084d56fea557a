"""Computes the statistics of a data file from its Parquet footer, without reading its rows.

Knows PROTOCOL.md, section "Per-file Statistics", and what Parquet writers put into footers. Pure: takes the footer as a
value. Guarantee: the statistics are true: a minimum is at most, a maximum at least every value in the file that is not
NULL (NaN is greater than every number); what the footer does not show exactly is omitted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import isfinite, isnan
from typing import Any

import pyarrow.parquet as pq

from anabranch._protocol.predicates import Name
from anabranch._protocol.schema.leaves import leaves_with_stats
from anabranch._protocol.schema.types import INTEGERS, DataType, Struct, decimal_of
from anabranch._protocol.stats.statistics import stats_json

INDEXED_LEAVES = 32
"""The default number of leaf columns that get statistics (``delta.dataSkippingNumIndexedCols``)."""

PREFIX = 32
"""The number of characters to which strings are truncated."""

_TOP = "\U0010ffff"
_ASCII_TOP = "\x7f"
_EPOCH = datetime(1970, 1, 1)
_JULIAN = b"org.apache.spark.legacyDateTime"
"""The key by which Spark marks a file whose old dates follow the Julian calendar, so that its bounds mean other
days.
"""
_REBASED, _SINCE = ("date", "timestamp"), "1900-01-02"
"""The types that this affects, and the day since which both calendars agree in every time zone."""


def footer_stats(
    metadata: pq.FileMetaData,
    schema: Struct,
    indexed_columns: Collection[Name] | int | None = None,
    partition_columns: Collection[str] = (),
    *,
    nan_free: Collection[Name] = (),
) -> str:
    """The statistics JSON of a data file, from its footer alone (PROTOCOL.md "Per-file Statistics").

    Args:
        metadata: the footer.
        schema: the table's schema; keys are physical names if columns are mapped.
        indexed_columns: names of columns, paths of members, or structs for all their leaves; or the number of leaf
            columns, counted as Delta does in the schema's order without partition columns (-1: all); None: 32.
        partition_columns: columns without statistics.
        nan_free: floating-point columns, by name or path, that are known to contain no NaN. Others get bounds only if
            the footer itself proves it, because most writers leave NaN out of minimum and maximum, while Spark orders
            it as the greatest number.

    Returns:
        ``numRecords``, ``minValues``, ``maxValues``, ``nullCount``, without values that could be untrue. Strings are
        truncated to 32 characters and timestamps to milliseconds, minimum downwards and maximum upwards.
    """
    chosen = leaves_with_stats(
        schema, INDEXED_LEAVES if indexed_columns is None else indexed_columns, partition_columns
    )
    columns = _flat_columns(metadata)
    trusted = _writes_nan_as_maximum(metadata.created_by)
    body: dict[str, Any] = {"numRecords": metadata.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for leaf in chosen:
        column = columns.get(".".join(leaf.keys))
        if not isinstance(leaf.type, str):
            _put(body["nullCount"], leaf.keys, _holder_nulls(metadata, leaf.keys))
        elif column is not None:
            column_stats = _leaf_stats(metadata, column, leaf.type, floats=trusted or leaf.name in nan_free)
            for part, value in zip(("minValues", "maxValues", "nullCount"), column_stats, strict=True):
                _put(body[part], leaf.keys, value)
    return stats_json(body)


def _put(nested: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    if value is None:
        return
    for key in keys[:-1]:
        nested = nested.setdefault(key, {})
    nested[keys[-1]] = value


def _flat_columns(metadata: pq.FileMetaData) -> dict[str, int]:
    """Indexes of the columns outside lists and maps, by dotted path; ambiguous paths are omitted."""
    columns = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    uses = Counter(column.path for column in columns)
    return {
        column.path: i
        for i, column in enumerate(columns)
        if column.max_repetition_level == 0 and uses[column.path] == 1
    }


def _holder_nulls(metadata: pq.FileMetaData, keys: Sequence[str]) -> int | None:
    """0 if certainly no list or map at this path is NULL, else None.

    A footer counts the values inside, and a NULL for each list that is NULL or empty; if one of the columns inside has
    no NULL, every row has a non-empty list.
    """
    inside = ".".join(keys) + "."
    paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    columns = [i for i, path in enumerate(paths) if path.startswith(inside) and paths.count(path) == 1]
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    counts = [[_null_count(group.column(i).statistics) for group in groups] for i in columns]
    return 0 if any(all(count == 0 for count in row_group_counts) for row_group_counts in counts) else None


def _writes_nan_as_maximum(created_by: str | None) -> bool:
    """Whether the writer writes a column's NaN as its maximum, so that any other maximum means that there is none.

    parquet-mr does since 1.10; verified up to 1.17. The Parquet format is about to let writers choose.
    """
    version = re.match(r"parquet-mr version 1\.(\d+)\.", created_by or "")
    return version is not None and 10 <= int(version[1]) <= 17


def _leaf_stats(metadata: pq.FileMetaData, column: int, data_type: DataType, *, floats: bool) -> tuple[Any, Any, Any]:
    """Minimum, maximum and number of nulls over all row groups, as JSON values; None for an unknown one."""
    groups = (metadata.row_group(i).column(column) for i in range(metadata.num_row_groups))
    chunks = [chunk for chunk in groups if chunk.num_values]
    nulls = [_null_count(chunk.statistics) for chunk in chunks]
    null_count = None if None in nulls else sum(count for count in nulls if count is not None)
    valued = [chunk.statistics for chunk, count in zip(chunks, nulls, strict=True) if count != chunk.num_values]
    if not valued or not all(stats is not None and stats.has_min_max for stats in valued):
        return None, None, null_count
    low, high = _FORMS.get(_kind(data_type), _no_bounds)(data_type, metadata.schema.column(column), valued)
    if data_type in _REBASED and _JULIAN in (metadata.metadata or {}) and (low is None or low < _SINCE):
        return None, None, null_count
    return (None, None, null_count) if isinstance(low, float) and not floats else (low, high, null_count)


def _null_count(stats: pq.Statistics | None) -> int | None:
    return stats.null_count if stats is not None and stats.has_null_count else None


def _kind(data_type: DataType) -> str:
    if data_type in INTEGERS:
        return "integer"
    return "decimal" if decimal_of(data_type) else str(data_type)


def _raw(valued: Sequence[pq.Statistics]) -> tuple[Any, Any]:
    return min(stats.min_raw for stats in valued), max(stats.max_raw for stats in valued)


def _logical(column: pq.ColumnSchema) -> dict[str, Any]:
    return json.loads(column.logical_type.to_json())


def _no_bounds(data_type: DataType, column: pq.ColumnSchema, valued: Sequence[pq.Statistics]) -> tuple[Any, Any]:
    return None, None


def _integer_bounds(data_type: DataType, column: pq.ColumnSchema, valued: Sequence[pq.Statistics]) -> tuple[Any, Any]:
    logical = _logical(column)
    plain = logical["Type"] == "None" or (logical["Type"] == "Int" and logical["isSigned"])
    return _raw(valued) if plain and column.physical_type in ("INT32", "INT64") else (None, None)


def _decimal_bounds(data_type: DataType, column: pq.ColumnSchema, valued: Sequence[pq.Statistics]) -> tuple[Any, Any]:
    logical, (_, scale) = _logical(column), decimal_of(data_type) or (0, 0)
    if logical["Type"] != "Decimal" or logical["scale"] != scale:
        return None, None
    lows, highs = (
        [_unscaled_value(stats.min_raw) for stats in valued],
        [_unscaled_value(stats.max_raw) for stats in valued],
    )
    return _decimal(min(lows), scale), _decimal(max(highs), scale)


def _unscaled_value(raw: int | bytes) -> int:
    return raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)


def _decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def _float_bounds(data_type: DataType, column: pq.ColumnSchema, valued: Sequence[pq.Statistics]) -> tuple[Any, Any]:
    values = [float(value) for stats in valued for value in (stats.min_raw, stats.max_raw)]
    if column.physical_type not in ("FLOAT", "DOUBLE") or any(map(isnan, values)):
        return None, None
    low, high = min(values), max(values)
    # Comparisons ignore the sign of zero and some readers do not; JSON has no infinity.
    low, high = (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
    return (low, high) if isfinite(low) and isfinite(high) else (None, None)


def _string_bounds(data_type: DataType, column: pq.ColumnSchema, valued: Sequence[pq.Statistics]) -> tuple[Any, Any]:
    if _logical(column)["Type"] != "String":
        return None, None
    low, high = _raw(valued)
    return _text(low, lambda text: text[:PREFIX]), _text(high, _cut_maximum)


def _text(raw: bytes, cut: Callable[[str], str | None]) -> str | None:
    try:
        return cut(raw.decode())
    except UnicodeDecodeError:
        return None


def _cut_maximum(text: str) -> str | None:
    """A short string that is not before ``text``: a prefix of it, and a character above its next one."""
    if len(text) <= PREFIX:
        return text
    end = next((i for i in range(PREFIX, len(text)) if text[i] != _TOP), len(text))
    if end == len(text) or end > 2 * PREFIX:
        return text if len(text) <= 2 * PREFIX else None
    return text[:end] + (_ASCII_TOP if text[end] < _ASCII_TOP else _TOP)


def _date_bounds(data_type: DataType, column: pq.ColumnSchema, valued: Sequence[pq.Statistics]) -> tuple[Any, Any]:
    if _logical(column)["Type"] != "Date":
        return None, None
    low, high = _raw(valued)
    return _day(low), _day(high)


def _day(days: int) -> str | None:
    try:
        return date.fromordinal(days + date(1970, 1, 1).toordinal()).isoformat()
    except (ValueError, OverflowError):
        return None


def _moment_bounds(data_type: DataType, column: pq.ColumnSchema, valued: Sequence[pq.Statistics]) -> tuple[Any, Any]:
    logical = _logical(column)
    zoned = data_type == "timestamp"
    if logical["Type"] != "Timestamp" or logical["isAdjustedToUTC"] != zoned or column.physical_type != "INT64":
        return None, None
    per_ms = {"milliseconds": 1, "microseconds": 1000, "nanoseconds": 1_000_000}[logical["timeUnit"]]
    low, high = _raw(valued)
    return _instant(low // per_ms, zoned), _instant(-(-high // per_ms), zoned)


def _instant(milliseconds: int, zoned: bool) -> str | None:
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds") + ("Z" if zoned else "")


_FORMS: Mapping[str, Callable[[DataType, pq.ColumnSchema, Sequence[pq.Statistics]], tuple[Any, Any]]] = {
    "integer": _integer_bounds,
    "decimal": _decimal_bounds,
    "float": _float_bounds,
    "double": _float_bounds,
    "string": _string_bounds,
    "date": _date_bounds,
    "timestamp": _moment_bounds,
    "timestamp_ntz": _moment_bounds,
}
"""Delta has no bounds for other types; a footer has no reliable ones for INT96 timestamps."""
