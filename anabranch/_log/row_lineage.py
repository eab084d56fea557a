"""Reads row lineage: the original row of each row in a moved file, as the move recorded it beside its files; or the
id and the version that each row of a file keeps wherever it moves.

Knows one Parquet file in the store. Guarantee: the result has one entry for each row and no gap, or is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch._log.file_locations import locate_in_store
from anabranch._log.footers import footer_in, read_tail
from anabranch._log.row_groups import RowGroups
from anabranch._protocol.actions import FileRow
from anabranch._protocol.features.row_tracking import HiddenColumns
from anabranch._protocol.layout.curves import ORIGINS
from anabranch._protocol.layout.paths import decode
from anabranch._storage.contract import Store
from anabranch._storage.native import file_with, native_file
from anabranch.errors import CorruptLog, NotFound


def origins_of(store: Store, path: str) -> pa.Table:
    """The row lineage at a path that a commit names. Raises CorruptLog: the file is missing or malformed."""
    try:
        table = pq.read_table(native_file(store.get(decode(path))), columns=ORIGINS.names)
        return pa.table([table[name].cast(ORIGINS.field(name).type) for name in ORIGINS.names], schema=ORIGINS)
    except NotFound:
        raise CorruptLog(table=store.url, file=path, reason="the record of moved rows is not there.") from None
    except (pa.ArrowException, OSError, KeyError) as error:
        raise CorruptLog(table=store.url, file=path, reason=f"the record of moved rows is damaged ({error}).") from None


@dataclass(frozen=True, eq=False)
class RowIds:
    """The id and the row commit version of each row of a file, deleted rows included, in order (int64)."""

    ids: np.ndarray[Any, Any]
    versions: np.ndarray[Any, Any]


def row_ids_of(store: Store, file: FileRow, hidden: HiddenColumns, most_rows: int) -> RowIds:
    """The row ids in a file of a table with row tracking; only its footer and the hidden columns are read.

    Source: PROTOCOL.md, "Reader Requirements for Row Tracking".

    Raises:
        ValueError: the log has no ids for the file, it has more than ``most_rows`` rows, or it contradicts itself.
        CorruptLog, FileOutsideTable, UnknownStore, StoreError: it cannot be found or read.
    """
    first, version = file["baseRowId"], file["defaultRowCommitVersion"]
    if first is None or version is None:
        raise ValueError(f"{file['path']} has no row ids")
    stored = _read_hidden(store, file["path"], hidden, most_rows)
    positions = np.arange(len(stored), dtype=np.int64)
    ids = _fill(stored, hidden.row_id, positions + first)
    return RowIds(ids, _fill(stored, hidden.commit_version, np.full_like(positions, version)))


def _fill(stored: pa.Table, name: str, defaults: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if name not in stored.column_names:
        return defaults
    values: np.ndarray[Any, Any] = pc.coalesce(stored[name], pa.chunked_array([pa.array(defaults)])).to_numpy()
    return values


def _read_hidden(store: Store, path: str, hidden: HiddenColumns, most_rows: int) -> pa.Table:
    """The hidden columns that a data file has, as they are stored; without columns, its rows alone."""
    where, name = locate_in_store(store, path)
    entry = where.head(name)
    if entry is None:
        raise ValueError(f"{path} is not there")
    tail = read_tail(where, entry)
    footer = pq.read_metadata(native_file(tail))
    if footer.num_rows > most_rows:
        raise ValueError(f"{path} has {footer.num_rows} rows, and at most {most_rows} are read")
    groups, numbers = RowGroups(footer_in(tail, name), footer.num_row_groups), range(footer.num_row_groups)
    groups.check()
    types = {field.name: field.type for field in footer.schema.to_arrow_schema()}
    names = [field.name for field in hidden.fields if field.name in types]
    if any(types[each] != pa.int64() for each in names):
        raise ValueError(f"{path} has row ids of another type")
    if not names:
        return pa.table({"": pa.nulls(footer.num_rows)})
    parquet = pq.ParquetFile(file_with(where, name, entry.size, groups.spans(numbers, names)), metadata=footer)
    return parquet.read(columns=names)
