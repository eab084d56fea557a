"""Finds rows of new files again by their values, and writes files without some rows.

A file does not tell which of its rows is the new image of which old one, since an engine writes rows in any order. But
rows with equal values may stand for each other: where one of them has to go, any of them may. Guarantee: for each row
that is looked for, one row with the same values, in every column of the file and of its partition, is found, or nothing
is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from anabranch._log.file_locations import locate_in_store
from anabranch._protocol.actions import FileRow
from anabranch._protocol.layout.file_sets import Marks
from anabranch._protocol.layout.paths import encode
from anabranch._protocol.parquet_files import parquet_bytes
from anabranch._protocol.rules.table_rules import Rules
from anabranch._storage.contract import Store
from anabranch._storage.native import native_file

MOST_ROWS = 100_000
"""Maximum number of rows that are compared value by value."""

Partition = tuple[tuple[str, str | None], ...]


def find_equal_rows(store: Store, files: pa.Table, wanted: pa.Table, taken: Marks) -> Marks | None:
    """The positions, by path, of one row for each row of other files; None if there is not one for each, or there are
    too many to compare.

    Args:
        files: where to look (`FILES`).
        wanted: the files with the rows to look for, from the same writer.
        taken: rows of ``files`` that do not count.

    Raises:
        StoreError: a file cannot be read.
    """
    missing, values = _read_wanted(store, wanted)
    if missing.total() > MOST_ROWS:
        return None
    found: dict[str, BitMap64] = {}
    compared = 0
    for file in reversed(files.to_pylist()):  # rows that change often were written last
        if not missing.total():
            break
        partition = _partition_of(file)
        for position, row in _candidates(store, file, values.get(partition), taken.get(file["path"], BitMap64())):
            compared += 1
            if compared > MOST_ROWS:
                return None
            if missing[partition, row] > 0:
                missing[partition, row] -= 1
                found.setdefault(file["path"], BitMap64()).add(position)
    return None if missing.total() else found


def leave_out(store: Store, file: FileRow, rows: BitMap64, name: str, rules: Rules) -> FileRow | None:
    """Write the other rows of a file of change data under another name; returns that file, None if no row is left.

    Raises:
        StoreError: it cannot be read or written.
    """
    table = _open(store, file).read()
    kept = np.setdiff1d(np.arange(len(table)), np.array(rows, np.int64), assume_unique=True)
    if not len(kept):
        return None
    data = parquet_bytes(table.take(pa.array(kept)), rules.compression, rules.pages)
    store.put(name, data)
    return {**file, "path": encode(name), "size": len(data)}


def _read_wanted(store: Store, wanted: pa.Table) -> tuple[Counter[tuple[Partition, str]], Mapping[Partition, pa.Table]]:
    """How often each row is wanted, and the rows of each partition."""
    rows: dict[Partition, list[pa.Table]] = {}
    for file in wanted.to_pylist():
        rows.setdefault(_partition_of(file), []).append(_open(store, file).read())
    tables = {partition: pa.concat_tables(parts) for partition, parts in rows.items()}
    return Counter((partition, key) for partition, table in tables.items() for key in _keys(table)), tables


def _candidates(store: Store, file: FileRow, wanted: pa.Table | None, taken: BitMap64) -> Iterator[tuple[int, str]]:
    """The rows of a file that may be among the wanted ones: position and key."""
    if wanted is None:
        return
    parquet, first = _open(store, file), 0
    for group in range(parquet.num_row_groups):
        places = [place for place in _places(parquet, group, wanted) if place + first not in taken]
        if places:
            rows = parquet.read_row_group(group).take(pa.array(places))
            yield from zip((place + first for place in places), _keys(rows), strict=True)
        first += parquet.metadata.row_group(group).num_rows


def _places(parquet: pq.ParquetFile, group: int, wanted: pa.Table) -> list[int]:
    """The rows of a row group whose values in each simple column are among the wanted ones, column by column, so that
    most columns are not read where the first leave nothing.
    """
    mask = np.ones(parquet.metadata.row_group(group).num_rows, np.bool_)
    for name in (field.name for field in wanted.schema if _is_simple(field.type)):
        if mask.any():
            values = parquet.read_row_group(group, columns=[name])[name]
            among = pc.is_in(values, value_set=wanted[name].combine_chunks().cast(values.type))
            mask &= among.to_numpy()
    places: list[int] = np.flatnonzero(mask).tolist()
    return places


def _is_simple(kind: pa.DataType) -> bool:
    """Whether values of a type are equal just where their bytes are."""
    return not (pa.types.is_nested(kind) or pa.types.is_floating(kind))


def _keys(rows: pa.Table) -> list[str]:
    """The values of each row, as one text."""
    return [repr(row) for row in rows.select(sorted(rows.column_names)).to_pylist()]


def _partition_of(file: FileRow) -> Partition:
    return tuple(sorted(file["partitionValues"] or ()))


def _open(store: Store, file: FileRow) -> pq.ParquetFile:
    place, name = locate_in_store(store, file["path"])
    return pq.ParquetFile(native_file(place.get(name)))
