"""Aggregates without Spark: ``count``, ``min`` and ``max`` over a table, from its log where that says them, else by
Arrow.

Guarantee: NULL counts for nothing, NaN is greater than any other number, texts go by their bytes, and of equal values
the first one is given, all as in Spark.
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
    """``count``, ``min`` or ``max`` of a column, or of what is computed; None counts rows, whatever they hold."""

    function: str
    values: str | Computation | None

    def value_from_log(self, snapshot: Snapshot) -> pa.Scalar | None:
        """Its value over all rows by the log alone; None where rows have to be read."""
        if self.values is None:
            count = count_from_log(snapshot)
            return None if count is None else pa.scalar(count)
        if self.function == "count" or not isinstance(self.values, str):
            return None
        extent = extent_from_log(snapshot, self.values)
        return None if extent is None else pa.scalar(extent[self.function == "max"])

    def fold(self, found: pa.Scalar, values: pa.Array) -> pa.Scalar:
        """What was found, with more values."""
        if self.function == "count":
            return pa.scalar(found.as_py() + len(values) - (0 if self.values is None else values.null_count))
        return _extreme(pa.concat_arrays([pa.array([found.as_py()], values.type), values]), self.function)


def from_log(asked: Sequence[Aggregate], snapshot: Snapshot) -> list[pa.Scalar] | None:
    """The aggregates of all rows, where the log says each of them."""
    known = [found for each in asked if (found := each.value_from_log(snapshot)) is not None]
    return known if len(known) == len(asked) else None


def from_rows(asked: Sequence[Aggregate], batches: Iterable[pa.RecordBatch]) -> list[pa.Scalar]:
    """The aggregates of batches that have a column for each of them."""
    found = [pa.scalar(0 if each.function == "count" else None) for each in asked]
    for batch in batches:
        found = [each.fold(*pair) for each, *pair in zip(asked, found, batch.columns, strict=True)]
    return found


def _extreme(values: pa.Array, function: str) -> pa.Scalar:
    """The least or the greatest value, NULL where there is none."""
    if not pa.types.is_floating(values.type):
        return pc.min_max(values)[function]
    is_nan = pc.fill_null(pc.is_nan(values), False)
    numbers = values.filter(pc.invert(is_nan))
    if pc.any(is_nan).as_py() and (function == "max" or numbers.null_count == len(numbers)):
        return values.filter(is_nan)[0]
    extreme = pc.min_max(numbers)[function]
    return numbers[pc.index(numbers, extreme).as_py()] if extreme.is_valid else extreme
