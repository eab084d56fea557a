"""Parsed statements about views; extends `anabranch._sql.grammar.statement_values`. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from anabranch._sql.grammar.parts import Path, Query, Statement


@dataclass(frozen=True)
class CreateView(Statement):
    """CREATE [OR REPLACE] VIEW [IF NOT EXISTS] … AS a query that reads a Delta table; columns with their comments.

    ``text`` is the query as it was written. A view that ``evolves`` has the current columns of its query.
    """

    name: Path
    query: Query
    text: str
    columns: tuple[tuple[str, str | None], ...] | None = None
    replaces: bool = False
    if_not_exists: bool = False
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    evolves: bool = False


@dataclass(frozen=True)
class AlterView(Statement):
    """ALTER VIEW … AS a query that reads a Delta table; ``text`` is the query as it was written."""

    name: Path
    query: Query
    text: str


@dataclass(frozen=True)
class CreateTempView(Statement):
    """CREATE [OR REPLACE] [GLOBAL] TEMPORARY VIEW … AS a query that reads a Delta table."""

    name: str
    query: Query
    columns: tuple[str, ...] | None = None
    replaces: bool = False
    is_global: bool = False


@dataclass(frozen=True)
class CacheView(Statement):
    """CACHE [LAZY] TABLE … AS a query that reads a Delta table: a temporary view whose rows are cached in memory."""

    view: CreateTempView
    lazy: bool = False
    level: str | None = None
