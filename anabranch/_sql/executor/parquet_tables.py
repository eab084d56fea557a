"""Parquet tables in Spark's catalog, as sources of CONVERT and CLONE.

Reads the catalog's description of a table, and writes nothing. Guarantee: the steps that a message suggests lose no
file.
"""

from __future__ import annotations

from typing import Any, NoReturn

from pyspark.sql import SparkSession

from anabranch._catalog.table_names import Name, name_to_sql, parts_of
from anabranch._protocol.schema.types import Struct
from anabranch._spark.columns.spark_tables import SparkTable, files_in, try_describe_table
from anabranch._spark.columns.types import quote_identifier, schema_of
from anabranch._spark.sessions.sql_text import exact_sql
from anabranch.commands.opening import open_log
from anabranch.errors import CloneRefused, InvalidOption, NameNotConverted, UnknownTable, UnsupportedCloneSource

_FILES = frozenset({"parquet", "delta", "iceberg"})


def table_name(identifier: Any) -> Name | None:
    """Return the parts of an identifier that is the name of a table; None if it is a path of files.

    Example:
        >>> table_name("db.events"), table_name("parquet.`/data/events`")
        (('db', 'events'), None)
    """
    name = parts_of(identifier) if isinstance(identifier, str) else None
    is_path = name is not None and ("/" in name[-1] or (len(name) == 2 and name[0].lower() in _FILES))
    return None if is_path else name


def refuse_conversion(spark: SparkSession, name: Name) -> NoReturn:
    """Refuse to convert a table by its name, and suggest what to do instead.

    Raises:
        NameNotConverted: it is a Parquet table. InvalidOption: it is a table of another format.
        UnknownTable: it is no table at all.
    """
    table = try_describe_table(spark, name)
    if table is None or table.is_view:
        raise UnknownTable(name=name_to_sql(name))
    if table.provider != "parquet":
        reason = f"only Parquet tables can be converted, and this is one of {table.provider}."
        raise InvalidOption(option="CONVERT TO DELTA", value=name_to_sql(name), reason=reason)
    steps = _copy_steps(table) if table.is_managed else _convert_steps(spark, table)
    raise NameNotConverted(name=name_to_sql(table.name), instead=steps)


def _copy_steps(table: SparkTable) -> str:
    """Return the steps to convert a managed table, whose files are deleted with its name."""
    name = name_to_sql(table.name)
    return (
        f"DROP TABLE would remove the files of this managed table: copy it first, CREATE TABLE new_name USING delta AS "
        f"SELECT * FROM {name}, then DROP TABLE {name}, and ALTER TABLE new_name RENAME TO {name}."
    )


def _convert_steps(spark: SparkSession, table: SparkTable) -> str:
    """Return the steps to convert an external table, whose files stay when its name is dropped."""
    name, location = name_to_sql(table.name), str(table.location)
    types = exact_sql(spark, f"SELECT * FROM {name}").schema
    columns = ", ".join(
        f"{quote_identifier(partition_column)} {types[partition_column].dataType.simpleString()}"
        for partition_column in table.partition_columns
    )
    partitioned = f" PARTITIONED BY ({columns})" if columns else ""
    return (
        f"Run CONVERT TO DELTA parquet.{quote_identifier(location)}{partitioned}, then DROP TABLE {name}, which leaves"
        f" the files of an external table, and CREATE TABLE {name} USING delta LOCATION '{location}'."
    )


# -- cloning -----------------------------------------------------------------------------------------------------------


def files_of(spark: SparkSession, name: Name) -> tuple[str, Struct]:
    """Return the location of the Parquet files of a table or of ``parquet.`path` ``, and the partition columns.

    Raises:
        UnknownTable: there is no such table. UnsupportedCloneSource: it is no Parquet table.
        CloneRefused: the partitions in the catalog differ from those in the table's folder.
    """
    if (location := files_in(name)) is not None:
        return location, Struct()
    table = try_describe_table(spark, name)
    if table is None:
        raise UnknownTable(name=name_to_sql(name))
    if table.is_view or table.provider != "parquet":
        kind = "a view" if table.is_view else f"a table of the format {table.provider}"
        raise UnsupportedCloneSource(name=name_to_sql(table.name), kind=kind)
    columns = schema_of(exact_sql(spark, f"SELECT * FROM {name_to_sql(table.name)}").schema)
    partitions = Struct(tuple(columns.field(partition_column) for partition_column in table.partition_columns))
    _check_registered(spark, table, partitions)
    return str(table.location), partitions


def _check_registered(spark: SparkSession, table: SparkTable, partitions: Struct) -> None:
    """Raise CloneRefused unless the partitions in the catalog are the folders with files.

    The catalog may have partitions at other locations, and may lack some in the table's folder.
    """
    if not table.has_registered_partitions:
        return
    log, depth = open_log(str(table.location)), len(partitions.names)
    registered = {row[0] for row in exact_sql(spark, f"SHOW PARTITIONS {name_to_sql(table.name)}").collect()}
    folders = {"/".join(entry.name.split("/")[:depth]) for entry in log.store.list_all() if "=" in entry.name}
    if other := sorted(registered ^ folders):
        where = "in the catalog" if other[0] in registered else "in the folder"
        reason = f"the partition {other[0]} is {where} only. Run MSCK REPAIR TABLE first, or clone the folder."
        raise CloneRefused(source=log.table, table=name_to_sql(table.name), reason=reason)
