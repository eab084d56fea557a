"""What a MERGE does with rows, and the result of its join.

Pure data, passed between the code that decides and the code that knows rows. Expressions are the engine's own (SQL text
or a Column on Spark), over the columns of the target and the source under their aliases. What is computed without it is
so over pairs of rows, which have the columns of each side in a struct.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.expressions.tree import Column, Constant, Foreign
from anabranch._protocol.layout.file_sets import Marks, difference_of
from anabranch._protocol.predicates import Name
from anabranch._protocol.schema.assignments import leaves
from anabranch._protocol.schema.types import Struct

Side = Literal["target", "source"]
"""One side of a MERGE; of a pair of rows, the struct that holds the columns of that side."""
When = Literal["matched", "not matched", "not matched by source"]
Action = Literal["update", "delete", "insert"]
SEEN: Mapping[When, tuple[Side, ...]] = {
    "matched": ("target", "source"),
    "not matched": ("source",),
    "not matched by source": ("target",),
}
"""The sides whose columns a clause sees."""
NOTHING_MORE = Computation(Constant(True, "boolean"))
"""What ON requires beside its keys where these are all."""
UNREAD = Computation(Foreign("it is no text that is read here"))


def name_in_table(column: Column) -> Name | None:
    """What the table calls a column of a pair of rows; None where it is the source's."""
    side, path = column.name[0], tuple(column.name)[1:]
    if side != "target":
        return None
    return path[0] if len(path) == 1 else path


@dataclass(frozen=True)
class SourceColumn:
    """The value of the source's column of this name, as for ``*``, or of a member in it."""

    name: str
    members: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ".".join(("source", self.name, *self.members))


@dataclass(frozen=True)
class Reserved:
    """A distinct value for each source row, of those reserved for an identity column."""

    values: range

    def __str__(self) -> str:
        return "a reserved value"


@dataclass(frozen=True)
class Clause:
    """One WHEN clause; of one kind, the first whose condition is TRUE acts.

    Attributes:
        when: which rows it is for.
        condition: None where it always acts.
        action: what it does.
        values: the table's column -> an expression, a `SourceColumn`, a `Reserved`, or
            `anabranch._protocol.schema.assignments.Members` of these; an update keeps the other columns, an insert
            leaves them NULL.
    """

    when: When
    action: Action
    condition: Any = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Matching:
    """How rows are matched, and what is done then.

    Attributes:
        on: the condition over both sides.
        target, source: the aliases, None where there is none.
        keys: pairs of a table's and a source's column that ON requires to be equal.
        rest: what ON requires besides, of a pair of rows.
        evolves: whether structs of the source may lack members, which are then NULL.
        added: columns that the MERGE adds to the table, used in no expression.
        recorded: whether it has to be known what changed rows were before.
    """

    on: Any
    clauses: tuple[Clause, ...]
    target: str | None = None
    source: str | None = None
    keys: tuple[tuple[str, str], ...] = ()
    rest: Computation = UNREAD
    evolves: bool = False
    added: tuple[str, ...] = ()
    recorded: bool = False

    @property
    def expressions(self) -> list[Any]:
        """The engine's expressions: ON, and of the clauses the conditions and the values."""
        conditions = [each.condition for each in self.clauses if each.condition is not None]
        values = [value for each in self.clauses for _, value in leaves(each.values)]
        return [self.on, *conditions, *(each for each in values if not isinstance(each, SourceColumn | Reserved))]

    def of(self, when: When) -> tuple[Clause, ...]:
        """The clauses of one kind, in their order."""
        return tuple(clause for clause in self.clauses if clause.when == when)

    def enumerate_clauses(self, when: When) -> list[tuple[int, Clause]]:
        """The clauses of one kind, each with its number among all."""
        return [(i, each) for i, each in enumerate(self.clauses) if each.when == when]

    def columns_set(self, schema: Struct, action: Action) -> dict[int, frozenset[str]]:
        """By the number of each clause that does this, the columns of the table that it names."""
        clauses = [(i, each) for i, each in enumerate(self.clauses) if each.action == action]
        return {i: frozenset(schema.field(name).name for name in each.values) for i, each in clauses}

    @property
    def inserts(self) -> bool:
        """Whether rows may be inserted, so that matches matter even where no clause acts on them."""
        return bool(self.of("not matched"))

    @property
    def acts_without_match(self) -> bool:
        """Whether rows without a match may be changed, so that every row of the table matters."""
        return bool(self.of("not matched by source"))

    def writes_anew(self, *, vectors: bool) -> bool:
        """Whether rows that were there may be written once more; without ``vectors`` those that stay are, too."""
        return any(each.action == "update" or (each.action == "delete" and not vectors) for each in self.clauses)

    @property
    def may_match_twice(self) -> bool:
        """Whether several source rows may match one row: only where all that can be done is an unconditional delete."""
        matched = self.of("matched")
        return len(matched) == 1 and matched[0].action == "delete" and matched[0].condition is None


@dataclass(frozen=True)
class Joined:
    """The result of one pass over the join of some files with the source.

    Attributes:
        marks: the rows that a clause updates or deletes.
        deletes: those of them that it deletes.
        matched: the rows that match a source row, whether or not a clause acts.
        updated, deleted: how many rows, by matched clauses.
        updated_alone, deleted_alone: the same by clauses for rows without a match.
        handle: what the engine needs to write the new images, and to know which source rows matched, and what changed
            rows were if that is `Matching.recorded`; opaque to others.
        pairs: how many rows lie there.
    """

    marks: Marks
    matched: Marks
    deletes: Marks = field(default_factory=dict)
    updated: int = 0
    deleted: int = 0
    updated_alone: int = 0
    deleted_alone: int = 0
    handle: Any = None
    pairs: int = 0

    @property
    def updates(self) -> Marks:
        """The rows that a clause updates."""
        return difference_of(self.marks, self.deletes)
