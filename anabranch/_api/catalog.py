"""``spark.catalog`` of an installed session: Delta tables by name, along with everything else that Spark has.

`anabranch._api.install` puts this in front of Spark's own catalog, which knows only that an entry USING delta exists.
Other names, and all other methods, go to Spark untouched.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import Catalog, Column, Table
from pyspark.sql.types import StructType

from anabranch._api.reader_and_writer import is_default, table_of
from anabranch._catalog import entries
from anabranch._catalog.entries import CatalogItem
from anabranch._catalog.entry import Entry
from anabranch._catalog.entry_properties import literal
from anabranch._catalog.resolver import ResolvedTable
from anabranch._catalog.table_names import name_to_sql, parts_of
from anabranch._protocol.schema.types import Field
from anabranch._spark.columns.types import declared_schema, spark_type
from anabranch._spark.sessions.cached_rows import is_cached
from anabranch._spark.sessions.file_settings import uses_session_settings
from anabranch._spark.sessions.known_sessions import formats_of
from anabranch._spark.sessions.sql_text import verbatim
from anabranch._sql.executor.name_resolver import Names
from anabranch._sql.executor.show import column_text
from anabranch._sql.sql import sql
from anabranch.commands.opening import open_log
from anabranch.errors import AnabranchError, InvalidArgument, InvalidOption


def catalog_door(spark: SparkSession, plain: Any) -> CatalogDoor:
    """Spark's catalog with support for Delta tables."""
    return (ClassicCatalogDoor if isinstance(plain, Catalog) else CatalogDoor)(spark, plain)


@uses_session_settings
class CatalogDoor:
    """Answers for Delta tables; delegates everything else to the session's own catalog."""

    def __init__(self, spark: SparkSession, plain: Any) -> None:
        self._spark, self._plain = spark, plain

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def tableExists(self, tableName: str, dbName: str | None = None) -> bool:
        """Whether a table or view of this name exists."""
        table = self._table(tableName, dbName)
        if table is None:
            return bool(self._plain.tableExists(tableName, dbName))
        return table.entry is not None or open_log(table.location).exists()

    def getTable(self, tableName: str) -> Table:
        """The table or view of this name. Raises AnalysisException: it does not exist."""
        table = self._table(tableName)
        if table is None or table.entry is None:
            plain: Table = self._plain.getTable(tableName)
            return plain
        return _catalog_table(table.entry)

    def listTables(self, dbName: str | None = None, pattern: str | None = None) -> list[Table]:
        """The tables and views of a schema, and the temporary views. Raises AnalysisException: no such schema."""
        within = () if dbName is None else parts_of(dbName)
        schema = None if within is None else entries.complete_name(self._spark, (*within, "any"))[:-1]
        is_sessions = schema is not None and schema[0].lower() == entries.SESSIONS
        seen = entries.list_tables(self._spark, schema, pattern) if schema is not None and is_sessions else []
        if not any(entry.is_delta or entry.may_be_entry for entry in seen):
            plain: list[Table] = self._plain.listTables(dbName, pattern)
            return plain
        return [self._list_item(entry) for entry in seen]

    def _list_item(self, seen: CatalogItem) -> Table:
        name = seen.name[-1:] if seen.is_temporary else seen.name
        try:
            entry = entries.find(self._spark, name)
            table: Table = self._plain.getTable(name_to_sql(name)) if entry is None else _catalog_table(entry)
        except Exception:  # as Spark does: a list also shows what it cannot open
            table = Table(seen.name[-1], seen.name[0], list(seen.name[1:-1]), None, None, False)  # type: ignore[arg-type]
        return table

    def listColumns(self, tableName: str, dbName: str | None = None) -> list[Column]:
        """The columns of a table or view. Raises AnalysisException: it does not exist."""
        table = self._table(tableName, dbName)
        if table is None:
            plain: list[Column] = self._plain.listColumns(tableName, dbName)
            return plain
        snapshot = open_log(table.location).snapshot()
        clustered = {path[0] for path in snapshot.clustering_columns}
        return [_column(field, snapshot.partition_columns, clustered) for field in snapshot.schema]

    def createTable(
        self,
        tableName: str,
        path: str | None = None,
        source: str | None = None,
        schema: StructType | None = None,
        description: str | None = None,
        **options: str,
    ) -> DataFrame:
        """Creates a table, or registers the existing one at ``path``; returns its rows.

        Raises:
            NameTaken: the name is taken. InvalidOption: an option is given; Delta tables take none.
            InvalidArgument: ``schema`` is not a StructType.
        """
        is_ours = is_default(self._spark) if source is None else source.lower() in formats_of(self._spark)
        if not is_ours:
            rows: DataFrame = self._plain.createTable(tableName, path, source, schema, description, **options)
            return rows
        if schema is not None and not isinstance(schema, StructType):
            raise InvalidArgument(option="schema", value=schema, reason="it takes a StructType.")
        location = options.pop("path", None) if path is None else path
        for option, value in options.items():
            raise InvalidOption(option=option, value=value, reason="createTable of a Delta table takes no options.")
        quoted = partial(literal, spark=self._spark)
        columns = [] if schema is None else [column_text(field, quoted) for field in declared_schema(schema)]
        parts = [f"CREATE TABLE {tableName}", f"({', '.join(columns)})" if columns else "", "USING delta"]
        parts += [f"COMMENT {quoted(description)}"] if description else []
        parts += [f"LOCATION {quoted(location)}"] if location else []
        self._run(" ".join(parts))
        return self._spark.table(tableName)

    def createExternalTable(
        self,
        tableName: str,
        path: str | None = None,
        source: str | None = None,
        schema: StructType | None = None,
        **options: str,
    ) -> DataFrame:
        """As `createTable`, which PySpark recommends instead."""
        return self.createTable(tableName, path, source, schema, **options)

    def refreshTable(self, tableName: str) -> None:
        """Does nothing for a Delta table, since nothing about it is cached."""
        if not self._run_if_ours("REFRESH TABLE", tableName):
            self._plain.refreshTable(tableName)

    def dropTable(self, tableName: str, ifExists: bool = False, purge: bool = False) -> None:
        """Drops a table, and the files of a managed one. Raises AnalysisException: it does not exist."""
        if not self._run_if_ours("DROP TABLE", tableName):
            self._plain.dropTable(tableName, ifExists, purge)

    def truncateTable(self, tableName: str) -> None:
        """Deletes all rows of a table."""
        if not self._run_if_ours("TRUNCATE TABLE", tableName):
            self._plain.truncateTable(tableName)

    def cacheTable(self, tableName: str, storageLevel: StorageLevel | None = None) -> None:
        """Caches a table's rows once they are read; a newer version replaces them."""
        table = self._table(tableName)
        if table is None:
            self._plain.cacheTable(tableName, storageLevel)
            return
        level = "" if storageLevel is None else f" OPTIONS ('storageLevel' = '{_name_of(storageLevel)}')"
        self._run(f"CACHE LAZY TABLE {tableName}{level}")

    def uncacheTable(self, tableName: str) -> None:
        """Stops caching a table's rows."""
        if not self._run_if_ours("UNCACHE TABLE", tableName):
            self._plain.uncacheTable(tableName)

    def isCached(self, tableName: str) -> bool:
        """Whether a table's rows are cached."""
        table = self._table(tableName)
        if table is None:
            return bool(self._plain.isCached(tableName))
        return is_cached(self._spark, open_log(table.location).table)

    def getTableProperties(self, tableName: str) -> dict[str, str]:
        """The properties of a table."""
        if self._table(tableName) is None:
            plain: dict[str, str] = self._plain.getTableProperties(tableName)
            return plain
        return {row["key"]: row["value"] for row in self._run(f"SHOW TBLPROPERTIES {tableName}").collect()}

    def getCreateTableString(self, tableName: str, asSerde: bool = False) -> str:
        """The CREATE TABLE statement of a table."""
        if self._table(tableName) is None:
            return str(self._plain.getCreateTableString(tableName, asSerde))
        return str(self._run(f"SHOW CREATE TABLE {tableName}").collect()[0][0])

    def _table(self, name: str, schema: str | None = None) -> ResolvedTable | None:
        return table_of(self._spark, name if schema is None else f"{schema}.{name}")

    def _run_if_ours(self, statement: str, name: str) -> bool:
        """Runs a statement on a Delta table; False if the name is not one's."""
        if self._table(name) is None:
            return False
        self._run(f"{statement} {name}")
        return True

    def _run(self, statement: str) -> DataFrame:
        """Runs a statement without variable substitution."""
        return sql(self._spark, verbatim(statement, self._spark), names=Names(self._spark, formats_of(self._spark)))


class ClassicCatalogDoor(CatalogDoor, Catalog):
    """A `CatalogDoor` that is also a PySpark `Catalog`, whose methods use the session's own."""


def _name_of(level: StorageLevel) -> str:
    """The name of a storage level. Raises InvalidOption: it has none."""
    for name, constant in vars(StorageLevel).items():
        if isinstance(constant, StorageLevel) and constant == level:
            return name
    raise InvalidOption(option="storageLevel", value=level, reason="it takes one that StorageLevel names.")


def _catalog_table(entry: Entry) -> Table:
    try:
        description = open_log(entry.location).snapshot().metadata.description
    except AnabranchError:  # the entry exists even if the table is broken
        description = None
    kind = "MANAGED" if entry.managed else "EXTERNAL"
    return Table(entry.name[-1], entry.name[0], list(entry.name[1:-1]), description, kind, False)


def _column(field: Field, partitions: tuple[str, ...], clustered: set[str]) -> Column:
    values: dict[str, Any] = {
        "name": field.name,
        "description": field.metadata.get("comment"),
        "dataType": spark_type(field.type).simpleString(),
        "nullable": field.nullable,
        "isPartition": field.name in partitions,
        "isBucket": False,
        "isCluster": field.name in clustered,
    }
    return Column(*(values[name] for name in Column._fields))
