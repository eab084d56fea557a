"""Change files: changed rows written once more, each with what became of it.

Knows rows; not which of them a transaction changed. Guarantee: a row is what it was or became in the files that are
named, by its position; nothing is computed a second time.

PROTOCOL.md, section "Add CDC File".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.protocol.change_feed import CHANGE_TYPE, Images, recorded_columns
from anabranch.protocol.layout.file_sets import count_of
from anabranch.spark.failures import reported
from anabranch.spark.raw_rows import open_files
from anabranch.spark.scan import scan
from anabranch.spark.types import column
from anabranch.spark.write import are_few, gathered, write_into


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


def _rows(spark: SparkSession, images: Images) -> DataFrame:
    """The rows as they are in their files."""
    files = images.chosen
    if images.rows is None:
        rows = scan(spark, files)
    else:
        opened, marked = open_files(spark, files).marked(images.rows)
        rows = opened.rows.filter(marked)
    return rows.select(*map(column, files.schema.names), F.lit(images.change).alias(CHANGE_TYPE))
