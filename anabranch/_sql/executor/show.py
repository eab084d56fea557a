"""DESCRIBE and SHOW: facts about a table, as rows with the columns of Spark and Delta."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from anabranch._catalog import entries
from anabranch._catalog.entry import Entry
from anabranch._catalog.table_names import Name, display_name, name_to_sql
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.rules.identity import EXPLICIT, START, STEP
from anabranch._protocol.rules.table_rules import default_of, generation_of
from anabranch._protocol.schema.editing import field_at
from anabranch._protocol.schema.keys import KEY_PREFIX, is_key
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct
from anabranch._spark.columns.spark_tables import files_in, try_describe_table
from anabranch._spark.columns.types import column, quote_identifier, spark_type
from anabranch._spark.sessions.sql_text import exact_sql, expression
from anabranch._sql.executor.create_table import for_others
from anabranch._sql.executor.running import StatementContext
from anabranch._sql.grammar.parts import Reference, Table
from anabranch._sql.grammar.statement_values import (
    DescribeDetail,
    DescribeHistory,
    DescribeOther,
    DescribeTable,
    RefreshTable,
    ShowColumns,
    ShowCreateTable,
    ShowPartitions,
    ShowProperties,
)
from anabranch.commands.opening import open_log
from anabranch.commands.queries.describe import DETAIL, SHOWN_HISTORY, as_table, detail, detail_of_files, history
from anabranch.errors import InvalidOption, UnknownColumn, UnknownTable, ViewIsNoTable

_COLUMN_SCHEMA = pa.schema([("col_name", pa.string()), ("data_type", pa.string()), ("comment", pa.string())])
Line = tuple[str, str, str | None]


def describe_history(statement: DescribeHistory, run: StatementContext) -> DataFrame:
    """DESCRIBE HISTORY."""
    return run.engine.rows(as_table(history(statement.table.location, statement.limit), SHOWN_HISTORY))


def describe_detail(statement: DescribeDetail, run: StatementContext) -> DataFrame:
    """DESCRIBE DETAIL of a Delta table; of a path in a string literal, also of other files."""
    log = open_log(statement.table.location)
    if len(statement.table.name) == 1 and not log.exists() and log.store.list_all():
        return run.engine.rows(as_table([detail_of_files(statement.table.name[0])], DETAIL))
    entry, details = _entry(statement.table, run), detail(statement.table.location)
    row = details if entry is None else {**details, "name": display_name(entry.name)}
    return run.engine.rows(as_table([row], DETAIL))


def describe_other(statement: DescribeOther, run: StatementContext) -> DataFrame:
    """DESCRIBE DETAIL of a table in Spark's catalog, or of files in one of Spark's formats.

    Raises:
        UnknownTable: there is no such table, or no file. ViewIsNoTable: it is a view.
    """
    location = files_in(statement.name)
    if location is not None and open_log(location).store.list_all():
        row = detail_of_files(location, format=statement.name[0].lower())
        return run.engine.rows(as_table([row], DETAIL))
    table = try_describe_table(run.spark, statement.name)
    if table is None and entries.is_taken(run.spark, ("detail",)):  # DESCRIBE of a column of a table named detail
        return exact_sql(run.spark, f"DESCRIBE detail {name_to_sql(statement.name)}")
    if table is None:
        raise UnknownTable(name=name_to_sql(statement.name))
    if table.is_view:
        raise ViewIsNoTable(name=name_to_sql(table.name))
    row = detail_of_files(
        table.location,
        format=table.provider,
        name=display_name(table.name),
        description=table.comment,
        createdAt=table.created,
        partitionColumns=list(table.partition_columns),
        properties=dict(table.properties),
    )
    return run.engine.rows(as_table([row], DETAIL))


def _entry(table: Table, run: StatementContext) -> Entry | None:
    """Return the catalog entry of a table; None if the statement names it by its path."""
    return None if _is_path(table) else entries.find(run.spark, table.name)


def _is_path(table: Table) -> bool:
    return len(table.name) == 2 and table.name[1] == str(table.location)


def describe(statement: DescribeTable, run: StatementContext) -> DataFrame:
    """DESCRIBE [EXTENDED]: the columns, the partitioning, the clustering, and the details."""
    snapshot = run.snapshot(statement.table)
    if statement.column is not None:
        return _describe_column(statement, snapshot, run)
    lines: list[Line] = [_line(field) for field in snapshot.schema]
    if snapshot.partition_columns:
        lines += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        lines += [_line(snapshot.schema.field(name)) for name in snapshot.partition_columns]
    if snapshot.clustering_columns:
        lines += [("# Clustering Information", "", ""), ("# col_name", "data_type", "comment")]
        lines += [_line(field_at(snapshot.schema, path), ".".join(path)) for path in snapshot.clustering_columns]
    if statement.extended:
        entry = _entry(statement.table, run)
        name = ("spark_catalog", "delta", str(statement.table.location)) if entry is None else entry.name
        lines += _details(snapshot, name, entry)
    columns = {name: [line[i] for line in lines] for i, name in enumerate(("col_name", "data_type", "comment"))}
    return run.frame_from_columns(columns, _COLUMN_SCHEMA)


def _line(field: Field, name: str | None = None) -> Line:
    return name or field.name, spark_type(field.type).simpleString(), field.metadata.get("comment")


def _details(snapshot: Snapshot, name: Name, entry: Entry | None) -> list[Line]:
    """Return the rows of Spark's DESCRIBE EXTENDED of a delta-spark table, which shows a path as a managed table."""
    metadata, is_managed = snapshot.metadata, entry is not None and entry.managed
    details = {
        "Catalog": name[0],
        "Namespace": display_name(name[1:-1]),
        "Database": display_name(name[1:-1]),
        "Table": name[-1],
        "Type": "MANAGED" if is_managed or entry is None else "EXTERNAL",
        **({"Comment": metadata.description} if metadata.description else {}),
        "Location": snapshot.table,
        "Provider": "delta",
        **({"Owner": entry.owner} if entry is not None and entry.owner else {}),
        **({"Is_managed_location": "true"} if is_managed else {}),
        "Table Properties": f"[{','.join(f'{key}={value}' for key, value in _properties(snapshot).items())}]",
    }
    lines: list[Line] = [("", "", ""), ("# Detailed Table Information", "", "")]
    lines += ((key, value, "") for key, value in details.items())
    if keys := _table_keys(metadata.configuration):
        lines += [("", "", ""), ("# Constraints", "", ""), *((name, text, "") for name, text in keys)]
    return lines


def _table_keys(configuration: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the primary and foreign keys of a table: names and SQL texts."""
    return sorted((key.removeprefix(KEY_PREFIX), text) for key, text in configuration.items() if is_key(key))


def _describe_column(statement: DescribeTable, snapshot: Snapshot, run: StatementContext) -> DataFrame:
    """DESCRIBE t c: name, type and comment of one column."""
    assert statement.column is not None
    if len(statement.column) > 1:
        raise InvalidOption(
            option="column", value=".".join(statement.column), reason="only whole columns can be described."
        )
    field = snapshot.schema.find(statement.column[0])
    if field is None:
        columns = ", ".join(snapshot.schema.names)
        raise UnknownColumn(table=snapshot.table, column=statement.column[0], columns=columns)
    name, type_, comment = _line(field)
    schema = pa.schema([("info_name", pa.string()), ("info_value", pa.string())])
    return run.frame_from_columns(
        {"info_name": ["col_name", "data_type", "comment"], "info_value": [name, type_, comment or "NULL"]}, schema
    )


def show_columns(statement: ShowColumns, run: StatementContext) -> DataFrame:
    """SHOW COLUMNS."""
    names = run.snapshot(statement.table).schema.names
    return run.frame_from_columns({"col_name": names}, pa.schema([("col_name", pa.string())]))


def refresh(statement: RefreshTable, run: StatementContext) -> DataFrame:
    """REFRESH TABLE, a no-op: every statement reads the newest version. Returns no rows."""
    run.snapshot(statement.table)
    return run.nothing()


def show_partitions(statement: ShowPartitions, run: StatementContext) -> DataFrame:
    """SHOW PARTITIONS: the partition values of the table.

    Raises:
        InvalidOption: the table is not partitioned. UnknownColumn: it is not partitioned by a column of the clause.
    """
    table, names = statement.table, run.snapshot(statement.table).partition_columns
    if not names:
        reason = "SHOW PARTITIONS is not allowed on a table that is not partitioned."
        raise InvalidOption(option="SHOW PARTITIONS", value=".".join(map(quote_identifier, table.name)), reason=reason)
    partition_columns = {name.lower(): column(name) for name in names}
    rows = run.frame(Reference(table, *table.span)).select(*partition_columns.values()).distinct()
    for name, value in statement.values:
        if name.lower() not in partition_columns:
            raise UnknownColumn(table=table.location, column=name, columns=", ".join(names))
        rows = (
            rows
            if value is None
            else rows.where(partition_columns[name.lower()].eqNullSafe(expression(value, run.spark)))
        )
    return rows


def _properties(snapshot: Snapshot) -> dict[str, str]:
    """Return the table's properties, with those that show its protocol."""
    protocol = snapshot.protocol
    versions = {
        "delta.minReaderVersion": str(protocol.min_reader),
        "delta.minWriterVersion": str(protocol.min_writer),
    }
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    supported = {f"delta.feature.{name}": "supported" for name in features}
    return dict(sorted({**snapshot.metadata.configuration, **versions, **supported}.items()))


def show_properties(statement: ShowProperties, run: StatementContext) -> DataFrame:
    """SHOW TBLPROPERTIES: all properties, or one."""
    snapshot = run.snapshot(statement.table)
    shown_properties = _properties(snapshot)
    if statement.key is not None:
        absent = f"Table delta.{quote_identifier(snapshot.table)} does not have property: {statement.key}"
        shown_properties = {statement.key: shown_properties.get(statement.key, absent)}
    schema = pa.schema([("key", pa.string()), ("value", pa.string())])
    return run.frame_from_columns({"key": list(shown_properties), "value": list(shown_properties.values())}, schema)


# -- SHOW CREATE TABLE -------------------------------------------------------------------------------------------------


def show_create(statement: ShowCreateTable, run: StatementContext) -> DataFrame:
    """SHOW CREATE TABLE: a statement that creates such a table."""
    text = create_text(run.snapshot(statement.table), _table_sql(statement.table))
    return run.frame_from_columns({"createtab_stmt": [text]}, pa.schema([("createtab_stmt", pa.string())]))


def _table_sql(table: Table) -> str:
    """Return a table's name as SQL."""
    return f"delta.{quote_identifier(str(table.location))}" if _is_path(table) else ".".join(map(_name_sql, table.name))


def create_text(snapshot: Snapshot, name: str) -> str:
    """Return a CREATE TABLE statement for a table like this one."""
    metadata = snapshot.metadata
    definitions = [column_text(field) for field in snapshot.schema]
    definitions += [f"CONSTRAINT {_name_sql(key)} {text}" for key, text in _table_keys(metadata.configuration)]
    columns = " (\n" + ",\n".join(f"  {declaration}" for declaration in definitions) + ")" if definitions else ""
    parts = [f"CREATE TABLE {name}{columns}", "USING delta"]
    if snapshot.partition_columns:
        parts.append(f"PARTITIONED BY ({', '.join(map(_name_sql, snapshot.partition_columns))})")
    if snapshot.clustering_columns:
        listed = (".".join(map(_name_sql, path)) for path in snapshot.clustering_columns)
        parts.append(f"CLUSTER BY ({', '.join(listed)})")
    if metadata.description:
        parts.append(f"COMMENT {_quote_text(metadata.description)}")
    properties = {key: value for key, value in for_others(metadata.configuration).items() if not is_key(key)}
    if properties:
        pairs = (f"  {_quote_text(key)} = {_quote_text(value)}" for key, value in sorted(properties.items()))
        parts.append("TBLPROPERTIES (\n" + ",\n".join(pairs) + ")")
    return "\n".join(parts) + "\n"


def _quote_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def column_text(field: Field, text: Callable[[str], str] = _quote_text) -> str:
    """Return the SQL definition of a column; ``text`` quotes its comment."""
    facts: dict[str, Any] = dict(field.metadata)
    parts = [f"{_name_sql(field.name)} {facts.get(LENGTH, '').upper() or _type_sql(field.type, text)}"]
    if not field.nullable:
        parts.append("NOT NULL")
    if (generation := generation_of(field)) is not None:
        parts.append(f"GENERATED ALWAYS AS ({generation})")
    if STEP in facts:
        when = "BY DEFAULT" if facts[EXPLICIT] else "ALWAYS"
        parts.append(f"GENERATED {when} AS IDENTITY (START WITH {facts[START]} INCREMENT BY {facts[STEP]})")
    if (default := default_of(field)) is not None:
        parts.append(f"DEFAULT {default}")
    if "comment" in facts:
        parts.append(f"COMMENT {text(facts['comment'])}")
    return " ".join(parts)


def _type_sql(type_: DataType, text: Callable[[str], str]) -> str:
    match type_:
        case Struct():
            return f"STRUCT<{', '.join(_member_sql(member, text) for member in type_)}>"
        case Array():
            return f"ARRAY<{_type_sql(type_.element, text)}>"
        case Map():
            return f"MAP<{_type_sql(type_.key, text)}, {_type_sql(type_.value, text)}>"
    return spark_type(type_).simpleString().upper()


def _member_sql(field: Field, text: Callable[[str], str]) -> str:
    """Return the SQL definition of a struct field."""
    comment = field.metadata.get("comment")
    parts = [f"{_name_sql(field.name)}: {_type_sql(field.type, text)}", *([] if field.nullable else ["NOT NULL"])]
    return " ".join(parts if comment is None else [*parts, f"COMMENT {text(comment)}"])


def _name_sql(name: str) -> str:
    return name if name.isidentifier() else quote_identifier(name)
