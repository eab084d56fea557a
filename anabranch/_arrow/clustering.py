"""Lays rows along a curve with Arrow, in one task, which `anabranch._arrow.orders` runs.

Knows, as `anabranch._arrow.packing` does, where Arrow writes what Spark would; and that the keys of all rows must fit
into memory, so that large sets of files are refused. Guarantees: those of that module. The order is the one that
`anabranch._spark.writing.relocating.cluster` gives to the same rows, in files with the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._arrow.orders import Output
from anabranch._arrow.packing import Task, check_packed, name_of, rename_all, task_of, tidy
from anabranch._arrow.site import Site
from anabranch._protocol.layout.addresses import free_name
from anabranch._protocol.layout.clustering import paths_of
from anabranch._protocol.layout.curves import MOST_COLUMNS, Curve, bits_per_column, places
from anabranch._protocol.layout.file_sets import FileSet, count_of
from anabranch._protocol.schema.assignments import find_path
from anabranch._protocol.schema.types import Struct
from anabranch._protocol.stats.statistics import num_records
from anabranch._protocol.unsupported import Unsupported, why_unsupported
from anabranch._storage.local import LocalStore

SAMPLE_ROWS = 1 << 16
SAMPLE_ROWS_PER_OUTPUT = 1 << 8
"""Approximate size of the sample that determines the order, in rows: a base, and an addition for each new file."""
MOST_FILE_BYTES = 512 << 20
"""Maximum total size of the files, in bytes."""
MOST_BYTES = 512 << 20
"""Maximum bytes of rows in memory at once. A second copy of one column, and row groups to be written, come on top."""
_THREADS, _MOST_THREADS = 2, 4
"""Default and maximum number of writing threads; each needs memory for a row group."""


def ordering(
    site: Site, files: FileSet, curve: Curve, outputs: int, folder: str, moves: str | None, says: Mapping[str, str]
) -> Task | None:
    """The task that lays rows along a curve; None if Arrow cannot run it, or the files are too large.

    Raises:
        InvalidPartitionValue, MissingDataFile, CorruptLog, UnknownStore: the files cannot be read.
    """
    if why_unsupported(lambda: check_ordered(site, files, curve)) is not None:
        return None
    task = task_of(site, 0, files, folder, says)
    if task is None:
        return None
    keys = [_key(files.schema, name) for name in leading(curve)]
    values = {**task.said, **_order(files, curve, outputs, task.said["wanted"])}
    assert isinstance(site.store, LocalStore), "what lies on no disk was refused"
    values |= {"keys": keys, "moves": None if moves is None else f"{site.store.root}/{moves}", "most_bytes": MOST_BYTES}
    return Task(0, task.size, values)


def check_ordered(site: Site, files: FileSet, curve: Curve) -> None:
    """Raises Unsupported if the files are too large, or if Arrow does not lay their rows along a curve as Spark
    does.
    """
    check_packed(site, files)
    for name in leading(curve):
        if _key(files.schema, name) is None:
            raise Unsupported(f"the table has no column {name}")
    if (pc.sum(files.files["size"]).as_py() or 0) > MOST_FILE_BYTES:
        raise Unsupported(f"the files of one curve take more than {MOST_FILE_BYTES >> 20} MB")


def threads(slots: int) -> int:
    """Number of writing threads when this many tasks may run in this process; 0 slots: the task runs in another
    process.
    """
    return min(_MOST_THREADS, slots or _THREADS)


def adopt_outputs(outputs: list[Output] | None, values: Mapping[str, Any]) -> bool:
    """Rename finished outputs to their final names and remove the rest; return whether the files have these names."""
    are_renamed = outputs is not None and rename_all(dict(_names(outputs, values)))
    for folder in (values["folder"], values["moves"]):
        if folder is not None:
            tidy(folder)
    return are_renamed


def sampling_interval(files: FileSet, outputs: int) -> int:
    """Interval of rows at which the sample is taken, for this number of outputs."""
    return max(1, _count(files) // (SAMPLE_ROWS + SAMPLE_ROWS_PER_OUTPUT * outputs))


def _count(files: FileSet) -> int:
    """Approximate number of live rows."""
    counts = map(num_records, files.files["stats"].to_pylist())
    return sum(count or 0 for count in counts) - count_of(files.vectors)


def leading(curve: Curve) -> tuple[str, ...]:
    """The columns of a curve that contribute bits to a place."""
    return curve.columns[:MOST_COLUMNS]


def _key(schema: Struct, name: str) -> list[str] | None:
    """The path of a column in files; None if there is no such column."""
    (path,) = paths_of([name])
    path_in_schema = find_path(path, schema)
    parent: Any = schema
    names = list[str]()
    for step in path_in_schema or ():
        field = parent.field(step)
        names.append(field.physical_name)
        parent = field.type
    return names or None


def _order(files: FileSet, curve: Curve, outputs: int, stored: pa.Schema) -> dict[str, Any]:
    """The entries of a task that describe the order."""
    columns = leading(curve)
    origin = free_name("__anabranch_origin", stored.names)
    return {
        "wanted": stored.append(pa.field(origin, pa.int64())),
        "origin": origin,
        "outputs": outputs,
        "every": sampling_interval(files, outputs),
        "bits": bits_per_column(len(columns)),
        "cells": places(curve.kind, len(columns)) if len(columns) > 1 else None,
    }


def _names(outputs: list[Output], values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Pairs of an attempt's path and its final name."""
    for number, path, moves, _ in outputs:
        if moves:
            yield moves, f"{values['moves']}/{name_of(number, 'zstd')}"
        yield path, f"{values['folder']}/{name_of(number, values['codec'])}"
