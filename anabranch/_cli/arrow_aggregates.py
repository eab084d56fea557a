"""Aggregates without Spark: ``count``, ``min`` and ``max`` over a table, from its log if possible, else computed by
Arrow.

Guarantee: as in Spark, NULL is ignored, NaN is greater than any other number, texts are ordered by their bytes, and of
equal values the first one is returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.expressions.computation import Computation
from anabranch.commands.queries.read import count_from_log, extent_from_log


@dataclass(frozen=True)
class Aggregate:
    """``count``, ``min`` or ``max`` of a column or a computation; None counts every row."""

    function: str
    values: str | Computation | None

    def value_from_log(self, snapshot: Snapshot) -> pa.Scalar | None:
        """The value over all rows from the log alone; None if rows must be read."""
        if self.values is None:
            count = count_from_log(snapshot)
            return None if count is None else pa.scalar(count)
        if self.function == "count" or not isinstance(self.values, str):
            return None
        extent = extent_from_log(snapshot, self.values)
        return None if extent is None else pa.scalar(extent[self.function == "max"])

    def fold(self, total: pa.Scalar, values: pa.Array) -> pa.Scalar:
        """Updates an aggregate with more values."""
        if self.function == "count":
            return pa.scalar(total.as_py() + len(values) - (0 if self.values is None else values.null_count))
        return _extreme(pa.concat_arrays([pa.array([total.as_py()], values.type), values]), self.function)


def from_log(aggregates: Sequence[Aggregate], snapshot: Snapshot) -> list[pa.Scalar] | None:
    """The aggregates of all rows, if the log has all of them."""
    values = [value for aggregate in aggregates if (value := aggregate.value_from_log(snapshot)) is not None]
    return values if len(values) == len(aggregates) else None


def from_rows(aggregates: Sequence[Aggregate], batches: Iterable[pa.RecordBatch]) -> list[pa.Scalar]:
    """The aggregates of batches that have one column per aggregate."""
    results = [pa.scalar(0 if aggregate.function == "count" else None) for aggregate in aggregates]
    for batch in batches:
        results = [aggregate.fold(*pair) for aggregate, *pair in zip(aggregates, results, batch.columns, strict=True)]
    return results


def _extreme(values: pa.Array, function: str) -> pa.Scalar:
    """The minimum or maximum; NULL if there is no value."""
    if not pa.types.is_floating(values.type):
        return pc.min_max(values)[function]
    is_nan = pc.fill_null(pc.is_nan(values), False)
    numbers = values.filter(pc.invert(is_nan))
    if pc.any(is_nan).as_py() and (function == "max" or numbers.null_count == len(numbers)):
        return values.filter(is_nan)[0]
    extreme = pc.min_max(numbers)[function]
    return numbers[pc.index(numbers, extreme).as_py()] if extreme.is_valid else extreme
