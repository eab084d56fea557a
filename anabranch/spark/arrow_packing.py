"""Packs files by Arrow, a task for each new file, without a row in the JVM: `anabranch.arrow.files` does it.

Knows where Arrow is known to do as Spark does, and leaves all else to Spark: tables on disks alone, no column whose
values Spark changes as it reads them (char), or that Arrow does not know (variant, void), and no session that tells
Spark's writer what Arrow does not honour. Guarantees: an attempt writes where no reader looks; what only one finished
attempt has written gets a name that readers see, so repeated and killed attempts count for nothing; what could not be
packed is told, and nothing is left of it.

What is small is packed here, without a Spark job, and so is all where Spark's tasks would run in this process.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import threading
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyroaring import BitMap64
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from anabranch.arrow import ahead, dictionaries, orders
from anabranch.arrow import files as arrow_files
from anabranch.arrow import places as arrow_places
from anabranch.errors.process_state import per_object
from anabranch.protocol import unsupported
from anabranch.protocol.layout.file_sets import FileSet
from anabranch.protocol.parquet_files import saying_nan_free
from anabranch.protocol.predicates import Name
from anabranch.protocol.schema.column_mapping import fields_of, file_schema
from anabranch.protocol.schema.leaves import indexed
from anabranch.protocol.schema.lengths import pads
from anabranch.protocol.schema.types import Struct
from anabranch.protocol.schema.voids import has_void
from anabranch.spark import writer_settings
from anabranch.spark.failures import is_cancelled
from anabranch.spark.paths import on_disk, places, spark_root
from anabranch.spark.session import is_connect
from anabranch.spark.settings import listed

_logger = logging.getLogger(__name__)
Bin = tuple[FileSet, str]
"""Files that share their partition values, and the folder of that partition for what they become."""

GROUP_BYTES = 64 << 20
"""Of a row group, as Arrow holds it in memory. Spark's are twice as large at most; of these one is read while another
is encoded."""
SMALL_BYTES = 32 << 20
_SMALL_WORKERS = 4
_LOCAL = re.compile(r"local(?:\[([0-9]+|\*)(?:,\s*[0-9]+)?\])?")
_ANSWER = "number long, path string, rows long, refused string"
_MOST_BINS = 256
_MOST_SAID_BYTES = 8 << 20
"""What one Spark job is told at most, since each of its tasks is told all of it."""
_MOST_ROWS = 1 << 31
"""A deletion vector with a position beyond is none that bits are sent for."""
_NO_PYTHON = ("ModuleNotFoundError", "ImportError", "PYTHON_VERSION", "Cannot run program", "pyarrow")
_TRAVELLING = (ahead, dictionaries, arrow_files, orders, arrow_places, unsupported)
"""The modules that executors get by value."""
_unable = per_object("sessions whose executors cannot run Arrow")


@dataclass(frozen=True)
class Task:
    """One bin as it is told: its number, how large its files are, and what is to be done."""

    number: int
    size: int
    said: Mapping[str, Any]


def packed(spark: SparkSession, bins: Sequence[Bin]) -> frozenset[int]:
    """Pack each of these bins as one file, as far as Arrow can: the numbers of those that are packed. Of the others
    nothing is left.

    Raises:
        InvalidPartitionValue, MissingDataFile, CorruptLog, UnknownStore: the files cannot be read.
        PySparkException, Py4JJavaError: the job was cancelled.
    """
    likely = [number for number, (files, _) in enumerate(bins) if fits(files)]
    if not likely or not is_able(spark):
        return frozenset()
    found = (task_of(spark, number, *bins[number]) for number in likely)
    tasks = [each for each in found if each is not None]
    done, slots = set[int](), slots_here(spark)
    if slots or sum(each.size for each in tasks) <= SMALL_BYTES:
        done.update(_adopted(tasks, _run_here(tasks, slots or _SMALL_WORKERS)))
    else:
        for several in _jobs(tasks):
            done.update(_adopted(several, _run(spark, several)))
    return frozenset(done)


# -- whether Arrow can -------------------------------------------------------------------------------------------------


def is_able(spark: SparkSession) -> bool:
    """Whether executors are not known to lack Arrow, and the session says nothing that Arrow cannot do."""
    return spark not in _unable and writer_settings.are_plain(spark)


def slots_here(spark: SparkSession) -> int:
    """How many tasks at once the session runs in this very process; 0 where executors do. Threads do the same then,
    and no worker has to start.
    """
    found = None if is_connect(spark) else _LOCAL.fullmatch(listed(spark).get("spark.master", ""))
    if found is None:
        return 0
    return (os.cpu_count() or 1) if found[1] == "*" else max(1, int(found[1] or 1))


def fits(files: FileSet) -> bool:
    """Whether all columns are such that Arrow stores them as Spark does; what is in their files, tasks see."""
    rules, schema = files.rules, files.schema
    if rules.materialised or rules.most_rows is not None or files.layouts or has_void(schema):
        return False
    stored = _stored(files)
    return len(stored) > 0 and all(_is_plain(each.type) and not pads(each) for each in fields_of(stored))


def _is_plain(data_type: Any) -> bool:
    if isinstance(data_type, Struct):
        return len(data_type) > 0
    return data_type != "variant" if isinstance(data_type, str) else True


def _stored(files: FileSet) -> Struct:
    outside = [files.schema.field(name) for name in files.partition_columns]
    return Struct(tuple(each for each in files.with_ids.schema if each not in outside))


# -- what is told ------------------------------------------------------------------------------------------------------


def task_of(spark: SparkSession, number: int, files: FileSet, folder: str) -> Task | None:
    """What is to be done with a bin; None where it does not lie on a disk."""
    root = on_disk(spark_root(spark, files.root))
    paths = files.files["path"].to_pylist()
    read = [on_disk(each.reader) for each in places(spark, files.root, paths, files.allowed)]
    deleted = [_bits(files.vectors.get(path)) for path in paths]
    if root is None or None in read or _TOO_FAR in deleted:
        return None
    tracked = files.tracked
    ids = [files.files[name].to_pylist() for name in ("baseRowId", "defaultRowCommitVersion")]
    known = zip(read, deleted, *ids, strict=True)
    said = {
        "folder": f"{root}/{folder}",
        "files": [{**dict(zip(_OF_FILES, each, strict=True)), "number": i} for i, each in enumerate(known)],
        "wanted": _nullable(file_schema(_stored(files))),
        "hidden": None if tracked is None else (tracked.row_id, tracked.commit_version),
        "codec": files.rules.codec,
        "group_bytes": GROUP_BYTES,
        "says": {**writer_settings.said_version(spark), **saying_nan_free(_floats(files))},
    }
    return Task(number, pc.sum(files.files["size"]).as_py() or 0, said)


def _floats(files: FileSet) -> list[Name]:
    """The columns of floating-point numbers, and members of structs: the file is written only if none holds a NaN."""
    return [leaf.name for leaf in indexed(_stored(files), -1, ()) if leaf.type in ("float", "double")]


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
class _Attempt:
    """What became of a task: the file that a finished attempt has left, empty where there was no row; None: none."""

    number: int
    path: str | None
    rows: int = 0


def _run_here(tasks: Sequence[Task], workers: int) -> list[_Attempt]:
    """By threads, which are called off where this one is interrupted."""
    called_off = threading.Event()
    told = [(task.number, {**task.said, "is_called_off": called_off.is_set}) for task in tasks]
    with ThreadPoolExecutor(min(workers, max(1, len(tasks))), thread_name_prefix="anabranch-pack") as pool:
        try:
            return [_Attempt(*each) for each in pool.map(_tried, told)]
        finally:
            called_off.set()


def _tried(numbered: tuple[int, Mapping[str, Any]]) -> tuple[int, str | None, int]:
    number, said = numbered
    try:
        return (number, *arrow_files.attempted(said))
    except Exception as error:  # whatever it is, Spark says it better, or can do it
        _logger.debug("Arrow does not pack into %s: %s", said["folder"], type(error).__name__)
        return number, None, 0


def _jobs(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """The tasks by jobs, each of which is told little enough."""
    several, said = list[Task](), 0
    for task in tasks:
        size = sum(len(file["deleted"] or b"") + len(file["path"]) for file in task.said["files"])
        if several and (len(several) >= _MOST_BINS or said + size > _MOST_SAID_BYTES):
            yield several
            several, said = [], 0
        several, said = [*several, task], said + size
    if several:
        yield several


def _run(spark: SparkSession, tasks: Sequence[Task]) -> list[_Attempt]:
    """One Spark job, with a task for each new file; no attempt where executors cannot run Arrow."""
    rows = mapped(spark, len(tasks), arrow_files.running([task.said for task in tasks]), _ANSWER)
    for row in rows:
        if row["path"] is None:
            _logger.debug("Arrow does not pack a file of %s: %s", tasks[row["number"]].said["folder"], row["refused"])
    return [_Attempt(tasks[row["number"]].number, row["path"], row["rows"]) for row in rows]


def mapped(spark: SparkSession, tasks: int, run: Any, columns: str) -> list[Any]:
    """What so many tasks answer, each of which is given its number; nothing where executors cannot run Arrow. Raises
    PySparkException, Py4JJavaError: the job was cancelled.
    """
    for module in _TRAVELLING:
        cloudpickle.register_pickle_by_value(module)
    try:
        return spark.range(0, tasks, 1, tasks).mapInArrow(run, columns).collect()
    except (PySparkException, Py4JJavaError, ImportError) as error:
        if is_cancelled(error):
            raise
        if any(sign in str(error) for sign in _NO_PYTHON):
            _unable[spark] = True
        _logger.warning("Arrow on executors failed (%s), so Spark does it", type(error).__name__)
        return []


# -- what is adopted ---------------------------------------------------------------------------------------------------


def _adopted(tasks: Sequence[Task], attempts: Sequence[_Attempt]) -> Iterator[int]:
    """Give names to what finished attempts have left, and remove the rest: the numbers of the bins that are packed."""
    by_number = {each.number: each for each in attempts}
    for task in tasks:
        attempt, folder = by_number.get(task.number), task.said["folder"]
        if attempt is not None and attempt.path is not None:
            wanted = {attempt.path: os.path.join(folder, name_of(0, task.said["codec"]))} if attempt.path else {}
            if named(wanted):
                yield task.number
        tidy(folder)


def name_of(output: int, codec: str) -> str:
    """A name for the file of an output, as Spark gives them."""
    return f"part-{output:05d}-{uuid.uuid4()}-c000.{codec}.parquet"


def named(wanted: Mapping[str, str]) -> bool:
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
