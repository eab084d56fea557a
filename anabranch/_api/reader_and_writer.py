"""``spark.read`` and ``df.write`` with ``format("delta")`` or ``format("anabranch")``, and on tables with names.

What `anabranch._api.install` puts in front of Spark's own reader and writer; every other format and name goes to Spark
untouched.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession

from anabranch._api import partition_paths
from anabranch._api.skipping import rows_of
from anabranch._catalog.entry import Entry
from anabranch._catalog.named_tables import Named, naming, refresh_by_name
from anabranch._catalog.names import Name, name_to_sql, parts_of
from anabranch._catalog.resolver import Resolved, Resolver
from anabranch._expressions import condition
from anabranch._expressions.dialect import TokenizedText
from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.clustering import paths_of
from anabranch._protocol.options import CHANGES, READ, WRITE
from anabranch._spark.columns.positional import by_position
from anabranch._spark.engine import SparkEngine
from anabranch._spark.sessions.file_settings import speaking, speaks
from anabranch._spark.sessions.known_sessions import formats_of
from anabranch._spark.sessions.settings import honour_settings, honours
from anabranch._sql.conditions import as_spark_reads, context_for
from anabranch._sql.executor import frame_views, temporary_views
from anabranch._sql.executor.name_resolver import Names
from anabranch._sql.executor.running import Running
from anabranch._sql.sql import lasting_view
from anabranch.commands.context import RunContext
from anabranch.commands.dml.write import SchemaChange, Write
from anabranch.commands.opening import Location, file_set, open_log
from anabranch.commands.options import Options
from anabranch.commands.queries.change_feed import END, END_TIME, START, START_TIME, ReadChanges
from anabranch.commands.queries.read import Read, row_id_columns
from anabranch.commands.queries.time_travel import AsOf
from anabranch.commands.sources import parse_declared_version
from anabranch.errors import InvalidOption, NameTaken
from anabranch.errors.inputs import check_text

_OVERWRITES = "spark.sql.sources.partitionOverwriteMode"


_Self = TypeVar("_Self", bound="Optioned")


class Optioned:
    """What takes options: each is set on Spark's own as well."""

    def __init__(self, spark: SparkSession, plain: Any) -> None:
        self._spark, self._plain, self._options = spark, plain, Options()

    def option(self: _Self, key: str, value: Any) -> _Self:
        """Set an option."""
        self._options.put(key, value)
        self._plain = self._plain.option(key, value)
        return self

    def options(self: _Self, **options: Any) -> _Self:
        """Set several options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def speaking(self) -> AbstractContextManager[None]:
        """Within the block, buckets are opened as the session says, and as options of file systems (``fs.``) do."""
        return speaking(self._spark, self._options.file_settings())


class Formatted(Optioned):
    """What takes a format as well, perhaps none of ours; all else goes to Spark's own."""

    _chosen: bool | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def format(self, source: str) -> Any:
        """Choose a format."""
        self._chosen = source.lower() in formats_of(self._spark)
        return self if self._chosen else self._plain.format(source)

    @property
    def is_ours(self) -> bool:
        """Whether the format is ours, by name or by the session's default."""
        return is_default(self._spark) if self._chosen is None else self._chosen


class Schemaless(Formatted):
    """What reads, where a table of ours brings its own schema."""

    _schema: Any = None

    def schema(self, schema: Any) -> Any:
        """A Delta table brings its own schema; for other formats this is Spark's."""
        if self._chosen:
            raise _own_schema(schema)
        self._schema, self._plain = schema, self._plain.schema(schema)
        return self

    def check_schema(self, schema: Any = None) -> None:
        """Raises InvalidOption: a schema is given, now or before."""
        schema = self._schema if schema is None else schema
        if schema is not None:
            raise _own_schema(schema)


def _own_schema(given: Any) -> InvalidOption:
    return InvalidOption(
        option="schema", value=given, reason="Delta does not support specifying the schema at read time."
    )


@speaks
class Reader(Schemaless):
    """``spark.read`` with our formats; anything else becomes Spark's own reader."""

    def load(self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> DataFrame:
        """Read the table at a path, pinned to the version that is newest now, or that ``versionAsOf``,
        ``timestampAsOf``, ``path@v3`` or ``path@20240131000000000`` mean.
        """
        chosen = self if format is None else self.format(format)
        if not (chosen is self and self.is_ours):
            target = self._plain if chosen is self else chosen
            return target.load(path, None, schema, **options)
        self.check_schema(schema)
        self.options(**options)
        with self.speaking():
            return self._load(path if path is not None else self._options.take("path"))

    def table(self, tableName: str) -> DataFrame:
        """The rows of a table by its name, or by ``delta.`path` ``; any other name is Spark's."""
        found = table_of(self._spark, tableName)
        if found is None:
            return self._of_view(tableName)
        with self.speaking():
            return self._load(found.location).alias((parts_of(tableName) or (tableName,))[-1])

    def _of_view(self, name: str) -> DataFrame:
        """The rows of a view over tables of ours as they are now; else of whatever Spark has of this name."""
        shown = lasting_view(self._spark, name, Names(self._spark, formats_of(self._spark)))
        if shown is not None:
            self._check_newest()
            return shown
        temporary_views.renew(Running(self._spark), TokenizedText(f"TABLE {name}"))
        found: DataFrame = self._plain.table(name)
        return found

    def _check_newest(self) -> None:
        """Raises InvalidOption: an option asks for what a view does not have."""
        for name in ("versionAsOf", "timestampAsOf", "readChangeFeed", "readChangeData"):
            value = self._options.copy().take(name)
            if value is not None and value.lower() != "false":
                reason = "a view has no versions and no change feed: read the table that it shows."
                raise InvalidOption(option=name, value=value, reason=reason)

    def _load(self, path: Location | None) -> DataFrame:
        path, options = one_path(path), self._options.copy()
        options.take("path")
        path, folders = partition_paths.split(path)
        if any([options.flag("readChangeFeed"), options.flag("readChangeData")]):
            return self._load_changes(path, options)
        version, timestamp = options.take("versionAsOf"), options.take("timestampAsOf")
        ids = options.flag("rowIds")
        options.finish(READ)
        engine = SparkEngine(self._spark)
        location, asked = AsOf(path, version, timestamp, engine.zone()).resolve_version()
        snapshot = Read(location, asked).snapshot()
        files = file_set(snapshot)
        if ids:
            rows: DataFrame = engine.to_df(files, ids=row_id_columns(files), as_of=asked is not None)
        else:
            rows = rows_of(self._spark, snapshot, files, as_of=asked is not None)
        return partition_paths.only(rows, folders, files.schema, files.partition_columns) if folders else rows

    def _load_changes(self, path: Location, options: Options) -> DataFrame:
        """The changes of the table, from a version or timestamp to another."""
        engine, take = SparkEngine(self._spark), options.take
        asked = ReadChanges(
            path, take(START), take(END), take(START_TIME), take(END_TIME), engine.zone(), engine.reads_beyond()
        )
        options.finish(CHANGES)
        return engine.changes(asked.run())


def table_of(spark: SparkSession, name: str) -> Resolved | None:
    """The Delta table of a name, also of ``delta.`path` ``; None where it is Spark's own."""
    return Resolver(spark, formats_of(spark)).find(name)


def is_default(spark: SparkSession) -> bool:
    """Whether tables are ours where no format is said, as ``spark.sql.sources.default`` has it."""
    return (spark.conf.get("spark.sql.sources.default", None) or "").lower() in formats_of(spark)


def one_path(path: Any) -> Location:
    """The location of a table. Raises InvalidOption: it is none, or several."""
    path = path[0] if isinstance(path, list) and len(path) == 1 else path
    if not isinstance(path, str | os.PathLike):
        raise InvalidOption(option="path", value=path, reason="it takes the path or URL of one table.")
    return path


@speaks
class Writer(Formatted):
    """``df.write``: with our formats, or on a name that is a Delta table, ours; anything else is Spark's own."""

    def __init__(self, frame: DataFrame, plain: Any) -> None:
        super().__init__(frame.sparkSession, plain)
        self._frame, self._mode = frame, "error"
        self._partition_by: tuple[str, ...] | None = None
        self._cluster_by: tuple[str, ...] | None = None
        self._buckets: str | None = None
        self._format: str | None = None

    def format(self, source: str) -> Writer:
        """Choose a format; to a name, one of ours or not, rows are written as its table takes them."""
        self._format, self._chosen = source, source.lower() in formats_of(self._spark)
        if not self._chosen:
            self._plain = self._plain.format(source)
        return self

    def mode(self, saveMode: str | None) -> Writer:
        """``append``, ``overwrite``, ``error`` or ``ignore``."""
        if saveMode:
            self._mode = saveMode.lower()
            self._plain = self._plain.mode(saveMode)
        return self

    def partitionBy(self, *cols: Any) -> Writer:
        """The partition columns."""
        flat = tuple(cols[0]) if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        for name in flat:
            check_text("The name of a column", str(name))
        self._partition_by = flat
        self._plain = self._plain.partitionBy(*flat)
        return self

    def clusterBy(self, *cols: Any) -> Any:
        """The columns by which files are laid out."""
        flat = tuple(cols[0]) if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        self._cluster_by = flat
        self._plain = self._plain.clusterBy(*flat)
        return self

    def bucketBy(self, numBuckets: int, col: Any, *cols: Any) -> Writer:
        """Buckets, which no Delta table has: refused when the rows are written."""
        self._buckets, self._plain = "bucketBy", self._plain.bucketBy(numBuckets, col, *cols)
        return self

    def sortBy(self, col: Any, *cols: Any) -> Writer:
        """The order of rows in buckets, which no Delta table has: refused when the rows are written."""
        self._buckets, self._plain = self._buckets or "sortBy", self._plain.sortBy(col, *cols)
        return self

    def saveAsTable(
        self, name: str, format: str | None = None, mode: str | None = None, partitionBy: Any = None, **options: Any
    ) -> None:
        """Write the rows to the table of a name, by the names of their columns; make it where there is none.

        Raises:
            NameTaken: it is the name of something else, or of a table and the mode is ``error``.
            UnknownSchema: there is no such schema.
        """
        if format is not None:
            self.format(format)
        parts = parts_of(name) if isinstance(name, str) else None
        if parts is None or not (self.is_ours or self._is_known(parts, mode)):
            self._plain.saveAsTable(name, None, mode, partitionBy, **options)
            return
        self.mode(mode).options(**options)
        if partitionBy is not None:
            self.partitionBy(*([partitionBy] if isinstance(partitionBy, str) else partitionBy))
        ignores = self._mode == "ignore"
        with self.speaking():
            target = Resolver(self._spark).target(parts, self._options.take("path"), or_foreign=ignores)
            if isinstance(target, str):
                self._save(target)
            else:
                self._save_as_table(target)

    def _is_known(self, parts: Name, mode: str | None) -> bool:
        """Whether it is a table of ours, so that Spark cannot make one of another format.

        Raises:
            InvalidOption: it would be written to, and the format is another one, as said or as the session has it.
        """
        if not isinstance(Resolver(self._spark).look_up(parts), Entry):
            return False
        if (mode or self._mode).lower() in ("append", "overwrite"):
            reason = f"{name_to_sql(parts)} is a Delta table: say format('delta') to write to it."
            value = self._format or self._spark.conf.get("spark.sql.sources.default", None)
            raise InvalidOption(option="format", value=value, reason=reason)
        return True

    def _save_as_table(self, named: Named) -> None:
        if (named.foreign or named.entry is not None) and self._mode not in ("append", "overwrite"):
            if self._mode == "ignore":
                return
            raise NameTaken(name=name_to_sql(named.name), table=named.location)
        with naming(self._spark, named):
            there = open_log(named.location).newest()
            self._run(named.location, there, self._frame, self._schema_change(), is_named=True)

    def save(
        self,
        path: Any = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        """Write the rows to the table at a path."""
        if format is not None:
            self.format(format)
        if not self.is_ours:
            self._plain.save(path, None, mode, partitionBy, **options)
            return
        self.mode(mode).options(**options)
        if partitionBy is not None:
            self.partitionBy(*([partitionBy] if isinstance(partitionBy, str) else partitionBy))
        with self.speaking():
            self._save(path if path is not None else self._options.take("path"))

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:
        """Write the rows to a table by position: the first column for the table's first, whatever their names.

        The table is named, or is ``delta.`path` ``. They are added, or with ``overwrite`` (or in mode overwrite)
        replace what is there. Other names are Spark's.

        Raises:
            NotATable: there is none. ViewIsNoTable: it is a temporary view that does not show all of a table.
            SchemaMismatch: the numbers of columns differ, or a type from which no value fits.
        """
        found = table_of(self._spark, tableName)
        shown = frame_views.find_view(self._spark, tableName) if found is None else None
        if shown is not None:
            found = Resolved(shown[1])
        if found is None:
            self._plain.insertInto(tableName, overwrite)
            return
        if self._partition_by is not None or self._cluster_by is not None:
            reason = "insertInto takes a table that is there, with its own layout."
            raise InvalidOption(option="partitionBy or clusterBy", value=tableName, reason=reason)
        if overwrite is not None:
            self.mode("overwrite" if overwrite else "append")
        elif self._mode != "overwrite":
            self.mode("append")  # as Spark's does, whatever other mode was named
        with self.speaking():
            self._insert(found, self._schema_change())
            if shown is not None:
                frame_views.follow(Running(self._spark), *shown)

    def _insert(self, found: Resolved, change: SchemaChange | None) -> None:
        snapshot = open_log(found.location).snapshot()
        with honour_settings(self._spark, "INSERT"):  # values are fitted, as those of the statement are
            rows = by_position(self._frame, snapshot.schema, snapshot.table, adds=change == "merge")
            self._run(found.location, snapshot, rows, change)
        if change is not None:
            refresh_by_name(self._spark, found.name, found.location)

    def _save(self, path: Location | None) -> None:
        self._options.take("path")
        path = one_path(path)
        self._run(path, open_log(path).newest(), self._frame, self._schema_change())

    @honours("a write")
    def _run(
        self,
        path: Location,
        snapshot: Snapshot | None,
        rows: DataFrame,
        change: SchemaChange | None,
        *,
        is_named: bool = False,
    ) -> None:
        """Write the rows as the options say, to the table at the version for which they were understood."""
        if self._buckets is not None:
            raise InvalidOption(
                option=self._buckets, value="set", reason="a Delta table has no buckets; use clusterBy."
            )
        engine, where = SparkEngine(self._spark), self._options.take("replaceWhere")
        write = Write(
            path,
            rows,
            self._mode,
            self._partition_by,
            dynamic=self._is_dynamic(where),
            properties=self._options.properties(),
            reads_target=self._reads_target(snapshot),
            schema_change=change,
            cluster_by=None if self._cluster_by is None else paths_of(self._cluster_by),
            as_select=snapshot is None and is_named,
            **self._options.of_a_write(),
        )
        self._options.finish(WRITE)
        understood = None if where is None else self._parse_condition(where, open_log(path), snapshot, engine)
        replace(write, replace_where=understood).run(engine, RunContext(at=snapshot))

    def _reads_target(self, snapshot: Snapshot | None) -> int | None:
        given = self._options.take("readsTarget")
        return None if snapshot is None else parse_declared_version("readsTarget", given, snapshot.version)

    def _schema_change(self) -> SchemaChange | None:
        """What the rows may do to the table's columns: as the options say, else as the session does for ``merge``."""
        merges, replaces = self._options.flag("mergeSchema"), self._options.flag("overwriteSchema")
        if replaces and self._mode == "overwrite":
            return "overwrite"
        return "merge" if (SparkEngine(self._spark).merges_schema() if merges is None else merges) else None

    def _is_dynamic(self, where: str | None) -> bool:
        """Whether only the partitions that are written are replaced: as the option says, else as the session does,
        which counts less than a condition.
        """
        given = self._options.take("partitionOverwriteMode")
        if given is None:
            return where is None and (self._spark.conf.get(_OVERWRITES, None) or "").lower() == "dynamic"
        if given.lower() not in ("static", "dynamic"):
            raise InvalidOption(option="partitionOverwriteMode", value=given, reason="it takes static or dynamic.")
        return given.lower() == "dynamic"

    def _parse_condition(self, where: str, log: Log, snapshot: Snapshot | None, engine: SparkEngine) -> Condition:
        """The condition for the table's columns; where there is no table yet, for those of the rows."""
        schema = engine.describe(self._frame) if snapshot is None else snapshot.schema
        return condition(as_spark_reads(where, engine), context_for(log.table, schema, engine))
