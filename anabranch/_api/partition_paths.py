"""The folder of a partition as the path of a table: ``load("/data/flights/day=2024-01-31")``.

Knows paths and columns. Guarantee: a folder with a log is a table, whatever its name; a folder counts as a partition
only in a table that is partitioned by the columns in its path.
"""

from __future__ import annotations

import os

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anabranch._protocol.partitions import parse_hive_path
from anabranch._protocol.schema.types import Struct
from anabranch._spark.columns.types import column, spark_type
from anabranch.commands.opening import Location, open_log
from anabranch.errors import InvalidOption


def split(path: Location) -> tuple[Location, str]:
    """The table of a path, and the folders of a partition in it, ``year=2024/month=1/``, or nothing if the path is a
    table.

    Example:
        >>> split("/data/flights")
        ('/data/flights', '')
    """
    text = os.fspath(path).rstrip("/")
    if "=" not in text.rpartition("/")[2] or open_log(path).exists():
        return path, ""
    table, folders = text, ""
    while "=" in (last := table.rpartition("/"))[2]:
        table, folders = last[0], f"{last[2]}/{folders}"
    return (table, folders) if table and open_log(table).exists() else (path, "")


def filter_partition(rows: DataFrame, folders: str, schema: Struct, partition_columns: tuple[str, ...]) -> DataFrame:
    """The rows of a partition.

    Raises:
        InvalidOption: the table is not partitioned by the columns in the folders' names.
    """
    values = parse_hive_path(folders, partition_columns)
    if len(values) != folders.count("/"):
        reason = f"the table is partitioned by {', '.join(partition_columns) or 'nothing'}."
        raise InvalidOption(option="path", value=folders.rstrip("/"), reason=reason)
    for name, value in values.items():
        typed = F.lit(value).cast(spark_type(schema.field(name).type))
        rows = rows.where(column(name).eqNullSafe(typed))
    return rows
