"""What the catalog says of a table, and of a lasting view: values, and nothing that asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from anabranch._catalog.names import Name


class Kind(Enum):
    """What an entry is for Spark."""

    TABLE = "table"
    """A table USING delta, as delta-spark makes and opens it."""
    VIEW = "view"
    """A view that raises, where no table can be made so: on Spark Connect, and in catalogs of other formats."""


@dataclass(frozen=True)
class Entry:
    """What the catalog says of a table.

    Attributes:
        name: its whole name.
        location: where it lies.
        managed: whether its files go when it is dropped.
        kind: what it is for Spark.
        is_sparks: whether Spark itself moves its files with its name, and removes them with it, as it does for the
            managed tables that delta-spark has made.
        columns: by what the columns of a view can be told from others (`anabranch._catalog.view_entries.fingerprint`).
        moves_to, came_from: the other name that it has for a moment, while it is renamed into another schema.
        owner: who made it, where the catalog says that.
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
    """What the catalog says of a lasting view.

    Attributes:
        name: its whole name.
        text: its query.
        within: the catalog and schema in which that names tables.
        output: the columns that the query gave when the view was made; none where the view shows what it gives.
        columns: what these are called in the view.
        rules: what else it takes to read the text as it was meant (`entries.rules_of`).
        of_spark: whether Spark, or delta-spark, made it, in whose text no name need be whole.
    """

    name: Name
    text: str
    within: Name
    output: Name
    columns: Name
    rules: Mapping[str, str]
    of_spark: bool = False
