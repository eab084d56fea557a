"""DESCRIBE HISTORY and DESCRIBE DETAIL, as rows of plain values; needs no engine."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.history import history as log_history
from anabranch._protocol.features.table_features import describe as describe_protocol
from anabranch._protocol.layout.clustering import sql_names
from anabranch._protocol.steps import TAG as STEPS
from anabranch.commands.opening import Location, open_log
from anabranch.commands.queries.read import note_whole_table
from anabranch.errors import InvalidOption

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_TEXT_MAP = pa.map_(pa.string(), pa.string())
_JOB = pa.struct(
    [(name, pa.string()) for name in ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")]
)

HISTORY = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", pa.timestamp("ms", "UTC")),
        ("userId", pa.string()),
        ("userName", pa.string()),
        ("operation", pa.string()),
        ("operationParameters", _TEXT_MAP),
        ("job", _JOB),
        ("notebook", pa.struct([("notebookId", pa.string())])),
        ("clusterId", pa.string()),
        ("readVersion", pa.int64()),
        ("isolationLevel", pa.string()),
        ("isBlindAppend", pa.bool_()),
        ("operationMetrics", _TEXT_MAP),
        ("userMetadata", pa.string()),
        ("engineInfo", pa.string()),
        ("txnId", pa.string()),
        ("steps", pa.string()),
    ]
)
"""The columns of DESCRIBE HISTORY, as Delta names them, and two more: ``txnId``, to look up after an unknown outcome,
and ``steps``, which names the engine of each step, as EXPLAIN does.
"""

SHOWN_HISTORY = pa.schema([field for field in HISTORY if field.name not in ("txnId", "steps")])
"""Exactly the columns of delta-spark's ``DeltaTable.history``."""

DETAIL = pa.schema(
    [
        ("format", pa.string()),
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("location", pa.string()),
        ("createdAt", pa.timestamp("ms", "UTC")),
        ("lastModified", pa.timestamp("ms", "UTC")),
        ("partitionColumns", pa.list_(pa.string())),
        ("clusteringColumns", pa.list_(pa.string())),
        ("numFiles", pa.int64()),
        ("sizeInBytes", pa.int64()),
        ("properties", _TEXT_MAP),
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("tableFeatures", pa.list_(pa.string())),
    ]
)
"""The columns of DESCRIBE DETAIL, as Delta names them."""


def history(
    table: Location, limit: int | None = None, storage_options: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """One mapping for each commit, newest first, with the columns of `HISTORY`; what a writer did not record, or not
    in Delta's form, is None.

    Raises:
        NotATable: there is no table. InvalidOption: the limit is no whole number from 0.
    """
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise InvalidOption(option="limit", value=limit, reason="it takes a whole number from 0.")
    log = open_log(table, storage_options)
    snapshot = log.snapshot()
    note_whole_table(snapshot)
    metadata, rows = snapshot.metadata, []
    for entry in log_history(log, limit, metadata):
        tags = entry.info.get("tags")
        info = {**entry.info, "steps": tags.get(STEPS) if isinstance(tags, Mapping) else None}
        values = {field.name: _value_of_type(info.get(field.name), field.type) for field in HISTORY}
        rows.append({**values, "version": entry.version, "timestamp": _moment(entry.timestamp)})
    return rows


def _value_of_type(value: Any, kind: pa.DataType) -> Any:
    """A value from any engine's commit, if it fits the column's type; else None."""
    if pa.types.is_map(kind):
        return {key: _text(item) for key, item in value.items()} if isinstance(value, Mapping) else None
    if pa.types.is_struct(kind):
        return {member.name: _text(value.get(member.name)) for member in kind} if isinstance(value, Mapping) else None
    if pa.types.is_boolean(kind):
        return value if isinstance(value, bool) else None
    if pa.types.is_int64(kind):
        return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None
    return _text(value)


def detail(table: Location, storage_options: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The table as it is now, with the columns of `DETAIL`. Raises NotATable: there is no table."""
    snapshot = open_log(table, storage_options).snapshot()
    note_whole_table(snapshot)
    metadata = snapshot.metadata
    return {
        "format": "delta",
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "location": snapshot.table,
        "createdAt": _moment(metadata.created_time),
        "lastModified": _moment(snapshot.timestamp),
        "partitionColumns": list(metadata.partition_columns),
        "clusteringColumns": sql_names(snapshot.clustering_columns),
        "numFiles": len(snapshot.files),
        "sizeInBytes": pc.sum(snapshot.files["size"]).as_py() or 0,
        "properties": dict(metadata.configuration),
        **describe_protocol(snapshot.protocol),
    }


def detail_of_files(location: str | None, **columns: Any) -> dict[str, Any]:
    """The details of a table or folder that is not Delta's, with the columns of `DETAIL`; those not passed are None."""
    return {**dict.fromkeys(DETAIL.names), "location": location, "properties": {}, **columns}


def as_table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows of `history` or `detail` as an Arrow table."""
    maps = [field.name for field in schema if pa.types.is_map(field.type)]
    converted = [
        {**row, **{name: None if row[name] is None else list(row[name].items()) for name in maps}} for row in rows
    ]
    return pa.Table.from_pylist(converted, schema=schema)


def _moment(milliseconds: int | None) -> dt.datetime | None:
    if milliseconds is None:
        return None
    try:
        return _EPOCH + dt.timedelta(milliseconds=milliseconds)
    except OverflowError:  # another engine may have written anything
        return None


def _text(value: Any) -> str | None:
    """Text unchanged, everything else as JSON, as delta-spark shows it."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
