"""Values of the catalog: the entry of a table, and a persistent view. Reads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from anabranch._catalog.table_names import Name


class Kind(Enum):
    """The kind of an entry in Spark."""

    TABLE = "table"
    """A table USING delta, as delta-spark creates and opens it."""
    VIEW = "view"
    """A view that raises, where no such table can be created: on Spark Connect, and in catalogs of other formats."""


@dataclass(frozen=True)
class Entry:
    """The catalog's entry of a table.

    Attributes:
        name: its whole name.
        location: the table's location.
        managed: whether dropping it removes the files.
        kind: its kind in Spark.
        is_sparks: whether Spark itself moves its files with its name, and removes them with it, as for managed tables
            that delta-spark created.
        columns: the fingerprint of a view's columns (`anabranch._catalog.view_entries.fingerprint`).
        moves_to, came_from: the other name that it has for a moment, while it is renamed into another schema.
        owner: who created it, if the catalog has that.
    """

    name: Name
    location: str
    managed: bool = False
    kind: Kind = Kind.TABLE
    is_sparks: bool = False
    columns: str = ""
    moves_to: Name | None = None
    came_from: Name | None = None
    owner: str = field(default="", compare=False)


@dataclass(frozen=True)
class StoredView:
    """The catalog's entry of a persistent view.

    Attributes:
        name: its whole name.
        text: its query.
        within: the catalog and schema that complete the query's names.
        output: the query's columns when the view was created; none where the view follows the query.
        columns: the view's names for them.
        rules: the settings that the text was written for (`entries.rules_of`).
        of_spark: whether Spark, or delta-spark, created it; its text may contain incomplete names.
    """

    name: Name
    text: str
    within: Name
    output: Name
    columns: Name
    rules: Mapping[str, str]
    of_spark: bool = False
