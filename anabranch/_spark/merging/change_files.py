"""Writes changed rows as files of change data, with their change types.

Knows rows; not which of them a transaction changed. Guarantee: an old row is read from the named files by its position,
and a new row is the result of one evaluation; nothing is computed a second time. So the new rows of an UPDATE are
written to the change data first, and copied from there to the table.

PROTOCOL.md, section "Add CDC File".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import inf
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch._protocol.change_feed import (
    CHANGE_TYPE,
    DELETE,
    POSTIMAGE,
    PREIMAGE,
    Images,
    change_data_columns,
    change_data_files,
)
from anabranch._protocol.layout.file_sets import FileSet, Marks, count_of
from anabranch._spark.columns.types import column
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.merging import merge
from anabranch._spark.reading.raw_rows import open_files
from anabranch._spark.reading.scan import scan
from anabranch._spark.writing.write import (
    are_few,
    assign_where,
    coalesce_if_few,
    files_for,
    marked_rows,
    rows_in,
    text_of,
    write_into,
    write_tracked,
)


def record(spark: SparkSession, changes: Sequence[Images], folder: str) -> None:
    """Write these rows with the columns of `change_data_columns` below ``folder`` of their table.

    Raises:
        MissingDataFile, CorruptLog, UnknownStore: a file cannot be read.
        ExecutionFailed: the rows cannot be written.
    """
    files = changes[0].files
    with translate_errors("the rows that were changed", files.root, files.version):
        rows = reduce(DataFrame.unionAll, [_rows(spark, images) for images in changes])
        change_files = replace(files, schema=change_data_columns(files.schema))
        count = sum(_max_rows(images) for images in changes)
        write_into(spark, _coalesce_by_count(rows, changes, count), change_files, folder, few=are_few(count))


def record_update(
    spark: SparkSession, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str
) -> None:
    """Write the marked rows with the columns of `change_data_columns` below ``folder`` of the table, as they were and
    as they become, with the hidden ids of both.

    Arguments and errors as for `anabranch._spark.writing.write.update`.
    """
    change_types, count = F.explode(F.array(F.lit(PREIMAGE), F.lit(POSTIMAGE))), count_of(marks)
    marked = coalesce_if_few(marked_rows(spark, files, marks), count, rows_in(files.restrict_to(dict(marks))))
    rows = marked.select("*", change_types.alias(CHANGE_TYPE))
    is_new = column(CHANGE_TYPE) == POSTIMAGE
    images = assign_where(rows, files, assignments, is_new, beside=[CHANGE_TYPE])
    write_tracked(spark, change_data_files(files), images, text_of(assignments), folder, few=are_few(count))


def write_postimages(spark: SparkSession, files: FileSet, count: int, folder: str) -> None:
    """Write the ``count`` new images in these files of `record_update`, as rows of the table, below ``folder``."""
    images = scan(spark, change_data_files(files), ids=True).filter(column(CHANGE_TYPE) == POSTIMAGE).drop(CHANGE_TYPE)
    images = images.coalesce(1) if are_few(count) else images  # without a shuffle: few rows, just written
    write_tracked(spark, files, images, "the updated rows", folder, few=are_few(count))


def _max_rows(images: Images) -> float:
    """Upper bound on the number of rows; infinite if it cannot be found cheaply."""
    return rows_in(images.files) if images.rows is None else count_of(images.rows)


def _coalesce_by_count(rows: DataFrame, changes: Sequence[Images], count: float) -> DataFrame:
    """Limit the number of files for these rows. Rows that the transaction has just written are read by the tasks that
    write the files, without a shuffle; the table's own files are read by as many tasks as Spark chooses.
    """
    if any(images.rows is not None and images.joined is None for images in changes):
        return coalesce_if_few(rows, count, sum(rows_in(images.files) for images in changes))
    return rows if count == inf else rows.coalesce(files_for(count))


def _rows(spark: SparkSession, images: Images) -> DataFrame:
    """The rows as they are in their files, or as a join has stored them."""
    files = images.selected_files
    if images.rows is None:
        rows = scan(spark, files)
    elif images.joined is not None and images.change == POSTIMAGE:
        rows = merge.new_rows(spark, files, images.joined)
    elif images.joined is not None:
        rows = merge.old_rows(spark, files, images.joined, deleted=images.change == DELETE)
    else:
        opened, marked = open_files(spark, files).with_mark_flag(images.rows)
        rows = opened.rows.filter(marked)
    return rows.select(*map(column, files.schema.names), F.lit(images.change).alias(CHANGE_TYPE))
