"""DESCRIBE HISTORY and DESCRIBE DETAIL, as rows of plain values; needs no engine."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.commands.opening import Location, open_log
from anabranch.log.history import history as log_history
from anabranch.protocol.evolution import sql_name
from anabranch.protocol.features import describe as describe_protocol

_TEXT_MAP = pa.map_(pa.string(), pa.string())
_JOB = pa.struct([("jobId", pa.string()), ("jobName", pa.string()), ("runId", pa.string())])

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
    ]
)
"""The columns of DESCRIBE HISTORY, as Delta names them, and ``txnId``, to look for after an unknown outcome."""

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
    """The newest commits first, a mapping each, with the columns of `HISTORY`.

    Raises:
        NotATable: there is no table.
    """
    log = open_log(table, storage_options)
    metadata = log.snapshot().metadata
    rows = []
    for entry in log_history(log, limit, metadata):
        row = {name: entry.info.get(name) for name in HISTORY.names}
        row |= {
            "version": entry.version,
            "timestamp": dt.datetime.fromtimestamp(entry.timestamp / 1000, dt.timezone.utc),
        }
        for name in ("operationParameters", "operationMetrics"):
            row[name] = {key: _text(value) for key, value in (entry.info.get(name) or {}).items()}
        rows.append(row)
    return rows


def detail(table: Location, storage_options: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The table as it is now, with the columns of `DETAIL`.

    Raises:
        NotATable: there is no table.
    """
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
        "clusteringColumns": [".".join(map(sql_name, column)) for column in snapshot.clustering_columns],
        "numFiles": len(snapshot.files),
        "sizeInBytes": pc.sum(snapshot.files["size"]).as_py() or 0,
        "properties": dict(metadata.configuration),
        **describe_protocol(snapshot.protocol),
    }


def as_table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows of `history` or `detail` as an Arrow table."""
    maps = [field.name for field in schema if pa.types.is_map(field.type)]
    plain = [{**row, **{name: list((row[name] or {}).items()) for name in maps}} for row in rows]
    return pa.Table.from_pylist(plain, schema=schema)


def _moment(milliseconds: int | None) -> dt.datetime | None:
    return None if milliseconds is None else dt.datetime.fromtimestamp(milliseconds / 1000, dt.timezone.utc)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)
