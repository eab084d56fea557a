"""Row ids in Arrow: the ids and commit versions of rows that are read, where the table tracks its rows.

Guarantee: a row has the id that its file holds for it, else the file's first id plus its position; it never has another
row's.

PROTOCOL.md, section "Reader Requirements for Row Tracking".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.unsupported import Unsupported


def defaults_of(files: FileSet) -> Mapping[str, tuple[int | None, int | None]]:
    """For each file the id of its first row and the version of its rows, as the log has them."""
    path, first, version = (files.files[name].to_pylist() for name in ("path", "baseRowId", "defaultRowCommitVersion"))
    return dict(zip(path, zip(first, version, strict=True), strict=True))


def fill_row_ids(
    rows: pa.RecordBatch, files: FileSet, defaults: tuple[int | None, int | None], positions: Any
) -> pa.RecordBatch:
    """Rows of one file, at these positions, with their ids and versions in those of the hidden columns that they have.
    Raises Unsupported: the log says no ids of this file.
    """
    if files.tracked is None or not {each.name for each in files.tracked.fields} & {*rows.schema.names}:
        return rows
    first, version = defaults
    if first is None or version is None:
        raise Unsupported("a file has no row ids")
    ids = pc.add_checked(pa.array(positions), pa.scalar(first, pa.int64()))
    own = {files.tracked.row_id: ids, files.tracked.commit_version: pa.scalar(version)}
    for at, name in enumerate(rows.schema.names):
        rows = rows.set_column(at, name, pc.coalesce(rows.column(at), own[name])) if name in own else rows
    return rows


def without_versions(rows: pa.Table, files: FileSet) -> pa.Table:
    """Rows that are changed: their version will be that of the commit, which no file holds."""
    if files.tracked is None:
        return rows
    at = rows.schema.get_field_index(files.tracked.commit_version)
    return rows.set_column(at, rows.schema.field(at), pa.nulls(len(rows), pa.int64()))
