"""``DeltaTable`` and its builders, with the names of ``delta.tables``.

Turns the user's arguments into commands and runs them on Spark. Unsupported arguments are refused by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from anabranch._api.arguments import assignments, file_settings, of_type, partition_columns, text, whole_number
from anabranch._api.arguments import condition as check_condition
from anabranch._api.frame_skipping import frame_of_version
from anabranch._api.merge_builder import DeltaMergeBuilder
from anabranch._api.opening import opening
from anabranch._api.optimize_builder import DeltaOptimizeBuilder
from anabranch._api.table_builder import DeltaTableBuilder, IdentityGenerator
from anabranch._api.timeline.view import Timeline
from anabranch._api.timeline.view import timeline as timeline_of
from anabranch._catalog.named_tables import refresh_by_name, register_name
from anabranch._catalog.resolver import Resolver
from anabranch._catalog.table_names import Name, display_name, is_path, name_to_sql, parts_of
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.conditions import Condition
from anabranch._protocol.settings import VACUUMS_LITE
from anabranch._spark.engine import SparkEngine
from anabranch._spark.sessions.file_settings import use_session_settings, uses_session_settings
from anabranch._spark.sessions.session import checks_retention
from anabranch._spark.sessions.settings import honour_settings, honours, setting
from anabranch._sql.conditions import resolve_condition, resolve_values
from anabranch._sql.executor.parquet_tables import refuse_conversion, table_name
from anabranch.commands.context import RunContext
from anabranch.commands.ddl.alter_protocol import AddFeatureSupport, UpgradeProtocol
from anabranch.commands.ddl.drop_feature import DropFeature
from anabranch.commands.dml.delete import EVERY_ROW, Delete
from anabranch.commands.dml.update import Update
from anabranch.commands.maintenance.check import Report, check_table
from anabranch.commands.maintenance.clone import Clone
from anabranch.commands.maintenance.convert import Convert, parquet_path
from anabranch.commands.maintenance.generate import Generate
from anabranch.commands.maintenance.restore import RESULT, Restore
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.commands.opening import Location, file_set, open_log
from anabranch.commands.queries.describe import DETAIL, SHOWN_HISTORY, as_table, detail, history
from anabranch.commands.queries.read import Read, all_files
from anabranch.commands.queries.timeline.read import LAST
from anabranch.errors import InvalidArgument, InvalidOption, NameTaken
from anabranch.errors.inputs import check_session
from anabranch.errors.secrets import without_secrets

__all__ = ["DeltaMergeBuilder", "DeltaOptimizeBuilder", "DeltaTable", "DeltaTableBuilder", "IdentityGenerator"]


@uses_session_settings
class DeltaTable:
    """A Delta table at a path.

    A handle acts on the version that is newest when each command starts; `toDF` pins the version of its call.

    Example:
        >>> table = DeltaTable.forPath(spark, "/data/flights")
        >>> table.update("carrier = 'UA'", {"dep_delay": "dep_delay - 5"})
        >>> table.delete("dep_time IS NULL")
    """

    def __init__(
        self,
        spark: SparkSession,
        path: Location,
        alias: str | None = None,
        name: Name | None = None,
        file_settings: Mapping[str, str] | None = None,
    ) -> None:
        self._spark, self._path, self._engine = spark, path, SparkEngine(spark)
        self._alias, self._name, self._file_settings = alias, name, file_settings or {}

    @classmethod
    def forPath(cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] | None = None) -> DeltaTable:
        """The table at a path or URL.

        Args:
            hadoopConf: settings of the file system, which begin with ``fs.`` or ``dfs.``, for this handle alone: they
                override the session's and the environment's. A local path needs none.

        Raises:
            NotATable: the path has no table. InvalidOption: a setting is not the file system's, or would be mixed with
            the environment's. NotBuilt: Spark and Anabranch could not both honour a setting.
        """
        check_session("sparkSession", sparkSession)
        settings = file_settings(hadoopConf)
        with use_session_settings(sparkSession, settings), opening():
            open_log(path).snapshot()
        return cls(sparkSession, path, file_settings=settings)

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """The table of a name in Spark's catalog; the last part of the name is its alias, unless a column has that
        name.

        Raises:
            UnknownTable: no Delta table has this name. NotATable: its files are gone.
        """
        check_session("sparkSession", sparkSession)
        with use_session_settings(sparkSession), opening():
            target = Resolver(sparkSession).require_table(tableOrViewName)
            schema = open_log(target.location).snapshot().schema
        last_part = None if target.name is None else target.name[-1]
        alias = None if last_part is None or schema.find(last_part) is not None else last_part
        return cls(sparkSession, target.location, alias, target.name)

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether a Delta table exists at this path, or under this name in Spark's catalog."""
        check_session("sparkSession", sparkSession)
        with use_session_settings(sparkSession):
            if open_log(identifier).exists():
                return True
            table = Resolver(sparkSession).find(identifier)
            return table is not None and open_log(table.location).exists()

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """A builder that creates a table, and fails if it exists."""
        return DeltaTableBuilder(_session(sparkSession), cls)

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """A builder that creates a table unless it exists."""
        return DeltaTableBuilder(_session(sparkSession), cls, if_not_exists=True)

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """A builder that replaces an existing table with an empty one, and fails if there is none."""
        return DeltaTableBuilder(_session(sparkSession), cls, replaces=True)

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """A builder that creates an empty table, or replaces the existing one."""
        return DeltaTableBuilder(_session(sparkSession), cls, if_not_exists=True, replaces=True)

    @classmethod
    def convertToDelta(cls, sparkSession: SparkSession, identifier: str, partitionSchema: Any = None) -> DeltaTable:
        """Converts a folder of Parquet files, which stay unchanged, to a Delta table; does nothing if it is one.

        Args:
            identifier: ``parquet.`` and the path in backticks.
            partitionSchema: the partition columns of the folders ``name=value``, as SQL (``day DATE, hour INT``) or as
                a ``StructType``, in the order of the folders.

        Raises:
            EmptyDirectory, UnreadableFooter, SchemaMergeFailed, UnexpectedPartition, ConversionRefused: the folder
            cannot be converted as it is. ProtocolChangedException: another writer created the table meanwhile.
            NameNotConverted: the identifier names a Parquet table in the catalog.

        Example:
            >>> DeltaTable.convertToDelta(spark, "parquet.`/data/flights`", "day DATE")
        """
        check_session("sparkSession", sparkSession)
        name = table_name(identifier)
        if name is not None:
            table = Resolver(sparkSession).find(identifier)
            return cls.forName(sparkSession, identifier) if table else refuse_conversion(sparkSession, name)
        form, path = parquet_path(identifier)
        if form == "parquet":
            with use_session_settings(sparkSession), honour_settings(sparkSession, "CONVERT"):
                Convert(path, partition_columns(partitionSchema)).run()
        return cls.forPath(sparkSession, path)

    def __repr__(self) -> str:
        return f"DeltaTable({without_secrets(str(self._path))!r})"

    def toDF(self) -> DataFrame:
        """The rows of the newest version, pinned: later commits do not change this DataFrame."""
        snapshot = Read(self._path).snapshot()
        rows = frame_of_version(self._spark, snapshot, file_set(snapshot, all_files(snapshot)))
        return rows if self._alias is None else rows.alias(self._alias)

    def alias(self, aliasName: str) -> DeltaTable:
        """The same table under an alias, which conditions, values and `toDF` use for its columns.

        Example:
            >>> table.alias("t").merge(updates.alias("s"), "t.id = s.id")
        """
        if not isinstance(aliasName, str) or not aliasName:
            raise InvalidArgument(option="aliasName", value=aliasName, reason="it takes a name.")
        return DeltaTable(self._spark, self._path, aliasName, self._name, self._file_settings)

    def optimize(self) -> DeltaOptimizeBuilder:
        """A builder that rewrites the table's files: fewer, or in an order that improves data skipping.

        Example:
            >>> table.optimize().where("day >= '2024-01-01'").executeCompaction()
            >>> table.optimize().executeZOrderBy("carrier", "dep_time")
        """
        return DeltaOptimizeBuilder(self._spark, self._path, _file_settings=self._file_settings)

    @honours("DELETE")
    def delete(self, condition: str | Column | None = None) -> None:
        """Deletes the rows for which the condition is TRUE, or every row.

        Raises:
            InvalidCondition: the condition does not fit the table. ConcurrentDeleteDeleteException,
            ConcurrentDeleteReadException, ConcurrentAppendException: a winner stands in the way.
        """
        snapshot = open_log(self._path).snapshot()
        Delete(self._path, self._condition(condition, snapshot)).run(self._engine, RunContext(at=snapshot))

    @honours("UPDATE")
    def update(self, condition: str | Column | None = None, set: Mapping[str, str | Column] | None = None) -> None:
        """Sets columns of the rows for which the condition is TRUE, or of every row.

        Args:
            condition: SQL text or a Column.
            set: column, or member of a struct such as ``s.a`` -> SQL text or a Column, evaluated on the old row.

        Raises:
            UnknownColumn, InvalidCondition, SchemaMismatch: the command does not fit the table.
            ConcurrentDeleteReadException, ConcurrentAppendException: a winner stands in the way.
        """
        changes = assignments("set", set)
        if condition is not None:
            check_condition("condition", condition)
        snapshot = open_log(self._path).snapshot()
        values = resolve_values(changes, snapshot, self._engine, self._alias)
        Update(self._path, values, self._condition(condition, snapshot)).run(self._engine, RunContext(at=snapshot))

    def merge(
        self, source: DataFrame, condition: str | Column, *, reads_target: bool | int = False
    ) -> DeltaMergeBuilder:
        """Begins a MERGE: rows of this table and of the source match where the condition is TRUE.

        Args:
            source: a DataFrame; it is evaluated once. If it reads this table, the MERGE starts from the version that it
                reads, and any later change conflicts with it.
            condition: SQL text or a Column over the columns of both, under their aliases.
            reads_target: declares that a source was computed from this table where Spark cannot see it (an RDD,
                collected rows): from this version, or True for the newest.

        Returns:
            a builder; nothing happens before its ``execute()``.

        Raises:
            InvalidArgument: the source is no DataFrame, or the condition is neither text nor a Column.
        """
        if not isinstance(source, DataFrame):
            type_name = f"{type(source).__module__}.{type(source).__qualname__}"
            reason = "it must be DataFrame (pyspark.sql.DataFrame)."
            raise InvalidArgument(option="source", value=type_name, reason=reason)
        check_condition("condition", condition)
        return DeltaMergeBuilder(
            self._path,
            self._engine,
            source,
            condition,
            self._alias,
            reads_target=reads_target,
            reshaped=self._refresh_catalog,
            _file_settings=self._file_settings,
        )

    def history(self, limit: int | None = None) -> DataFrame:
        """The newest commits first, at most ``limit``, with the columns and types of delta-spark.

        Raises:
            InvalidOption: the limit is not a whole number from 0.
        """
        return self._engine.rows(as_table(history(self._path, limit), SHOWN_HISTORY))

    def timeline(self, last: int = LAST) -> Timeline:
        """The newest ``last`` versions: the changes of each, the table after it, and advice. A notebook shows it as a
        page; ``save(path)`` writes that page. Delta-spark has no such method.

        Raises:
            InvalidOption: ``last`` is not a whole number from 1.
        """
        return timeline_of(self._path, last)

    @honours("VACUUM")
    def vacuum(self, retentionHours: float | None = None) -> DataFrame:
        """Removes files that no version of the last ``retentionHours`` needs; the default is the table's
        ``delta.deletedFileRetentionDuration``. Returns an empty DataFrame, as delta-spark does.

        Raises:
            RetentionTooShort: that is less than the table's property, and the session's setting
            ``spark.databricks.delta.retentionDurationCheck.enabled`` is not false.
        """
        if retentionHours is not None and (
            isinstance(retentionHours, bool) or not isinstance(retentionHours, int | float)
        ):
            raise InvalidArgument(option="retentionHours", value=retentionHours, reason="it takes a number from 0.")
        lite = setting(self._spark, VACUUMS_LITE, False)
        Vacuum(self._path, retentionHours, lite=lite, check_retention=checks_retention(self._spark)).run()
        return self._spark.createDataFrame([], StructType([]))

    def detail(self) -> DataFrame:
        """One row about the table, with Delta's columns."""
        row = detail(self._path)
        return self._engine.rows(
            as_table([row if self._name is None else {**row, "name": display_name(self._name)}], DETAIL)
        )

    @honours("ALTER")
    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Raises the protocol versions that the table requires; they never decrease.

        Raises:
            InvalidOption: a version is lower than the table's, or does not exist.
            ProtocolChangedException: the table was written meanwhile.
        """
        for option, value in (("readerVersion", readerVersion), ("writerVersion", writerVersion)):
            whole_number(option, value)
        UpgradeProtocol(self._path, readerVersion, writerVersion).run()

    @honours("ALTER")
    def addFeatureSupport(self, featureName: str) -> None:
        """Adds a feature to the table's protocol; does nothing if the table has it.

        Raises:
            UnsupportedFeature: this version of Anabranch does not support it.
            ProtocolChangedException: the table was written meanwhile.
        """
        text("featureName", featureName)
        AddFeatureSupport(self._path, featureName).run()

    @honours("DROP FEATURE")
    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Removes a feature from the table's protocol, so that engines without it can use the table.

        Args:
            featureName: its name; its traces in the table are removed first, if the feature can be removed.
            truncateHistory: whether old enough history is truncated instead of protected.

        Raises:
            FeatureNotDropped: a rule forbids it, or history still needs the feature; its condition names the reason.
            DeltaConcurrentModificationException: the table was written meanwhile.
        """
        text("featureName", featureName)
        if truncateHistory is not None:
            of_type("truncateHistory", truncateHistory, bool, "a boolean")
        DropFeature(self._path, featureName, bool(truncateHistory)).run(self._engine)

    def clone(
        self, target: str, isShallow: bool = False, replace: bool = False, properties: Mapping[str, str] | None = None
    ) -> DeltaTable:
        """Creates a table at another place with the current state of this one.

        Args:
            target: absolute path or URL of the clone, ``delta.`path` ``, or its name in Spark's catalog.
            isShallow: refer to this table's files instead of copying them; a VACUUM of this table may remove them.
            replace: replace an existing table; only what has changed since is copied.
            properties: set in the clone; they override this table's.

        Returns:
            the clone.

        Raises:
            TableAlreadyExists: the target exists, and ``replace`` is False.
            CloneRefused, InvalidProperty, MissingDataFile: it cannot be cloned; nothing was committed.
            DeltaConcurrentModificationException: the target was written meanwhile.

        Example:
            >>> table.clone("/data/copy", isShallow=True).delete("carrier = 'UA'")
        """
        return self._clone(target, isShallow, replace, properties, {})

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """As `clone`, of an older version.

        Raises:
        """
        whole_number("version", version)
        return self._clone(target, isShallow, replace, properties, {"version": version})

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """As `clone`, of the version at a time; without a zone, in the session's time zone.

        Raises:
            InvalidTimestamp, TimestampBeforeEarliestCommit, TimestampAfterLatestCommit: no version matches it.
        """
        text("timestamp", timestamp)
        return self._clone(target, isShallow, replace, properties, {"timestamp": timestamp})

    @honours("CLONE")
    def _clone(
        self, target: str, shallow: bool, replaces: bool, properties: Mapping[str, str] | None, at: Mapping[str, Any]
    ) -> DeltaTable:
        text("target", target)
        for option, value in (("isShallow", shallow), ("replace", replaces)):
            of_type(option, value, bool, "a boolean")
        values = {} if properties is None else properties
        if not isinstance(values, Mapping) or not all(
            isinstance(item, str) for pair in values.items() for item in pair
        ):
            raise InvalidArgument(option="properties", value=properties, reason="it takes a dict of text to text.")
        at = {**at, "zone": self._engine.zone()} if "timestamp" in at else at
        clone = Clone(self._path, target, shallow, replace=replaces, properties=dict(values), **at)
        name = None if is_path(target) else parts_of(target)
        destination = target if name is None else Resolver(self._spark).target(name)
        if isinstance(destination, str):
            dataclasses.replace(clone, target=destination).run()
            return DeltaTable.forPath(self._spark, destination, self._file_settings)
        if destination.entry is not None and not replaces:
            raise NameTaken(name=name_to_sql(destination.name), table=destination.location)
        with register_name(self._spark, destination):
            dataclasses.replace(clone, target=destination.location).run()
        return DeltaTable.forName(self._spark, name_to_sql(destination.name))

    def restoreToVersion(self, version: int) -> DataFrame:
        """Restores the table to a version; returns one row of Delta's metrics.

        With ``spark.sql.files.ignoreMissingFiles``, missing files of that version are left out.

        Raises:
            VersionNotFound: the version does not exist, or no longer. RestoreFilesMissing: a file of it is gone.
            InvalidOption: it is not a version, or is the newest.
            DeltaConcurrentModificationException: the table was changed meanwhile, or a VACUUM runs.

        Example:
            >>> table.restoreToVersion(7).collect()
        """
        whole_number("version", version)
        return self._restore(Restore(self._path, version=version, ignore_missing=self._ignores_missing()))

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """Restores the table to a time, in the session's zone; returns a row of Delta's metrics.

        Raises:
            InvalidTimestamp: it is not a timestamp. TimestampBeforeEarliestCommit, TimestampAfterLatestCommit: no
            version matches it; and as `restoreToVersion`.

        Example:
            >>> table.restoreToTimestamp("2024-01-31")
        """
        text("timestamp", timestamp)
        ignores = self._ignores_missing()
        return self._restore(Restore(self._path, timestamp=timestamp, ignore_missing=ignores, zone=self._engine.zone()))

    def generate(self, mode: str) -> None:
        """Writes manifests for readers without Delta support; ``mode`` is ``symlink_format_manifest``.

        Raises:
            InvalidOption: the mode does not exist.
            ManifestRefused: files have deletion vectors, or other column names than the table.
        """
        Generate(self._path, mode).run()

    def check(self, deep: bool = False) -> Report:
        """Checks that the log describes the newest version correctly; ``deep`` reads every row."""
        return check_table(self._path, deep=deep)

    @honours("RESTORE")
    def _restore(self, command: Restore) -> DataFrame:
        row = command.run().row
        self._refresh_catalog()
        return self._engine.rows(pa.Table.from_pylist([row], schema=RESULT))

    def _refresh_catalog(self) -> None:
        """Updates the catalog, if this handle has a name and the table may have other columns."""
        refresh_by_name(self._spark, self._name, self._path)

    def _ignores_missing(self) -> bool:
        return str(self._spark.conf.get("spark.sql.files.ignoreMissingFiles", "false")).strip().lower() == "true"

    def _condition(self, condition: str | Column | None, snapshot: Snapshot) -> Condition:
        if condition is None:
            return EVERY_ROW
        return resolve_condition(condition, snapshot, self._engine, queries=True, alias=self._alias)


def _session(spark: SparkSession | None) -> SparkSession:
    session = spark or SparkSession.getActiveSession()
    if session is None:
        raise InvalidOption(option="sparkSession", value=None, reason="there is no active session; pass one.")
    check_session("sparkSession", session)
    return session
