"""Logs written by hand, as another engine, or a careless one, would write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._log.file_names import commit_name
from anabranch._protocol.schema.types import Field, Struct, schema_json

Action = Mapping[str, Any]

SCHEMA = Struct((Field("id", "long"), Field("x", "long")))
PROTOCOL: Action = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
WITH_VECTORS: Action = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "appendOnly", "invariants"],
    }
}


def metadata(schema: Struct = SCHEMA, partition_by: tuple[str, ...] = (), **configuration: str) -> Action:
    """A ``metaData`` action; keywords become properties (``delta_appendOnly``)."""
    body = {
        "id": "a-table",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_json(schema),
        "partitionColumns": list(partition_by),
        "configuration": {key.replace("_", ".", 1): value for key, value in configuration.items()},
    }
    return {"metaData": body}


def add(path: str, **fields: Any) -> Action:
    """An ``add`` action of a file that need not exist."""
    plain = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
    return {"add": {**plain, **fields}}


def remove(path: str, **fields: Any) -> Action:
    """A ``remove`` action."""
    return {"remove": {"path": path, "deletionTimestamp": 0, "dataChange": True, **fields}}


def info(**fields: Any) -> Action:
    """A ``commitInfo`` action."""
    return {"commitInfo": {"operation": "BY HAND", **fields}}


def text_of(*actions: Action | str) -> str:
    """The text of a commit file; an action given as text is taken as it is."""
    lines = [each if isinstance(each, str) else json.dumps(each, separators=(",", ":")) for each in actions]
    return "".join(line + "\n" for line in lines)


def put_commit(table: str | Path, version: int, *actions: Action | str) -> Path:
    """Write one commit file, whatever stands there."""
    file = Path(table) / commit_name(version)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text_of(*actions), encoding="utf-8", newline="")
    return file


def put_rows(table: str | Path, name: str, rows: list[dict[str, Any]], **fields: Any) -> Action:
    """Write a data file, and give the ``add`` action for it, with true statistics unless others are given."""
    file = Path(table) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), file)
    stats = json.dumps({"numRecords": len(rows)})
    return add(name, **{"size": file.stat().st_size, "stats": stats, **fields})


def listing(table: str | Path) -> dict[str, int]:
    """Every file below a table with its size, to see that nothing was written."""
    root = Path(table)
    return {str(file.relative_to(root)): file.stat().st_size for file in root.rglob("*") if file.is_file()}
