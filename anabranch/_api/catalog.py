"""``spark.catalog`` of an installed session: Delta tables by their names, beside everything else that Spark has.

What `anabranch._api.install` puts in front of Spark's own, which knows of an entry USING delta only that it is there.
Names that are none of ours, and all other methods, go to Spark untouched.
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
from anabranch._catalog.entries import Seen
from anabranch._catalog.entry import Entry
from anabranch._catalog.names import name_to_sql, parts_of
from anabranch._catalog.properties import literal
from anabranch._catalog.resolver import Resolved
from anabranch._protocol.schema.types import Field
from anabranch._spark.columns.types import declared_schema, spark_type
from anabranch._spark.sessions.cached_rows import is_kept
from anabranch._spark.sessions.file_settings import speaks
from anabranch._spark.sessions.known_sessions import formats_of
from anabranch._spark.sessions.sql_text import verbatim
from anabranch._sql.executor.name_resolver import Names
from anabranch._sql.executor.show import column_text
from anabranch._sql.sql import sql
from anabranch.commands.opening import open_log
from anabranch.errors import AnabranchError, InvalidArgument, InvalidOption


def catalog_door(spark: SparkSession, plain: Any) -> CatalogDoor:
    """Spark's catalog, in which Delta tables are what they are."""
    return (ClassicCatalogDoor if isinstance(plain, Catalog) else CatalogDoor)(spark, plain)


@speaks
class CatalogDoor:
    """What a session's catalog answers of Delta tables; all else goes to its own."""

    def __init__(self, spark: SparkSession, plain: Any) -> None:
        self._spark, self._plain = spark, plain

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def tableExists(self, tableName: str, dbName: str | None = None) -> bool:
        """Whether there is a table or view of this name."""
        found = self._table(tableName, dbName)
        if found is None:
            return bool(self._plain.tableExists(tableName, dbName))
        return found.entry is not None or open_log(found.location).exists()

    def getTable(self, tableName: str) -> Table:
        """The table or view of this name. Raises AnalysisException: there is none."""
        found = self._table(tableName)
        if found is None or found.entry is None:
            shown: Table = self._plain.getTable(tableName)
            return shown
        return _catalog_table(found.entry)

    def listTables(self, dbName: str | None = None, pattern: str | None = None) -> list[Table]:
        """The tables and views of a schema, and the temporary views. Raises AnalysisException: there is no schema."""
        within = () if dbName is None else parts_of(dbName)
        schema = None if within is None else entries.whole(self._spark, (*within, "any"))[:-1]
        is_sessions = schema is not None and schema[0].lower() == entries.SESSIONS
        seen = entries.list_tables(self._spark, schema, pattern) if schema is not None and is_sessions else []
        if not any(each.is_delta or each.may_be_entry for each in seen):
            plain: list[Table] = self._plain.listTables(dbName, pattern)
            return plain
        return [self._list_item(each) for each in seen]

    def _list_item(self, seen: Seen) -> Table:
        name = seen.name[-1:] if seen.is_temporary else seen.name
        try:
            entry = entries.find(self._spark, name)
            found: Table = self._plain.getTable(name_to_sql(name)) if entry is None else _catalog_table(entry)
        except Exception:  # as Spark does: a list shows what it cannot open, too
            found = Table(seen.name[-1], seen.name[0], list(seen.name[1:-1]), None, None, False)  # type: ignore[arg-type]
        return found

    def listColumns(self, tableName: str, dbName: str | None = None) -> list[Column]:
        """The columns of a table or view. Raises AnalysisException: there is none of this name."""
        found = self._table(tableName, dbName)
        if found is None:
            plain: list[Column] = self._plain.listColumns(tableName, dbName)
            return plain
        snapshot = open_log(found.location).snapshot()
        clustered = {path[0] for path in snapshot.clustering_columns}
        return [_column(each, snapshot.partition_columns, clustered) for each in snapshot.schema]

    def createTable(
        self,
        tableName: str,
        path: str | None = None,
        source: str | None = None,
        schema: StructType | None = None,
        description: str | None = None,
        **options: str,
    ) -> DataFrame:
        """Make a table, or give one at ``path`` its name; gives its rows.

        Raises:
            NameTaken: the name is taken. InvalidOption: an option, which no Delta table takes here.
            InvalidArgument: ``schema`` is no StructType.
        """
        is_ours = is_default(self._spark) if source is None else source.lower() in formats_of(self._spark)
        if not is_ours:
            made: DataFrame = self._plain.createTable(tableName, path, source, schema, description, **options)
            return made
        if schema is not None and not isinstance(schema, StructType):
            raise InvalidArgument(option="schema", value=schema, reason="it takes a StructType.")
        location = options.pop("path", None) if path is None else path
        for option, value in options.items():
            raise InvalidOption(option=option, value=value, reason="createTable of a Delta table takes no options.")
        quoted = partial(literal, spark=self._spark)
        columns = [] if schema is None else [column_text(each, quoted) for each in declared_schema(schema)]
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
        """As `createTable`, which PySpark recommends."""
        return self.createTable(tableName, path, source, schema, **options)

    def refreshTable(self, tableName: str) -> None:
        """Nothing is kept of a Delta table that could be behind it."""
        if not self._run_if_ours("REFRESH TABLE", tableName):
            self._plain.refreshTable(tableName)

    def dropTable(self, tableName: str, ifExists: bool = False, purge: bool = False) -> None:
        """Drop a table; the files of a managed one go. Raises AnalysisException: there is none of this name."""
        if not self._run_if_ours("DROP TABLE", tableName):
            self._plain.dropTable(tableName, ifExists, purge)

    def truncateTable(self, tableName: str) -> None:
        """Delete all rows of a table."""
        if not self._run_if_ours("TRUNCATE TABLE", tableName):
            self._plain.truncateTable(tableName)

    def cacheTable(self, tableName: str, storageLevel: StorageLevel | None = None) -> None:
        """Keep a table's rows once they are read; a newer version takes their place."""
        found = self._table(tableName)
        if found is None:
            self._plain.cacheTable(tableName, storageLevel)
            return
        level = "" if storageLevel is None else f" OPTIONS ('storageLevel' = '{_name_of(storageLevel)}')"
        self._run(f"CACHE LAZY TABLE {tableName}{level}")

    def uncacheTable(self, tableName: str) -> None:
        """Keep a table's rows no longer."""
        if not self._run_if_ours("UNCACHE TABLE", tableName):
            self._plain.uncacheTable(tableName)

    def isCached(self, tableName: str) -> bool:
        """Whether a table's rows are kept."""
        found = self._table(tableName)
        if found is None:
            return bool(self._plain.isCached(tableName))
        return is_kept(self._spark, open_log(found.location).table)

    def getTableProperties(self, tableName: str) -> dict[str, str]:
        """The properties of a table."""
        if self._table(tableName) is None:
            plain: dict[str, str] = self._plain.getTableProperties(tableName)
            return plain
        return {row["key"]: row["value"] for row in self._run(f"SHOW TBLPROPERTIES {tableName}").collect()}

    def getCreateTableString(self, tableName: str, asSerde: bool = False) -> str:
        """The statement that makes such a table."""
        if self._table(tableName) is None:
            return str(self._plain.getCreateTableString(tableName, asSerde))
        return str(self._run(f"SHOW CREATE TABLE {tableName}").collect()[0][0])

    def _table(self, name: str, schema: str | None = None) -> Resolved | None:
        return table_of(self._spark, name if schema is None else f"{schema}.{name}")

    def _run_if_ours(self, statement: str, name: str) -> bool:
        """Run a statement on a table of ours; False where the name is none of one."""
        if self._table(name) is None:
            return False
        self._run(f"{statement} {name}")
        return True

    def _run(self, statement: str) -> DataFrame:
        """What a statement gives, in which nothing is filled in."""
        return sql(self._spark, verbatim(statement, self._spark), names=Names(self._spark, formats_of(self._spark)))


class ClassicCatalogDoor(CatalogDoor, Catalog):
    """Also a `Catalog` of PySpark, whose methods find what they need in the session's own."""


def _name_of(level: StorageLevel) -> str:
    """Raises InvalidOption: it is none that has a name."""
    for name, known in vars(StorageLevel).items():
        if isinstance(known, StorageLevel) and known == level:
            return name
    raise InvalidOption(option="storageLevel", value=level, reason="it takes one that StorageLevel names.")


def _catalog_table(entry: Entry) -> Table:
    try:
        said = open_log(entry.location).snapshot().metadata.description
    except AnabranchError:  # the entry is there, whatever has become of the table
        said = None
    kind = "MANAGED" if entry.managed else "EXTERNAL"
    return Table(entry.name[-1], entry.name[0], list(entry.name[1:-1]), said, kind, False)


def _column(field: Field, partitions: tuple[str, ...], clustered: set[str]) -> Column:
    said: dict[str, Any] = {
        "name": field.name,
        "description": field.metadata.get("comment"),
        "dataType": spark_type(field.type).simpleString(),
        "nullable": field.nullable,
        "isPartition": field.name in partitions,
        "isBucket": False,
        "isCluster": field.name in clustered,
    }
    return Column(*(said[name] for name in Column._fields))
