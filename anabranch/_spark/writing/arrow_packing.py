"""Packs files with Arrow (`anabranch._arrow.files`), one task for each new file, without passing rows through the
JVM.

Knows where Arrow writes what Spark would, and leaves everything else to Spark: only tables on disks; no column whose
values Spark changes as it reads them (char), or that Arrow does not know (variant, void); no session with writer
settings that Arrow does not honour. Guarantees: an attempt writes where no reader looks; only the output of one
finished attempt is renamed to where readers look, so repeated and killed attempts have no effect; bins that could not
be packed are reported, and leave nothing behind.

Small bins are packed in this process, without a Spark job, and so are all bins if Spark's tasks would run in it.
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

from anabranch._arrow import ahead, dictionaries, instants, members, orders
from anabranch._arrow import files as arrow_files
from anabranch._arrow import places as arrow_places
from anabranch._arrow.packing import Attempt, Task, adopt_attempts, fits, run_here, task_of
from anabranch._protocol import nested_arrays, unsupported
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._spark.frames.failures import is_cancelled
from anabranch._spark.sessions import writer_settings
from anabranch._spark.sessions.session import is_connect
from anabranch._spark.sessions.settings import list_settings
from anabranch._spark.writing.sites import site_of
from anabranch.errors.process_state import per_object

_logger = logging.getLogger(__name__)
Bin = tuple[FileSet, str]
"""Files that share their partition values, and the folder of that partition for the new file."""

SMALL_BYTES = 32 << 20
_SMALL_WORKERS = 4
_LOCAL = re.compile(r"local(?:\[([0-9]+|\*)(?:,\s*[0-9]+)?\])?")
_ANSWER = "number long, path string, rows long, refused string"
_MOST_BINS = 256
_MOST_SAID_BYTES = 8 << 20
"""Maximum bytes of the task descriptions of one Spark job, since each of its tasks receives all of them."""
_NO_PYTHON = ("ModuleNotFoundError", "ImportError", "PYTHON_VERSION", "Cannot run program", "pyarrow")
_TRAVELLING = (ahead, dictionaries, instants, members, arrow_files, nested_arrays, orders, arrow_places, unsupported)
"""The modules that are sent to executors by value."""
_unable = per_object("sessions whose executors cannot run Arrow")


def pack_bins(spark: SparkSession, bins: Sequence[Bin]) -> frozenset[int]:
    """Pack each of these bins as one file, if Arrow can, and return the numbers of packed bins. Nothing is left behind
    of the others.

    Raises:
        InvalidPartitionValue, MissingDataFile, CorruptLog, UnknownStore: the files cannot be read.
        PySparkException, Py4JJavaError: the job was cancelled.
    """
    if not bins or not can_run_arrow(spark):
        return frozenset()
    site, says = site_of(spark, bins[0][0].root), writer_settings.footer_metadata(spark)
    candidates = [number for number, (files, _) in enumerate(bins) if fits(site, files)]
    tasks_or_none = (task_of(site, number, *bins[number], says) for number in candidates)
    tasks = [task for task in tasks_or_none if task is not None]
    packed, slots = set[int](), local_slots(spark)
    if slots or sum(task.size for task in tasks) <= SMALL_BYTES:
        packed.update(adopt_attempts(tasks, run_here(tasks, slots or _SMALL_WORKERS)))
    else:
        for job in _jobs(tasks):
            packed.update(adopt_attempts(job, _run(spark, job)))
    return frozenset(packed)


# -- whether Arrow can -------------------------------------------------------------------------------------------------


def can_run_arrow(spark: SparkSession) -> bool:
    """Whether executors are not known to lack Arrow, and the session has no settings that Arrow cannot honour."""
    return spark not in _unable and writer_settings.are_plain(spark)


def local_slots(spark: SparkSession) -> int:
    """Number of tasks that the session runs at once in this process; 0 if executors are elsewhere. Threads then do the
    same work, and no worker has to start.
    """
    match = None if is_connect(spark) else _LOCAL.fullmatch(list_settings(spark).get("spark.master", ""))
    if match is None:
        return 0
    return (os.cpu_count() or 1) if match[1] == "*" else max(1, int(match[1] or 1))


# -- running -----------------------------------------------------------------------------------------------------------


def _jobs(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Distribute the tasks over jobs, within the limits of a job."""
    job, job_bytes = list[Task](), 0
    for task in tasks:
        size = sum(len(file["deleted"] or b"") + len(file["path"]) for file in task.said["files"])
        if job and (len(job) >= _MOST_BINS or job_bytes + size > _MOST_SAID_BYTES):
            yield job
            job, job_bytes = [], 0
        job, job_bytes = [*job, task], job_bytes + size
    if job:
        yield job


def _run(spark: SparkSession, tasks: Sequence[Task]) -> list[Attempt]:
    """Run one Spark job, with a task for each new file; no attempts if executors cannot run Arrow."""
    rows = run_on_executors(spark, len(tasks), arrow_files.running([task.said for task in tasks]), _ANSWER)
    for row in rows:
        if row["path"] is None:
            _logger.debug("Arrow does not pack a file of %s: %s", tasks[row["number"]].said["folder"], row["refused"])
    return [Attempt(tasks[row["number"]].number, row["path"], row["rows"]) for row in rows]


def run_on_executors(spark: SparkSession, tasks: int, run: Any, columns: str) -> list[Any]:
    """The rows that this number of tasks return, each of which receives its number; empty if executors cannot run
    Arrow.

    Raises:
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
