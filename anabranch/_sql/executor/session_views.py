"""What is remembered of the temporary views over Delta tables: for each session, its views by their names.

Pure: reads no table and queries no session. `anabranch._sql.executor.temporary_views` alone changes it, while it holds
``SESSION_VIEWS.lock``. Guarantees: no view reads itself; nothing here holds a DataFrame or keeps a session alive.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyspark import StorageLevel

from anabranch._catalog.table_names import Name
from anabranch._expressions.dialect import Token, TokenizedText, word
from anabranch._spark.sessions.known_sessions import PerSession
from anabranch._sql.grammar.tables_read import tables_read
from anabranch._sql.grammar.view_values import CreateTempView
from anabranch.errors.process_state import hold

_GLOBAL = "global_temp"


@dataclass(frozen=True)
class ViewState:
    """What a view shows. A view is recreated when this changes, since Spark itself notices no change of a table.

    Attributes:
        views: the views here that its query names, with their fingerprints.
        versions: the tables in its query, with their versions.
        settings: the settings that its rows depend on; empty if they are cached, as cached rows stay what they are.
    """

    views: tuple[tuple[Name, int], ...]
    versions: tuple[Hashable, ...]
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class TableView:
    """A view of a query on Delta tables, as a statement of ours created it.

    Attributes:
        statement: that statement.
        tables: the full names of the Delta tables in its query, in order; None for one that is read by its path.
        reads: the other names in its query, some of which may be views here.
        output: the columns of its query.
        fingerprint: identifies the view among others of its name.
        level: the storage level of its cached rows; None if they are not cached.
        state: what it shows; None if it must be recreated anyway: it is new, it reads names that Spark may give
            another meaning, or Spark dropped its cached rows together with a view that was recreated.
    """

    statement: CreateTempView
    tables: tuple[Name | None, ...]
    reads: frozenset[Name]
    output: tuple[str, ...]
    fingerprint: int
    level: StorageLevel | None = None
    state: ViewState | None = None


@dataclass(frozen=True)
class ViewOverViews:
    """A view that Spark created over views here. Spark keeps its text, so only the views below it are recreated.

    Attributes:
        reads: the names in its query.
        fingerprint: always 0, since it has no plan of its own.
    """

    reads: frozenset[Name]
    fingerprint: int = 0


SessionView: TypeAlias = TableView | ViewOverViews
SessionViews: TypeAlias = dict[Name, SessionView]
SESSION_VIEWS: PerSession[SessionViews] = hold("temporary views", "a session's own, as many as it has made")(
    PerSession()
)
"""The views of each session, by their names in lower case."""


def dependencies_first(views: SessionViews, names: Iterable[Name]) -> list[Name]:
    """Return the views among these names and all that they read, directly or not, each after those that it reads."""
    ordered: dict[Name, None] = {}

    def visit(name: Name) -> None:
        if name in views and name not in ordered:
            for dependency in sorted(views[name].reads):
                visit(dependency)
            ordered[name] = None

    for name in sorted(set(names)):
        visit(name)
    return list(ordered)


def would_read_itself(views: SessionViews, name: Name, reads: frozenset[Name]) -> bool:
    """Whether a new view of this name reads itself, directly or not, once it is recreated from its query."""
    return name in reads or any(name in views[below].reads for below in dependencies_first(views, reads))


# -- names in statements -----------------------------------------------------------------------------------------------


def fold_case(name: Sequence[str]) -> Name:
    """Return a name as it is remembered: Spark ignores the case of a temporary view's name."""
    return tuple(part.lower() for part in name)


def view_name(statement: CreateTempView) -> Name:
    """Return the name of the view that a statement of ours creates."""
    return _remembered_name(statement.name, is_global=statement.is_global)


def find_new_view(tokens: Sequence[Token]) -> Name | None:
    """Return the name of the temporary view that a statement of Spark's creates; None if it creates none."""
    words = [word(token) for token in tokens[:6]]
    if words[:1] != ["CREATE"] or "VIEW" not in words or not {"TEMP", "TEMPORARY"} & set(words):
        return None
    i = words.index("VIEW") + 1
    return _remembered_name(tokens[i].text, is_global="GLOBAL" in words) if i < len(tokens) else None


def names_read(tokens: Sequence[Token]) -> frozenset[Name]:
    """Return the names of the tables and views that a statement reads."""
    return frozenset(fold_case(mention.parts) for mention in tables_read(tokens))


def tokens_if_named(views: SessionViews, source: TokenizedText) -> list[Token]:
    """Return the tokens of a statement if its text may name one of the views, without which it is not tokenized."""
    lowered = source.text.lower()
    is_named = any(name[-1].replace("`", "``") in lowered for name in list(views))
    return source.tokens if is_named and source.is_readable else []


def _remembered_name(name: str, *, is_global: bool) -> Name:
    return (_GLOBAL, name.lower()) if is_global else (name.lower(),)
