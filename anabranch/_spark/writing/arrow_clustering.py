"""Lays rows along a curve by Arrow, in a task of Spark's or here: `anabranch._arrow.clustering` says how.

Knows which sessions' executors run Arrow, and that reading here takes memory of the driver's.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from anabranch._arrow import clustering, orders
from anabranch._arrow.orders import Output
from anabranch._protocol.layout.curves import Curve
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._spark.sessions.writer_settings import footer_metadata
from anabranch._spark.writing.arrow_packing import SMALL_BYTES, is_able, run_on_executors, slots_here
from anabranch._spark.writing.sites import site_of

_logger = logging.getLogger(__name__)
MOST_BYTES_HERE = 128 << 20
"""Of rows in memory in the driver's process, where tasks run in others."""
_ANSWER = "number long, path string, moves string, rows long, refused string"


def try_cluster(
    spark: SparkSession, files: FileSet, curve: Curve, outputs: int, folder: str, moves: str | None
) -> bool:
    """Do what `anabranch._spark.writing.relocating.cluster` does, if Arrow can: whether it is. If not, nothing is left.

    Raises:
        InvalidPartitionValue, MissingDataFile, CorruptLog, UnknownStore: the files cannot be read.
        PySparkException, Py4JJavaError: the job was cancelled.
    """
    if not is_able(spark):
        return False
    task = clustering.ordering(site_of(spark, files.root), files, curve, outputs, folder, moves, footer_metadata(spark))
    if task is None:
        return False
    slots = slots_here(spark)
    said = {**task.said, "threads": clustering.threads(slots)}
    made = _here(said, slots) if slots or task.size <= SMALL_BYTES else _there(spark, said)
    return clustering.adopt_outputs(made, said)


def _here(said: Mapping[str, Any], slots: int) -> list[Output] | None:
    most = said["most_bytes"] if slots else min(said["most_bytes"], MOST_BYTES_HERE)
    try:
        return orders.write_along_curve({**said, "most_bytes": most})
    except Exception as error:  # whatever it is, Spark says it better, or can do it
        _logger.debug("Arrow does not cluster into %s: %s", said["folder"], type(error).__name__)
        return None


def _there(spark: SparkSession, said: Mapping[str, Any]) -> list[Output] | None:
    rows = run_on_executors(spark, 1, orders.running(said), _ANSWER)
    refused = [row["refused"] for row in rows if row["refused"] is not None]
    if refused:
        _logger.debug("Arrow does not cluster into %s: %s", said["folder"], refused[0])
    if refused or not rows:
        return None
    return [(row["number"], row["path"], row["moves"], row["rows"]) for row in rows]
