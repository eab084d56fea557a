"""Which table is this? One answer for every door: a path, a URL, ``delta.`path` ``, a name, a lasting view.

Guarantee: what a `Resolver` has found of a name holds for as long as it is used, so that one statement means one table
by one name. Only what is *not* ours is remembered beyond that, for queries, and not for long
(`anabranch._catalog.entries.is_foreign`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from anabranch._catalog import entries, named_tables
from anabranch._catalog.entry import Entry, StoredView
from anabranch._catalog.named_tables import Named
from anabranch._catalog.names import OURS, Name, may_be_name, parts_of, path_in
from anabranch._spark.columns.spark_tables import unlike_delta
from anabranch.commands.opening import Location, open_log
from anabranch.errors import InvalidOption


@dataclass(frozen=True)
class Resolved:
    """A Delta table.

    Attributes:
        location: where it lies.
        name: its whole name, where it was said by one.
        entry: what the catalog says of that.
    """

    location: Location
    name: Name | None = None
    entry: Entry | None = None


class Resolver:
    """What names mean in a session. For one statement, or one call of a method.

    Args:
        formats: which formats are ours in this session.
    """

    def __init__(self, spark: SparkSession, formats: frozenset[str] = OURS) -> None:
        self._spark, self._formats = spark, formats
        self._known: dict[Name, Entry | StoredView | None] = {}

    def path(self, name: Name) -> str | None:
        """The path that a name is."""
        return path_in(name) if name[-2:][0].lower() in self._formats else None

    def look_up(self, name: Name) -> Entry | StoredView | None:
        """What the catalog has of ours under a name that is no path; a temporary view counts first."""
        if name not in self._known:
            self._known[name] = entries.look_up(self._spark, name)
        return self._known[name]

    def find(self, identifier: Any) -> Resolved | None:
        """The table of a name, or of ``delta.`path` ``, as it is written; None where it is Spark's own."""
        name = parts_of(identifier) if isinstance(identifier, str) else None
        if name is None:
            return None
        path = self.path(name)
        if path is not None:
            return Resolved(path)
        entry = self.look_up(name)
        return Resolved(entry.location, entries.whole(self._spark, name), entry) if isinstance(entry, Entry) else None

    def require_table(self, identifier: Any) -> Resolved:
        """As `find`, where it has to be one of ours.

        Raises:
            InvalidOption: it is no name. UnknownTable: there is none of this name. NotADeltaTable: it is the name of
            something else.
        """
        name = parts_of(identifier) if isinstance(identifier, str) else None
        if name is None:
            raise InvalidOption(option="name", value=identifier, reason="it takes the name of a table.")
        found = self.find(identifier)
        if found is None:
            raise unlike_delta(self._spark, name)
        return found

    def anywhere(self, path_or_name: Location) -> Resolved:
        """The table that is said by its path or its name, where a path counts first; it need not be there."""
        if not may_be_name(path_or_name) or open_log(path_or_name).exists():
            return Resolved(path_or_name)
        return self.find(path_or_name) or Resolved(path_or_name)

    def target(self, name: Name, location: Location | None = None, *, or_foreign: bool = False) -> Named | str:
        """Where a table of this name lies or would be made: the path that it is, or what `named_tables.place` says.

        Raises:
            NameTaken, UnknownSchema, NoPlaceForNames, InvalidOption: none can be made so.
        """
        path = self.path(name)
        return named_tables.place(self._spark, name, location, or_foreign=or_foreign) if path is None else path
