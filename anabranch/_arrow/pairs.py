"""Pairs of rows of a MERGE in Arrow: which clause acts on each, and the values that it stores.

Knows Arrow tables and computations. Pure. Guarantee: of the clauses the first whose condition is TRUE acts, and is
computed only where none before it acts; whatever only Spark can say raises `Unsupported`.
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
"""In place of a clause's number: none acts."""


@dataclass(frozen=True)
class Acting:
    """A clause as it is computed over pairs of rows.

    Attributes:
        number: which of the command's clauses it is.
        condition: when it acts.
        updates: whether it updates rows.
        values: the table's column -> what it stores there, for an update or an insert.
    """

    number: int
    condition: Computation
    updates: bool
    values: dict[str, Computation]


@dataclass(frozen=True)
class Half:
    """One side of pairs: its rows, and for each pair the place of its row."""

    rows: pa.Table
    places: Any


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows, by the name of each side that has columns here.

    Attributes:
        count: how many.
    """

    count: int
    halves: Mapping[str, Half]

    def truths(self, condition: Computation, pairs: Any) -> Any:
        """For each of these pairs whether a condition is TRUE. Raises Unsupported."""
        if condition == NOTHING_MORE:
            return np.ones(len(pairs), bool)
        found = [condition.truths(batch) for batch in self._batches(condition, pairs)]
        return np.concatenate([each.to_numpy(zero_copy_only=False) for each in found])

    def values(self, value: Computation, kind: pa.DataType, pairs: Any) -> pa.ChunkedArray:
        """A value for each of these pairs. Raises Unsupported."""
        return pa.chunked_array([value.values(batch).cast(kind) for batch in self._batches(value, pairs)], kind)

    def _batches(self, computation: Computation, pairs: Any) -> Iterator[pa.RecordBatch]:
        """Pairs with the columns of each side in a struct."""
        named: dict[str, list[str]] = {side: [] for side in self.halves}
        for path in sorted(names_of(computation.tree)):
            named[path[0]] += [] if path[1] in named[path[0]] else [path[1]]
        for start in range(0, max(len(pairs), 1), AT_ONCE):
            some = pairs[start : start + AT_ONCE]
            sides = {side: self._side(side, columns, some) for side, columns in named.items() if columns}
            yield pa.RecordBatch.from_pydict({"": pa.nulls(len(some)), **sides})

    def _side(self, side: str, columns: Sequence[str], pairs: Any) -> pa.StructArray:
        half = self.halves[side]
        rows = pa.array(half.places[pairs])
        found = [half.rows.column(name).take(rows).combine_chunks() for name in columns]
        return pa.StructArray.from_arrays(found, list(columns))


def acting_on(clauses: Sequence[Acting], pairs: Pairs, those: Any) -> Any:
    """For each of all pairs the number of the clause that acts, among ``those``; `NONE` elsewhere."""
    found, left = np.full(pairs.count, NONE, np.int32), those
    for clause in clauses:
        acts = pairs.truths(clause.condition, left)
        found[left[acts]], left = clause.number, left[~acts]
    return found


def compute_clause_values(clause: Acting, pairs: Pairs, those: Any, schema: Struct) -> dict[str, pa.ChunkedArray]:
    """What a clause stores for some pairs, by column.

    Raises:
        Unsupported: only Spark says what a value is, or the values take too much memory.
    """
    found, left = {}, MOST_BYTES
    for field in schema:
        if field.name in clause.values:
            found[field.name] = pairs.values(clause.values[field.name], arrow_type(field.type), those)
            left -= found[field.name].nbytes
            if left < 0:
                raise Unsupported("the values take too much memory")
    return found
