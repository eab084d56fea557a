"""Resolves tables: a path, a URL, ``delta.`path` ``, a name, a persistent view.

Guarantee: a `Resolver` resolves a name once, so that one statement means one table by one name. Beyond that, only
names that are *not* Delta tables are remembered, for queries, and for a short time
(`anabranch._catalog.entries.is_foreign`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from anabranch._catalog import entries, named_tables
from anabranch._catalog.entry import Entry, StoredView
from anabranch._catalog.named_tables import NamedTable
from anabranch._catalog.table_names import OURS, Name, may_be_name, parts_of, path_in
from anabranch._spark.columns.spark_tables import not_delta_error
from anabranch.commands.opening import Location, open_log
from anabranch.errors import InvalidOption


@dataclass(frozen=True)
class ResolvedTable:
    """A Delta table.

    Attributes:
        location: its location.
        name: its whole name, if it was given by one.
        entry: its entry in the catalog.
    """

    location: Location
    name: Name | None = None
    entry: Entry | None = None


class Resolver:
    """The meaning of names in a session, for one statement, or one call of a method.

    Args:
        formats: the formats that are ours in this session.
    """

    def __init__(self, spark: SparkSession, formats: frozenset[str] = OURS) -> None:
        self._spark, self._formats = spark, formats
        self._known: dict[Name, Entry | StoredView | None] = {}

    def path(self, name: Name) -> str | None:
        """The path, if a name is one."""
        return path_in(name) if name[-2:][0].lower() in self._formats else None

    def look_up(self, name: Name) -> Entry | StoredView | None:
        """Our entry or view in the catalog under a name that is no path; a temporary view comes first."""
        if name not in self._known:
            self._known[name] = entries.look_up(self._spark, name)
        return self._known[name]

    def find(self, identifier: Any) -> ResolvedTable | None:
        """The table of a name, or of ``delta.`path` ``; None if it is Spark's own."""
        name = parts_of(identifier) if isinstance(identifier, str) else None
        if name is None:
            return None
        path = self.path(name)
        if path is not None:
            return ResolvedTable(path)
        entry = self.look_up(name)
        return (
            ResolvedTable(entry.location, entries.complete_name(self._spark, name), entry)
            if isinstance(entry, Entry)
            else None
        )

    def require_table(self, identifier: Any) -> ResolvedTable:
        """As `find`, for names that must be a Delta table's.

        Raises:
            InvalidOption: it is not a name. UnknownTable: the table does not exist. NotADeltaTable: the name belongs to
            something else.
        """
        name = parts_of(identifier) if isinstance(identifier, str) else None
        if name is None:
            raise InvalidOption(option="name", value=identifier, reason="it takes the name of a table.")
        table = self.find(identifier)
        if table is None:
            raise not_delta_error(self._spark, name)
        return table

    def anywhere(self, path_or_name: Location) -> ResolvedTable:
        """The table of a path or name, where a path comes first; it need not exist."""
        if not may_be_name(path_or_name) or open_log(path_or_name).exists():
            return ResolvedTable(path_or_name)
        return self.find(path_or_name) or ResolvedTable(path_or_name)

    def target(self, name: Name, location: Location | None = None, *, or_foreign: bool = False) -> NamedTable | str:
        """The location of the table of this name, or of a new one: the path if it is one, or the result of
        `named_tables.locate`.

        Raises:
            NameTaken, UnknownSchema, NoPlaceForNames, InvalidOption: no table can be created under it.
        """
        path = self.path(name)
        return named_tables.locate(self._spark, name, location, or_foreign=or_foreign) if path is None else path
