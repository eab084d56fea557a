"""Numbers the rows of a kept source from 0, without gaps.

Knows how Spark numbers rows (a partition's number in the high bits) and folders of kept rows. Guarantee: a row has the
same number in every query, since the rows were evaluated once.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, chain

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anabranch._protocol.layout.addresses import free_name
from anabranch._spark.columns.types import column
from anabranch._spark.writing.scratch import read_scratch

_IN_PARTITION = 33
"""Number of bits that `monotonically_increasing_id` leaves for the rows of one partition."""


def with_numbers(
    spark: SparkSession, place: str | pa.Table, schema: T.StructType, values: Mapping[str, range]
) -> DataFrame:
    """The rows kept in a place (`anabranch._spark.writing.scratch.keep`, whose last column numbers them), with one more
    column for each name of ``values``: a distinct value of its range for each row, of which there are enough.
    ``schema`` has the other columns.
    """
    number = free_name("__anabranch_number", schema.names)
    rows = read_scratch(spark, [place], T.StructType([*schema, T.StructField(number, T.LongType())]))
    before = count_rows_before(rows, number)
    return rows.select("*", *[value_at(before, reserved).alias(name) for name, reserved in values.items()]).drop(number)


def count_rows_before(rows: DataFrame, number: str) -> Column:
    """For each row the number of rows before it, from the column that numbers them; runs one small query."""
    part, row = F.shiftright(column(number), _IN_PARTITION), column(number).bitwiseAND(F.lit((1 << _IN_PARTITION) - 1))
    counts = rows.groupBy(part.alias("part")).count().orderBy("part").collect()
    if not counts:
        return row
    before = [0, *accumulate(count for _, count in counts)]
    pairs = zip((partition for partition, _ in counts), before, strict=False)
    return F.create_map(*(F.lit(entry).cast("long") for entry in chain.from_iterable(pairs)))[part] + row


def value_at(place: Column, values: range) -> Column:
    """The value at a place of a range."""
    return F.lit(values.start).cast("long") + F.lit(values.step).cast("long") * place
