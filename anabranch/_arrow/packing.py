"""Packs files with Arrow in this process, one task for each new file, which `anabranch._arrow.files` runs.

Knows where Arrow writes what Spark would: files on a disk only, no column whose values Spark changes as it reads them
(char), and none that Arrow does not know (variant, void). Guarantees: an attempt writes where no reader looks; only the
output of one finished attempt is renamed to where readers look, so repeated and killed attempts have no effect; nothing
remains of bins that could not be packed.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._arrow import files as arrow_files
from anabranch._arrow.data_files import paths_on_disk
from anabranch._arrow.site import Site
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.parquet_files import nan_free_metadata
from anabranch._protocol.predicates import Name
from anabranch._protocol.schema.column_mapping import fields_of, file_schema
from anabranch._protocol.schema.leaves import leaves_with_stats
from anabranch._protocol.schema.lengths import pads
from anabranch._protocol.schema.types import OPAQUE, Struct, parts_of
from anabranch._protocol.schema.voids import has_void
from anabranch._protocol.unsupported import Unsupported, why_unsupported
from anabranch._storage.local import LocalStore

_logger = logging.getLogger(__name__)
GROUP_BYTES = 64 << 20
"""Size of a row group in Arrow's memory, in bytes. Spark's are at most twice as large; one is read here while another
is encoded.
"""
_MOST_ROWS = 1 << 31
"""Maximum position for which a deletion vector is sent as bits."""


@dataclass(frozen=True)
class Task:
    """The task of packing one bin: its number, the total size of its files, and the values that describe the work."""

    number: int
    size: int
    said: Mapping[str, Any]


def check_packed(site: Site, files: FileSet) -> None:
    """Raises Unsupported if there are files or columns that Arrow does not store as Spark does. Tasks check the
    contents of files themselves.
    """
    rules, schema, stored = files.rules, files.schema, _stored_schema(files)
    if not (site.copies or isinstance(site.store, LocalStore)):
        raise Unsupported("the files lie on no disk")
    site.check_plain(files)
    if rules.materialised or rules.most_rows is not None:
        raise Unsupported("files with partition columns, or of limited size, take Spark's own writer")
    if not len(stored) or has_void(schema):
        raise Unsupported("the files hold no column, or one of the type void")
    for field in fields_of(stored):
        if not _is_plain(field.type) or pads(field):
            raise Unsupported(f"Arrow does not store the column {field.name} as Spark does")


def fits(site: Site, files: FileSet) -> bool:
    """Whether Arrow stores the rows of these files as Spark does."""
    return why_unsupported(lambda: check_packed(site, files)) is None


def _is_plain(data_type: Any) -> bool:
    if isinstance(data_type, Struct) and not len(data_type):
        return False
    return data_type not in OPAQUE and all(_is_plain(inner) for _, inner in parts_of(data_type))


def _stored_schema(files: FileSet) -> Struct:
    partition_fields = [files.schema.field(name) for name in files.partition_columns]
    return Struct(tuple(field for field in files.with_ids.schema if field not in partition_fields))


# -- tasks -------------------------------------------------------------------------------------------------------------


def task_of(site: Site, number: int, files: FileSet, folder: str, says: Mapping[str, str]) -> Task | None:
    """The task of packing a bin; None if its files are not on a disk, or a deletion vector reaches too far."""
    read = paths_on_disk(site.store, files)
    deleted = [_bits(files.vectors.get(path)) for path in files.files["path"].to_pylist()]
    if not isinstance(site.store, LocalStore) or None in read or _TOO_FAR in deleted:
        return None
    tracked = files.tracked
    ids = [files.files[name].to_pylist() for name in ("baseRowId", "defaultRowCommitVersion")]
    facts = zip(read, deleted, *ids, strict=True)
    values = {
        "folder": f"{site.store.root}/{folder}",
        "files": [{**dict(zip(_OF_FILES, file_facts, strict=True)), "number": i} for i, file_facts in enumerate(facts)],
        "wanted": _nullable(file_schema(_stored_schema(files))),
        "hidden": None if tracked is None else (tracked.row_id, tracked.commit_version),
        "codec": files.rules.compression,
        "pages": files.rules.pages,
        "group_bytes": GROUP_BYTES,
        "says": {**says, **nan_free_metadata(_floats(files))},
    }
    return Task(number, pc.sum(files.files["size"]).as_py() or 0, values)


def _floats(files: FileSet) -> list[Name]:
    """Floating-point columns, members of structs included: the file is written only if none holds a NaN."""
    return [leaf.name for leaf in leaves_with_stats(_stored_schema(files), -1, ()) if leaf.type in ("float", "double")]


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])


_OF_FILES = ("path", "deleted", "first_id", "version")
_TOO_FAR = b""


def _bits(positions: BitMap64 | None) -> bytes | None:
    """The deleted positions as compressed bits; None if there are none."""
    if not positions:
        return None
    if positions.max() >= _MOST_ROWS:
        return _TOO_FAR
    bits = np.zeros(positions.max() + 1, dtype=bool)
    bits[np.asarray(positions.to_array(), np.int64)] = True
    return zlib.compress(np.packbits(bits, bitorder="little").tobytes(), 1)


# -- running -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attempt:
    """Result of a task: the path of the file, empty if there were no rows, None if the attempt failed."""

    number: int
    path: str | None
    rows: int = 0


def run_here(tasks: Sequence[Task], workers: int) -> list[Attempt]:
    """Run tasks in threads, which stop if the caller is interrupted."""
    called_off = threading.Event()
    numbered_tasks = [(task.number, {**task.said, "is_called_off": called_off.is_set}) for task in tasks]
    with ThreadPoolExecutor(min(workers, max(1, len(tasks))), thread_name_prefix="anabranch-pack") as pool:
        try:
            return [Attempt(*result) for result in pool.map(_try_pack, numbered_tasks)]
        finally:
            called_off.set()


def _try_pack(numbered: tuple[int, Mapping[str, Any]]) -> tuple[int, str | None, int]:
    number, values = numbered
    try:
        return (number, *arrow_files.write_packed_file(values))
    except Exception as error:  # whatever the error, Spark reports it better, or succeeds
        _logger.debug("Arrow does not pack into %s: %s", values["folder"], type(error).__name__)
        return number, None, 0


def adopt_attempts(tasks: Sequence[Task], attempts: Sequence[Attempt]) -> Iterator[int]:
    """Rename the files of finished attempts to their final names, remove the rest, and yield the numbers of packed
    bins.
    """
    by_number = {attempt.number: attempt for attempt in attempts}
    for task in tasks:
        attempt, folder = by_number.get(task.number), task.said["folder"]
        if attempt is not None and attempt.path is not None:
            names = {attempt.path: os.path.join(folder, name_of(0, task.said["codec"]))} if attempt.path else {}
            if rename_all(names):
                yield task.number
        tidy(folder)


def name_of(output: int, codec: str) -> str:
    """A name for the file of an output, in Spark's format."""
    return f"part-{output:05d}-{uuid.uuid4()}-c000.{codec}.parquet"


def rename_all(names: Mapping[str, str]) -> bool:
    """Rename files, all of them or none, and return whether it succeeded: a file may be missing or impossible to
    move.
    """
    renamed = list[str]()
    try:
        for path, name in names.items():
            os.rename(path, name)
            renamed.append(name)
    except OSError as error:
        _logger.warning("files that Arrow wrote cannot be renamed (%s), so Spark does it", type(error).__name__)
        for name in renamed:
            os.remove(name)
        return False
    return True


def tidy(folder: str) -> None:
    """Remove the folder of attempts in a job's folder, with everything that was not adopted."""
    shutil.rmtree(os.path.join(folder, arrow_files.ASIDE), ignore_errors=True)
