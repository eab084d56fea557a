"""Lays rows along a curve with Arrow (`anabranch._arrow.clustering`), in a task of Spark or in this process.

Knows which sessions' executors run Arrow, and that reading in this process takes memory of the driver.
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
from anabranch._spark.writing.arrow_packing import SMALL_BYTES, can_run_arrow, local_slots, run_on_executors
from anabranch._spark.writing.sites import site_of

_logger = logging.getLogger(__name__)
MOST_BYTES_HERE = 128 << 20
"""Maximum bytes of rows in the driver's memory, if tasks run in other processes."""
_ANSWER = "number long, path string, moves string, rows long, refused string"


def try_cluster(
    spark: SparkSession, files: FileSet, curve: Curve, outputs: int, folder: str, moves: str | None
) -> bool:
    """Do what `anabranch._spark.writing.relocating.cluster` does, if Arrow can, and return whether it has. If not,
    nothing is left behind.

    Raises:
        InvalidPartitionValue, MissingDataFile, CorruptLog, UnknownStore: the files cannot be read.
        PySparkException, Py4JJavaError: the job was cancelled.
    """
    if not can_run_arrow(spark):
        return False
    task = clustering.ordering(site_of(spark, files.root), files, curve, outputs, folder, moves, footer_metadata(spark))
    if task is None:
        return False
    slots = local_slots(spark)
    values = {**task.said, "threads": clustering.threads(slots)}
    results = _run_in_process(values, slots) if slots or task.size <= SMALL_BYTES else _run_on_executor(spark, values)
    return clustering.adopt_outputs(results, values)


def _run_in_process(values: Mapping[str, Any], slots: int) -> list[Output] | None:
    most = values["most_bytes"] if slots else min(values["most_bytes"], MOST_BYTES_HERE)
    try:
        return orders.write_along_curve({**values, "most_bytes": most})
    except Exception as error:  # whatever the error, Spark reports it better, or succeeds
        _logger.debug("Arrow does not cluster into %s: %s", values["folder"], type(error).__name__)
        return None


def _run_on_executor(spark: SparkSession, values: Mapping[str, Any]) -> list[Output] | None:
    rows = run_on_executors(spark, 1, orders.running(values), _ANSWER)
    refused = [row["refused"] for row in rows if row["refused"] is not None]
    if refused:
        _logger.debug("Arrow does not cluster into %s: %s", values["folder"], refused[0])
    if refused or not rows:
        return None
    return [(row["number"], row["path"], row["moves"], row["rows"]) for row in rows]
