"""What statements are put together from: tables, and texts with the tables that they read.

Pure data. Expressions and queries stay texts, as they were written: Spark reads them, not this room. Guarantee: the
text of an `Expression` or `Query` differs from the statement's only in parameters that were bound to literals, and in
what qualified a column.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from anabranch._expressions.dialect import TokenizedText
from anabranch.errors import AnabranchError

Location = str | os.PathLike[str]
Path: TypeAlias = tuple[str, ...]
Arguments: TypeAlias = Mapping[str, Any] | tuple[Any, ...] | None
Span: TypeAlias = tuple[int, int]
"""First and last character in the statement, the latter not included."""
_BARE_ALIAS = re.compile(r"\s*(AS\s+)?(\w+|`[^`]+`)\s*", re.IGNORECASE)


class Statement:
    """What a statement asks; `anabranch._sql.registry` lists the kinds."""

    @property
    def required_columns(self) -> tuple[Path, ...]:
        """The columns, and members of structs, that are to be there already."""
        return ()


@dataclass(frozen=True)
class Table:
    """A Delta table as a statement names it.

    Attributes:
        location: where it lies.
        name: as it was written, one part after the other.
        version, timestamp: SQL texts of what stands behind AS OF.
        alias: the name under which the statement speaks of its columns.
        span: where it stands in the statement, for messages; tables are equal wherever they stand.
    """

    location: Location
    name: Path
    version: str | None = None
    timestamp: str | None = None
    alias: str | None = None
    span: Span = field(default=(0, 0), compare=False)

    @property
    def qualifier(self) -> Path:
        """By what the statement speaks of its columns."""
        return self.name if self.alias is None else (self.alias,)

    @property
    def number(self) -> int | str | None:
        """The version that is said, as a number where it is one."""
        said = None if self.version is None else self.version.strip("'\"")
        return int(said) if said is not None and said.isascii() and said.isdigit() else said

    @property
    def moment(self) -> str | None:
        """The moment that is said, where it is a plain text; None where it is an expression, or there is none."""
        said = self.timestamp or ""
        is_text = len(said) > 1 and said[0] == said[-1] == "'" and "'" not in said[1:-1] and "\\" not in said
        return said[1:-1] if is_text else None


@dataclass(frozen=True)
class Changes:
    """Which changes ``table_changes`` asks for: SQL texts of a version or moment, and of another, up to which."""

    start: str
    end: str | None = None


@dataclass(frozen=True)
class Reference:
    """A table that a text reads.

    Attributes:
        start, stop: where its name and AS OF stand in that text.
        takes_alias: whether an alias may be put behind it.
        where: the condition of the query block that reads it, where rows for which it is not TRUE cannot matter.
        sole: whether that block reads nothing else, so that a bare name is one of its columns.
        changes: which of its changes are read, in place of its rows.
        view: what is read in place of a table of that name.
        called: the alias that may be put there, where it is not the last part of the table's name.
        asks_metadata: whether the text around it speaks of ``_metadata``.
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
    """SQL text of a value or condition, with the tables that its subqueries read; ``tokenized`` where its tokens are
    known from the statement's.
    """

    text: str
    references: tuple[Reference, ...] = ()
    span: Span = field(default=(0, 0), compare=False)
    tokenized: TokenizedText | None = field(default=None, compare=False, repr=False)

    @property
    def source(self) -> TokenizedText:
        """The text, to be read on with the tokens that are known."""
        return self.tokenized or TokenizedText(self.text)


@dataclass(frozen=True)
class Query(Statement):
    """SQL text for Spark, with the tables that it reads and the values of its parameters.

    Attributes:
        stars: where it asks for ``_metadata``, the places right behind each ``*``, which does not stand for that.
        refused: what of it keeps that column from being had.
    """

    text: str
    references: tuple[Reference, ...] = ()
    arguments: Arguments = None
    span: Span = field(default=(0, 0), compare=False)
    stars: tuple[int, ...] = ()
    refused: str | None = None

    @property
    def whole(self) -> Table | None:
        """The table, where it asks for every column of all rows of one, and does no more."""
        if len(self.references) != 1 or self.text[: self.references[0].start] != "SELECT * FROM ":
            return None
        return self.references[0].table if self.ends_with_table else None

    @property
    def ends_with_table(self) -> bool:
        """Whether there is nothing behind the only table that it reads, which may have another name, and is whole."""
        [read] = self.references
        rest = self.text[read.stop :]
        has_end = not rest.strip() or (read.table.alias is not None and _BARE_ALIAS.fullmatch(rest))
        return bool(has_end) and not (read.view or read.changes or read.where or read.asks_metadata)


@dataclass(frozen=True)
class View:
    """A lasting view, as the catalog keeps it.

    Attributes:
        name: its whole name.
        query: what it shows.
        output: the columns that the query gave when the view was made.
        columns: what these are called in the view.
        broken: why it cannot be read; then its query reads nothing.
        of_spark: whether its entry is one of Spark's, or delta-spark's, which says all that ours says of a view.
    """

    name: Path
    query: Query
    output: Path
    columns: Path
    broken: AnabranchError | None = None
    of_spark: bool = False

    def reads(self, name: Path) -> bool:
        """Whether it is, or reads through others, the view of a whole name."""
        inside = (each.view for each in self.query.references)
        return _small(self.name) == _small(name) or any(each.reads(name) for each in inside if each is not None)


def _small(name: Path) -> Path:
    return tuple(part.lower() for part in name)
