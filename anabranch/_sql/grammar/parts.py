"""The parts of statements: tables, and SQL texts with the tables that they read.

Pure data. Expressions and queries remain texts as they were written, and Spark parses them. Guarantee: the text of an
`Expression` or `Query` differs from the statement's only in parameters that became literals and in the qualifiers of
columns.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from anabranch._expressions.dialect import TokenizedText
from anabranch.errors import AnabranchError

Location = str | os.PathLike[str]
Path: TypeAlias = tuple[str, ...]
Arguments: TypeAlias = Mapping[str, Any] | tuple[Any, ...] | None
Span: TypeAlias = tuple[int, int]
"""The first character in the statement, and the first one after."""


class Statement:
    """A parsed statement; `anabranch._sql.registry` lists the kinds."""

    @property
    def required_columns(self) -> tuple[Path, ...]:
        """The columns and struct fields that the table must have."""
        return ()


@dataclass(frozen=True)
class Table:
    """A Delta table as a statement names it.

    Attributes:
        location: its path.
        name: the parts of its name as written.
        version, timestamp: SQL texts of the value of AS OF.
        alias: its alias in the statement.
        span: its position in the statement, for messages; equality ignores it.
    """

    location: Location
    name: Path
    version: str | None = None
    timestamp: str | None = None
    alias: str | None = None
    span: Span = field(default=(0, 0), compare=False)

    @property
    def qualifier(self) -> Path:
        """The name that qualifies its columns in the statement."""
        return self.name if self.alias is None else (self.alias,)

    @property
    def number(self) -> int | str | None:
        """The version, as a number if it is one."""
        version = None if self.version is None else self.version.strip("'\"")
        return int(version) if version is not None and version.isascii() and version.isdigit() else version

    @property
    def moment(self) -> str | None:
        """The timestamp, if it is a plain string literal; None if it is an expression, or missing."""
        text = self.timestamp or ""
        is_text = len(text) > 1 and text[0] == text[-1] == "'" and "'" not in text[1:-1] and "\\" not in text
        return text[1:-1] if is_text else None


@dataclass(frozen=True)
class Changes:
    """The range of ``table_changes``: SQL texts of its first and last version or timestamp."""

    start: str
    end: str | None = None


@dataclass(frozen=True)
class Reference:
    """A table that a text reads.

    Attributes:
        start, stop: the span of its name and AS OF in that text.
        takes_alias: whether an alias may be added.
        where: the condition of its query block, if only rows for which it is TRUE can matter.
        sole: whether that block reads nothing else, so that an unqualified name is one of its columns.
        changes: the range of changes to read instead of its rows.
        view: the view to read instead of a table.
        called: the alias to add, if it is not the last part of the table's name.
        asks_metadata: whether the text names ``_metadata``.
    """

    table: Table
    start: int
    stop: int
    takes_alias: bool = False
    where: str | None = None
    sole: bool = False
    changes: Changes | None = None
    view: View | None = None
    called: str | None = None
    asks_metadata: bool = False


@dataclass(frozen=True)
class Expression:
    """SQL text of a value or condition, with the tables that its subqueries read.

    Attributes:
        tokenized: the text with its tokens, if they are a part of the statement's.
    """

    text: str
    references: tuple[Reference, ...] = ()
    span: Span = field(default=(0, 0), compare=False)
    tokenized: TokenizedText | None = field(default=None, compare=False, repr=False)

    @property
    def source(self) -> TokenizedText:
        """The text, with its tokens if they are known."""
        return self.tokenized or TokenizedText(self.text)


@dataclass(frozen=True)
class Query(Statement):
    """SQL text for Spark, with the tables that it reads and the values of its parameters.

    Attributes:
        stars: the positions after each ``*``, which must exclude ``_metadata``, if the query names that column.
        refused: the reason why the query cannot read that column.
    """

    text: str
    references: tuple[Reference, ...] = ()
    arguments: Arguments = None
    span: Span = field(default=(0, 0), compare=False)
    stars: tuple[int, ...] = ()
    refused: str | None = None


@dataclass(frozen=True)
class View:
    """A persistent view in the catalog.

    Attributes:
        name: its full name.
        query: its query.
        output: the columns of the query when the view was created.
        columns: the names of these columns in the view.
        broken: the error to raise on reading it; then its query reads nothing.
        of_spark: whether Spark or delta-spark created its entry.
    """

    name: Path
    query: Query
    output: Path
    columns: Path
    broken: AnabranchError | None = None
    of_spark: bool = False

    def reads(self, name: Path) -> bool:
        """Whether it is the view of this full name, or reads that view, directly or through others."""
        views = (reference.view for reference in self.query.references)
        return _fold_case(self.name) == _fold_case(name) or any(view.reads(name) for view in views if view is not None)


def _fold_case(name: Path) -> Path:
    return tuple(part.lower() for part in name)
