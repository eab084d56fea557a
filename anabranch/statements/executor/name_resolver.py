"""Named: the resolver that knows the names in Spark's catalog, and what statements do to names.

Guarantee: a name that is no entry of ours goes to Spark, with the statement as it was written. What is remembered of
names is only which are *not* ours, for queries, and not for long: at worst a table that has just got its name is
unknown for a moment, and then the entry itself says so, since it raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anabranch.catalog import entries, named_tables
from anabranch.catalog.entries import Entry, Name, StoredView, ddl, spelled
from anabranch.catalog.named_tables import Named
from anabranch.commands.opening import Location, open_log
from anabranch.errors import AnabranchError, InvalidOption, NameTaken, RecursiveView, UnknownTable
from anabranch.log.snapshot import Snapshot
from anabranch.statements.executor.path_resolver import Paths
from anabranch.statements.executor.running import Running
from anabranch.statements.grammar import query_of_view
from anabranch.statements.grammar import values as v
from anabranch.statements.grammar.ddl_targets import Making
from anabranch.statements.grammar.parts import Query, View
from anabranch.statements.grammar.table_name_prefilter import tables_at_a_glance

_MATTERS = re.compile(
    r"\b(from|join|using|into|overwrite|table|update|describe|desc|show|optimize|vacuum|reorg|restore|generate|fsck|view)\b",
    re.IGNORECASE,
)
"""Words behind which a statement may name a table."""
_READS = re.compile(r"\s*\(*\s*(select|with|from|values|explain)\b", re.IGNORECASE)
_TAKES_NAMES = re.compile(r"\s*(drop|alter)\b", re.IGNORECASE)
_RESHAPE = (
    v.SetTableProperties,
    v.AddTableColumns,
    v.DropTableColumns,
    v.RenameTableColumn,
    v.ChangeTableColumn,
    v.ChangeTableColumns,
    v.ReplaceTableColumns,
    v.RestoreTable,
    v.InsertRows,
    v.MergeRows,
)
"""Statements after which a table may have other columns."""


class Names:
    """Tables by their names in a session's catalog, and by their paths. For one statement: what is found holds for it.

    Args:
        formats: of which kinds tables are ours, where a statement makes one.
    """

    def __init__(self, spark: SparkSession, formats: frozenset[str] = frozenset({"delta", "anabranch"})) -> None:
        self._spark, self._formats, self._reads, self._takes_names = spark, formats, False, False
        self._known: dict[Name, Entry | View | None] = {}
        self._inside: list[Name] = []
        self._new: dict[Name, Named] = {}

    def may_matter(self, text: str) -> bool:
        """Whether it has a word behind which a table is named; of a query, whether it could read one of ours."""
        self._reads = _READS.match(text) is not None
        if not self._reads:  # it may change what names mean, as USE does
            entries.forget()
            self._takes_names = _TAKES_NAMES.match(text) is not None
            return _MATTERS.search(text) is not None
        read = tables_at_a_glance(text)
        return _MATTERS.search(text) is not None if read is None else any(map(self.location, read))

    def location(self, name: Name) -> Location | View | None:
        """Where the table of this name lies, or the path that it is; or the lasting view."""
        path = self._path(name)
        if path is not None:
            return path
        entry = self._entry(name)
        return entry.location if isinstance(entry, Entry) else entry

    def kept(self, name: Name) -> Location | View | None:
        """As `location`, of what the catalog keeps under this name, whichever temporary view hides that."""
        path = self._path(name)
        return self.location(entries.whole(self._spark, name)) if path is None else path

    def _path(self, name: Name) -> Location | None:
        return Paths().location(name) if name[-2:][0].lower() in self._formats else None

    def _entry(self, name: Name) -> Entry | View | None:
        if name not in self._known:
            if self._reads and entries.is_foreign(self._spark, name):
                return None
            found = entries.look_up(self._spark, name)
            if self._takes_names:  # what it means now says nothing of what it will mean
                entries.forget()
            self._known[name] = self.view(found) if isinstance(found, StoredView) else found
        return self._known[name]

    def view(self, stored: StoredView) -> View:
        """A lasting view, its query understood; one that cannot be is told so once it is read."""
        shown, broken = Query(stored.text), self._unlike(stored)
        if stored.name in self._inside:
            broken = RecursiveView(name=spelled(stored.name))
        self._inside.append(stored.name)
        try:
            if broken is None:
                shown = query_of_view(stored.text, lambda name: self._within(stored.within, name))
        except (UnknownTable, RecursiveView) as error:
            broken = error
        finally:
            self._inside.pop()
        inside = (each.view.broken for each in shown.references if each.view is not None)
        broken = broken or next((each for each in inside if each is not None), None)
        return View(stored.name, shown, stored.output, stored.columns, broken)

    def _unlike(self, stored: StoredView) -> AnabranchError | None:
        """Why this session would read the view's rows in another way than the one that made it."""
        now = entries.rules_of(self._spark)
        for setting, value in stored.rules.items():
            if now[setting] != value:
                reason = f"the view {spelled(stored.name)} was made where it was {value}, and may have other rows here."
                return InvalidOption(option=setting, value=now[setting], reason=reason)
        return None

    def _within(self, within: Name, name: Name) -> Location | View | None:
        """As `location`, for a name in the query of a view, where only those of tables of ours are not whole."""
        if (path := self._path(name)) is not None:
            return path
        if len(name) == 2 and "/" in name[1]:  # files of Spark's, parquet.`/path`
            return None
        found = self.location((*within[: 3 - len(name)], *name))
        if found is None and len(name) < 3:
            raise UnknownTable(name=spelled((*within[: 3 - len(name)], *name)))
        return found

    def place(self, name: Name, making: Making) -> Location | None:
        """Where the table will lie, if it is to be one of ours.

        Raises:
            NameTaken, UnknownSchema, InvalidOption: it cannot be made under this name.
        """
        path = self._path(name)
        if path is not None:
            return path
        if not self._is_ours(making):
            return None
        named = self._new[name] = named_tables.place(self._spark, name, making.location)
        # The clause is held against what it says itself.
        return named.location if making.location is None else making.location

    def _is_ours(self, making: Making) -> bool:
        if making.format is None and making.clones:
            return True
        if making.format is None and making.like is not None:
            return self.location(making.like) is not None
        default = self._spark.conf.get("spark.sql.sources.default", None) or ""
        return (making.format or default).lower() in self._formats

    # -- running

    def run(self, statement: v.Statement, run: Running, plain: Callable[[], DataFrame]) -> DataFrame:
        """Run it, and do to names what it says.

        Raises:
            NameTaken, UnknownTable: the name is not free, or there is none to replace.
        """
        table = getattr(statement, "table", None)
        if table is None:
            return plain()
        if isinstance(statement, v.CreateTable | v.CloneTable) and table.name in self._new:
            return self._made(statement, self._new[table.name], run, plain)
        entry = self._known.get(table.name)
        if not isinstance(entry, Entry):
            return Paths().run(statement, run, plain)
        return self._of_entry(statement, entry, run, plain)

    def _of_entry(
        self, statement: v.Statement, entry: Entry, run: Running, plain: Callable[[], DataFrame]
    ) -> DataFrame:
        if isinstance(statement, v.DropTable):
            named_tables.drop(self._spark, entry)
            return run.nothing()
        if isinstance(statement, v.RenameTable):
            named_tables.rename(self._spark, entry, statement.name)
            return run.nothing()
        found = plain()
        if isinstance(statement, _RESHAPE):
            named_tables.refresh(self._spark, entry)
        return found

    def _made(
        self, statement: v.CreateTable | v.CloneTable, named: Named, run: Running, plain: Callable[[], DataFrame]
    ) -> DataFrame:
        if named.entry is not None and not statement.replaces:
            if statement.if_not_exists:
                return run.nothing()
            raise NameTaken(name=spelled(named.name), table=named.location)
        if named.entry is None and isinstance(statement, v.CreateTable) and not statement.creates:
            raise UnknownTable(name=spelled(named.name))
        there = None if named.managed or statement.replaces else open_log(named.location).newest()
        registers = there is not None and isinstance(statement, v.CreateTable)
        with named_tables.naming(self._spark, named):
            if registers and statement.query is None and statement.like is None:  # type: ignore[union-attr]
                _check_same(statement, there, named.location)
                found = run.nothing()
            else:
                found = plain()
        return found


def _check_same(statement: Any, there: Snapshot | None, location: str) -> None:
    """Hold that a table which is there already is as a CREATE TABLE … LOCATION says.

    Raises:
        InvalidOption: it is not.
    """
    assert there is not None
    said = [(field.name, ddl(field.type)) for field in statement.columns]
    known = [(field.name, ddl(field.type)) for field in there.schema]
    other: dict[str, tuple[Any, Any]] = {}
    if said and said != known:
        other["columns"] = _columns(said), _columns(known)
    if (said or statement.partitions) and (statement.partitions or ()) != there.partition_columns:
        other["PARTITIONED BY"] = statement.partitions or (), there.partition_columns
    if statement.clusters is not None and tuple(statement.clusters) != tuple(there.clustering_columns):
        other["CLUSTER BY"] = statement.clusters, there.clustering_columns
    configuration = there.metadata.configuration
    for key, value in statement.properties.items():
        if configuration.get(key) != value:
            other[key] = value, configuration.get(key)
    for option, (value, has) in other.items():
        raise InvalidOption(option=option, value=value, reason=f"the table that is at {location} already has {has}.")


def _columns(pairs: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in pairs)
