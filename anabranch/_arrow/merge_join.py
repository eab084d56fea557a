"""A join of a MERGE as it goes on in Arrow: the values of its pairs, and what it leaves behind.

Knows Arrow tables, and how rows of files are brought here by their positions. Guarantee: what is left behind is what
`anabranch._spark.merging.merge` would have found; where Spark has to read something there is none.
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
from anabranch._arrow.pairs import NONE, Acting, Half, Pairs, compute_clause_values
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
"""Of a pair, which of the rows that were found it has, and the place of the source's row; NULL where it has none."""


@dataclass(frozen=True)
class Join:
    """Where the rows of both sides are.

    Attributes:
        address: what the columns of a row's address are called in pairs.
    """

    site: Site
    files: FileSet
    source: SourceRows
    address: Address

    def pairs(self, found: pa.Table, columns: Sequence[str]) -> Pairs:
        """Pairs with these columns of the table's rows. Raises Unsupported: Spark has to read them."""
        halves = {}
        if found[NUMBER].null_count == 0:
            halves["source"] = Half(self.source.named_rows, found[NUMBER].to_numpy())
        if columns:
            rows, places = np.unique(found[AT].to_numpy(), return_inverse=True)
            own = self._own(found, columns)  # in the order of the pairs
            if len(own) != len(rows):
                raise Unsupported("the table's rows are read by Spark")
            halves["target"] = Half(own, places)
        return Pairs(len(found), halves)

    def _own(self, found: pa.Table, columns: Sequence[str]) -> pa.Table:
        if not len(found):
            return _nothing([self.files.with_ids.schema.field(name) for name in columns], 0)
        marks = marks_of(found[self.address.path], found[self.address.row])
        return finding.fetch(self.site, self.files, marks, columns, nested=True)

    # -- rows without a match ------------------------------------------------------------------------------------------

    def alone(self, clauses: Sequence[Acting], matched: Marks) -> tuple[pa.Table, Any]:
        """The rows that match none of the source's on which a clause acts, as pairs without a source's row, and the
        number of that clause for each. Raises Unsupported.
        """
        left, acted = difference_of(finding.live_marks(self.site, self.files), matched), list[tuple[int, Marks]]()
        for clause in clauses:
            chosen = left if clause.condition == NOTHING_MORE else self._select_marks(clause, left)
            acted.append((clause.number, chosen))
            left = difference_of(left, chosen)
        return self._addresses_and_clauses(acted)

    def _select_marks(self, clause: Acting, left: Marks) -> Marks:
        condition = Condition("", Unknown(), True, None, computation=of_table(clause.condition))
        found = finding.find(self.site, self.files.restrict_to(dict(left)), condition)
        return {path: rows & left.get(path, BitMap64()) for path, rows in found.items()}

    def _addresses_and_clauses(self, acted: Sequence[tuple[int, Marks]]) -> tuple[pa.Table, Any]:
        """Rows in the order in which they are brought, with the clause of each."""
        if sum(count_of(marks) for _, marks in acted) * _ADDRESS_BYTES > MOST_BYTES:
            raise Unsupported("the rows that no source row matches are too many")
        paths, rows, numbers = list[pa.Array](), [np.empty(0, np.int64)], [np.empty(0, np.int32)]
        for path in self.files.files["path"].to_pylist():
            some = [(number, marks[path]) for number, marks in acted if marks.get(path)]
            if not some:
                continue
            positions = np.concatenate([np.asarray(each.to_array(), np.int64) for _, each in some])
            order = np.argsort(positions)
            paths.append(pa.repeat(pa.scalar(path), len(positions)))
            rows.append(positions[order])
            numbers.append(np.repeat([number for number, _ in some], [len(each) for _, each in some])[order])
        found = np.concatenate(rows)
        columns = [pa.chunked_array(paths, pa.string()), pa.array(found)]
        at, number = pa.array(np.arange(len(found))), pa.nulls(len(found), pa.int64())
        return pa.table([*columns, at, number], [*self.address, AT, NUMBER]), np.concatenate(numbers).astype(np.int32)

    # -- what is left behind -------------------------------------------------------------------------------------------

    def left_behind(
        self, clauses: Sequence[Acting], found: pa.Table, acts: Any, *, images: bool, recorded: bool
    ) -> pa.Table:
        """For each pair its address, source row and acting clause; with its new image and, where that is recorded, the
        old one. Raises Unsupported.
        """
        own = found[NUMBER]
        if own.null_count == 0:
            own = self.source.numbers.take(own)
        kept = {"path": found[self.address.path], "row": found[self.address.row], "number": own}
        new = self._images(clauses, found, acts) if images else {}
        old = self._olds(found, acts) if recorded else {}
        return pa.table({**kept, "clause": pa.array(acts, mask=acts == NONE), **new, **old})

    def _images(self, clauses: Sequence[Acting], found: pa.Table, acts: Any) -> dict[str, pa.ChunkedArray]:
        """The new values of all columns: those that no clause names keep the table's, and there are none where a row is
        not updated.
        """
        parts = []
        for clause in clauses:
            those = np.flatnonzero(acts == clause.number)
            if clause.updates and len(those):
                parts.append((self._images_after_update(clause, found.take(pa.array(those))), those))
        return _spread(parts, len(found), {**_fields_by_number(IMAGE, self.files.schema), **self._ids})

    @property
    def _ids(self) -> dict[str, Field]:
        """The column of a new image in which the row's id is kept, where the table tracks its rows."""
        return {} if self.files.tracked is None else {ROW_ID: self.files.tracked.fields[0]}

    def _images_after_update(self, clause: Acting, found: pa.Table) -> pa.Table:
        """The new images of pairs on which one clause acts."""
        schema, ids = self.files.schema, [each.name for each in self._ids.values()]
        rest = [*(name for name in schema.names if name not in clause.values), *ids]
        pairs = self.pairs(found, sorted({*rest, *columns_of([*clause.values.values()])}))
        values = compute_clause_values(clause, pairs, np.arange(len(found)), schema)
        own = {name: pairs.halves["target"].rows[name] for name in rest}  # no row is there twice
        return pa.table({name: values[name] if name in values else own[name] for name in (*schema.names, *ids)})

    def _olds(self, found: pa.Table, acts: Any) -> dict[str, pa.ChunkedArray]:
        """The values of all columns before, where a clause acts."""
        those = np.flatnonzero(acts != NONE)
        half = self.pairs(found.take(pa.array(those)), self.files.schema.names).halves["target"]
        rows = half.rows.take(pa.array(half.places))
        return _spread([(rows, those)], len(found), _fields_by_number(OLD, self.files.schema))


def _fields_by_number(prefix: str, schema: Struct) -> dict[str, Field]:
    return {f"{prefix}{i}": each for i, each in enumerate(schema)}


def _spread(
    parts: Sequence[tuple[pa.Table, Any]], count: int, columns: Mapping[str, Field]
) -> dict[str, pa.ChunkedArray]:
    """Values of these columns for some of ``count`` pairs, at their places among NULLs."""
    there = np.concatenate([np.empty(0, np.int64), *(places for _, places in parts)])
    rest = np.setdiff1d(np.arange(count), there)
    whole = pa.concat_tables([*(rows for rows, _ in parts), _nothing([*columns.values()], len(rest))])
    whole = whole.take(pa.array(np.argsort(np.concatenate([there, rest]))))
    return dict(zip(columns, whole.columns, strict=True))


def _nothing(fields: Sequence[Field], count: int) -> pa.Table:
    """NULL in each of these columns."""
    return pa.table({each.name: pa.nulls(count, arrow_type(each.type)) for each in fields})
