"""Finds rows, and fetches some of them, by Arrow in this process.

Knows which conditions Arrow judges just as Spark does. Guarantees: the rows that are found are those that Spark would
find; the values that are fetched are those that Spark would read; whatever is in doubt raises `Unsupported`. So may
whatever reads files raise what Arrow, the system or a store raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from anabranch.arrow import row_ids
from anabranch.arrow.marks import bitmap
from anabranch.arrow.membership import among
from anabranch.arrow.reading import MOST_BYTES, Part, plain, read
from anabranch.arrow.site import Site
from anabranch.protocol.conditions import Condition
from anabranch.protocol.expressions.computation import Computation
from anabranch.protocol.expressions.tree import names_of
from anabranch.protocol.layout.file_sets import FileSet, Marks, difference_of
from anabranch.protocol.schema.column_mapping import FIELD_ID
from anabranch.protocol.schema.leaves import leaves_of, only
from anabranch.protocol.schema.lengths import limits_of
from anabranch.protocol.schema.plain import are_plain
from anabranch.protocol.schema.types import Field, Struct, arrow_type
from anabranch.protocol.stats.literals import domain
from anabranch.protocol.unsupported import Unsupported

_ADDRESS = (pa.string(), pa.int64())


def find(site: Site, files: FileSet, condition: Condition) -> dict[str, BitMap64]:
    """The live rows for which a condition is TRUE: path as in the log -> positions; files without any are left out.

    Raises:
        Unsupported: only Spark judges the condition, or reads these files.
    """
    computation, columns = check_condition(files.schema, condition)
    _check_read(site, files)

    def seen(part: Part, batch: pa.RecordBatch, first: int) -> Any:
        rows = computation.truths(plain(batch, columns))
        return bitmap(np.flatnonzero(rows.to_numpy(zero_copy_only=False)) + first) if rows.true_count else None

    by_file: dict[str, BitMap64] = {}
    for path, rows in read(site, replace(files, schema=columns), columns.names, seen):
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
    deleted = _positions(files.vectors)
    wanted, budget = [among(some) for some in values.values()], _Budget()

    def seen(part: Part, batch: pa.RecordBatch, first: int) -> pa.RecordBatch | None:
        there = plain(batch, columns)
        keys = [there.column(name).cast(some.type) for name, some in values.items()]
        rows = np.flatnonzero(reduce(np.logical_and, [are(key) for are, key in zip(wanted, keys, strict=True)]))
        rows = rows[~np.isin(rows + first, deleted[part.file.log])] if part.file.log in deleted and len(rows) else rows
        if not len(rows):
            return None
        return budget.taken(
            _addressed([key.take(pa.array(rows)) for key in keys], [*values], address, part, rows + first)
        )

    empty = pa.schema([*((name, some.type) for name, some in values.items()), *zip(address, _ADDRESS, strict=True)])
    if None in [domain(each) for each in columns]:
        raise Unsupported("keys of such a type are compared by Spark")
    _check_read(site, files)
    return pa.Table.from_batches([rows for _, rows in read(site, files, list(values), seen)], empty)


def scan(
    site: Site, files: FileSet, columns: Sequence[str], condition: Condition | None = None
) -> Iterator[pa.RecordBatch]:
    """These columns of the live rows for which a condition is TRUE (None: of all), some at a time: file after file, and
    of each in the order of rows. The rows of one file are held at once.

    Raises:
        Unsupported: only Spark judges the condition, or reads these files.
    """
    wanted = check_scanned(files, columns)
    computation, judged = (None, Struct()) if condition is None else check_condition(files.schema, condition)
    beside = [each for each in judged if each.name not in columns]
    whole = replace(files, schema=Struct((*wanted, *beside)))

    def seen(deleted: dict[str, Any], part: Part, batch: pa.RecordBatch, first: int) -> pa.RecordBatch | None:
        rows = plain(batch, whole.schema)
        mask = np.ones(len(rows), bool) if computation is None else _truths(computation, rows, judged)
        if part.file.log in deleted:
            mask &= ~np.isin(np.arange(first, first + len(rows)), deleted[part.file.log])
        return rows.select(list(columns)).filter(pa.array(mask)) if mask.any() else None

    for path in files.files["path"].to_pylist():
        some = whole.restricted({path})
        _check_read(site, some)
        seen_here = partial(seen, _positions(some.vectors))
        yield from (rows for _, rows in read(site, some, whole.schema.names, seen_here))


def check_scanned(files: FileSet, columns: Sequence[str]) -> Struct:
    """These columns. Raises Unsupported unless Arrow sees the same in their values as Spark."""
    wanted = Struct(tuple(files.schema.field(name) for name in columns))
    _check_plain(wanted.fields, nested=True)
    return wanted


def _positions(marks: Marks) -> dict[str, Any]:
    """The marked rows of each file as an array, which ascends."""
    return {path: np.asarray(rows.to_array(), np.int64) for path, rows in marks.items()}


def _truths(computation: Computation, rows: pa.RecordBatch, judged: Struct) -> Any:
    return computation.truths(rows.select(list(judged.names))).to_numpy(zero_copy_only=False).copy()


def live(site: Site, files: FileSet, *, nested: bool = False) -> pa.Table:
    """All live rows of these files, in Arrow's types for their columns: file after file, and of each in the order of
    rows; ``nested`` as for `fetch`.

    Raises:
        Unsupported: only Spark reads them, or they are too many.
    """
    _check_copied(files.schema, nested=nested)
    _check_read(site, files)
    deleted = _positions(files.vectors)
    budget = _Budget()

    def seen(part: Part, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        rows = plain(batch, files.schema)
        if part.file.log in deleted:
            positions = np.arange(first, first + batch.num_rows)
            rows = rows.filter(pa.array(~np.isin(positions, deleted[part.file.log])))
        return budget.taken(rows)

    names = files.schema.names
    schema = pa.schema([(each.name, arrow_type(each.type)) for each in files.schema])
    return pa.Table.from_batches([rows for _, rows in read(site, files, names, seen)], schema)


def fetch(
    site: Site,
    files: FileSet,
    marks: Marks,
    columns: Sequence[str],
    address: tuple[str, str] | None = None,
    *,
    nested: bool = False,
) -> pa.Table:
    """These columns of exactly the marked rows, in Arrow's types for them: file after file, and of each in the order of
    rows.

    Args:
        columns: those of a table that tracks its rows may be among them (`FileSet.with_ids`).
        address: the names of two more columns, with each row's path, as in the log, and its position.
        nested: whether they may be structs, lists and maps.

    Raises:
        Unsupported: only Spark reads them, or they are too many.
    """
    whole, defaults = files.with_ids, row_ids.defaults_of(files)
    schema = Struct(tuple(whole.schema.field(name) for name in columns))
    _check_copied(schema, nested=nested)
    _check_read(site, files)
    wanted = _positions(marks)
    budget = _Budget()

    def marked(part: Part, first: int, count: int) -> Any:
        begin, end = np.searchsorted(wanted[part.file.log], [first, first + count])
        return wanted[part.file.log][begin:end]

    def taken(part: Part, batch: pa.RecordBatch, first: int) -> pa.RecordBatch | None:
        rows = marked(part, first, batch.num_rows)
        if not len(rows):
            return None
        some = plain(batch.take(pa.array(rows - first)), schema)
        some = row_ids.filled(some, files, defaults[part.file.log], rows)
        return budget.taken(some if address is None else _addressed(some.columns, columns, address, part, rows))

    chosen = whole.restricted(dict(marks))
    found = read(site, chosen, columns, taken, lambda part: len(marked(part, part.first, part.rows)) > 0)
    return pa.Table.from_batches([rows for _, rows in found])


def _check_read(site: Site, files: FileSet) -> None:
    """Raises Unsupported unless these files are read here."""
    if not site.reads(files):
        raise Unsupported("these files are read by Spark")


def _check_plain(fields: Sequence[Field], *, nested: bool = False) -> None:
    """Raises Unsupported unless Arrow sees the same in values of these columns as Spark."""
    for each in fields:
        if not are_plain([each], nested=nested):
            raise Unsupported(f"the column {each.name} is read by Spark")


def _check_copied(schema: Struct, *, nested: bool) -> None:
    """Raises Unsupported unless Arrow writes what it has read of these columns as Spark would."""
    _check_plain(schema.fields, nested=nested)
    if nested and not _are_copied(schema):
        raise Unsupported("a column that is nested has other names in files, or lengths of texts, inside")


def _are_copied(schema: Struct) -> bool:
    """Whether names in files are the table's inside of columns, and no text there has a length to keep."""
    inside = [each for each in schema if not isinstance(each.type, str)]
    is_mapped = any(FIELD_ID in each.metadata for each in schema)
    return not inside or not (is_mapped or any(limits_of(each) is not None for each in inside))


class TooManyRows(Unsupported):
    """Rows take more memory than they may."""


class _Budget:
    """How many bytes of rows may still be brought; threads may share it, since a little more does no harm."""

    def __init__(self) -> None:
        self._left = MOST_BYTES

    def taken(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows. Raises Unsupported: they are more than may be brought."""
        self._left -= rows.nbytes
        if self._left < 0:
            raise TooManyRows("the rows take more memory than they may")
        return rows


def _addressed(
    columns: Sequence[pa.Array], names: Sequence[str], address: tuple[str, str], part: Part, positions: Any
) -> pa.RecordBatch:
    path = pa.repeat(pa.scalar(part.file.log), len(positions))
    return pa.RecordBatch.from_arrays([*columns, path, pa.array(positions)], [*names, *address])
