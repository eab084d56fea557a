"""Which table a name in a statement means: the resolver of `anabranch._catalog.resolver`, with the queries of views.

Guarantee: a name that is no entry of ours goes to Spark, with the statement as it was written. What is remembered of
names is only which are *not* ours, for queries, and not for long: at worst a table that has just got its name is
unknown for a moment, and then the entry itself says so, since it raises.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from pyspark.sql import SparkSession

from anabranch._catalog import entries, named_tables
from anabranch._catalog.entry import Entry, StoredView
from anabranch._catalog.named_tables import Named
from anabranch._catalog.names import OURS, Name, name_to_sql
from anabranch._catalog.resolver import Resolver
from anabranch._expressions.dialect import TokenizedText, tokenize
from anabranch._sql.grammar.ddl_targets import Making
from anabranch._sql.grammar.parts import Query, View
from anabranch._sql.grammar.qualifiers import Edit, apply_edits
from anabranch._sql.grammar.reader import Reader
from anabranch._sql.grammar.tables_read import tables_read
from anabranch.commands.opening import Location
from anabranch.errors import AnabranchError, InvalidOption, RecursiveView, SqlSyntaxError, UnknownTable


def _is_file(name: Name) -> bool:
    """Whether a name is that of files, as in parquet.`/path`."""
    return len(name) == 2 and "/" in name[1]


class Seen(Protocol):
    """What a look at a statement's text tells (`anabranch._sql.prefilter.Glance`)."""

    @property
    def reads(self) -> bool: ...

    @property
    def takes_names(self) -> bool: ...

    @property
    def may_name(self) -> bool: ...

    @property
    def tables(self) -> frozenset[Name] | None: ...


class Names(Resolver):
    """The tables and lasting views that one statement names.

    Attributes:
        new: the names that it makes.
        frame_views: those of temporary views of DataFrames that it changes, and the tables whose rows they show.
    """

    def __init__(self, spark: SparkSession, formats: frozenset[str] = OURS) -> None:
        super().__init__(spark, formats)
        self.new: dict[Name, Named] = {}
        self.frame_views: dict[Name, str] = {}
        self._reads = self._takes_names = False
        self._views: dict[Name, View] = {}
        self._inside: list[Name] = []

    def may_know(self, seen: Seen) -> bool:
        """Whether a statement may name a table of ours: of a query, whether one of its names is."""
        self._reads, self._takes_names = seen.reads, seen.takes_names
        if not self._reads:  # it may change what names mean, as USE does
            entries.forget()
        return seen.may_name if seen.tables is None else any(map(self.location, seen.tables))

    def look_up(self, name: Name) -> Entry | StoredView | None:
        """See `Resolver.look_up`."""
        if name not in self._known and self._reads and entries.is_foreign(self._spark, name):
            return None
        is_new = name not in self._known
        found = super().look_up(name)
        if is_new and isinstance(found, StoredView) and found.of_spark:
            self._known[name] = None  # a view that reads itself reads nothing
            found = self._known[name] = self._of_spark(found)
            if found is None:
                entries.remember(self._spark, name)
        if self._takes_names:  # what it means now says nothing of what it will mean
            entries.forget()
        return found

    def _of_spark(self, stored: StoredView) -> StoredView | None:
        """A view of Spark's, in whose text each name is whole; None where it reads no table of ours."""
        try:
            tokens = tokenize(stored.text)
            found = [each for each in tables_read(tokens) if not each.asks_changes]
        except SqlSyntaxError:
            return None
        named = [
            (each, (*stored.within[: 3 - len(each.parts)], *each.parts)) for each in found if not _is_file(each.parts)
        ]
        ours = [self.path(each.parts) or self.location(whole) for each, whole in named]
        if not any(ours):
            return None
        edits = [
            Edit(tokens[each.first].start, tokens[each.after - 1].end + 1, name_to_sql(whole))
            for each, whole in named
            if self.path(each.parts) is None
        ]
        return replace(stored, text=apply_edits(stored.text, 0, len(stored.text), sorted(edits)))

    def location(self, name: Name) -> Location | View | None:
        """Where the table of this name lies, or the path that it is; or the lasting view."""
        path = self.path(name)
        found = self.look_up(name) if path is None else None
        if isinstance(found, StoredView):
            if name not in self._views:
                self._views[name] = self.view(found)
            return self._views[name]
        return path if found is None else found.location

    def catalog_location(self, name: Name) -> Location | View | None:
        """As `location`, of what the catalog keeps under this name, whichever temporary view hides that."""
        path = self.path(name)
        return self.location(entries.whole(self._spark, name)) if path is None else path

    def entry(self, name: Name) -> Entry | None:
        """The entry under which the statement has found a table."""
        found = self._known.get(name)
        return found if isinstance(found, Entry) else None

    def view(self, stored: StoredView) -> View:
        """A lasting view, its query understood; one that cannot be is told so once it is read."""
        shown, broken = Query(stored.text), self._unlike(stored)
        if stored.name in self._inside:
            broken = RecursiveView(name=name_to_sql(stored.name))
        self._inside.append(stored.name)
        try:
            if broken is None:
                shown = Reader(TokenizedText(stored.text), None, lambda name: self._within(stored.within, name)).query()
        except (UnknownTable, RecursiveView) as error:
            broken = error
        finally:
            self._inside.pop()
        inside = (each.view.broken for each in shown.references if each.view is not None)
        broken = broken or next((each for each in inside if each is not None), None)
        return View(stored.name, shown, stored.output, stored.columns, broken, stored.of_spark)

    def _unlike(self, stored: StoredView) -> AnabranchError | None:
        """Why this session would read the view's rows in another way than the one that made it."""
        now = entries.rules_of(self._spark, stored.rules)
        for setting, value in stored.rules.items():
            if now[setting] != value:
                reason = (
                    f"the view {name_to_sql(stored.name)} was made where it was {value}, and may have other rows here."
                )
                return InvalidOption(option=setting, value=now[setting], reason=reason)
        return None

    def _within(self, within: Name, name: Name) -> Location | View | None:
        """As `location`, for a name in the query of a view, where only those of tables of ours are not whole."""
        if (path := self.path(name)) is not None:
            return path
        if _is_file(name):
            return None
        found = self.location((*within[: 3 - len(name)], *name))
        if found is None and len(name) < 3:
            raise UnknownTable(name=name_to_sql((*within[: 3 - len(name)], *name)))
        return found

    def place(self, name: Name, making: Making) -> Location | None:
        """Where the table will lie, if it is to be one of ours.

        Raises:
            NameTaken, UnknownSchema, InvalidOption: it cannot be made under this name. The name of something else in
            the catalog is left to the statement, which may say IF NOT EXISTS.
        """
        path = self.path(name)
        if path is not None:
            return path
        if not self.makes(making):
            return None
        named = self.new[name] = named_tables.place(self._spark, name, making.location, or_foreign=True)
        # The clause is held against what it says itself.
        return named.location if making.location is None else making.location

    def makes(self, making: Making) -> bool:
        """Whether what a statement makes is one of our kinds."""
        if making.format is None and making.clones:
            return True
        if making.format is None and making.like is not None:
            return self.location(making.like) is not None
        default = self._spark.conf.get("spark.sql.sources.default", None) or ""
        return (making.format or default).lower() in self._formats
