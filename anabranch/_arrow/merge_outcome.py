"""The outcome of a MERGE's join: which clause acts on which rows, and on how many pairs.

Knows the columns of a join's result; not what clauses do. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._arrow.marks import marks_of
from anabranch._protocol.layout.file_sets import FileSet, Marks, count_of, union_of
from anabranch._protocol.merges import Joined, MergePlan, When
from anabranch._protocol.unsupported import Unsupported
from anabranch.errors import AmbiguousMerge


@dataclass(frozen=True)
class JoinResult:
    """Result of the join of a MERGE.

    Attributes:
        place: a row for each pair that matched, and for each row that a NOT MATCHED BY SOURCE clause changes, with
            address, source row, acting clause, new image, and old image if changes are recorded; or the folder where
            Spark keeps these rows.
        updates: number of an updating clause -> the columns that it sets.
        repeats: whether a deleted row may occur several times.
        schema: the columns with Spark's types, if Spark made the rows.
    """

    place: str | pa.Table
    updates: Mapping[int, frozenset[str]]
    repeats: bool = False
    schema: Any = None

    @property
    def rows(self) -> pa.Table:
        """The rows. Raises Unsupported if they are in files of Spark's."""
        if isinstance(self.place, str):
            raise Unsupported("the join's result is in files that Spark wrote")
        return self.place


@dataclass(frozen=True)
class Outcome:
    """The table's rows and the number of pairs by acting clause (None if no clause acts on a pair); and a function that
    counts the rows that several pairs of given clauses change.
    """

    by_clause: Mapping[int | None, Marks]
    pairs: Mapping[int | None, int]
    ambiguous: Callable[[list[int]], int]


def outcome_of_table(rows: pa.Table) -> Outcome:
    """The outcome of a join whose result is in memory."""
    counts = pc.value_counts(rows["clause"])
    pairs: dict[int | None, int] = {entry["values"].as_py(): entry["counts"].as_py() for entry in counts}

    def rows_of_clauses(clauses: Sequence[int | None]) -> pa.Table:
        return rows.filter(pc.is_in(rows["clause"], value_set=pa.array(clauses, pa.int32())))

    def ambiguous(matched: list[int]) -> int:
        changed_rows = rows_of_clauses(matched)
        times = Counter(zip(changed_rows["path"].to_pylist(), changed_rows["row"].to_pylist(), strict=True))
        return sum(count > 1 for count in times.values())

    parts = {clause: rows_of_clauses([clause]) for clause in pairs}
    return Outcome(
        {i: marks_of(part["path"], part["row"]) for i, part in parts.items()},
        pairs,
        ambiguous,
    )


def split_joined(joined: Joined, rows: Marks, files: FileSet, matching: MergePlan) -> tuple[Joined, Joined] | None:
    """The results for all rows but these, and for these alone; None if they are in files of Spark's."""
    if joined.handle is None:
        return joined, joined
    if isinstance(joined.handle.place, str):
        return None
    pairs: pa.Table = joined.handle.rows
    mask = pa.chunked_array([pa.array(np.zeros(len(pairs), np.bool_))])
    for path, positions in rows.items():
        among = pc.is_in(pairs["row"], value_set=pa.array(positions, pairs["row"].type))
        mask = pc.or_(mask, pc.and_(pc.equal(pairs["path"], path), among))
    others, these = (
        build_joined(outcome_of_table(part), replace(joined.handle, place=part), files, matching)
        for part in (pairs.filter(pc.invert(mask)), pairs.filter(mask))
    )
    return others, these


def build_joined(counted: Outcome, handle: Any, files: FileSet, matching: MergePlan) -> Joined:
    """Marks and counts of a join's outcome, with the engine's handle of its result.

    Raises:
        AmbiguousMerge: several source rows would change one row.
    """
    by_clause, pairs = counted.by_clause, counted.pairs
    matched = matching.enumerate_clauses("matched")
    acting = union_of([by_clause.get(i, {}) for i, _ in matched])
    if not matching.may_match_twice and sum(pairs.get(i, 0) for i, _ in matched) > count_of(acting):
        raise AmbiguousMerge(table=files.root, count=counted.ambiguous([i for i, _ in matched]))

    def count(when: When, action: str) -> int:
        return sum(
            count_of(by_clause.get(i, {})) for i, clause in matching.enumerate_clauses(when) if clause.action == action
        )

    deleting = [i for i, clause in enumerate(matching.clauses) if clause.action == "delete"]
    return Joined(
        marks=union_of([marks for i, marks in by_clause.items() if i is not None]),
        deletes=union_of([by_clause.get(i, {}) for i in deleting]),
        matched=union_of([acting, by_clause.get(None, {})]),
        updated=count("matched", "update"),
        deleted=count("matched", "delete"),
        updated_alone=count("not matched by source", "update"),
        deleted_alone=count("not matched by source", "delete"),
        handle=handle,
        pairs=sum(pairs.values()),
    )
