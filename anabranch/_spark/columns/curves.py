"""Computes the place of each row on a curve with Spark's own expressions.

Numbers the ranges of a column's values and computes a curve through them, without a Python worker. Knows nothing of
files. Guarantee: a place depends on the row's values alone, so two queries over the same rows agree; places are those
of `anabranch._protocol.layout.curves`.

A value that is used twice becomes a column first: a nested expression would double at each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch._protocol.layout.addresses import free_name
from anabranch._protocol.layout.curves import Kind, bits_per_column, places
from anabranch._spark.columns.types import arrow_rows, column


class Steps:
    """Rows that get one column after another, under unused names."""

    def __init__(self, rows: DataFrame) -> None:
        self.rows = rows
        self._names = rows.columns

    def add_step(self, value: Column) -> Column:
        """Add a column with this value."""
        return self.add_steps([value])[0]

    def add_steps(self, values: Sequence[Column]) -> list[Column]:
        """Add a column for each of these values, computed over the present rows."""
        new_names = [free_name(f"__anabranch_step_{len(self._names) + i}", self._names) for i in range(len(values))]
        self._names += new_names
        self.rows = self.rows.withColumns(dict(zip(new_names, values, strict=True)))
        return list(map(column, new_names))


# -- ranges ------------------------------------------------------------------------------------------------------------


def in_plan(spark: SparkSession, values: pa.Array) -> Column:
    """These values as one array inside a query."""
    whole = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
    return arrow_rows(spark, pa.table({"values": whole})).scalar()


def count_bounds_up_to(steps: Steps, bounds: Sequence[tuple[Column, int]], values: Sequence[Column]) -> list[Column]:
    """For each value the number of bounds that are not above it, by binary search; 0 for NULL. ``bounds`` has for each
    value an ascending array of bounds, and its length.
    """
    counts = [F.lit(0) for _ in values]
    for bit in reversed(range(max(count for _, count in bounds).bit_length())):
        step = F.lit(1 << bit)
        # Beyond the end there is no bound, and the comparison is NULL.
        reached = [
            F.get(array, at + step - 1) <= value for (array, _), at, value in zip(bounds, counts, values, strict=True)
        ]
        counts = steps.add_steps(
            [F.when(hit, at + step).otherwise(at) for hit, at in zip(reached, counts, strict=True)]
        )
    return counts


def ranges_of(spark: SparkSession, steps: Steps, values: Sequence[Column], bounds: Sequence[pa.Array]) -> list[Column]:
    """The number of each value's range; 0 for NULL."""
    arrays = [(in_plan(spark, column_bounds), len(column_bounds)) for column_bounds in bounds]
    pairs = zip(values, count_bounds_up_to(steps, arrays, values), strict=True)
    return steps.add_steps([F.when(value.isNull(), F.lit(0)).otherwise(reached + 1) for value, reached in pairs])


def place_on(spark: SparkSession, steps: Steps, kind: Kind, cell: Sequence[Column]) -> Column:
    """The place of a cell on a curve.

    A lookup, because code that computes the place is too long for Java to compile: 12 s for a million rows, not 0.3.
    """
    bits = bits_per_column(len(cell))
    number = reduce(lambda left, right: F.shiftleft(left, bits).bitwiseOR(right), cell)
    return steps.add_step(F.get(in_plan(spark, places(kind, len(cell))), number))
