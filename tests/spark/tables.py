"""File sets for tests of the Spark room, without a log: Parquet files by pyarrow, and what a log would say of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from anabranch._protocol.actions import files_table
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.predicates import Unknown
from anabranch._protocol.schema.types import Struct, from_arrow

LEGAL = "/_-.~!$&'()*+,;=:@"


def log_path(name: str) -> str:
    """A file's name as a log spells it."""
    return quote(name, safe=LEGAL)


def file_row(
    root: Path, name: str, table: pa.Table, values: Mapping[str, str | None] | None = None, path: str | None = None
) -> dict[str, Any]:
    """Write one file, and say what its ``add`` would."""
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, file)
    stats = json.dumps({"numRecords": len(table)})
    row = {"path": path or log_path(name), "partitionValues": dict(values or {}), "size": file.stat().st_size}
    return row | {"modificationTime": 0, "stats": stats}


def file_set(
    root: Path,
    rows: Iterable[dict[str, Any]],
    schema: Struct | pa.Schema,
    partitions: tuple[str, ...] = (),
    deleted: Mapping[str, Iterable[int]] | None = None,
) -> FileSet:
    """A file set of such files; ``deleted`` by the log's path."""
    struct = schema if isinstance(schema, Struct) else from_arrow(schema)
    vectors = {path: BitMap64(positions) for path, positions in (deleted or {}).items()}
    return FileSet(f"file://{root}", struct, partitions, files_table(list(rows)), vectors)


def numbered(root: Path, counts: Mapping[str, int], deleted: Mapping[str, Iterable[int]] | None = None) -> FileSet:
    """Files of a column ``id`` that counts on from file to file, and ``s``, its text; named as on disk."""
    rows, start = [], 0
    for name, count in counts.items():
        ids = range(start, start + count)
        rows.append(file_row(root, name, pa.table({"id": pa.array(ids, pa.int64()), "s": [str(i) for i in ids]})))
        start += count
    return file_set(root, rows, pa.schema({"id": pa.int64(), "s": pa.string()}), deleted=deleted)


def one_file(root: Path, table: pa.Table, deleted: Iterable[int] = ()) -> FileSet:
    """One file, ``a.parquet``, with these rows."""
    return file_set(root, [file_row(root, "a.parquet", table)], table.schema, deleted={"a.parquet": deleted})


def condition(expression: Any) -> Condition:
    """A condition of which nothing is known."""
    return Condition(text=str(expression), predicate=Unknown(), row_local=True, expression=expression)
