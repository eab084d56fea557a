"""Resolves the names in a statement: the resolver of `anabranch._catalog.resolver`, extended by the queries of views.

Guarantee: a name that is no entry of ours goes to Spark, in the statement as it was written. Across statements only
names that are *not* ours are remembered, for queries and for a short time. At worst a table that was just created is
unknown for a moment, and then Spark reads its entry, which raises.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from pyspark.sql import SparkSession

from anabranch._catalog import entries, named_tables
from anabranch._catalog.entry import Entry, StoredView
from anabranch._catalog.named_tables import NamedTable
from anabranch._catalog.resolver import Resolver
from anabranch._catalog.table_names import OURS, Name, name_to_sql
from anabranch._expressions.dialect import TokenizedText, tokenize
from anabranch._sql.grammar.ddl_targets import CreateTarget
from anabranch._sql.grammar.parts import Query, View
from anabranch._sql.grammar.qualifiers import Edit, apply_edits
from anabranch._sql.grammar.reader import Reader
from anabranch._sql.grammar.tables_read import tables_read
from anabranch.commands.opening import Location
from anabranch.errors import AnabranchError, InvalidOption, RecursiveView, SqlSyntaxError, UnknownTable


def _is_file(name: Name) -> bool:
    """Whether a name is a path to files, as in parquet.`/path`."""
    return len(name) == 2 and "/" in name[1]


class StatementFacts(Protocol):
    """The facts that a statement's text shows without parsing (`anabranch._sql.prefilter.TextFacts`)."""

    @property
    def reads(self) -> bool: ...

    @property
    def takes_names(self) -> bool: ...

    @property
    def may_name(self) -> bool: ...

    @property
    def tables(self) -> frozenset[Name] | None: ...


class Names(Resolver):
    """The tables and persistent views that one statement names.

    Attributes:
        new: the names of the tables that it creates.
        frame_views: the temporary views of DataFrames that it changes, with the tables whose rows they show.
    """

    def __init__(self, spark: SparkSession, formats: frozenset[str] = OURS) -> None:
        super().__init__(spark, formats)
        self.new: dict[Name, NamedTable] = {}
        self.frame_views: dict[Name, str] = {}
        self._reads = self._takes_names = False
        self._views: dict[Name, View] = {}
        self._open_views: list[Name] = []

    def may_know(self, look: StatementFacts) -> bool:
        """Whether a statement may name a table of ours; for a query with known tables, whether one of them is ours."""
        self._reads, self._takes_names = look.reads, look.takes_names
        if not self._reads:  # it may change what names mean, as USE does
            entries.forget()
        return look.may_name if look.tables is None else any(map(self.location, look.tables))

    def look_up(self, name: Name) -> Entry | StoredView | None:
        """See `Resolver.look_up`."""
        if name not in self._known and self._reads and entries.is_foreign(self._spark, name):
            return None
        is_new = name not in self._known
        entry = super().look_up(name)
        if is_new and isinstance(entry, StoredView) and entry.of_spark:
            self._known[name] = None  # ends the recursion of a view that reads itself
            entry = self._known[name] = self._qualify_spark_view(entry)
            if entry is None:
                entries.remember(self._spark, name)
        if self._takes_names:  # the statement may change what the name means
            entries.forget()
        return entry

    def _qualify_spark_view(self, stored: StoredView) -> StoredView | None:
        """Write the names in a view of Spark's in full; None if it reads no table of ours."""
        try:
            tokens = tokenize(stored.text)
            mentions = [mention for mention in tables_read(tokens) if not mention.asks_changes]
        except SqlSyntaxError:
            return None
        resolved = [
            (mention, (*stored.within[: 3 - len(mention.parts)], *mention.parts))
            for mention in mentions
            if not _is_file(mention.parts)
        ]
        ours = [self.path(mention.parts) or self.location(full_name) for mention, full_name in resolved]
        if not any(ours):
            return None
        edits = [
            Edit(tokens[mention.first].start, tokens[mention.after - 1].end + 1, name_to_sql(full_name))
            for mention, full_name in resolved
            if self.path(mention.parts) is None
        ]
        return replace(stored, text=apply_edits(stored.text, 0, len(stored.text), sorted(edits)))

    def location(self, name: Name) -> Location | View | None:
        """Return the location of the table of this name, or the persistent view; None if it is neither."""
        path = self.path(name)
        entry = self.look_up(name) if path is None else None
        if isinstance(entry, StoredView):
            if name not in self._views:
                self._views[name] = self.view(entry)
            return self._views[name]
        return path if entry is None else entry.location

    def catalog_location(self, name: Name) -> Location | View | None:
        """As `location`, for the catalog's entry of this name, even if a temporary view hides it."""
        path = self.path(name)
        return self.location(entries.complete_name(self._spark, name)) if path is None else path

    def entry(self, name: Name) -> Entry | None:
        """Return the catalog entry of a table that the statement has looked up."""
        entry = self._known.get(name)
        return entry if isinstance(entry, Entry) else None

    def view(self, stored: StoredView) -> View:
        """Parse the query of a persistent view. If that fails, `View.broken` is the error to raise on reading it."""
        query, broken = Query(stored.text), self._settings_mismatch(stored)
        if stored.name in self._open_views:
            broken = RecursiveView(name=name_to_sql(stored.name))
        self._open_views.append(stored.name)
        try:
            if broken is None:
                query = Reader(
                    TokenizedText(stored.text), None, lambda name: self._locate_in_view(stored.within, name)
                ).query()
        except (UnknownTable, RecursiveView) as error:
            broken = error
        finally:
            self._open_views.pop()
        errors = (reference.view.broken for reference in query.references if reference.view is not None)
        broken = broken or next((problem for problem in errors if problem is not None), None)
        return View(stored.name, query, stored.output, stored.columns, broken, stored.of_spark)

    def _settings_mismatch(self, stored: StoredView) -> AnabranchError | None:
        """Return an error if a setting that affects the view's rows differs from the session that created the view."""
        now = entries.rules_of(self._spark, stored.rules)
        for setting, value in stored.rules.items():
            if now[setting] != value:
                view = name_to_sql(stored.name)
                reason = f"the view {view} was created where it was {value}, and may have other rows here."
                return InvalidOption(option=setting, value=now[setting], reason=reason)
        return None

    def _locate_in_view(self, within: Name, name: Name) -> Location | View | None:
        """As `location`, for a name in the query of a view, in which only names of our tables may be shortened."""
        if (path := self.path(name)) is not None:
            return path
        if _is_file(name):
            return None
        location = self.location((*within[: 3 - len(name)], *name))
        if location is None and len(name) < 3:
            raise UnknownTable(name=name_to_sql((*within[: 3 - len(name)], *name)))
        return location

    def place(self, name: Name, making: CreateTarget) -> Location | None:
        """Return the location of a table to create, if it will be one of ours.

        Raises:
            NameTaken, UnknownSchema, InvalidOption: it cannot be created under this name. A name that another object
                of the catalog has is left to the statement, which may have IF NOT EXISTS.
        """
        path = self.path(name)
        if path is not None:
            return path
        if not self.makes(making):
            return None
        planned = self.new[name] = named_tables.locate(self._spark, name, making.location, or_foreign=True)
        # CREATE TABLE compares its LOCATION clause with this.
        return planned.location if making.location is None else making.location

    def makes(self, making: CreateTarget) -> bool:
        """Whether a statement creates a table in one of our formats."""
        if making.format is None and making.clones:
            return True
        if making.format is None and making.like is not None:
            return self.location(making.like) is not None
        default = self._spark.conf.get("spark.sql.sources.default", None) or ""
        return (making.format or default).lower() in self._formats
