"""What a statement that changes rows asks, as values: as `anabranch._sql.grammar.values`, of rows. Pure data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from anabranch._protocol.expressions.words import quote_name
from anabranch._sql.grammar.parts import Expression, Path, Query, Statement, Table
from anabranch.errors import InvalidOption


@dataclass(frozen=True)
class DeleteRows(Statement):
    """DELETE FROM."""

    table: Table
    where: Expression | None = None


@dataclass(frozen=True)
class TruncateTable(Statement):
    """TRUNCATE TABLE: every row goes."""

    table: Table


@dataclass(frozen=True)
class UpdateRows(Statement):
    """UPDATE … SET; a value that is None is DEFAULT."""

    table: Table
    values: tuple[tuple[Path, Expression | None], ...]
    where: Expression | None = None


@dataclass(frozen=True)
class MergeClause:
    """WHEN …; ``values`` is None for ``*``, and a value None is DEFAULT."""

    when: Literal["matched", "not matched", "not matched by source"]
    action: Literal["update", "delete", "insert"]
    condition: Expression | None = None
    values: tuple[tuple[Path, Expression | None], ...] | None = ()


@dataclass(frozen=True)
class MergeRows(Statement):
    """MERGE INTO; ``source`` selects every column of the source, which the statement calls ``source_alias``."""

    table: Table
    source: Query
    source_alias: str | None
    on: Expression
    clauses: tuple[MergeClause, ...]
    evolves: bool = False


@dataclass(frozen=True)
class InsertRows(Statement):
    """INSERT INTO, OVERWRITE, REPLACE WHERE.

    Attributes:
        columns: the list behind the table's name.
        by_name: BY NAME.
        partition: the PARTITION clause, column -> SQL text of a literal, or None where it is dynamic.
        where: REPLACE WHERE.
        values: the rows of a VALUES that is all there is to the query, cell by cell; a cell is None where it is
            DEFAULT, and then ``query`` is empty.
    """

    table: Table
    query: Query
    overwrites: bool = False
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    partition: tuple[tuple[str, str | None], ...] = ()
    where: Expression | None = None
    evolves: bool = False
    values: tuple[tuple[Expression | None, ...], ...] = ()

    @property
    def says_default(self) -> bool:
        """Whether a cell is DEFAULT, which no query may say."""
        return any(cell is None for row in self.values for cell in row)


@dataclass(frozen=True)
class InsertEach(Statement):
    """FROM … INSERT … INSERT …: one INSERT behind the other, each a transaction; all are understood first."""

    inserts: tuple[InsertRows, ...]


RowChange: TypeAlias = DeleteRows | TruncateTable | UpdateRows | MergeRows | InsertRows


def assignments_by_key(values: Iterable[tuple[Path, Expression | None]]) -> list[tuple[str, Expression | None]]:
    """Assignments by the spelling that the doors of commands take.

    Raises:
        InvalidOption: one is set twice.
    """
    found = [
        (".".join(part if part.isidentifier() else quote_name(part) for part in path), value) for path, value in values
    ]
    seen: set[str] = set()
    for key, _ in found:
        if key.lower() in seen:
            raise InvalidOption(
                option="set",
                value=key,
                reason=f"There is a conflict from these SET columns: [{key}], which is set twice.",
            )
        seen.add(key.lower())
    return found
