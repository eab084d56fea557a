"""Change files: changed rows written once more, each with what became of it.

Knows rows; not which of them a transaction changed. Guarantee: a row is what it was in the files that are named, by its
position, and what one evaluation made of it; nothing is computed a second time. So the new rows of an UPDATE are
written to the change data first, and from there to the table.

PROTOCOL.md, section "Add CDC File".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.protocol.change_feed import CHANGE_TYPE, DELETE, POSTIMAGE, PREIMAGE, Images, recorded, recorded_columns
from anabranch.protocol.layout.file_sets import FileSet, Marks, count_of
from anabranch.spark import merge
from anabranch.spark.failures import reported
from anabranch.spark.raw_rows import open_files
from anabranch.spark.scan import scan
from anabranch.spark.types import column
from anabranch.spark.write import are_few, changed, gathered, marked_rows, text_of, write_into, write_tracked


def record(spark: SparkSession, changes: Sequence[Images], folder: str) -> None:
    """Write these rows with the columns of `recorded_columns` below ``folder`` of their table.

    Raises:
        MissingDataFile, CorruptLog, UnknownStore: a file cannot be read.
        ExecutionFailed: the rows cannot be written.
    """
    files = changes[0].files
    with reported("the rows that were changed", files.root, files.version):
        rows = reduce(DataFrame.unionAll, [_rows(spark, each) for each in changes])
        named = replace(files, schema=recorded_columns(files.schema))
        count = sum(0 if each.rows is None else count_of(each.rows) for each in changes)
        few = all(each.rows is not None for each in changes) and are_few(count)
        write_into(spark, gathered(rows, count) if few else rows, named, folder, few=few)


def record_update(
    spark: SparkSession, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str
) -> None:
    """Write the marked rows with the columns of `recorded_columns` below ``folder`` of their table: each as it was, and
    its new image, with the hidden ids of both.

    Arguments and errors as for `anabranch.spark.write.update`.
    """
    both, count = F.explode(F.array(F.lit(PREIMAGE), F.lit(POSTIMAGE))), count_of(marks)
    rows = gathered(marked_rows(spark, files, marks), count).select("*", both.alias(CHANGE_TYPE))
    is_new = column(CHANGE_TYPE) == POSTIMAGE
    images = changed(rows, files, assignments, is_new, beside=[CHANGE_TYPE])
    write_tracked(spark, recorded(files), images, text_of(assignments), folder, few=are_few(count))


def write_postimages(spark: SparkSession, files: FileSet, count: int, folder: str) -> None:
    """Write the ``count`` new images in these files of `record_update`, as rows of the table, below ``folder``."""
    images = scan(spark, recorded(files), ids=True).filter(column(CHANGE_TYPE) == POSTIMAGE).drop(CHANGE_TYPE)
    write_tracked(spark, files, gathered(images, count), "the updated rows", folder, few=are_few(count))


def _rows(spark: SparkSession, images: Images) -> DataFrame:
    """The rows as they are in their files, or as a join has kept them."""
    files = images.chosen
    if images.rows is None:
        rows = scan(spark, files)
    elif images.joined is not None:
        rows = merge.old_rows(spark, files, images.joined, deleted=images.change == DELETE)
    else:
        opened, marked = open_files(spark, files).marked(images.rows)
        rows = opened.rows.filter(marked)
    return rows.select(*map(column, files.schema.names), F.lit(images.change).alias(CHANGE_TYPE))
