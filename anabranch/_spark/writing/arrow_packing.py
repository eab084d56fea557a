"""Packs files by Arrow, a task for each new file, without a row in the JVM: `anabranch._arrow.files` does it.

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
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from anabranch._arrow import ahead, dictionaries, orders
from anabranch._arrow import files as arrow_files
from anabranch._arrow import places as arrow_places
from anabranch._arrow.packing import Attempt, Task, adopt_attempts, fits, run_here, task_of
from anabranch._protocol import unsupported
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._spark.frames.failures import is_cancelled
from anabranch._spark.sessions import writer_settings
from anabranch._spark.sessions.session import is_connect
from anabranch._spark.sessions.settings import list_settings
from anabranch._spark.writing.sites import site_of
from anabranch.errors.process_state import per_object

_logger = logging.getLogger(__name__)
Bin = tuple[FileSet, str]
"""Files that share their partition values, and the folder of that partition for what they become."""

SMALL_BYTES = 32 << 20
_SMALL_WORKERS = 4
_LOCAL = re.compile(r"local(?:\[([0-9]+|\*)(?:,\s*[0-9]+)?\])?")
_ANSWER = "number long, path string, rows long, refused string"
_MOST_BINS = 256
_MOST_SAID_BYTES = 8 << 20
"""What one Spark job is told at most, since each of its tasks is told all of it."""
_NO_PYTHON = ("ModuleNotFoundError", "ImportError", "PYTHON_VERSION", "Cannot run program", "pyarrow")
_TRAVELLING = (ahead, dictionaries, arrow_files, orders, arrow_places, unsupported)
"""The modules that executors get by value."""
_unable = per_object("sessions whose executors cannot run Arrow")


def pack_bins(spark: SparkSession, bins: Sequence[Bin]) -> frozenset[int]:
    """Pack each of these bins as one file, as far as Arrow can: the numbers of those that are packed. Of the others
    nothing is left.

    Raises:
        InvalidPartitionValue, MissingDataFile, CorruptLog, UnknownStore: the files cannot be read.
        PySparkException, Py4JJavaError: the job was cancelled.
    """
    if not bins or not is_able(spark):
        return frozenset()
    site, says = site_of(spark, bins[0][0].root), writer_settings.footer_metadata(spark)
    likely = [number for number, (files, _) in enumerate(bins) if fits(site, files)]
    found = (task_of(site, number, *bins[number], says) for number in likely)
    tasks = [each for each in found if each is not None]
    done, slots = set[int](), slots_here(spark)
    if slots or sum(each.size for each in tasks) <= SMALL_BYTES:
        done.update(adopt_attempts(tasks, run_here(tasks, slots or _SMALL_WORKERS)))
    else:
        for several in _jobs(tasks):
            done.update(adopt_attempts(several, _run(spark, several)))
    return frozenset(done)


# -- whether Arrow can -------------------------------------------------------------------------------------------------


def is_able(spark: SparkSession) -> bool:
    """Whether executors are not known to lack Arrow, and the session says nothing that Arrow cannot do."""
    return spark not in _unable and writer_settings.are_plain(spark)


def slots_here(spark: SparkSession) -> int:
    """How many tasks at once the session runs in this very process; 0 where executors do. Threads do the same then,
    and no worker has to start.
    """
    found = None if is_connect(spark) else _LOCAL.fullmatch(list_settings(spark).get("spark.master", ""))
    if found is None:
        return 0
    return (os.cpu_count() or 1) if found[1] == "*" else max(1, int(found[1] or 1))


# -- running -----------------------------------------------------------------------------------------------------------


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


def _run(spark: SparkSession, tasks: Sequence[Task]) -> list[Attempt]:
    """One Spark job, with a task for each new file; no attempt where executors cannot run Arrow."""
    rows = run_on_executors(spark, len(tasks), arrow_files.running([task.said for task in tasks]), _ANSWER)
    for row in rows:
        if row["path"] is None:
            _logger.debug("Arrow does not pack a file of %s: %s", tasks[row["number"]].said["folder"], row["refused"])
    return [Attempt(tasks[row["number"]].number, row["path"], row["rows"]) for row in rows]


def run_on_executors(spark: SparkSession, tasks: int, run: Any, columns: str) -> list[Any]:
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
