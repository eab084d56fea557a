"""``spark.read`` and ``df.write`` with ``format("delta")`` or ``format("anabranch")``, and on named tables.

`anabranch._api.install` puts this in front of Spark's own reader and writer; other formats and names go to Spark
untouched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession

from anabranch._api import partition_paths
from anabranch._api.frame_skipping import frame_of_version
from anabranch._api.replaced_rows import ReplacedRows
from anabranch._catalog.entry import Entry
from anabranch._catalog.named_tables import NamedTable, refresh_by_name, register_name
from anabranch._catalog.resolver import ResolvedTable, Resolver
from anabranch._catalog.table_names import Name, name_to_sql, parts_of
from anabranch._expressions import condition
from anabranch._expressions.dialect import TokenizedText
from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.clustering import paths_of
from anabranch._protocol.options import CHANGES, READ, WRITE
from anabranch._protocol.session_settings import use_dials
from anabranch._spark.columns.positional import by_position
from anabranch._spark.engine import SparkEngine
from anabranch._spark.sessions.file_settings import use_session_settings, uses_session_settings
from anabranch._spark.sessions.known_sessions import formats_of
from anabranch._spark.sessions.settings import honour_settings, honours
from anabranch._sql.conditions import as_spark_reads, context_for
from anabranch._sql.executor import temporary_views, view_changes
from anabranch._sql.executor.name_resolver import Names
from anabranch._sql.executor.running import StatementContext
from anabranch._sql.sql import persistent_view
from anabranch.commands.context import RunContext
from anabranch.commands.dml.write import SchemaChange, Write
from anabranch.commands.opening import Location, file_set, open_log
from anabranch.commands.options import Options
from anabranch.commands.queries.change_feed import END, END_TIME, START, START_TIME, ReadChanges
from anabranch.commands.queries.read import Read, all_files, row_id_columns
from anabranch.commands.queries.time_travel import AsOf
from anabranch.commands.sources import parse_declared_version
from anabranch.errors import InvalidOption, NameTaken
from anabranch.errors.inputs import check_text

_OVERWRITES = "spark.sql.sources.partitionOverwriteMode"


_Self = TypeVar("_Self", bound="Optioned")


class Optioned:
    """Takes options, and sets each on Spark's own object as well."""

    def __init__(self, spark: SparkSession, plain: Any) -> None:
        self._spark, self._plain, self._options = spark, plain, Options()

    def option(self: _Self, key: str, value: Any) -> _Self:
        """Sets an option."""
        self._options.put(key, value)
        self._plain = self._plain.option(key, value)
        return self

    def options(self: _Self, **options: Any) -> _Self:
        """Sets several options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def speaking(self) -> AbstractContextManager[None]:
        """Within the block, stores are opened with the session's settings and the options of file systems (``fs.``)."""
        return use_session_settings(self._spark, self._options.file_settings())


class Formatted(Optioned):
    """Takes a format as well, ours or not; delegates everything else to Spark's own object."""

    _chosen: bool | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def format(self, source: str) -> Any:
        """Chooses a format."""
        self._chosen = source.lower() in formats_of(self._spark)
        return self if self._chosen else self._plain.format(source)

    @property
    def is_ours(self) -> bool:
        """Whether the format is ours, by name or by the session's default."""
        return is_default(self._spark) if self._chosen is None else self._chosen


class Schemaless(Formatted):
    """A reader; Delta tables have their own schema."""

    _schema: Any = None

    def schema(self, schema: Any) -> Any:
        """Sets the schema for other formats; refused for Delta tables."""
        if self._chosen:
            raise _own_schema(schema)
        self._schema, self._plain = schema, self._plain.schema(schema)
        return self

    def check_schema(self, schema: Any = None) -> None:
        """Raises InvalidOption if a schema is given, now or before."""
        schema = self._schema if schema is None else schema
        if schema is not None:
            raise _own_schema(schema)


def _own_schema(schema: Any) -> InvalidOption:
    return InvalidOption(
        option="schema", value=schema, reason="Delta does not support specifying the schema at read time."
    )


@uses_session_settings
class Reader(Schemaless):
    """``spark.read`` with our formats; for anything else, Spark's own reader."""

    def load(self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> DataFrame:
        """Reads the table at a path, pinned to the newest version, or to that of ``versionAsOf``, ``timestampAsOf``,
        ``path@v3`` or ``path@20240131000000000``.
        """
        target = self if format is None else self.format(format)
        if not (target is self and self.is_ours):
            plain = self._plain if target is self else target
            return plain.load(path, None, schema, **options)
        self.check_schema(schema)
        self.options(**options)
        with self.speaking():
            return self._load(path if path is not None else self._options.take("path"))

    def table(self, tableName: str) -> DataFrame:
        """The rows of a table by its name, or by ``delta.`path` ``; other names are Spark's."""
        table = table_of(self._spark, tableName)
        if table is None:
            return self._of_view(tableName)
        with self.speaking():
            return self._load(table.location).alias((parts_of(tableName) or (tableName,))[-1])

    def _of_view(self, name: str) -> DataFrame:
        """The current rows of a view over Delta tables; else Spark's own table or view."""
        view = persistent_view(self._spark, name, Names(self._spark, formats_of(self._spark)))
        if view is not None:
            self._check_newest()
            return view
        temporary_views.renew(StatementContext(self._spark), TokenizedText(f"TABLE {name}"))
        rows: DataFrame = self._plain.table(name)
        return rows

    def _check_newest(self) -> None:
        """Raises InvalidOption if an option requests an older version or changes, which a view does not have."""
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
        location, number = AsOf(path, version, timestamp, engine.zone()).resolve_version()
        snapshot = Read(location, number).snapshot()
        files = file_set(snapshot, all_files(snapshot))
        if ids:
            rows: DataFrame = engine.to_df(files, ids=row_id_columns(files), as_of=number is not None)
        else:
            rows = frame_of_version(self._spark, snapshot, files, as_of=number is not None)
        return (
            partition_paths.filter_partition(rows, folders, files.schema, files.partition_columns) if folders else rows
        )

    def _load_changes(self, path: Location, options: Options) -> DataFrame:
        """The changes of the table between two versions or timestamps."""
        engine, take = SparkEngine(self._spark), options.take
        command = ReadChanges(
            path, take(START), take(END), take(START_TIME), take(END_TIME), engine.zone(), engine.reads_beyond()
        )
        options.finish(CHANGES)
        return engine.changes(command.run())


def table_of(spark: SparkSession, name: str) -> ResolvedTable | None:
    """The Delta table of a name or of ``delta.`path` ``; None if it is Spark's own."""
    return Resolver(spark, formats_of(spark)).find(name)


def is_default(spark: SparkSession) -> bool:
    """Whether tables without a format are Delta tables, according to ``spark.sql.sources.default``."""
    return (spark.conf.get("spark.sql.sources.default", None) or "").lower() in formats_of(spark)


def one_path(path: Any) -> Location:
    """The location of a table. Raises InvalidOption: it is not exactly one path."""
    path = path[0] if isinstance(path, list) and len(path) == 1 else path
    if not isinstance(path, str | os.PathLike):
        raise InvalidOption(option="path", value=path, reason="it takes the path or URL of one table.")
    return path


@uses_session_settings
class Writer(Formatted):
    """``df.write`` for our formats and for names of Delta tables; for anything else, Spark's own writer."""

    def __init__(self, frame: DataFrame, plain: Any) -> None:
        super().__init__(frame.sparkSession, plain)
        self._frame, self._mode = frame, "error"
        self._partition_by: tuple[str, ...] | None = None
        self._cluster_by: tuple[str, ...] | None = None
        self._buckets: str | None = None
        self._format: str | None = None

    def format(self, source: str) -> Writer:
        """Chooses a format. A named table gets rows in its own format, whichever is chosen."""
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
        """The clustering columns."""
        flat = tuple(cols[0]) if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        self._cluster_by = flat
        self._plain = self._plain.clusterBy(*flat)
        return self

    def bucketBy(self, numBuckets: int, col: Any, *cols: Any) -> Writer:
        """Buckets, which Delta tables do not have: refused when the rows are written."""
        self._buckets, self._plain = "bucketBy", self._plain.bucketBy(numBuckets, col, *cols)
        return self

    def sortBy(self, col: Any, *cols: Any) -> Writer:
        """The order of rows in buckets, which Delta tables do not have: refused when the rows are written."""
        self._buckets, self._plain = self._buckets or "sortBy", self._plain.sortBy(col, *cols)
        return self

    def saveAsTable(
        self, name: str, format: str | None = None, mode: str | None = None, partitionBy: Any = None, **options: Any
    ) -> None:
        """Writes the rows to the table of a name, matching columns by name; creates it if it does not exist.

        Raises:
            NameTaken: the name belongs to something else, or to a table and the mode is ``error``.
            UnknownSchema: the schema does not exist.
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
        with self._keeping_options():
            target = Resolver(self._spark).target(parts, self._options.take("path"), or_foreign=ignores)
            if isinstance(target, str):
                self._save(target)
            else:
                self._save_as_table(target)

    def _is_known(self, parts: Name, mode: str | None) -> bool:
        """Whether the name is a Delta table's, so that Spark cannot create one of another format.

        Raises:
            InvalidOption: it would be written to in another format, specified or the session's default.
        """
        if not isinstance(Resolver(self._spark).look_up(parts), Entry):
            return False
        if (mode or self._mode).lower() in ("append", "overwrite"):
            reason = f"{name_to_sql(parts)} is a Delta table: use format('delta') to write to it."
            value = self._format or self._spark.conf.get("spark.sql.sources.default", None)
            raise InvalidOption(option="format", value=value, reason=reason)
        return True

    def _save_as_table(self, named: NamedTable) -> None:
        if (named.foreign or named.entry is not None) and self._mode not in ("append", "overwrite"):
            if self._mode == "ignore":
                return
            raise NameTaken(name=name_to_sql(named.name), table=named.location)
        with register_name(self._spark, named):
            snapshot = open_log(named.location).newest()
            self._run(named.location, snapshot, self._schema_change(), is_named=True)

    def save(
        self,
        path: Any = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        """Writes the rows to the table at a path."""
        if format is not None:
            self.format(format)
        if not self.is_ours:
            self._plain.save(path, None, mode, partitionBy, **options)
            return
        self.mode(mode).options(**options)
        if partitionBy is not None:
            self.partitionBy(*([partitionBy] if isinstance(partitionBy, str) else partitionBy))
        with self._keeping_options():
            self._save(path if path is not None else self._options.take("path"))

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:
        """Writes the rows to a table by position: the first column to the table's first, whatever their names.

        The table is a name or ``delta.`path` ``. Rows are added, or with ``overwrite`` (or in mode overwrite) replace
        the existing ones. Other names are Spark's.

        Raises:
            NotATable: it does not exist. ViewIsNoTable: it is a temporary view that does not show all of a table.
            SchemaMismatch: the numbers of columns differ, or a type does not fit.
        """
        table = table_of(self._spark, tableName)
        view = view_changes.find_view(self._spark, tableName) if table is None else None
        if view is not None:
            table = ResolvedTable(view[1])
        if table is None:
            self._plain.insertInto(tableName, overwrite)
            return
        if self._partition_by is not None or self._cluster_by is not None:
            reason = "insertInto takes an existing table, which has its own layout."
            raise InvalidOption(option="partitionBy or clusterBy", value=tableName, reason=reason)
        if overwrite is not None:
            self.mode("overwrite" if overwrite else "append")
        elif self._mode != "overwrite":
            self.mode("append")  # as Spark does, whatever other mode is set
        with self._keeping_options():
            self._insert(table, self._schema_change())
            if view is not None:
                view_changes.follow(StatementContext(self._spark), *view)

    def _insert(self, table: ResolvedTable, change: SchemaChange | None) -> None:
        snapshot = open_log(table.location).snapshot()
        with honour_settings(self._spark, "INSERT"):  # values are converted as in the INSERT statement
            to_write = partial(by_position, schema=snapshot.schema, table=snapshot.table, adds=change == "merge")
            self._run(table.location, snapshot, change, to_write)
        if change is not None:
            refresh_by_name(self._spark, table.name, table.location)

    def _save(self, path: Location | None) -> None:
        self._options.take("path")
        path = one_path(path)
        self._run(path, open_log(path).newest(), self._schema_change())

    @honours("a write")
    def _run(
        self,
        path: Location,
        snapshot: Snapshot | None,
        change: SchemaChange | None,
        to_write: Callable[[DataFrame], DataFrame] | None = None,
        *,
        is_named: bool = False,
    ) -> None:
        """Writes the rows, or what ``to_write`` makes of them, with these options to the table, at the version against
        which they were checked.
        """
        if self._buckets is not None:
            raise InvalidOption(
                option=self._buckets, value="set", reason="a Delta table has no buckets; use clusterBy."
            )
        engine, replaced = SparkEngine(self._spark), ReplacedRows.take(self._options, self._mode)
        dials = self._options.dials()
        write = Write(
            path,
            self._frame if to_write is None else to_write(self._frame),
            self._mode,
            self._partition_by,
            dynamic=self._is_dynamic(replaced),
            properties=self._options.properties(),
            reads_target=self._reads_target(snapshot),
            schema_change=change,
            cluster_by=None if self._cluster_by is None else paths_of(self._cluster_by),
            as_select=snapshot is None and is_named,
            **self._options.of_a_write(),
        )
        self._options.finish(WRITE)
        where = self._parse_condition(replaced, open_log(path), snapshot, engine)
        matching = None
        if replaced.is_matched:
            snapshot = snapshot or open_log(path).snapshot()
            matching = replaced.matching(self._frame, snapshot, engine, to_write)
        with use_dials(dials):
            replace(write, replace_where=where, matching=matching).run(engine, RunContext(at=snapshot))

    @contextmanager
    def _keeping_options(self) -> Iterator[None]:
        """As `speaking`; whatever options the block takes, the next write of this writer has them too."""
        kept = self._options.copy()
        try:
            with self.speaking():
                yield
        finally:
            self._options = kept

    def _reads_target(self, snapshot: Snapshot | None) -> int | None:
        option = self._options.take("readsTarget")
        return None if snapshot is None else parse_declared_version("readsTarget", option, snapshot.version)

    def _schema_change(self) -> SchemaChange | None:
        """The change of the table's columns that the rows may make: from the options, else from the session for
        ``merge``.
        """
        merges, replaces = self._options.flag("mergeSchema"), self._options.flag("overwriteSchema")
        if replaces and self._mode == "overwrite":
            return "overwrite"
        return "merge" if (SparkEngine(self._spark).merges_schema() if merges is None else merges) else None

    def _is_dynamic(self, replaced: ReplacedRows) -> bool:
        """Whether only the written partitions are replaced: from the option, else from the session's setting, which a
        condition overrides.
        """
        if replaced.partitions is not None or replaced.where is not None or replaced.is_matched:
            return replaced.partitions == "dynamic"
        return (self._spark.conf.get(_OVERWRITES, None) or "").lower() == "dynamic"

    def _parse_condition(
        self, replaced: ReplacedRows, log: Log, snapshot: Snapshot | None, engine: SparkEngine
    ) -> Condition | None:
        """The condition of ``replaceWhere`` on the columns of the table, or of the rows if there is no table yet."""
        if replaced.where is None:
            return None
        schema = engine.describe(self._frame) if snapshot is None else snapshot.schema
        names = () if replaced.alias is None else (replaced.alias,)
        text, context = as_spark_reads(replaced.where, engine), context_for(log.table, schema, engine)
        return condition(text, context, names=names)
