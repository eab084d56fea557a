"""Lays rows along a curve by Arrow, in one task, without a row in the JVM: `anabranch.arrow.orders` does it.

Knows what `anabranch.spark.arrow_packing` knows of where Arrow does as Spark does; and that the rows have to fit into
memory, so that much is left to Spark. Guarantees: those of that module. The order is the one that
`anabranch.spark.relocating.cluster` gives to the same rows, in files of the same numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from anabranch.arrow import orders
from anabranch.arrow.orders import Output
from anabranch.protocol.layout.addresses import free_name
from anabranch.protocol.layout.clustering import paths_of
from anabranch.protocol.layout.curves import Curve, bits_per_column, places
from anabranch.protocol.layout.file_sets import FileSet
from anabranch.protocol.schema.assignments import spelled
from anabranch.protocol.schema.types import Struct
from anabranch.spark.arrow_packing import SMALL_BYTES, fits, is_able, mapped, name_of, named, slots_here, task_of, tidy
from anabranch.spark.paths import spark_root
from anabranch.spark.relocating import leading, sampled_of

_logger = logging.getLogger(__name__)
MOST_FILE_BYTES = 512 << 20
"""More than these are not tried."""
MOST_BYTES = 512 << 20
"""Of rows in memory at once. Beside them there are a column of theirs a second time, and row groups to be written."""
MOST_BYTES_HERE = 128 << 20
"""The same in the driver's process, where tasks run in others."""
_THREADS, _MOST_THREADS = 2, 4
"""Each one that writes needs memory for a row group."""
_ANSWER = "number long, path string, moves string, rows long, refused string"


def clustered(spark: SparkSession, files: FileSet, curve: Curve, outputs: int, folder: str, moves: str | None) -> bool:
    """Do what `anabranch.spark.relocating.cluster` does, if Arrow can: whether it is done. If not, nothing is left.

    Raises:
        InvalidPartitionValue, MissingDataFile, CorruptLog, UnknownStore: the files cannot be read.
        PySparkException, Py4JJavaError: the job was cancelled.
    """
    keys = [_key(files.schema, name) for name in leading(curve)]
    if None in keys or not fits(files) or not is_able(spark):
        return False
    task = task_of(spark, 0, files, folder)
    if task is None or task.size > MOST_FILE_BYTES:
        return False
    hidden = f"{spark_root(spark, files.root).removeprefix('file://')}/{moves}"
    said = {**task.said, **_order(files, curve, outputs, task.said["wanted"])}
    said |= {"keys": keys, "moves": None if moves is None else hidden}
    slots = slots_here(spark)
    said |= {"threads": min(_MOST_THREADS, slots or _THREADS), "most_bytes": MOST_BYTES}
    made = _here(said, slots) if slots or task.size <= SMALL_BYTES else _there(spark, said)
    done = made is not None and named(dict(_names(made, said)))
    for each in (said["folder"], said["moves"]):
        if each is not None:
            tidy(each)
    return done


def _key(schema: Struct, name: str) -> list[str] | None:
    """The path of a column in files; None where there is no such column."""
    (path,) = paths_of([name])
    found = spelled(path, schema)
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
        "every": sampled_of(files, outputs),
        "bits": bits_per_column(len(columns)),
        "cells": places(curve.kind, len(columns)) if len(columns) > 1 else None,
    }


def _here(said: Mapping[str, Any], slots: int) -> list[Output] | None:
    try:
        return orders.ordered({**said, "most_bytes": MOST_BYTES if slots else min(MOST_BYTES, MOST_BYTES_HERE)})
    except Exception as error:  # whatever it is, Spark says it better, or can do it
        _logger.debug("Arrow does not cluster into %s: %s", said["folder"], type(error).__name__)
        return None


def _there(spark: SparkSession, said: Mapping[str, Any]) -> list[Output] | None:
    rows = mapped(spark, 1, orders.running(said), _ANSWER)
    refused = [row["refused"] for row in rows if row["refused"] is not None]
    if refused:
        _logger.debug("Arrow does not cluster into %s: %s", said["folder"], refused[0])
    if refused or not rows:
        return None
    return [(row["number"], row["path"], row["moves"], row["rows"]) for row in rows]


def _names(made: list[Output], said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The paths of attempts with the names that they get."""
    for number, path, moves, _ in made:
        if moves:
            yield moves, f"{said['moves']}/{name_of(number, 'zstd')}"
        yield path, f"{said['folder']}/{name_of(number, said['codec'])}"
