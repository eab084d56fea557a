"""Lays rows along a curve by Arrow, in one task; `anabranch._arrow.orders` does it.

Knows what `anabranch._arrow.packing` knows of where Arrow does as Spark does; and that the keys of all rows have to fit
into memory, so that what is large is not tried. Guarantees: those of that module. The order is the one that
`anabranch._spark.writing.relocating.cluster` gives to the same rows, in files of the same numbers.
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
"""An order is found by a sample of about so many rows, and so many more for each new file."""
MOST_FILE_BYTES = 512 << 20
"""More than these are not tried."""
MOST_BYTES = 512 << 20
"""Of rows in memory at once. Beside them there are a column of theirs a second time, and row groups to be written."""
_THREADS, _MOST_THREADS = 2, 4
"""Each one that writes needs memory for a row group."""


def ordering(
    site: Site, files: FileSet, curve: Curve, outputs: int, folder: str, moves: str | None, says: Mapping[str, str]
) -> Task | None:
    """What is to be done with files whose rows are laid along a curve; None where Arrow cannot, or they are too large.

    Raises:
        InvalidPartitionValue, MissingDataFile, CorruptLog, UnknownStore: the files cannot be read.
    """
    if why_unsupported(lambda: check_ordered(site, files, curve)) is not None:
        return None
    task = task_of(site, 0, files, folder, says)
    if task is None:
        return None
    keys = [_key(files.schema, name) for name in leading(curve)]
    said = {**task.said, **_order(files, curve, outputs, task.said["wanted"])}
    assert isinstance(site.store, LocalStore), "what lies on no disk was refused"
    said |= {"keys": keys, "moves": None if moves is None else f"{site.store.root}/{moves}", "most_bytes": MOST_BYTES}
    return Task(0, task.size, said)


def check_ordered(site: Site, files: FileSet, curve: Curve) -> None:
    """Raises Unsupported: the files are too large, or Arrow does not lay their rows along a curve as Spark does."""
    check_packed(site, files)
    for name in leading(curve):
        if _key(files.schema, name) is None:
            raise Unsupported(f"the table has no column {name}")
    if (pc.sum(files.files["size"]).as_py() or 0) > MOST_FILE_BYTES:
        raise Unsupported(f"the files of one curve take more than {MOST_FILE_BYTES >> 20} MB")


def threads(slots: int) -> int:
    """How many threads write, where so many tasks run in this process; 0: in another."""
    return min(_MOST_THREADS, slots or _THREADS)


def adopt_outputs(made: list[Output] | None, said: Mapping[str, Any]) -> bool:
    """Give names to what was made, and remove the rest: whether the files have their names now."""
    done = made is not None and rename_all(dict(_names(made, said)))
    for each in (said["folder"], said["moves"]):
        if each is not None:
            tidy(each)
    return done


def sampling_interval(files: FileSet, outputs: int) -> int:
    """Of how many rows one is looked at to part all of them into so many outputs."""
    return max(1, _count(files) // (SAMPLE_ROWS + SAMPLE_ROWS_PER_OUTPUT * outputs))


def _count(files: FileSet) -> int:
    """About how many live rows there are."""
    counts = map(num_records, files.files["stats"].to_pylist())
    return sum(count or 0 for count in counts) - count_of(files.vectors)


def leading(curve: Curve) -> tuple[str, ...]:
    """The columns of a curve that have bits in a place."""
    return curve.columns[:MOST_COLUMNS]


def _key(schema: Struct, name: str) -> list[str] | None:
    """The path of a column in files; None where there is no such column."""
    (path,) = paths_of([name])
    found = find_path(path, schema)
    inside: Any = schema
    names = list[str]()
    for step in found or ():
        field = inside.field(step)
        names.append(field.physical_name)
        inside = field.type
    return names or None


def _order(files: FileSet, curve: Curve, outputs: int, wanted: pa.Schema) -> dict[str, Any]:
    """What is told of the order."""
    columns = leading(curve)
    origin = free_name("__anabranch_origin", wanted.names)
    return {
        "wanted": wanted.append(pa.field(origin, pa.int64())),
        "origin": origin,
        "outputs": outputs,
        "every": sampling_interval(files, outputs),
        "bits": bits_per_column(len(columns)),
        "cells": places(curve.kind, len(columns)) if len(columns) > 1 else None,
    }


def _names(made: list[Output], said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The paths of attempts with the names that they get."""
    for number, path, moves, _ in made:
        if moves:
            yield moves, f"{said['moves']}/{name_of(number, 'zstd')}"
        yield path, f"{said['folder']}/{name_of(number, said['codec'])}"
