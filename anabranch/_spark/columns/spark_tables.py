"""Spark's own tables: what its catalog says of one that is none of ours.

Knows how Spark describes a table. Knows nothing of logs, and reads none of the table's files. Guarantee: a view is told
from a table, so that nobody takes what a view shows for files that lie somewhere.
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
    """What Spark's catalog says of a table or view.

    Attributes:
        name: its whole name.
        kind: ``MANAGED``, ``EXTERNAL`` or ``VIEW``.
        provider: its format, in small letters.
        location: where its files lie, as Spark spells it; None for a view.
        partition_columns: by which it is partitioned.
        has_registered_partitions: whether the catalog says which partitions count, and not the folders.
        comment, properties, created: as they were said; ``created`` is None where nobody knows.
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
        """Whether it is a view, lasting or temporary."""
        return self.location is None

    @property
    def is_managed(self) -> bool:
        """Whether its files go with its name."""
        return self.kind == "MANAGED"


def try_describe_table(spark: SparkSession, name: Name) -> SparkTable | None:
    """What Spark has under a name, where a temporary view counts first; None where it has nothing.

    Example:
        >>> described(spark, ("db", "events")).provider
        'parquet'
    """
    try:
        (row,) = exact_sql(spark, f"DESCRIBE TABLE EXTENDED {'.'.join(map(quote_identifier, name))} AS JSON").collect()
    except (AnalysisException, ParseException):
        return None
    return _table(json.loads(row[0]))


def unlike_delta(spark: SparkSession, name: Name, **facts: Any) -> UnknownTable:
    """The error for a name that is to be a Delta table's, and is none's: what it is instead, if anything."""
    shown, found = ".".join(map(quote_identifier, name)), try_describe_table(spark, name)
    if found is None:
        return UnknownTable(name=shown, **facts)
    kind = "a view" if found.is_view else f"a table of the format {found.provider}"
    return NotADeltaTable(name=shown, kind=kind, **facts)


def files_in(name: Name) -> str | None:
    """The folder, where a name is one of Parquet files: ``parquet.`/data/events` ``."""
    is_path = len(name) == 2 and name[0].lower() == "parquet" and ("/" in name[1])
    return name[1] if is_path else None


def _table(said: Mapping[str, Any]) -> SparkTable:
    return SparkTable(
        (said["catalog_name"], *said["namespace"], said["table_name"]),
        said.get("type", ""),
        str(said.get("provider", "")).lower(),
        said.get("location"),
        tuple(said.get("partition_columns", ())),
        said.get("partition_provider") == "Catalog",
        said.get("comment", ""),
        said.get("table_properties", {}),
        _moment(said.get("created_time")),
    )


def _moment(text: str | None) -> dt.datetime | None:
    try:
        return None if text is None else dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
