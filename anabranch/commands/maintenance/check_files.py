"""CHECK of one live file: its place, size and footer, its vector, and what the log says of its values.

Knows one file and its row in the log; never another file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._log.file_locations import locate_in_store
from anabranch._log.footers import read_whole_footer
from anabranch._log.snapshot import Snapshot
from anabranch._log.vectors import vector_of
from anabranch._protocol.actions import FileRow
from anabranch._protocol.schema.column_mapping import is_mapped, renaming
from anabranch._protocol.schema.types import Struct
from anabranch._protocol.stats.statistics import num_records, stats_columns
from anabranch._storage.native import native_file
from anabranch.commands.field_id_names import layout_of
from anabranch.commands.maintenance.check_bounds import (
    Bounds,
    bounds_of_footer,
    bounds_of_rows,
    is_above,
    python_of,
    to_orderable,
)
from anabranch.errors import AnabranchError, CorruptLog, FileOutsideTable, StoreError
from anabranch.errors.html import ShownAsTable
from anabranch.errors.secrets import without_secrets

_UNREADABLE = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError)


@dataclass(frozen=True)
class Finding(ShownAsTable):
    """One thing that is wrong: which ``rule`` is broken, at which file of the table, and how."""

    rule: str
    file: str
    problem: str

    def __post_init__(self) -> None:
        """A path of a log may be a URL with secrets in it."""
        for name in ("file", "problem"):
            object.__setattr__(self, name, without_secrets(getattr(self, name)))

    def __str__(self) -> str:
        return f"{self.rule}: {self.file}: {self.problem}"


def findings_of_file(snapshot: Snapshot, file: FileRow, *, deep: bool) -> Iterator[Finding]:
    """All that can be wrong with one live file; the later looks need the earlier ones to be well."""
    try:
        store, name = locate_in_store(snapshot.store, file["path"])
        entry = store.head(name)
    except CorruptLog as error:
        yield Finding("each path stays in the table", file["path"], error.facts["reason"])
        return
    except FileOutsideTable as error:
        yield Finding("each file lies on a store that is allowed", file["path"], error.message)
        return
    except StoreError as error:  # of a clone's file, in a place that cannot be reached from here
        yield Finding("each live file exists", file["path"], f"it cannot be looked for: {error.message}")
        return
    if entry is None:
        yield Finding("each live file exists", file["path"], "there is no such file")
    elif entry.size != file["size"]:
        yield Finding(
            "each live file has its size", file["path"], f"it has {entry.size} bytes, the log says {file['size']}"
        )
    else:
        yield from _readable(snapshot, file, lambda: read_whole_footer(store, entry), deep=deep)


def _readable(snapshot: Snapshot, file: FileRow, footer_of: Callable[[], Any], *, deep: bool) -> Iterator[Finding]:
    try:
        footer = footer_of()
        bounds = bounds_of_footer(footer)
    except _UNREADABLE as error:
        yield Finding("each live file is Parquet", file["path"], f"its footer cannot be read ({error})")
        return
    yield from _counts(file, footer.num_rows)
    wrong = list(_vector(snapshot, file, footer.num_rows))
    yield from wrong
    try:
        names = _names(snapshot, file, footer)
    except CorruptLog as error:
        yield Finding("each file of mode id has ids", file["path"], error.facts["reason"])
        return
    if file["deletionVector"] is None:  # with a vector, bounds may speak of the live rows only
        yield from _stats(snapshot, file, bounds, names)
    if deep and not wrong:
        yield from _rows(snapshot, file, names, footer.num_rows)


def _names(snapshot: Snapshot, file: FileRow, footer: Any) -> Mapping[str, str]:
    """Logical name -> name in the file, for the columns that it has."""
    if not is_mapped(snapshot.metadata.configuration):
        return {name: name for name in snapshot.schema.names}
    there = footer.schema.to_arrow_schema()
    return renaming(there, layout_of(snapshot.metadata, there, snapshot.table, file["path"])).names()


def _counts(file: FileRow, rows: int) -> Iterator[Finding]:
    stated = num_records(file.get("stats"))
    if stated is not None and stated != rows:
        yield Finding("statistics agree with the file", file["path"], f"it holds {rows} rows, the log says {stated}")
    if stated is None and file["deletionVector"] is not None:
        yield Finding(
            "a file with a vector has numRecords", file["path"], "the log does not say how many rows it holds"
        )


def _vector(snapshot: Snapshot, file: FileRow, rows: int) -> Iterator[Finding]:
    if file["deletionVector"] is None:
        return
    try:
        vector = vector_of(
            snapshot.store, {**file, "stats": None}
        )  # whether it fits is asked below, of the file itself
    except AnabranchError as error:
        yield Finding("each vector is whole", file["path"], error.facts.get("reason", error.message))
        return
    if vector and vector.max() >= rows:
        yield Finding(
            "each vector lies in its file", file["path"], f"it deletes row {vector.max()} of a file with {rows} rows"
        )


def _rows(snapshot: Snapshot, file: FileRow, names: Mapping[str, str], count: int) -> Iterator[Finding]:
    try:
        bounds = bounds_of_rows(_live_rows(snapshot, file, count))
    except _UNREADABLE as error:
        yield Finding("each live file is Parquet", file["path"], f"its rows cannot be read ({error})")
        return
    yield from _stats(snapshot, file, bounds, names)


def _live_rows(snapshot: Snapshot, file: FileRow, count: int) -> pa.Table:
    """The live rows of the columns that have an order here, in types that Arrow can filter and order.

    Another engine's file brings its own Arrow types along (delta-rs: views, pandas: dictionaries).
    """
    rows = pq.read_table(bytes_of(snapshot, file))
    if len(rows) != count:
        raise ValueError(f"it holds {len(rows)} rows where its footer states {count}")
    rows.validate(full=True)  # a text that is none has no order
    rows = pa.table(
        {name: column for name in rows.column_names if (column := to_orderable(rows.column(name))) is not None}
    )
    live = np.ones(len(rows), bool)
    live[np.fromiter(vector_of(snapshot.store, {**file, "stats": None}), np.int64)] = False
    return rows.filter(pa.array(live))


def bytes_of(snapshot: Snapshot, file: FileRow) -> pa.NativeFile:
    store, name = locate_in_store(snapshot.store, file["path"])
    return native_file(store.get(name))


def _stats(snapshot: Snapshot, file: FileRow, found: Bounds, there: Mapping[str, str]) -> Iterator[Finding]:
    """Stated bounds must hold the true ones; a stated number of NULLs must be the true one, unless bounds are wide."""
    if not file.get("stats"):
        return
    schema = snapshot.schema
    bounds = {name: found[own] for name, own in there.items() if own in found}
    names = [
        n
        for n in schema.names
        if n in bounds and n not in snapshot.partition_columns and isinstance(schema.field(n).type, str)
    ]
    table = stats_columns(pa.array([file["stats"]], pa.string()), schema, names)
    for name in names:
        stated = table.columns.get(name)
        if stated is not None:
            yield from _column(file, name, stated, bounds[name], schema)


def _column(
    file: FileRow, name: str, stated: Any, true: tuple[Any, Any, int | None], schema: Struct
) -> Iterator[Finding]:
    low, high, nulls = python_of(stated.minimum[0]), python_of(stated.maximum[0]), stated.null_count[0].as_py()
    rule = "statistics agree with the file"
    if is_above(low, true[0]):
        yield Finding(rule, file["path"], f"the least {name} is {true[0]!r}, below the stated {low!r}")
    if is_above(true[1], high):
        yield Finding(rule, file["path"], f"the greatest {name} is {true[1]!r}, above the stated {high!r}")
    tight = file["deletionVector"] is None
    if tight and nulls is not None and true[2] is not None and nulls != true[2]:
        yield Finding(rule, file["path"], f"{name} holds {true[2]} NULLs, not the stated {nulls}")
