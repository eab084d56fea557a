"""Evaluates clauses of a MERGE over pairs of rows in Arrow: which clause acts on each pair, and the values that it
stores.

Knows Arrow tables and computations. Pure. Guarantee: the first clause whose condition is TRUE acts, and later ones are
not evaluated for that pair; whatever only Spark can compute raises `Unsupported`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch._arrow.reading import MOST_BYTES
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.expressions.tree import names_of
from anabranch._protocol.merges import NOTHING_MORE
from anabranch._protocol.schema.types import Struct, arrow_type
from anabranch._protocol.unsupported import Unsupported

AT_ONCE = 1 << 16
NONE = -1
"""Clause number of pairs on which no clause acts."""


@dataclass(frozen=True)
class ActingClause:
    """A clause with its computations over pairs of rows.

    Attributes:
        number: index among the command's clauses.
        condition: when it acts.
        updates: whether it updates rows.
        values: the table's column -> the value that an update or insert stores there.
    """

    number: int
    condition: Computation
    updates: bool
    values: dict[str, Computation]


@dataclass(frozen=True)
class Side:
    """One side of pairs: its rows, and for each pair the index of its row."""

    rows: pa.Table
    places: Any


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows, as one half for each side of which columns are needed.

    Attributes:
        count: number of pairs.
    """

    count: int
    halves: Mapping[str, Side]

    def truths(self, condition: Computation, pairs: Any) -> Any:
        """Whether a condition is TRUE for each of these pairs. Raises Unsupported."""
        if condition == NOTHING_MORE:
            return np.ones(len(pairs), bool)
        truths_by_batch = [condition.truths(batch) for batch in self._batches(condition, pairs)]
        return np.concatenate([truths.to_numpy(zero_copy_only=False) for truths in truths_by_batch])

    def values(self, value: Computation, kind: pa.DataType, pairs: Any) -> pa.ChunkedArray:
        """The value of a computation for each of these pairs. Raises Unsupported."""
        return pa.chunked_array([value.values(batch).cast(kind) for batch in self._batches(value, pairs)], kind)

    def _batches(self, computation: Computation, pairs: Any) -> Iterator[pa.RecordBatch]:
        """Batches of pairs, with the columns of each side in a struct."""
        columns_by_side: dict[str, list[str]] = {side: [] for side in self.halves}
        for path in sorted(names_of(computation.tree)):
            columns_by_side[path[0]] += [] if path[1] in columns_by_side[path[0]] else [path[1]]
        for start in range(0, max(len(pairs), 1), AT_ONCE):
            batch_pairs = pairs[start : start + AT_ONCE]
            sides = {
                side: self._side(side, columns, batch_pairs) for side, columns in columns_by_side.items() if columns
            }
            yield pa.RecordBatch.from_pydict({"": pa.nulls(len(batch_pairs)), **sides})

    def _side(self, side: str, columns: Sequence[str], pairs: Any) -> pa.StructArray:
        half = self.halves[side]
        rows = pa.array(half.places[pairs])
        arrays = [half.rows.column(name).take(rows).combine_chunks() for name in columns]
        return pa.StructArray.from_arrays(arrays, list(columns))


def find_acting_clauses(clauses: Sequence[ActingClause], pairs: Pairs, candidates: Any) -> Any:
    """For each of all pairs the number of the clause that acts, among ``candidates``; `NONE` elsewhere."""
    numbers, remaining = np.full(pairs.count, NONE, np.int32), candidates
    for clause in clauses:
        acts = pairs.truths(clause.condition, remaining)
        numbers[remaining[acts]], remaining = clause.number, remaining[~acts]
    return numbers


def compute_clause_values(
    clause: ActingClause, pairs: Pairs, indexes: Any, schema: Struct
) -> dict[str, pa.ChunkedArray]:
    """The values that a clause stores for some pairs, by column.

    Raises:
        Unsupported: only Spark computes a value, or the values take too much memory.
    """
    values_by_column, bytes_left = {}, MOST_BYTES
    for field in schema:
        if field.name in clause.values:
            values_by_column[field.name] = pairs.values(clause.values[field.name], arrow_type(field.type), indexes)
            bytes_left -= values_by_column[field.name].nbytes
            if bytes_left < 0:
                raise Unsupported("the values take too much memory")
    return values_by_column
