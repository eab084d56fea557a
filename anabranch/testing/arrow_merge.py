"""MERGE for the engine without a JVM: joins row by row, and applies the clauses to pairs of rows.

Conditions and values are plain values, or functions of the table's row and the source's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from anabranch._protocol.merges import Clause, Joined, MergePlan, ReservedIdentity, SourceColumn
from anabranch._protocol.schema.assignments import Members
from anabranch._protocol.schema.types import Struct

Row = dict[str, Any]


@dataclass(frozen=True)
class MergeSource:
    """A source's rows, one by one and as they came."""

    records: tuple[Row, ...]
    table: pa.Table

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.records)


@dataclass
class Join:
    """A join in progress, row by row of the table.

    Attributes:
        ambiguous: the number of rows of the table that several source rows would change.
        images: the new images of updated rows.
        sources: the numbers of the source rows that match some row.
        added: the rows of the table, each with its address.
    """

    matching: MergePlan
    records: tuple[Row, ...]
    ambiguous: int = 0
    images: list[Row] = field(default_factory=list)
    sources: set[int] = field(default_factory=set)
    added: list[tuple[str, int, Row]] = field(default_factory=list)
    _marks: dict[str, BitMap64] = field(default_factory=dict)
    _matched: dict[str, BitMap64] = field(default_factory=dict)
    _deletes: dict[str, BitMap64] = field(default_factory=dict)
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, path: str, position: int, row: Row) -> None:
        """Joins one row of the table, at this position of a file, with all rows of the source."""
        self.added.append((path, position, row))
        pairs = [(n, source) for n, source in enumerate(self.records) if self.matching.on(row, source) is True]
        self.sources.update(number for number, _ in pairs)
        if pairs:
            self._matched.setdefault(path, BitMap64()).add(position)
        sides: list[Row] = [source for _, source in pairs] or [{}]
        acting = [(clause, side) for side in sides if (clause := self._clause(bool(pairs), row, side)) is not None]
        if len(acting) > 1 and not self.matching.may_match_twice:
            self.ambiguous += 1
        elif acting:
            self._act(path, position, row, *acting[0])

    def result(self) -> Joined:
        """The result for all rows so far."""
        counts = self._counts
        return Joined(
            marks=self._marks,
            deletes=self._deletes,
            matched=self._matched,
            updated=counts["matched", "update"],
            deleted=counts["matched", "delete"],
            updated_alone=counts["not matched by source", "update"],
            deleted_alone=counts["not matched by source", "delete"],
            handle=self,
        )

    def _clause(self, matches: bool, row: Row, source: Row) -> Clause | None:
        clauses = self.matching.of("matched" if matches else "not matched by source")
        return next((c for c in clauses if c.condition is None or c.condition(row, source) is True), None)

    def _act(self, path: str, position: int, row: Row, clause: Clause, source: Row) -> None:
        self._marks.setdefault(path, BitMap64()).add(position)
        self._counts[clause.when, clause.action] += 1
        if clause.action == "delete":
            self._deletes.setdefault(path, BitMap64()).add(position)
        if clause.action == "update":
            self.images.append({**row, **_values(clause, row, source)})


def row_to_insert(matching: MergePlan, source: Row, schema: Struct, number: int) -> Row | None:
    """The row that a source row, with this number in the source, inserts; None if no clause acts."""
    clauses = matching.of("not matched")
    clause = next((c for c in clauses if c.condition is None or c.condition({}, source) is True), None)
    if clause is None:
        return None
    reserved = {name: value.values for name, value in clause.values.items() if isinstance(value, ReservedIdentity)}
    return {**dict.fromkeys(schema.names), **_values(clause, {}, source), **reserved_values(reserved, number)}


def reserved_values(values: Mapping[str, range], number: int) -> Row:
    """The reserved identity values of a source row."""
    return {name: numbers[number] for name, numbers in values.items()}


def _values(clause: Clause, row: Row, source: Row) -> Row:
    def value_of(value: Any) -> Any:
        if isinstance(value, SourceColumn):
            return reduce(
                lambda struct, name: None if struct is None else struct[name], value.members, source[value.name]
            )
        return value(row, source) if callable(value) else value

    return evaluate_assignments(row, clause.values, value_of)


def evaluate_assignments(old: Row, values: Mapping[str, Any], value_of: Callable[[Any], Any]) -> Row:
    """The new values of the assigned columns or members."""
    return {
        name: _update_members(old.get(name), value, value_of) if isinstance(value, Members) else value_of(value)
        for name, value in values.items()
    }


def _update_members(old: Row | None, members: Members, value_of: Callable[[Any], Any]) -> Row | None:
    """A struct with new values in these members."""
    if old is None and members.whole is not None and value_of(members.whole) is None:
        return None
    return {**(old or {}), **evaluate_assignments(old or {}, members.values, value_of)}
