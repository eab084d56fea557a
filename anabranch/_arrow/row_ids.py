"""Assigns row ids and commit versions to rows that are read from a table that tracks its rows, in Arrow.

Guarantee: a row has the id that its file stores for it, or the file's first id plus its position; never the id of
another row.

PROTOCOL.md, section "Reader Requirements for Row Tracking".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.layout.file_sets import FileSet


def defaults_of(files: FileSet) -> Mapping[str, tuple[int | None, int | None]]:
    """For each file the id of its first row and the version of its rows, from the log."""
    path, first, version = (files.files[name].to_pylist() for name in ("path", "baseRowId", "defaultRowCommitVersion"))
    return dict(zip(path, zip(first, version, strict=True), strict=True))


def fill_row_ids(
    rows: pa.RecordBatch, files: FileSet, defaults: tuple[int | None, int | None], positions: Any
) -> pa.RecordBatch:
    """Rows of one file, at these positions, with their ids and versions filled in where the rows have these hidden
    columns. Rows of a file without ids, which an open transaction has not committed yet, have none: wherever they are
    written to, they get new ones.
    """
    first, version = defaults
    if files.tracked is None or first is None or version is None:
        return rows
    if not {column.name for column in files.tracked.fields} & {*rows.schema.names}:
        return rows
    ids = pc.add_checked(pa.array(positions), pa.scalar(first, pa.int64()))
    filled = {files.tracked.row_id: ids, files.tracked.commit_version: pa.scalar(version)}
    for at, name in enumerate(rows.schema.names):
        rows = rows.set_column(at, name, pc.coalesce(rows.column(at), filled[name])) if name in filled else rows
    return rows


def without_versions(rows: pa.Table, files: FileSet) -> pa.Table:
    """Changed rows, whose version becomes that of the commit and is not stored in files."""
    if files.tracked is None:
        return rows
    at = rows.schema.get_field_index(files.tracked.commit_version)
    return rows.set_column(at, rows.schema.field(at), pa.nulls(len(rows), pa.int64()))
