"""Describes tables and views of Spark's catalog that are not Delta tables.

Knows how Spark describes a table. Knows nothing of logs, and reads none of the table's files. Guarantee: a view is
distinguished from a table, so that its rows are never mistaken for files at a location.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from anabranch._spark.columns.types import quote_identifier
from anabranch._spark.sessions.sql_text import exact_sql
from anabranch.errors import NotADeltaTable, UnknownTable

Name = tuple[str, ...]


@dataclass(frozen=True)
class SparkTable:
    """A table or view as Spark's catalog describes it.

    Attributes:
        name: its full name.
        kind: ``MANAGED``, ``EXTERNAL`` or ``VIEW``.
        provider: its format, in lower case.
        location: location of its files, as Spark spells it; None for a view.
        partition_columns: its partition columns.
        has_registered_partitions: whether its partitions are those in the catalog, not those found in folders.
        comment, properties, created: as declared; ``created`` is None if unknown.
    """

    name: Name
    kind: str
    provider: str = ""
    location: str | None = None
    partition_columns: tuple[str, ...] = ()
    has_registered_partitions: bool = False
    comment: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    created: dt.datetime | None = None

    @property
    def is_view(self) -> bool:
        """Whether it is a persistent or temporary view."""
        return self.location is None

    @property
    def is_managed(self) -> bool:
        """Whether dropping its name removes its files."""
        return self.kind == "MANAGED"


def try_describe_table(spark: SparkSession, name: Name) -> SparkTable | None:
    """Spark's table or view under a name, a temporary view first; None if there is none.

    Example:
        >>> try_describe_table(spark, ("db", "events")).provider
        'parquet'
    """
    try:
        (row,) = exact_sql(spark, f"DESCRIBE TABLE EXTENDED {'.'.join(map(quote_identifier, name))} AS JSON").collect()
    except (AnalysisException, ParseException):
        return None
    return _table(json.loads(row[0]))


def not_delta_error(spark: SparkSession, name: Name, **facts: Any) -> UnknownTable:
    """The error for a name that should be a Delta table's but is not; it states what the name is instead, if
    anything.
    """
    shown, table = ".".join(map(quote_identifier, name)), try_describe_table(spark, name)
    if table is None:
        return UnknownTable(name=shown, **facts)
    kind = "a view" if table.is_view else f"a table of the format {table.provider}"
    return NotADeltaTable(name=shown, kind=kind, **facts)


def files_in(name: Name) -> str | None:
    """The folder, if a name is one of Parquet files: ``parquet.`/data/events` ``."""
    is_path = len(name) == 2 and name[0].lower() == "parquet" and ("/" in name[1])
    return name[1] if is_path else None


def _table(description: Mapping[str, Any]) -> SparkTable:
    return SparkTable(
        (description["catalog_name"], *description["namespace"], description["table_name"]),
        description.get("type", ""),
        str(description.get("provider", "")).lower(),
        description.get("location"),
        tuple(description.get("partition_columns", ())),
        description.get("partition_provider") == "Catalog",
        description.get("comment", ""),
        description.get("table_properties", {}),
        _moment(description.get("created_time")),
    )


def _moment(text: str | None) -> dt.datetime | None:
    try:
        return None if text is None else dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
