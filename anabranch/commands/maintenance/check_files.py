"""CHECK of one live file: its location, size and footer, its vector, and its statistics in the log.

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
    """One problem: the ``rule`` that is broken, the file of the table, and how."""

    rule: str
    file: str
    problem: str

    def __post_init__(self) -> None:
        """Remove secrets: a path in a log may be a URL that contains some."""
        for name in ("file", "problem"):
            object.__setattr__(self, name, without_secrets(getattr(self, name)))

    def __str__(self) -> str:
        return f"{self.rule}: {self.file}: {self.problem}"


def findings_of_file(snapshot: Snapshot, file: FileRow, *, deep: bool) -> Iterator[Finding]:
    """The problems of one live file; later checks run only if the earlier ones found nothing."""
    try:
        store, name = locate_in_store(snapshot.store, file["path"])
        entry = store.head(name)
    except CorruptLog as error:
        yield Finding("each path stays in the table", file["path"], error.facts["reason"])
        return
    except FileOutsideTable as error:
        yield Finding("each file lies on a store that is allowed", file["path"], error.message)
        return
    except StoreError as error:  # a clone's file, on a store that is out of reach
        yield Finding("each live file exists", file["path"], f"it cannot be looked for: {error.message}")
        return
    if entry is None:
        yield Finding("each live file exists", file["path"], "there is no such file")
    elif entry.size != file["size"]:
        yield Finding(
            "each live file has its size", file["path"], f"it has {entry.size} bytes, the log says {file['size']}"
        )
    else:
        yield from _check_content(snapshot, file, lambda: read_whole_footer(store, entry), deep=deep)


def _check_content(snapshot: Snapshot, file: FileRow, footer_of: Callable[[], Any], *, deep: bool) -> Iterator[Finding]:
    try:
        footer = footer_of()
        bounds = bounds_of_footer(footer)
    except _UNREADABLE as error:
        yield Finding("each live file is Parquet", file["path"], f"its footer cannot be read ({error})")
        return
    yield from _check_counts(file, footer.num_rows)
    wrong = list(_check_vector(snapshot, file, footer.num_rows))
    yield from wrong
    try:
        names = _names(snapshot, file, footer)
    except CorruptLog as error:
        yield Finding("each file of mode id has ids", file["path"], error.facts["reason"])
        return
    if file["deletionVector"] is None:  # with a vector, bounds may cover the live rows only
        yield from _check_stats(snapshot, file, bounds, names)
    if deep and not wrong:
        yield from _check_rows(snapshot, file, names, footer.num_rows)


def _names(snapshot: Snapshot, file: FileRow, footer: Any) -> Mapping[str, str]:
    """Logical name -> name in the file, for the columns of the file."""
    if not is_mapped(snapshot.metadata.configuration):
        return {name: name for name in snapshot.schema.names}
    file_schema = footer.schema.to_arrow_schema()
    return renaming(file_schema, layout_of(snapshot.metadata, file_schema, snapshot.table, file["path"])).names()


def _check_counts(file: FileRow, rows: int) -> Iterator[Finding]:
    recorded = num_records(file.get("stats"))
    if recorded is not None and recorded != rows:
        yield Finding("statistics agree with the file", file["path"], f"it holds {rows} rows, the log says {recorded}")
    if recorded is None and file["deletionVector"] is not None:
        yield Finding(
            "a file with a vector has numRecords", file["path"], "the log does not say how many rows it holds"
        )


def _check_vector(snapshot: Snapshot, file: FileRow, rows: int) -> Iterator[Finding]:
    if file["deletionVector"] is None:
        return
    try:
        vector = vector_of(snapshot.store, {**file, "stats": None})  # the file itself decides below whether it fits
    except AnabranchError as error:
        yield Finding("each vector is whole", file["path"], error.facts.get("reason", error.message))
        return
    if vector and vector.max() >= rows:
        yield Finding(
            "each vector lies in its file", file["path"], f"it deletes row {vector.max()} of a file with {rows} rows"
        )


def _check_rows(snapshot: Snapshot, file: FileRow, names: Mapping[str, str], count: int) -> Iterator[Finding]:
    try:
        bounds = bounds_of_rows(_live_rows(snapshot, file, count))
    except _UNREADABLE as error:
        yield Finding("each live file is Parquet", file["path"], f"its rows cannot be read ({error})")
        return
    yield from _check_stats(snapshot, file, bounds, names)


def _live_rows(snapshot: Snapshot, file: FileRow, count: int) -> pa.Table:
    """The live rows of the columns with an order, in types that Arrow can filter and order.

    Files of other engines have their own Arrow types (delta-rs: views, pandas: dictionaries).
    """
    rows = pq.read_table(bytes_of(snapshot, file))
    if len(rows) != count:
        raise ValueError(f"it holds {len(rows)} rows where its footer states {count}")
    rows.validate(full=True)  # invalid UTF-8 has no order
    rows = pa.table(
        {name: column for name in rows.column_names if (column := to_orderable(rows.column(name))) is not None}
    )
    live = np.ones(len(rows), bool)
    live[np.fromiter(vector_of(snapshot.store, {**file, "stats": None}), np.int64)] = False
    return rows.filter(pa.array(live))


def bytes_of(snapshot: Snapshot, file: FileRow) -> pa.NativeFile:
    store, name = locate_in_store(snapshot.store, file["path"])
    return native_file(store.get(name))


def _check_stats(
    snapshot: Snapshot, file: FileRow, file_bounds: Bounds, own_names: Mapping[str, str]
) -> Iterator[Finding]:
    """Recorded bounds must enclose the actual ones; a recorded number of NULLs must be exact if bounds are tight."""
    if not file.get("stats"):
        return
    schema = snapshot.schema
    bounds = {name: file_bounds[in_file] for name, in_file in own_names.items() if in_file in file_bounds}
    names = [
        name
        for name in schema.names
        if name in bounds and name not in snapshot.partition_columns and isinstance(schema.field(name).type, str)
    ]
    table = stats_columns(pa.array([file["stats"]], pa.string()), schema, names)
    for name in names:
        statistics = table.columns.get(name)
        if statistics is not None:
            yield from _check_column(file, name, statistics, bounds[name], schema)


def _check_column(
    file: FileRow, name: str, statistics: Any, actual: tuple[Any, Any, int | None], schema: Struct
) -> Iterator[Finding]:
    low, high, nulls = (
        python_of(statistics.minimum[0]),
        python_of(statistics.maximum[0]),
        statistics.null_count[0].as_py(),
    )
    rule = "statistics agree with the file"
    if is_above(low, actual[0]):
        yield Finding(rule, file["path"], f"the least {name} is {actual[0]!r}, below the stated {low!r}")
    if is_above(actual[1], high):
        yield Finding(rule, file["path"], f"the greatest {name} is {actual[1]!r}, above the stated {high!r}")
    has_tight_bounds = file["deletionVector"] is None
    if has_tight_bounds and nulls is not None and actual[2] is not None and nulls != actual[2]:
        yield Finding(rule, file["path"], f"{name} holds {actual[2]} NULLs, not the stated {nulls}")
