"""Parquet tables: what Spark's catalog keeps under a name where a command would take Parquet files for a Delta table.

Knows what Spark says of its tables, and writes nothing. Guarantee: what is said to a user to do instead loses no file.
"""

from __future__ import annotations

from typing import Any, NoReturn

from pyspark.sql import SparkSession

from anabranch.catalog.names import Name, parts_of, spelled
from anabranch.errors import InvalidOption, NameNotConverted, UnknownTable
from anabranch.spark.spark_tables import SparkTable, described
from anabranch.spark.sql_text import exact_sql
from anabranch.spark.types import quoted

_FILES = frozenset({"parquet", "delta", "iceberg"})


def table_name(identifier: Any) -> Name | None:
    """The name of a table, where an identifier is one, and no path of files.

    Example:
        >>> table_name("db.events"), table_name("parquet.`/data/events`")
        (('db', 'events'), None)
    """
    name = parts_of(identifier) if isinstance(identifier, str) else None
    is_path = name is not None and ("/" in name[-1] or (len(name) == 2 and name[0].lower() in _FILES))
    return None if is_path else name


def refuse_conversion(spark: SparkSession, name: Name) -> NoReturn:
    """Say of a name that is no Delta table's why it is not converted, and what to do.

    Raises:
        NameNotConverted: it is a Parquet table. InvalidOption: it is one of another format.
        UnknownTable: it is no table at all.
    """
    table = described(spark, name)
    if table is None or table.is_view:
        raise UnknownTable(name=spelled(name))
    if table.provider != "parquet":
        reason = f"only Parquet tables can be converted, and this is one of {table.provider}."
        raise InvalidOption(option="CONVERT TO DELTA", value=spelled(name), reason=reason)
    steps = _copied(table) if table.is_managed else _converted(spark, table)
    raise NameNotConverted(name=spelled(table.name), instead=steps)


def _copied(table: SparkTable) -> str:
    """What to do with a managed table, whose files go with its name."""
    name = spelled(table.name)
    return (
        f"DROP TABLE would remove the files of this managed table: copy it first, CREATE TABLE new_name USING delta AS "
        f"SELECT * FROM {name}, then DROP TABLE {name}, and ALTER TABLE new_name RENAME TO {name}."
    )


def _converted(spark: SparkSession, table: SparkTable) -> str:
    """What to do with an external table, whose files stay where they are."""
    name, location = spelled(table.name), str(table.location)
    types = exact_sql(spark, f"SELECT * FROM {name}").schema
    columns = ", ".join(f"{quoted(each)} {types[each].dataType.simpleString()}" for each in table.partition_columns)
    partitioned = f" PARTITIONED BY ({columns})" if columns else ""
    return (
        f"Run CONVERT TO DELTA parquet.{quoted(location)}{partitioned}, then DROP TABLE {name}, which leaves the files "
        f"of an external table, and CREATE TABLE {name} USING delta LOCATION '{location}'."
    )
