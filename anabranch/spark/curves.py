"""Curves: the place of each row on a curve, as Spark's own expressions.

Knows how to number the ranges of a column's values and how to lead a curve through them, without a Python worker.
Knows nothing of files. Guarantee: what is built here is decided by a row's values alone, so that two queries over the
same rows give the same; places are those of `anabranch.protocol.curves`.

What is used twice becomes a column of its own first, since an expression inside an expression doubles at each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.protocol.curves import Kind
from anabranch.spark.types import arrow_rows, column, free_name


class Steps:
    """Rows that get one column after another, each under a name that is free."""

    def __init__(self, rows: DataFrame) -> None:
        self.rows = rows
        self._taken = rows.columns

    def kept(self, value: Column) -> Column:
        """A column with this value."""
        return self.all_kept([value])[0]

    def all_kept(self, values: Sequence[Column]) -> list[Column]:
        """A column for each of these values, over the rows as they are now."""
        names = [free_name(f"__anabranch_step_{len(self._taken) + i}", self._taken) for i in range(len(values))]
        self._taken += names
        self.rows = self.rows.withColumns(dict(zip(names, values, strict=True)))
        return list(map(column, names))


# -- ranges ------------------------------------------------------------------------------------------------------------


def bounds_of(sample: pa.Array, ranges: int) -> pa.Array:
    """The lowest values of all ranges but the first, so that about as many of these values lie in each.

    NULL has the first range for itself.
    """
    values = sample.drop_null()
    ordered = values.take(pc.sort_indices(values))
    places = sorted({len(ordered) * i // ranges for i in range(1, ranges)} - {0}) if len(ordered) else []
    return pc.unique(ordered.take(pa.array(places, pa.int64())))


def in_plan(spark: SparkSession, values: pa.Array) -> Column:
    """These values as one array inside a query."""
    whole = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
    return arrow_rows(spark, pa.table({"values": whole})).scalar()


def count_reached(steps: Steps, bounds: Column, count: int, value: Column) -> Column:
    """How many of some bounds, which ascend, are not above a value, found by halving.

    Args:
        bounds: the array of them. count: how many they are. value: never NULL.
    """
    found = F.lit(0)
    for bit in reversed(range(count.bit_length())):
        # Past the end there is no bound, and nothing reaches it.
        is_reached = F.coalesce(F.get(bounds, found + F.lit((1 << bit) - 1)) <= value, F.lit(False))
        found = steps.kept(found + F.when(is_reached, F.lit(1 << bit)).otherwise(F.lit(0)))
    return found


def range_of(spark: SparkSession, steps: Steps, value: Column, bounds: pa.Array) -> Column:
    """The number of a value's range; that of NULL is 0."""
    if not len(bounds):
        return steps.kept(F.when(value.isNull(), F.lit(0)).otherwise(F.lit(1)))
    # NULL reaches nothing.
    reached = count_reached(steps, in_plan(spark, bounds), len(bounds), value)
    return steps.kept(F.when(value.isNull(), F.lit(0)).otherwise(reached + 1))


# -- places ------------------------------------------------------------------------------------------------------------


def place_on(steps: Steps, kind: Kind, cell: Sequence[Column], bits: int) -> Column:
    """The place of a cell on a curve, a bigint."""
    return _interleaved(steps, cell if kind == "zorder" else _turned(steps, cell, bits), bits)


def _interleaved(steps: Steps, cell: Sequence[Column], bits: int) -> Column:
    width = len(cell)
    parts = [
        _moved(number, bit, bit * width + width - 1 - i)
        for bit in reversed(range(bits))
        for i, number in enumerate(cell)
    ]
    return steps.kept(_xor(parts))


def _moved(number: Column, bit: int, to: int) -> Column:
    """One bit of a number, at another place."""
    return F.shiftleft(F.shiftright(number, bit).bitwiseAND(F.lit(1)).cast("bigint"), to)


def _turned(steps: Steps, cell: Sequence[Column], bits: int) -> list[Column]:
    """The numbers whose bits by turns are the place on the Hilbert curve; see `anabranch.protocol.curves.hilbert`."""
    turned = list(cell)
    for bit in reversed(range(1, bits)):
        low = (1 << bit) - 1
        for i, number in enumerate(turned):
            is_set = F.shiftright(number, bit).bitwiseAND(F.lit(1)) == 1
            if i == 0:
                turned[0] = steps.kept(F.when(is_set, number.bitwiseXOR(F.lit(low))).otherwise(number))
            else:
                first = turned[0]
                swapped = steps.kept(
                    F.when(~is_set, first.bitwiseXOR(number).bitwiseAND(F.lit(low))).otherwise(F.lit(0))
                )
                flipped = F.when(is_set, F.lit(low)).otherwise(swapped)
                turned[0], turned[i] = steps.all_kept([first.bitwiseXOR(flipped), number.bitwiseXOR(swapped)])
    for i in range(1, len(turned)):
        turned[i] = steps.kept(turned[i].bitwiseXOR(turned[i - 1]))
    last = turned[-1]
    flips = [
        F.when(F.shiftright(last, bit).bitwiseAND(F.lit(1)) == 1, F.lit((1 << bit) - 1)).otherwise(F.lit(0))
        for bit in range(1, bits)
    ]
    flipped = steps.kept(_xor(flips)) if flips else F.lit(0)
    return steps.all_kept([number.bitwiseXOR(flipped) for number in turned])


def _xor(values: Iterable[Column]) -> Column:
    return reduce(Column.bitwiseXOR, values)
