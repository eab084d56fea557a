"""Packs files by Arrow in this process, a task for each new file; `anabranch._arrow.files` does it.

Knows where Arrow is known to do as Spark does: files on a disk alone, no column whose values Spark changes as it reads
them (char), or that Arrow does not know (variant, void). Guarantees: an attempt writes where no reader looks; what only
one finished attempt has written gets a name that readers see, so repeated and killed attempts count for nothing; of
what could not be packed nothing is left.
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
from anabranch._protocol.parquet_files import saying_nan_free
from anabranch._protocol.predicates import Name
from anabranch._protocol.schema.column_mapping import fields_of, file_schema
from anabranch._protocol.schema.leaves import leaves_with_stats
from anabranch._protocol.schema.lengths import pads
from anabranch._protocol.schema.types import Struct
from anabranch._protocol.schema.voids import has_void
from anabranch._protocol.unsupported import Unsupported, why_unsupported
from anabranch._storage.local import LocalStore

_logger = logging.getLogger(__name__)
GROUP_BYTES = 64 << 20
"""Of a row group, as Arrow holds it in memory. Spark's are twice as large at most; of these one is read while another
is encoded."""
_MOST_ROWS = 1 << 31
"""A deletion vector with a position beyond is none that bits are sent for."""


@dataclass(frozen=True)
class Task:
    """One bin as it is told: its number, how large its files are, and what is to be done."""

    number: int
    size: int
    said: Mapping[str, Any]


def check_packed(site: Site, files: FileSet) -> None:
    """Raises Unsupported: there are files or columns that Arrow does not store as Spark does; what is in the files,
    tasks see.
    """
    rules, schema, stored = files.rules, files.schema, _stored_schema(files)
    if not (site.copies or isinstance(site.store, LocalStore)):
        raise Unsupported("the files lie on no disk")
    site.check_plain(files)
    if rules.materialised or rules.most_rows is not None:
        raise Unsupported("readers of Iceberg hold the table to what Spark's own writer does")
    if not len(stored) or has_void(schema):
        raise Unsupported("the files hold no column, or one of the type void")
    for each in fields_of(stored):
        if not _is_plain(each.type) or pads(each):
            raise Unsupported(f"Arrow does not store the column {each.name} as Spark does")


def fits(site: Site, files: FileSet) -> bool:
    """Whether Arrow stores the rows of these files as Spark does."""
    return why_unsupported(lambda: check_packed(site, files)) is None


def _is_plain(data_type: Any) -> bool:
    if isinstance(data_type, Struct):
        return len(data_type) > 0
    return data_type != "variant" if isinstance(data_type, str) else True


def _stored_schema(files: FileSet) -> Struct:
    outside = [files.schema.field(name) for name in files.partition_columns]
    return Struct(tuple(each for each in files.with_ids.schema if each not in outside))


# -- what is told ------------------------------------------------------------------------------------------------------


def task_of(site: Site, number: int, files: FileSet, folder: str, says: Mapping[str, str]) -> Task | None:
    """What is to be done with a bin, where footers say so; None where it does not lie on a disk."""
    read = paths_on_disk(site.store, files)
    deleted = [_bits(files.vectors.get(path)) for path in files.files["path"].to_pylist()]
    if not isinstance(site.store, LocalStore) or None in read or _TOO_FAR in deleted:
        return None
    tracked = files.tracked
    ids = [files.files[name].to_pylist() for name in ("baseRowId", "defaultRowCommitVersion")]
    known = zip(read, deleted, *ids, strict=True)
    said = {
        "folder": f"{site.store.root}/{folder}",
        "files": [{**dict(zip(_OF_FILES, each, strict=True)), "number": i} for i, each in enumerate(known)],
        "wanted": _nullable(file_schema(_stored_schema(files))),
        "hidden": None if tracked is None else (tracked.row_id, tracked.commit_version),
        "codec": files.rules.codec,
        "group_bytes": GROUP_BYTES,
        "says": {**says, **saying_nan_free(_floats(files))},
    }
    return Task(number, pc.sum(files.files["size"]).as_py() or 0, said)


def _floats(files: FileSet) -> list[Name]:
    """The columns of floating-point numbers, and members of structs: the file is written only if none holds a NaN."""
    return [leaf.name for leaf in leaves_with_stats(_stored_schema(files), -1, ()) if leaf.type in ("float", "double")]


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])


_OF_FILES = ("path", "deleted", "first_id", "version")
_TOO_FAR = b""


def _bits(positions: BitMap64 | None) -> bytes | None:
    """The deleted positions as compressed bits; None where there are none."""
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
    """What became of a task: the file that a finished attempt has left, empty where there was no row; None: none."""

    number: int
    path: str | None
    rows: int = 0


def run_here(tasks: Sequence[Task], workers: int) -> list[Attempt]:
    """By threads, which are called off where this one is interrupted."""
    called_off = threading.Event()
    told = [(task.number, {**task.said, "is_called_off": called_off.is_set}) for task in tasks]
    with ThreadPoolExecutor(min(workers, max(1, len(tasks))), thread_name_prefix="anabranch-pack") as pool:
        try:
            return [Attempt(*each) for each in pool.map(_try_pack, told)]
        finally:
            called_off.set()


def _try_pack(numbered: tuple[int, Mapping[str, Any]]) -> tuple[int, str | None, int]:
    number, said = numbered
    try:
        return (number, *arrow_files.write_packed_file(said))
    except Exception as error:  # whatever it is, Spark says it better, or can do it
        _logger.debug("Arrow does not pack into %s: %s", said["folder"], type(error).__name__)
        return number, None, 0


def adopt_attempts(tasks: Sequence[Task], attempts: Sequence[Attempt]) -> Iterator[int]:
    """Give names to what finished attempts have left, and remove the rest: the numbers of the bins that are packed."""
    by_number = {each.number: each for each in attempts}
    for task in tasks:
        attempt, folder = by_number.get(task.number), task.said["folder"]
        if attempt is not None and attempt.path is not None:
            wanted = {attempt.path: os.path.join(folder, name_of(0, task.said["codec"]))} if attempt.path else {}
            if rename_all(wanted):
                yield task.number
        tidy(folder)


def name_of(output: int, codec: str) -> str:
    """A name for the file of an output, as Spark gives them."""
    return f"part-{output:05d}-{uuid.uuid4()}-c000.{codec}.parquet"


def rename_all(wanted: Mapping[str, str]) -> bool:
    """Whether these files have their names now, all of them or none: one may not be here, or may not be moved."""
    given = list[str]()
    try:
        for path, name in wanted.items():
            os.rename(path, name)
            given.append(name)
    except OSError as error:
        _logger.warning("what Arrow wrote cannot be taken over (%s), so Spark does it", type(error).__name__)
        for name in given:
            os.remove(name)
        return False
    return True


def tidy(folder: str) -> None:
    """Remove from a folder what attempts have left there that nobody took over."""
    shutil.rmtree(os.path.join(folder, arrow_files.ASIDE), ignore_errors=True)
