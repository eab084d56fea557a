"""Creating tables: runs CREATE, REPLACE, LIKE and CONVERT as commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame

from anabranch._protocol.options import WRITE
from anabranch._protocol.properties import is_owned
from anabranch._protocol.schema.column_mapping import IN_COLUMNS, without_keys
from anabranch._protocol.schema.types import Struct
from anabranch._spark.columns.spark_tables import try_describe_table
from anabranch._spark.columns.types import declared_schema
from anabranch._sql.conditions import check_rules
from anabranch._sql.executor.parquet_tables import refuse_conversion
from anabranch._sql.executor.running import StatementContext
from anabranch._sql.grammar import statement_values as v
from anabranch._sql.grammar.parts import Query, Table
from anabranch._sql.grammar.statement_values import CreateTable
from anabranch.commands.ddl.create import Create, Replace
from anabranch.commands.dml.new_table import NewTable, check_columns, match_spelling
from anabranch.commands.dml.write import Write
from anabranch.commands.maintenance.convert import Convert, parquet_path
from anabranch.commands.opening import check_empty, open_log
from anabranch.commands.options import Options
from anabranch.errors import NotBuilt


def create(statement: CreateTable, run: StatementContext) -> DataFrame:
    """CREATE TABLE and REPLACE TABLE, with columns, AS a query, or LIKE another table; returns no rows."""
    statement = _with_options(statement)
    if statement.query is not None:
        return _create_as_query(statement, statement.query, run)
    new = new_table(statement) if statement.like is None else _new_table_like(statement, run)
    location = statement.table.location
    schema = new.schema
    assert isinstance(schema, Struct)
    check_columns(schema, match_spelling(schema, new.partition_columns or ()), bare=new.bare)
    check_rules(schema, new.properties, location, run.engine)
    create_command(statement, new).run()
    return run.nothing()


def for_others(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a table that another table may copy."""
    return {key: value for key, value in properties.items() if not is_owned(key)}


def _with_options(statement: CreateTable) -> CreateTable:
    """Move the table properties among its OPTIONS to the properties; check the others as options of a write.

    Raises:
        InvalidOption, NotBuilt: an option is not supported.
    """
    if not statement.options:
        return statement
    options = Options()
    for name, value in statement.options.items():
        options.put(name, value)
    table_properties = options.properties()
    for name in options.file_settings():
        raise NotBuilt(what=f"the option {name} of a table", instead="Set it in the session: spark.hadoop.fs.…")
    options.finish(WRITE)
    return replace(statement, properties={**table_properties, **statement.properties}, options={})


def new_table(statement: CreateTable) -> NewTable:
    """Return the table that the statement defines."""
    return NewTable(
        Struct(statement.columns),
        statement.partitions or (),
        statement.properties,
        None,
        statement.comment,
        statement.clusters or (),
        bare=not statement.columns and not statement.replaces,
    )


def create_command(statement: CreateTable, new: NewTable) -> Create | Replace:
    """Return the command, the same as of ``DeltaTable``'s builder."""
    if statement.replaces:
        return Replace(statement.table.location, new, or_create=statement.creates)
    return Create(statement.table.location, new, if_not_exists=statement.if_not_exists)


def _create_as_query(statement: CreateTable, query: Query, run: StatementContext) -> DataFrame:
    rows = run.query(query)
    write = Write(
        statement.table.location,
        rows,
        "overwrite" if statement.replaces else "ignore" if statement.if_not_exists else "error",
        statement.partitions,
        dict(statement.properties),
        cluster_by=statement.clusters,
        description=statement.comment,
        replaces=statement.replaces,
        creates=statement.creates,
        as_select=True,
        reads_anew=True,
    )
    log = open_log(statement.table.location)
    if not statement.replaces and not log.exists():
        check_empty(log)
    if statement.replaces and not statement.creates:
        log.snapshot()
    write.run(run.engine)
    return run.nothing()


def _new_table_like(statement: CreateTable, run: StatementContext) -> NewTable:
    """Return a table with another table's columns; of a Delta table also with its layout and properties."""
    if isinstance(statement.like, Query):
        schema = declared_schema(run.query(statement.like).schema)
        origin = try_describe_table(run.spark, statement.like_name)
        partitions = () if origin is None else origin.partition_columns
        return replace(new_table(statement), schema=schema, partition_columns=partitions, bare=False)
    assert isinstance(statement.like, Table)
    snapshot = run.snapshot(statement.like)
    return NewTable(
        without_keys(snapshot.schema, IN_COLUMNS),
        snapshot.partition_columns,
        {**for_others(snapshot.metadata.configuration), **statement.properties},
        None,
        statement.comment if statement.comment is not None else snapshot.metadata.description,
        snapshot.clustering_columns,
    )


def convert(statement: v.ConvertTable, run: StatementContext) -> DataFrame:
    """CONVERT TO DELTA; returns no rows."""
    form, path = parquet_path(statement.identifier)
    if form == "parquet":
        convert_command(statement, path).run()
    return run.nothing()


def convert_name(statement: v.ConvertName, run: StatementContext) -> DataFrame:
    """CONVERT TO DELTA of a name. Always raises NameNotConverted, InvalidOption or UnknownTable."""
    refuse_conversion(run.spark, statement.name)


def convert_command(statement: v.ConvertTable, path: str) -> Convert:
    """Return the command, the same as of ``DeltaTable.convertToDelta``."""
    return Convert(path, partition_columns(statement), statistics=statement.collects_statistics)


def partition_columns(statement: v.ConvertTable) -> Struct:
    """Return the partition columns, whose values are in the names of folders."""
    return Struct(tuple(replace(field, nullable=True) for field in statement.partitions or ()))
