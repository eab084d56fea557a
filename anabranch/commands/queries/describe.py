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
"""The columns of DESCRIBE HISTORY, as Delta names them, and two more: ``txnId``, to look for after an unknown outcome,
and ``steps``, which says what did each step, as EXPLAIN says it.
"""

SHOWN_HISTORY = pa.schema([field for field in HISTORY if field.name not in ("txnId", "steps")])
"""The columns of delta-spark's ``DeltaTable.history``, and no other."""

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
    """The newest commits first, a mapping each, with the columns of `HISTORY`; what a writer did not say, or not as
    Delta says it, is None.

    Raises:
        NotATable: there is no table. InvalidOption: the limit is no whole number from 0.
    """
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise InvalidOption(option="limit", value=limit, reason="it takes a whole number from 0.")
    log = open_log(table, storage_options)
    metadata = log.snapshot().metadata
    rows = []
    for entry in log_history(log, limit, metadata):
        tags = entry.info.get("tags")
        known = {**entry.info, "steps": tags.get(STEPS) if isinstance(tags, Mapping) else None}
        said = {field.name: _fitting(known.get(field.name), field.type) for field in HISTORY}
        rows.append({**said, "version": entry.version, "timestamp": _moment(entry.timestamp)})
    return rows


def _fitting(value: Any, kind: pa.DataType) -> Any:
    """What another engine's commit says, as a value of the column's type; None where it is of another kind."""
    if pa.types.is_map(kind):
        return {key: _text(each) for key, each in value.items()} if isinstance(value, Mapping) else None
    if pa.types.is_struct(kind):
        return {each.name: _text(value.get(each.name)) for each in kind} if isinstance(value, Mapping) else None
    if pa.types.is_boolean(kind):
        return value if isinstance(value, bool) else None
    if pa.types.is_int64(kind):
        return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None
    return _text(value)


def detail(table: Location, storage_options: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The table as it is now, with the columns of `DETAIL`. Raises NotATable: there is no table."""
    snapshot = open_log(table, storage_options).snapshot()
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


def detail_of_files(location: str | None, **known: Any) -> dict[str, Any]:
    """What is ``known`` of a table or folder that is none of Delta's, with the columns of `DETAIL`."""
    return {**dict.fromkeys(DETAIL.names), "location": location, "properties": {}, **known}


def as_table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows of `history` or `detail` as an Arrow table."""
    maps = [field.name for field in schema if pa.types.is_map(field.type)]
    plain = [{**row, **{name: None if row[name] is None else list(row[name].items()) for name in maps}} for row in rows]
    return pa.Table.from_pylist(plain, schema=schema)


def _moment(milliseconds: int | None) -> dt.datetime | None:
    if milliseconds is None:
        return None
    try:
        return _EPOCH + dt.timedelta(milliseconds=milliseconds)
    except OverflowError:  # another engine may have written anything
        return None


def _text(value: Any) -> str | None:
    """Texts as they are, everything else as JSON, as delta-spark shows what is not text."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
