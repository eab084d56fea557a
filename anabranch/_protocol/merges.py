"""The clauses of a MERGE, and the result of its join.

Pure data, passed between the code that decides and the code that knows rows. Expressions are the engine's own (SQL text
or a Column on Spark), over the columns of the target and the source under their aliases. Without the engine they are
computed over pairs of rows, with the columns of each side in a struct.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.expressions.tree import Column, Constant, SparkOnly
from anabranch._protocol.layout.file_sets import Marks, difference_of
from anabranch._protocol.predicates import Name
from anabranch._protocol.schema.assignments import leaves
from anabranch._protocol.schema.types import Struct

Side = Literal["target", "source"]
"""One side of a MERGE; in a pair of rows, the struct with the columns of that side."""
When = Literal["matched", "not matched", "not matched by source"]
Action = Literal["update", "delete", "insert"]
SEEN: Mapping[When, tuple[Side, ...]] = {
    "matched": ("target", "source"),
    "not matched": ("source",),
    "not matched by source": ("target",),
}
"""The sides whose columns a clause can use."""
NOTHING_MORE = Computation(Constant(True, "boolean"))
"""The remainder of ON if it only compares keys."""
UNREAD = Computation(SparkOnly("it is no text that is read here"))


def name_in_table(column: Column) -> Name | None:
    """The table's name of a column of a pair of rows; None for a column of the source."""
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
class ReservedIdentity:
    """A distinct value for each source row, from those reserved for an identity column."""

    values: range

    def __str__(self) -> str:
        return "a reserved value"


@dataclass(frozen=True)
class Clause:
    """One WHEN clause; of one kind, the first whose condition is TRUE acts.

    Attributes:
        when: the rows it applies to.
        condition: None if it always acts.
        action: what it does.
        values: the table's column -> an expression, a `SourceColumn`, a `ReservedIdentity`, or
            `anabranch._protocol.schema.assignments.Members` of these; an update keeps the other columns, an insert
            leaves them NULL.
    """

    when: When
    action: Action
    condition: Any = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MergePlan:
    """How rows are matched, and the clauses that then act.

    Attributes:
        on: the condition over both sides.
        target, source: the aliases; None if there is none.
        keys: pairs of a table's and a source's column that ON requires to be equal.
        null_safe: the table's columns among them that ON compares by ``<=>``, where NULL equals NULL.
        rest: the remainder of ON, over a pair of rows.
        evolves: whether structs of the source may lack members, which are then NULL.
        added: columns that the MERGE adds to the table, used in no expression.
        recorded: whether the former values of changed rows are needed.
    """

    on: Any
    clauses: tuple[Clause, ...]
    target: str | None = None
    source: str | None = None
    keys: tuple[tuple[str, str], ...] = ()
    null_safe: frozenset[str] = frozenset()
    rest: Computation = UNREAD
    evolves: bool = False
    added: tuple[str, ...] = ()
    recorded: bool = False

    @property
    def expressions(self) -> list[Any]:
        """The engine's expressions: ON, and the conditions and values of the clauses."""
        conditions = [clause.condition for clause in self.clauses if clause.condition is not None]
        values = [value for clause in self.clauses for _, value in leaves(clause.values)]
        return [
            self.on,
            *conditions,
            *(value for value in values if not isinstance(value, SourceColumn | ReservedIdentity)),
        ]

    def of(self, when: When) -> tuple[Clause, ...]:
        """The clauses of one kind, in their order."""
        return tuple(clause for clause in self.clauses if clause.when == when)

    def enumerate_clauses(self, when: When) -> list[tuple[int, Clause]]:
        """The clauses of one kind, each with its index among all clauses."""
        return [(i, clause) for i, clause in enumerate(self.clauses) if clause.when == when]

    def columns_set(self, schema: Struct, action: Action) -> dict[int, frozenset[str]]:
        """The table's columns that each clause with this action sets, by the index of the clause."""
        clauses = [(i, clause) for i, clause in enumerate(self.clauses) if clause.action == action]
        return {i: frozenset(schema.field(name).name for name in clause.values) for i, clause in clauses}

    @property
    def inserts(self) -> bool:
        """Whether rows may be inserted, so that matches matter even if no clause acts on them."""
        return bool(self.of("not matched"))

    @property
    def acts_without_match(self) -> bool:
        """Whether rows without a match may be changed, so that every row of the table matters."""
        return bool(self.of("not matched by source"))

    def writes_anew(self, *, vectors: bool) -> bool:
        """Whether existing rows may be rewritten; without ``vectors``, unchanged rows of their files are too."""
        return any(clause.action == "update" or (clause.action == "delete" and not vectors) for clause in self.clauses)

    @property
    def may_match_twice(self) -> bool:
        """Whether several source rows may match one row: only if the sole action is an unconditional delete."""
        matched = self.of("matched")
        return len(matched) == 1 and matched[0].action == "delete" and matched[0].condition is None


@dataclass(frozen=True)
class Joined:
    """The result of one pass over the join of some files with the source.

    Attributes:
        marks: the rows that a clause updates or deletes.
        deletes: those of them that it deletes.
        matched: the rows that match a source row, whether or not a clause acts.
        updated, deleted: the number of rows, by matched clauses.
        updated_alone, deleted_alone: the same by clauses for rows without a match.
        handle: what the engine needs to write the new images, to know which source rows matched, and the former values
            of changed rows if `MergePlan.recorded`; opaque to other code.
        pairs: the number of rows behind the handle.
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
