"""Joins the sides of a MERGE in Arrow: the values of its pairs, and the result of the join.

Knows Arrow tables, and how rows of files are fetched by position. Guarantee: the result is what
`anabranch._spark.merging.merge` would have found; if only Spark can read part of it, `Unsupported` is raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from anabranch._arrow import finding
from anabranch._arrow.marks import marks_of
from anabranch._arrow.merge_clauses import columns_of, of_table
from anabranch._arrow.merge_images import IMAGE, OLD, ROW_ID
from anabranch._arrow.merge_source import SourceRows
from anabranch._arrow.pairs import NONE, ActingClause, Pairs, Side, compute_clause_values
from anabranch._arrow.reading import MOST_BYTES
from anabranch._arrow.site import Site
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.addresses import Address
from anabranch._protocol.layout.file_sets import FileSet, Marks, count_of, difference_of
from anabranch._protocol.merges import NOTHING_MORE
from anabranch._protocol.predicates import Unknown
from anabranch._protocol.schema.types import Field, Struct, arrow_type
from anabranch._protocol.unsupported import Unsupported

_ADDRESS_BYTES = 200
AT, NUMBER = "at", "number"
"""Columns of pairs: index of the table's row among the fetched rows, and index of the source's row, or NULL if there is
none.
"""


@dataclass(frozen=True)
class Join:
    """The rows of both sides.

    Attributes:
        address: names of the address columns in pairs.
    """

    site: Site
    files: FileSet
    source: SourceRows
    address: Address

    def pairs(self, pairs: pa.Table, columns: Sequence[str]) -> Pairs:
        """Pairs with these columns of the table's rows. Raises Unsupported if only Spark reads them."""
        halves = {}
        if pairs[NUMBER].null_count == 0:
            halves["source"] = Side(self.source.named_rows, pairs[NUMBER].to_numpy())
        if columns:
            rows, places = np.unique(pairs[AT].to_numpy(), return_inverse=True)
            target_rows = self._fetch_target_rows(pairs, columns)  # in the order of the pairs
            if len(target_rows) != len(rows):
                raise Unsupported("the table's rows are read by Spark")
            halves["target"] = Side(target_rows, places)
        return Pairs(len(pairs), halves)

    def _fetch_target_rows(self, pairs: pa.Table, columns: Sequence[str]) -> pa.Table:
        if not len(pairs):
            return _nulls([self.files.with_ids.schema.field(name) for name in columns], 0)
        marks = marks_of(pairs[self.address.path], pairs[self.address.row])
        return finding.fetch(self.site, self.files, marks, columns, nested=True)

    # -- rows without a match ------------------------------------------------------------------------------------------

    def alone(self, clauses: Sequence[ActingClause], matched: Marks) -> tuple[pa.Table, Any]:
        """Unmatched table rows on which a clause acts, as pairs without a source row, and the clause number of each.

        Raises:
            Unsupported: only Spark reads or evaluates them.
        """
        remaining = difference_of(finding.live_marks(self.site, self.files), matched)
        marks_by_clause: list[tuple[int, Marks]] = []
        for clause in clauses:
            selected = remaining if clause.condition == NOTHING_MORE else self._select_marks(clause, remaining)
            marks_by_clause.append((clause.number, selected))
            remaining = difference_of(remaining, selected)
        return self._order_by_address(marks_by_clause)

    def _select_marks(self, clause: ActingClause, remaining: Marks) -> Marks:
        condition = Condition("", Unknown(), True, None, computation=of_table(clause.condition))
        marks = finding.find(self.site, self.files.restrict_to(dict(remaining)), condition)
        return {path: rows & remaining.get(path, BitMap64()) for path, rows in marks.items()}

    def _order_by_address(self, marks_by_clause: Sequence[tuple[int, Marks]]) -> tuple[pa.Table, Any]:
        """Rows in the order in which they are fetched, with the clause number of each."""
        if sum(count_of(marks) for _, marks in marks_by_clause) * _ADDRESS_BYTES > MOST_BYTES:
            raise Unsupported("too many rows match no source row")
        paths, rows, numbers = list[pa.Array](), [np.empty(0, np.int64)], [np.empty(0, np.int32)]
        for path in self.files.files["path"].to_pylist():
            bitmaps = [(number, marks[path]) for number, marks in marks_by_clause if marks.get(path)]
            if not bitmaps:
                continue
            positions = np.concatenate([np.asarray(bitmap.to_array(), np.int64) for _, bitmap in bitmaps])
            order = np.argsort(positions)
            paths.append(pa.repeat(pa.scalar(path), len(positions)))
            rows.append(positions[order])
            numbers.append(np.repeat([number for number, _ in bitmaps], [len(bitmap) for _, bitmap in bitmaps])[order])
        row_positions = np.concatenate(rows)
        columns = [pa.chunked_array(paths, pa.string()), pa.array(row_positions)]
        at, number = pa.array(np.arange(len(row_positions))), pa.nulls(len(row_positions), pa.int64())
        return pa.table([*columns, at, number], [*self.address, AT, NUMBER]), np.concatenate(numbers).astype(np.int32)

    # -- what is left behind -------------------------------------------------------------------------------------------

    def left_behind(
        self, clauses: Sequence[ActingClause], pairs: pa.Table, acts: Any, *, images: bool, recorded: bool
    ) -> pa.Table:
        """For each pair its address, source row and acting clause; with its new image, and its old one if changes are
        recorded.

        Raises:
            Unsupported: only Spark reads or computes part of it.
        """
        source_numbers = pairs[NUMBER]
        if source_numbers.null_count == 0:
            source_numbers = self.source.numbers.take(source_numbers)
        key_columns = {"path": pairs[self.address.path], "row": pairs[self.address.row], "number": source_numbers}
        new = self._images(clauses, pairs, acts) if images else {}
        old = self._old_images(pairs, acts) if recorded else {}
        return pa.table({**key_columns, "clause": pa.array(acts, mask=acts == NONE), **new, **old})

    def _images(self, clauses: Sequence[ActingClause], pairs: pa.Table, acts: Any) -> dict[str, pa.ChunkedArray]:
        """New values of all columns: columns that no clause assigns keep the table's values; NULL if a row is not
        updated.
        """
        parts = []
        for clause in clauses:
            acting = np.flatnonzero(acts == clause.number)
            if clause.updates and len(acting):
                parts.append((self._images_after_update(clause, pairs.take(pa.array(acting))), acting))
        return _spread(parts, len(pairs), {**_fields_by_number(IMAGE, self.files.schema), **self._ids})

    @property
    def _ids(self) -> dict[str, Field]:
        """The column of a new image that holds the row's id, if the table tracks its rows."""
        return {} if self.files.tracked is None else {ROW_ID: self.files.tracked.fields[0]}

    def _images_after_update(self, clause: ActingClause, pairs: pa.Table) -> pa.Table:
        """The new images of pairs on which one clause acts."""
        schema, ids = self.files.schema, [field.name for field in self._ids.values()]
        unassigned = [*(name for name in schema.names if name not in clause.values), *ids]
        pairs_read = self.pairs(pairs, sorted({*unassigned, *columns_of([*clause.values.values()])}))
        values = compute_clause_values(clause, pairs_read, np.arange(len(pairs)), schema)
        # Each row is in one pair only, so the rows are in the order of the pairs.
        old_values = {name: pairs_read.halves["target"].rows[name] for name in unassigned}
        return pa.table({name: values[name] if name in values else old_values[name] for name in (*schema.names, *ids)})

    def _old_images(self, pairs: pa.Table, acts: Any) -> dict[str, pa.ChunkedArray]:
        """The old values of all columns, where a clause acts."""
        acting = np.flatnonzero(acts != NONE)
        half = self.pairs(pairs.take(pa.array(acting)), self.files.schema.names).halves["target"]
        rows = half.rows.take(pa.array(half.places))
        return _spread([(rows, acting)], len(pairs), _fields_by_number(OLD, self.files.schema))


def _fields_by_number(prefix: str, schema: Struct) -> dict[str, Field]:
    return {f"{prefix}{i}": field for i, field in enumerate(schema)}


def _spread(
    parts: Sequence[tuple[pa.Table, Any]], count: int, columns: Mapping[str, Field]
) -> dict[str, pa.ChunkedArray]:
    """Place the values of some of ``count`` pairs at their indexes, with NULLs elsewhere."""
    filled = np.concatenate([np.empty(0, np.int64), *(places for _, places in parts)])
    unfilled = np.setdiff1d(np.arange(count), filled)
    table = pa.concat_tables([*(rows for rows, _ in parts), _nulls([*columns.values()], len(unfilled))])
    table = table.take(pa.array(np.argsort(np.concatenate([filled, unfilled]))))
    return dict(zip(columns, table.columns, strict=True))


def _nulls(fields: Sequence[Field], count: int) -> pa.Table:
    """NULL in each of these columns."""
    return pa.table({field.name: pa.nulls(count, arrow_type(field.type)) for field in fields})
