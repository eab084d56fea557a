"""The outcome of a MERGE's join: which clause acts on which rows, and on how many pairs.

Knows the columns of what a join leaves behind; not what clauses do. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._arrow.marks import marks_of
from anabranch._protocol.layout.file_sets import FileSet, Marks, count_of, union_of
from anabranch._protocol.merges import Joined, Matching, When
from anabranch._protocol.unsupported import Unsupported
from anabranch.errors import AmbiguousMerge


@dataclass(frozen=True)
class JoinResult:
    """What the join of a MERGE leaves behind.

    Attributes:
        place: a row for each pair that matched, and for each row changed because it did not; or the folder where Spark
            keeps them: address, source row, acting clause, new image, and where that is recorded the old one.
        updates: number of an updating clause -> the columns that it sets.
        repeats: whether it may hold a row that is deleted several times.
        schema: the columns as Spark types them, where it has made them.
    """

    place: str | pa.Table
    updates: Mapping[int, frozenset[str]]
    repeats: bool = False
    schema: Any = None

    @property
    def rows(self) -> pa.Table:
        """The rows. Raises Unsupported: they lie in files of Spark's."""
        if isinstance(self.place, str):
            raise Unsupported("the join's outcome lies in files of Spark's")
        return self.place


@dataclass(frozen=True)
class Outcome:
    """By acting clause (None where none acts on a pair) the table's rows, and the number of pairs; and how many rows
    several pairs of some clauses change.
    """

    by_clause: Mapping[int | None, Marks]
    pairs: Mapping[int | None, int]
    ambiguous: Callable[[list[int]], int]


def outcome_of_table(rows: pa.Table) -> Outcome:
    """The same of rows that are here."""
    counts = pc.value_counts(rows["clause"])
    pairs: dict[int | None, int] = {each["values"].as_py(): each["counts"].as_py() for each in counts}

    def rows_of_clauses(clauses: Sequence[int | None]) -> pa.Table:
        return rows.filter(pc.is_in(rows["clause"], value_set=pa.array(clauses, pa.int32())))

    def ambiguous(matched: list[int]) -> int:
        found = rows_of_clauses(matched)
        times = Counter(zip(found["path"].to_pylist(), found["row"].to_pylist(), strict=True))
        return sum(count > 1 for count in times.values())

    parts = {clause: rows_of_clauses([clause]) for clause in pairs}
    return Outcome({i: marks_of(each["path"], each["row"]) for i, each in parts.items()}, pairs, ambiguous)


def build_joined(counted: Outcome, handle: Any, files: FileSet, matching: Matching) -> Joined:
    """Marks and counts of a join's outcome, with what the engine keeps of it.

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
            count_of(by_clause.get(i, {})) for i, each in matching.enumerate_clauses(when) if each.action == action
        )

    deleting = [i for i, each in enumerate(matching.clauses) if each.action == "delete"]
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
