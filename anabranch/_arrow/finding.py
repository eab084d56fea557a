"""Finds and fetches rows with Arrow in this process.

Knows which conditions Arrow evaluates just as Spark does. Guarantees: the rows are those that Spark would find, and the
values are those that Spark would read; whatever is in doubt raises `Unsupported`. Functions that read files may also
raise errors of Arrow, of the system and of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from anabranch._arrow import row_ids
from anabranch._arrow.data_files import data_files
from anabranch._arrow.marks import bitmap
from anabranch._arrow.membership import make_membership_test
from anabranch._arrow.reading import MOST_BYTES, RowGroup, plain, read
from anabranch._arrow.site import Site
from anabranch._protocol.conditions import Condition
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.expressions.tree import names_of
from anabranch._protocol.layout.file_sets import FileSet, Marks, difference_of
from anabranch._protocol.schema.intervals import YEAR_MONTH
from anabranch._protocol.schema.leaves import leaves_of, select_columns
from anabranch._protocol.schema.lengths import limits_of
from anabranch._protocol.schema.plain import are_plain
from anabranch._protocol.schema.types import Field, Struct, arrow_type
from anabranch._protocol.stats.literals import domain
from anabranch._protocol.stats.statistics import num_records
from anabranch._protocol.unsupported import Unsupported

_ADDRESS = (pa.string(), pa.int64())
_NO_ROWS = np.zeros(0, np.int64)


def find(site: Site, files: FileSet, condition: Condition) -> dict[str, BitMap64]:
    """Live rows for which a condition is TRUE: path as in the log -> positions. Files without such rows are left out.

    Raises:
        Unsupported: only Spark evaluates the condition, or reads these files.
    """
    computation, columns = check_condition(files.schema, condition)
    site.check_read(files)

    def mark_rows(part: RowGroup, batch: pa.RecordBatch, first: int) -> Any:
        rows = computation.truths(plain(batch, columns))
        return bitmap(np.flatnonzero(rows.to_numpy(zero_copy_only=False)) + first) if rows.true_count else None

    by_file: dict[str, BitMap64] = {}
    for path, rows in read(site, replace(files, schema=columns), columns.names, mark_rows):
        by_file[path] = by_file.get(path, BitMap64()) | rows
    return difference_of(by_file, files.vectors)


def check_condition(schema: Struct, condition: Condition) -> tuple[Computation, Struct]:
    """The computation of a condition over rows of this schema, and the columns that it reads.

    Raises:
        Unsupported: only Spark evaluates it.
    """
    computation = condition.computation
    if computation is None or not computation.is_condition:
        raise Unsupported((computation and computation.reason) or "it is not a condition that Arrow computes")
    columns = select_columns(schema, names_of(computation.tree))
    _check_plain([leaf.field for leaf in leaves_of(columns.fields) if leaf.type != YEAR_MONTH])
    return computation, columns


def find_by_keys(site: Site, files: FileSet, values: Mapping[str, pa.Array], address: tuple[str, str]) -> pa.Table:
    """Live rows whose key columns each hold one of the given values. Returns the key columns, in the types of the
    values, and two more with each row's path, as in the log, and its position; file by file, in the order of rows.

    Args:
        values: column -> values of its `domain`; NULL is one of them if rows that hold NULL are wanted too.
        address: names of the two columns.

    Raises:
        Unsupported: only Spark compares such values, or reads these files; or there are too many rows.
    """
    columns = Struct(tuple(files.schema.field(name) for name in values))
    positions, budget = _live(files.vectors), _Budget()
    tests = [make_membership_test(allowed) for allowed in values.values()]

    def match_keys(part: RowGroup, batch: pa.RecordBatch, first: int) -> pa.RecordBatch | None:
        rows_read = plain(batch, columns)
        keys = [rows_read.column(name).cast(allowed.type) for name, allowed in values.items()]
        are_members = [is_member(key) for is_member, key in zip(tests, keys, strict=True)]
        rows = np.flatnonzero(reduce(np.logical_and, are_members)) + first
        if len(rows) and part.file.log in files.vectors:
            rows = np.intersect1d(rows, positions(part.file.log, first, batch.num_rows), assume_unique=True)
        if not len(rows):
            return None
        key_values = [key.take(pa.array(rows - first)) for key in keys]
        return budget.charge(_with_addresses(key_values, [*values], address, part.file.log, rows))

    empty = pa.schema(
        [*((name, allowed.type) for name, allowed in values.items()), *zip(address, _ADDRESS, strict=True)]
    )
    if None in [domain(field) for field in columns]:
        raise Unsupported("keys of this type are compared by Spark")
    site.check_read(files)
    return pa.Table.from_batches([rows for _, rows in read(site, files, list(values), match_keys)], empty)


def scan(
    site: Site, files: FileSet, columns: Sequence[str], condition: Condition | None = None
) -> Iterator[pa.RecordBatch]:
    """These columns of the live rows for which a condition is TRUE (None: of all live rows), batch by batch; file by
    file, in the order of rows.

    Raises:
        Unsupported: only Spark evaluates the condition, or reads these files.
    """
    selected = check_scanned(files, columns)
    computation, condition_columns = (None, Struct()) if condition is None else check_condition(files.schema, condition)
    extra = [field for field in condition_columns if field.name not in columns]
    files_read = replace(files, schema=Struct((*selected, *extra)))
    positions = _live(files.vectors)

    def take_marked(part: RowGroup, batch: pa.RecordBatch, first: int) -> pa.RecordBatch | None:
        rows = plain(batch, files_read.schema)
        mask = np.zeros(len(rows), bool)
        mask[positions(part.file.log, first, len(rows)) - first] = True
        if computation is not None:
            truths = computation.truths(rows.select(list(condition_columns.names)))
            mask &= truths.to_numpy(zero_copy_only=False)
        return rows.select(list(columns)).filter(pa.array(mask)) if mask.any() else None

    if len(files.files):
        site.check_read(files)
        yield from (
            rows for _, rows in read(site, files_read, files_read.schema.names, take_marked, most_bytes=MOST_BYTES)
        )


def check_scanned(files: FileSet, columns: Sequence[str]) -> Struct:
    """Returns these columns. Raises Unsupported unless Arrow reads their values just as Spark does."""
    selected = Struct(tuple(files.schema.field(name) for name in columns))
    _check_plain(selected.fields, nested=True)
    return selected


@dataclass(frozen=True)
class FileRows:
    """Some rows of a file, in their order.

    Attributes:
        path: path of the file, as in the log.
        positions: positions of the rows in the file.
        rows: values of the rows.
    """

    path: str
    positions: Any
    rows: pa.RecordBatch


Positions = Callable[[str, int, int], Any]
"""From a file's path, a first position and a count: the selected positions in that range."""


def _marked_positions(marks: Marks) -> Positions:
    """Selects the marked rows."""
    by_path = {path: np.asarray(rows.to_array(), np.int64) for path, rows in marks.items()}

    def positions(path: str, first: int, count: int) -> Any:
        rows = by_path.get(path, _NO_ROWS)
        begin, end = np.searchsorted(rows, [first, first + count])
        return rows[begin:end]

    return positions


def _live(vectors: Marks) -> Positions:
    """Selects the rows that are not deleted."""
    deleted = _marked_positions(vectors)

    def positions(path: str, first: int, count: int) -> Any:
        is_live = np.ones(count, bool)
        is_live[deleted(path, first, count) - first] = False
        return np.flatnonzero(is_live) + first

    return positions


def make_mark_test(marks: Marks) -> Callable[[str, Any], Any]:
    """A function of a path and positions in that file: whether each row is marked."""
    positions = _marked_positions(marks)

    def are_marked(path: str, rows: Any) -> Any:
        return np.isin(rows, positions(path, rows[0], rows[-1] - rows[0] + 1), assume_unique=True)

    return are_marked


def fetch_file_rows(
    site: Site, files: FileSet, marks: Marks | None, columns: Sequence[str], *, nested: bool = False
) -> Iterator[FileRows]:
    """These columns of exactly the marked rows (None: of all live rows), in the Arrow types of the columns, batch by
    batch; file by file, in the order of rows. Holds a few row groups at once.

    Args:
        columns: may include the hidden id columns of a table that tracks its rows (`FileSet.with_ids`).
        nested: whether columns may be structs, lists, maps and months: types whose rows stay in Arrow.

    Raises:
        Unsupported: only Spark reads them.
    """
    selected = files.with_ids if marks is None else files.with_ids.restrict_to(dict(marks))
    positions = _live(files.vectors) if marks is None else _marked_positions(marks)
    schema = Struct(tuple(selected.schema.field(name) for name in columns))
    defaults = row_ids.defaults_of(files)

    def take_wanted(part: RowGroup, batch: pa.RecordBatch, first: int) -> FileRows | None:
        path, rows = part.file.log, positions(part.file.log, first, batch.num_rows)
        if not len(rows):
            return None
        selected_rows = batch if len(rows) == batch.num_rows else batch.take(pa.array(rows - first))
        return FileRows(path, rows, row_ids.fill_row_ids(plain(selected_rows, schema), files, defaults[path], rows))

    def is_wanted(part: RowGroup) -> bool:
        return len(positions(part.file.log, part.first, part.rows)) > 0

    check_copied(schema, nested=nested)
    if len(selected.files):
        site.check_read(files)
        batches = read(site, selected, columns, take_wanted, is_wanted, MOST_BYTES)
        yield from (file_rows for _, file_rows in batches)


def fetch_live(site: Site, files: FileSet, *, nested: bool = False) -> pa.Table:
    """All live rows of these files in one table, with their ids if the table tracks its rows; otherwise as
    `fetch_file_rows`.

    Raises:
        Unsupported: only Spark reads them, or there are too many.
    """
    return _to_table(
        fetch_file_rows(site, files, None, files.with_ids.schema.names, nested=nested), files.with_ids.schema
    )


def fetch(
    site: Site,
    files: FileSet,
    marks: Marks,
    columns: Sequence[str],
    address: tuple[str, str] | None = None,
    *,
    nested: bool = False,
) -> pa.Table:
    """These columns of exactly the marked rows in one table; otherwise as `fetch_file_rows`.

    Args:
        address: names of two more columns, with each row's path, as in the log, and its position.

    Raises:
        Unsupported: only Spark reads them, or there are too many.
    """
    parts = fetch_file_rows(site, files, marks, columns, nested=nested)
    return _to_table(parts, Struct(tuple(files.with_ids.schema.field(name) for name in columns)), address)


def _to_table(parts: Iterator[FileRows], schema: Struct, address: tuple[str, str] | None = None) -> pa.Table:
    """Rows with these columns, and their addresses under two names. Raises Unsupported if there are too many."""
    budget, batches = _Budget(), list[pa.RecordBatch]()
    for part in parts:
        columns = part.rows.columns
        rows = (
            part.rows if address is None else _with_addresses(columns, schema.names, address, part.path, part.positions)
        )
        batches.append(budget.charge(rows))
    address_columns = () if address is None else zip(address, _ADDRESS, strict=True)
    names = pa.schema([*((field.name, arrow_type(field.type)) for field in schema), *address_columns])
    return pa.Table.from_batches(batches, names)


def _check_plain(fields: Sequence[Field], *, nested: bool = False) -> None:
    """Raises Unsupported unless Arrow reads values of these columns just as Spark does."""
    for field in fields:
        if not are_plain([field], nested=nested):
            raise Unsupported(f"the column {field.name} is read by Spark")


def live_marks(site: Site, files: FileSet) -> Marks:
    """All live rows of these files. A file's row count comes from its footer if the log does not have it."""
    counts = dict(zip(files.files["path"].to_pylist(), map(num_records, files.files["stats"].to_pylist()), strict=True))
    if unknown := {path for path, count in counts.items() if count is None}:
        counts |= {file.log: file.footer.num_rows for file in data_files(site.store, files.restrict_to(unknown))}
    return difference_of({path: BitMap64(range(count or 0)) for path, count in counts.items()}, files.vectors)


def check_copied(schema: Struct, *, nested: bool = True) -> None:
    """Raises Unsupported unless Arrow writes back values of these columns just as Spark would."""
    _check_plain(schema.fields, nested=nested)
    if nested and not _are_copied(schema):
        raise Unsupported("a column that is nested has lengths of texts inside")


def _are_copied(schema: Struct) -> bool:
    """Whether no text in nested columns has a length limit."""
    return all(isinstance(field.type, str) or limits_of(field) is None for field in schema)


class _Budget:
    """Bytes of rows that may still be fetched. Threads share it without a lock: a small excess does no harm."""

    def __init__(self) -> None:
        self._left = MOST_BYTES

    def charge(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Charge the rows to the budget and return them. Raises Unsupported if they exceed it."""
        self._left -= rows.nbytes
        if self._left < 0:
            raise Unsupported("the rows exceed the memory limit")
        return rows


def _with_addresses(
    columns: Sequence[pa.Array], names: Sequence[str], address: tuple[str, str], path: str, positions: Any
) -> pa.RecordBatch:
    paths = pa.repeat(pa.scalar(path), len(positions))
    return pa.RecordBatch.from_arrays([*columns, paths, pa.array(positions)], [*names, *address])
