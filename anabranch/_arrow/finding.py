"""Finds rows, and fetches some of them, by Arrow in this process.

Knows which conditions Arrow judges just as Spark does. Guarantees: the rows that are found are those that Spark would
find; the values that are fetched are those that Spark would read; whatever is in doubt raises `Unsupported`. So may
whatever reads files raise what Arrow, the system or a store raises.
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
from anabranch._arrow.membership import among
from anabranch._arrow.reading import MOST_BYTES, Part, plain, read
from anabranch._arrow.site import Site
from anabranch._protocol.conditions import Condition
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.expressions.tree import names_of
from anabranch._protocol.layout.file_sets import FileSet, Marks, difference_of
from anabranch._protocol.schema.column_mapping import FIELD_ID
from anabranch._protocol.schema.leaves import leaves_of, only
from anabranch._protocol.schema.lengths import limits_of
from anabranch._protocol.schema.plain import are_plain
from anabranch._protocol.schema.types import Field, Struct, arrow_type
from anabranch._protocol.stats.literals import domain
from anabranch._protocol.stats.statistics import num_records
from anabranch._protocol.unsupported import Unsupported

_ADDRESS = (pa.string(), pa.int64())
_NO_ROWS = np.zeros(0, np.int64)


def find(site: Site, files: FileSet, condition: Condition) -> dict[str, BitMap64]:
    """The live rows for which a condition is TRUE: path as in the log -> positions; files without any are left out.

    Raises:
        Unsupported: only Spark judges the condition, or reads these files.
    """
    computation, columns = check_condition(files.schema, condition)
    site.check_read(files)

    def mark_rows(part: Part, batch: pa.RecordBatch, first: int) -> Any:
        rows = computation.truths(plain(batch, columns))
        return bitmap(np.flatnonzero(rows.to_numpy(zero_copy_only=False)) + first) if rows.true_count else None

    by_file: dict[str, BitMap64] = {}
    for path, rows in read(site, replace(files, schema=columns), columns.names, mark_rows):
        by_file[path] = by_file.get(path, BitMap64()) | rows
    return difference_of(by_file, files.vectors)


def check_condition(schema: Struct, condition: Condition) -> tuple[Computation, Struct]:
    """How a condition is computed over rows of these columns, and the columns that it reads.

    Raises:
        Unsupported: only Spark judges it.
    """
    computation = condition.computation
    if computation is None or not computation.is_condition:
        raise Unsupported((computation and computation.reason) or "it is no condition that is read here")
    columns = only(schema, names_of(computation.tree))
    _check_plain([leaf.field for leaf in leaves_of(columns.fields)])
    return computation, columns


def with_values(site: Site, files: FileSet, values: Mapping[str, pa.Array], address: tuple[str, str]) -> pa.Table:
    """The live rows that have one of some values, of which none is NULL, in each of several columns: these columns, in
    the types of the values, and two more with each row's path, as in the log, and its position. File after file, and of
    each in the order of rows.

    Args:
        values: column -> values of its `domain`.
        address: the names of the two columns.

    Raises:
        Unsupported: only Spark compares such values, or reads these files; or the rows are too many.
    """
    columns = Struct(tuple(files.schema.field(name) for name in values))
    positions, budget = _live(files.vectors), _Budget()
    wanted = [among(some) for some in values.values()]

    def match_keys(part: Part, batch: pa.RecordBatch, first: int) -> pa.RecordBatch | None:
        there = plain(batch, columns)
        keys = [there.column(name).cast(some.type) for name, some in values.items()]
        rows = np.flatnonzero(reduce(np.logical_and, [are(key) for are, key in zip(wanted, keys, strict=True)])) + first
        if len(rows) and part.file.log in files.vectors:
            rows = np.intersect1d(rows, positions(part.file.log, first, batch.num_rows), assume_unique=True)
        if not len(rows):
            return None
        found = [key.take(pa.array(rows - first)) for key in keys]
        return budget.charge(_with_addresses(found, [*values], address, part.file.log, rows))

    empty = pa.schema([*((name, some.type) for name, some in values.items()), *zip(address, _ADDRESS, strict=True)])
    if None in [domain(each) for each in columns]:
        raise Unsupported("keys of such a type are compared by Spark")
    site.check_read(files)
    return pa.Table.from_batches([rows for _, rows in read(site, files, list(values), match_keys)], empty)


def scan(
    site: Site, files: FileSet, columns: Sequence[str], condition: Condition | None = None
) -> Iterator[pa.RecordBatch]:
    """These columns of the live rows for which a condition is TRUE (None: of all), some at a time: file after file, and
    of each in the order of rows.

    Raises:
        Unsupported: only Spark judges the condition, or reads these files.
    """
    wanted = check_scanned(files, columns)
    computation, judged = (None, Struct()) if condition is None else check_condition(files.schema, condition)
    beside = [each for each in judged if each.name not in columns]
    whole = replace(files, schema=Struct((*wanted, *beside)))
    positions = _live(files.vectors)

    def take_marked(part: Part, batch: pa.RecordBatch, first: int) -> pa.RecordBatch | None:
        rows = plain(batch, whole.schema)
        mask = np.zeros(len(rows), bool)
        mask[positions(part.file.log, first, len(rows)) - first] = True
        if computation is not None:
            truths = computation.truths(rows.select(list(judged.names)))
            mask &= truths.to_numpy(zero_copy_only=False)
        return rows.select(list(columns)).filter(pa.array(mask)) if mask.any() else None

    if len(files.files):
        site.check_read(files)
        yield from (rows for _, rows in read(site, whole, whole.schema.names, take_marked, most_bytes=MOST_BYTES))


def check_scanned(files: FileSet, columns: Sequence[str]) -> Struct:
    """These columns. Raises Unsupported unless Arrow sees the same in their values as Spark."""
    wanted = Struct(tuple(files.schema.field(name) for name in columns))
    _check_plain(wanted.fields, nested=True)
    return wanted


@dataclass(frozen=True)
class FileRows:
    """Some rows of a file, in their order.

    Attributes:
        path: the file's, as in the log.
        positions: where they lie in it.
        rows: their values.
    """

    path: str
    positions: Any
    rows: pa.RecordBatch


Positions = Callable[[str, int, int], Any]
"""Of a file, its first row and a count: the positions of those that are wanted of so many rows from there on."""


def _marked_positions(marks: Marks) -> Positions:
    """The marked rows."""
    wanted = {path: np.asarray(rows.to_array(), np.int64) for path, rows in marks.items()}

    def positions(path: str, first: int, count: int) -> Any:
        rows = wanted.get(path, _NO_ROWS)
        begin, end = np.searchsorted(rows, [first, first + count])
        return rows[begin:end]

    return positions


def _live(vectors: Marks) -> Positions:
    """The rows that are not deleted."""
    deleted = _marked_positions(vectors)

    def positions(path: str, first: int, count: int) -> Any:
        left = np.ones(count, bool)
        left[deleted(path, first, count) - first] = False
        return np.flatnonzero(left) + first

    return positions


def make_mark_test(marks: Marks) -> Callable[[str, Any], Any]:
    """Of a file and positions in it: for each whether it is marked."""
    positions = _marked_positions(marks)

    def are_marked(path: str, rows: Any) -> Any:
        return np.isin(rows, positions(path, rows[0], rows[-1] - rows[0] + 1), assume_unique=True)

    return are_marked


def fetch_file_rows(
    site: Site, files: FileSet, marks: Marks | None, columns: Sequence[str], *, nested: bool = False
) -> Iterator[FileRows]:
    """These columns of exactly the marked rows (None: of all live ones), in Arrow's types for them, some at a time:
    file after file, and of each in the order of rows. A few row groups are held at once.

    Args:
        columns: those of a table that tracks its rows may be among them (`FileSet.with_ids`).
        nested: whether they may be structs, lists and maps.

    Raises:
        Unsupported: only Spark reads them.
    """
    chosen = files.with_ids if marks is None else files.with_ids.restrict_to(dict(marks))
    positions = _live(files.vectors) if marks is None else _marked_positions(marks)
    schema = Struct(tuple(chosen.schema.field(name) for name in columns))
    defaults = row_ids.defaults_of(files)

    def take_wanted(part: Part, batch: pa.RecordBatch, first: int) -> FileRows | None:
        path, rows = part.file.log, positions(part.file.log, first, batch.num_rows)
        if not len(rows):
            return None
        some = batch if len(rows) == batch.num_rows else batch.take(pa.array(rows - first))
        return FileRows(path, rows, row_ids.fill_row_ids(plain(some, schema), files, defaults[path], rows))

    def is_wanted(part: Part) -> bool:
        return len(positions(part.file.log, part.first, part.rows)) > 0

    check_copied(schema, nested=nested)
    if len(chosen.files):
        site.check_read(files)
        found = read(site, chosen, columns, take_wanted, is_wanted, MOST_BYTES)
        yield from (each for _, each in found)


def live(site: Site, files: FileSet, *, nested: bool = False) -> pa.Table:
    """All live rows of these files at once, with their ids where the table tracks its rows; else as `fetch_file_rows`.

    Raises:
        Unsupported: only Spark reads them, or they are too many.
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
    """These columns of exactly the marked rows at once; else as `fetch_file_rows`.

    Args:
        address: the names of two more columns, with each row's path, as in the log, and its position.

    Raises:
        Unsupported: only Spark reads them, or they are too many.
    """
    found = fetch_file_rows(site, files, marks, columns, nested=nested)
    return _to_table(found, Struct(tuple(files.with_ids.schema.field(name) for name in columns)), address)


def _to_table(found: Iterator[FileRows], schema: Struct, address: tuple[str, str] | None = None) -> pa.Table:
    """Rows with these columns, and their addresses under two names. Raises Unsupported: they are too many."""
    budget, batches = _Budget(), list[pa.RecordBatch]()
    for each in found:
        columns = each.rows.columns
        rows = (
            each.rows if address is None else _with_addresses(columns, schema.names, address, each.path, each.positions)
        )
        batches.append(budget.charge(rows))
    beside = () if address is None else zip(address, _ADDRESS, strict=True)
    names = pa.schema([*((each.name, arrow_type(each.type)) for each in schema), *beside])
    return pa.Table.from_batches(batches, names)


def _check_plain(fields: Sequence[Field], *, nested: bool = False) -> None:
    """Raises Unsupported unless Arrow sees the same in values of these columns as Spark."""
    for each in fields:
        if not are_plain([each], nested=nested):
            raise Unsupported(f"the column {each.name} is read by Spark")


def live_marks(site: Site, files: FileSet) -> Marks:
    """All live rows of these files; where the log does not say how many a file has, its footer does."""
    counts = dict(zip(files.files["path"].to_pylist(), map(num_records, files.files["stats"].to_pylist()), strict=True))
    if unknown := {path for path, count in counts.items() if count is None}:
        counts |= {each.log: each.footer.num_rows for each in data_files(site.store, files.restrict_to(unknown))}
    return difference_of({path: BitMap64(range(count or 0)) for path, count in counts.items()}, files.vectors)


def check_copied(schema: Struct, *, nested: bool = True) -> None:
    """Raises Unsupported unless Arrow writes what it has read of these columns as Spark would."""
    _check_plain(schema.fields, nested=nested)
    if nested and not _are_copied(schema):
        raise Unsupported("a column that is nested has other names in files, or lengths of texts, inside")


def _are_copied(schema: Struct) -> bool:
    """Whether names in files are the table's inside of columns, and no text there has a length to keep."""
    inside = [each for each in schema if not isinstance(each.type, str)]
    is_mapped = any(FIELD_ID in each.metadata for each in schema)
    return not inside or not (is_mapped or any(limits_of(each) is not None for each in inside))


class _Budget:
    """How many bytes of rows may still be brought; threads may share it, since a little more does no harm."""

    def __init__(self) -> None:
        self._left = MOST_BYTES

    def charge(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows. Raises Unsupported: they are more than may be brought."""
        self._left -= rows.nbytes
        if self._left < 0:
            raise Unsupported("the rows take more memory than they may")
        return rows


def _with_addresses(
    columns: Sequence[pa.Array], names: Sequence[str], address: tuple[str, str], path: str, positions: Any
) -> pa.RecordBatch:
    paths = pa.repeat(pa.scalar(path), len(positions))
    return pa.RecordBatch.from_arrays([*columns, paths, pa.array(positions)], [*names, *address])
