"""Parsed statements that change rows; extends `anabranch._sql.grammar.statement_values`. Pure data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from anabranch._protocol.expressions.lexer import quote_name
from anabranch._sql.grammar.parts import Expression, Path, Query, Statement, Table
from anabranch.errors import InvalidOption


@dataclass(frozen=True)
class DeleteRows(Statement):
    """DELETE FROM."""

    table: Table
    where: Expression | None = None


@dataclass(frozen=True)
class TruncateTable(Statement):
    """TRUNCATE TABLE: deletes every row."""

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
    """MERGE INTO; ``source`` selects every column of the source, whose alias is ``source_alias``."""

    table: Table
    source: Query
    source_alias: str | None
    on: Expression
    clauses: tuple[MergeClause, ...]
    evolves: bool = False


@dataclass(frozen=True)
class InsertRows(Statement):
    """INSERT INTO, OVERWRITE, REPLACE WHERE, REPLACE ON, REPLACE USING.

    Attributes:
        columns: the list of columns after the table's name.
        by_name: whether BY NAME is specified.
        partition: the PARTITION clause, column -> SQL text of a literal, or None if it is dynamic.
        where: the condition of REPLACE WHERE.
        on, using: the condition of REPLACE ON, and the columns of REPLACE USING.
        rows_alias: the alias of the query, in the condition of ON.
        values: the rows of VALUES, if the query is only that; a cell is None for DEFAULT, and then ``query`` is empty.
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
    on: Expression | None = None
    using: tuple[str, ...] = ()
    rows_alias: str | None = None

    @property
    def is_matched(self) -> bool:
        """Whether its own rows say which rows it replaces."""
        return self.on is not None or bool(self.using)

    @property
    def says_default(self) -> bool:
        """Whether a cell is DEFAULT, which a query for Spark cannot contain."""
        return any(cell is None for row in self.values for cell in row)


@dataclass(frozen=True)
class MultiInsert(Statement):
    """FROM … INSERT … INSERT …: INSERTs that run one after the other, each in a transaction; all are parsed first."""

    inserts: tuple[InsertRows, ...]


RowChange: TypeAlias = DeleteRows | TruncateTable | UpdateRows | MergeRows | InsertRows


def assignments_by_key(values: Iterable[tuple[Path, Expression | None]]) -> list[tuple[str, Expression | None]]:
    """Convert the paths of assignments to the keys that commands take.

    Raises:
        InvalidOption: a column is set twice.
    """
    assignments = [
        (".".join(part if part.isidentifier() else quote_name(part) for part in path), value) for path, value in values
    ]
    keys: set[str] = set()
    for key, _ in assignments:
        if key.lower() in keys:
            raise InvalidOption(
                option="set",
                value=key,
                reason=f"There is a conflict from these SET columns: [{key}], which is set twice.",
            )
        keys.add(key.lower())
    return assignments
