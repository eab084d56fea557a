"""``DeltaTable`` and its builders, name for name as in ``delta.tables``.

A door: it turns what the user wrote into commands and runs them on Spark. What is not built yet is refused by name.
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
from anabranch._api.merge_builder import DeltaMergeBuilder
from anabranch._api.opening import opening
from anabranch._api.optimize_builder import DeltaOptimizeBuilder
from anabranch._api.skipping import rows_of
from anabranch._api.table_builder import DeltaTableBuilder, IdentityGenerator
from anabranch._api.timeline.view import Timeline
from anabranch._api.timeline.view import timeline as timeline_of
from anabranch._catalog.named_tables import naming, refresh_by_name
from anabranch._catalog.names import Name, display_name, is_path, name_to_sql, parts_of
from anabranch._catalog.resolver import Resolver
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.conditions import Condition
from anabranch._protocol.settings import VACUUMS_LITE
from anabranch._spark.engine import SparkEngine
from anabranch._spark.sessions.file_settings import speaking, speaks
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
from anabranch.commands.queries.read import Read
from anabranch.commands.queries.timeline.read import LAST
from anabranch.errors import InvalidArgument, InvalidOption, NameTaken
from anabranch.errors.inputs import check_session
from anabranch.errors.secrets import without_secrets

__all__ = ["DeltaMergeBuilder", "DeltaOptimizeBuilder", "DeltaTable", "DeltaTableBuilder", "IdentityGenerator"]


@speaks
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
                count more than the session's and the environment. A local path needs none.

        Raises:
            NotATable: there is none. InvalidOption: a setting is of something else, or would be mixed with what the
            environment says. NotBuilt: the two sides could not both follow a setting.
        """
        check_session("sparkSession", sparkSession)
        settings = file_settings(hadoopConf)
        with speaking(sparkSession, settings), opening():
            open_log(path).snapshot()
        return cls(sparkSession, path, file_settings=settings)

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """The table of a name in Spark's catalog; the last part of the name is its alias, unless a column is called so.

        Raises:
            UnknownTable: there is no Delta table of this name. NotATable: its files are gone.
        """
        check_session("sparkSession", sparkSession)
        with speaking(sparkSession), opening():
            found = Resolver(sparkSession).require_table(tableOrViewName)
            schema = open_log(found.location).snapshot().schema
        own = None if found.name is None else found.name[-1]
        alias = None if own is None or schema.find(own) is not None else own
        return cls(sparkSession, found.location, alias, found.name)

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether there is a Delta table at this path, or of this name in Spark's catalog."""
        check_session("sparkSession", sparkSession)
        with speaking(sparkSession):
            if open_log(identifier).exists():
                return True
            found = Resolver(sparkSession).find(identifier)
            return found is not None and open_log(found.location).exists()

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """A builder that creates a table, and fails where there is one."""
        return DeltaTableBuilder(_session(sparkSession), cls)

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """A builder that creates a table where there is none."""
        return DeltaTableBuilder(_session(sparkSession), cls, if_not_exists=True)

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """A builder that puts an empty table in the place of the one that there is, and fails where there is none."""
        return DeltaTableBuilder(_session(sparkSession), cls, replaces=True)

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """A builder that puts an empty table in the place of the one that there is, or creates it."""
        return DeltaTableBuilder(_session(sparkSession), cls, if_not_exists=True, replaces=True)

    @classmethod
    def convertToDelta(cls, sparkSession: SparkSession, identifier: str, partitionSchema: Any = None) -> DeltaTable:
        """Make a Delta table of a folder of Parquet files, which stay as they are; nothing happens where it is one.

        Args:
            identifier: ``parquet.`` and the path in backticks.
            partitionSchema: the columns that folders ``name=value`` stand for, as SQL (``day DATE, hour INT``) or as
                a ``StructType``, in the order of the folders.

        Raises:
            EmptyDirectory, UnreadableFooter, SchemaMergeFailed, UnexpectedPartition, ConversionRefused: the folder
            cannot be converted as it is. ProtocolChangedException: another writer created the table meanwhile.
            NameNotConverted: it is the name of a Parquet table.

        Example:
            >>> DeltaTable.convertToDelta(spark, "parquet.`/data/flights`", "day DATE")
        """
        check_session("sparkSession", sparkSession)
        name = table_name(identifier)
        if name is not None:
            found = Resolver(sparkSession).find(identifier)
            return cls.forName(sparkSession, identifier) if found else refuse_conversion(sparkSession, name)
        form, path = parquet_path(identifier)
        if form == "parquet":
            with speaking(sparkSession), honour_settings(sparkSession, "CONVERT"):
                Convert(path, partition_columns(partitionSchema)).run()
        return cls.forPath(sparkSession, path)

    def __repr__(self) -> str:
        return f"DeltaTable({without_secrets(str(self._path))!r})"

    def toDF(self) -> DataFrame:
        """The rows of the newest version, pinned: later commits do not change this DataFrame."""
        snapshot = Read(self._path).snapshot()
        rows = rows_of(self._spark, snapshot, file_set(snapshot))
        return rows if self._alias is None else rows.alias(self._alias)

    def alias(self, aliasName: str) -> DeltaTable:
        """The same table under a name, by which conditions and values, and `toDF`, may speak of its columns.

        Example:
            >>> table.alias("t").merge(updates.alias("s"), "t.id = s.id")
        """
        if not isinstance(aliasName, str) or not aliasName:
            raise InvalidArgument(option="aliasName", value=aliasName, reason="it takes a name.")
        return DeltaTable(self._spark, self._path, aliasName, self._name, self._file_settings)

    def optimize(self) -> DeltaOptimizeBuilder:
        """A builder that lays out the table's files anew, in fewer files or in an order that lets more be skipped.

        Example:
            >>> table.optimize().where("day >= '2024-01-01'").executeCompaction()
            >>> table.optimize().executeZOrderBy("carrier", "dep_time")
        """
        return DeltaOptimizeBuilder(self._spark, self._path, _file_settings=self._file_settings)

    @honours("DELETE")
    def delete(self, condition: str | Column | None = None) -> None:
        """Delete the rows for which the condition is TRUE, or every row.

        Raises:
            InvalidCondition: the condition does not fit the table. ConcurrentDeleteDeleteException,
            ConcurrentDeleteReadException, ConcurrentAppendException: a winner stands in the way.
        """
        snapshot = open_log(self._path).snapshot()
        Delete(self._path, self._condition(condition, snapshot)).run(self._engine, RunContext(at=snapshot))

    @honours("UPDATE")
    def update(self, condition: str | Column | None = None, set: Mapping[str, str | Column] | None = None) -> None:
        """Set columns of the rows for which the condition is TRUE, or of every row.

        Args:
            condition: SQL text or a Column.
            set: column, or member of a struct such as ``s.a`` -> SQL text or a Column, evaluated on the old row.

        Raises:
            UnknownColumn, InvalidCondition, SchemaMismatch: the command does not fit the table.
            ConcurrentDeleteReadException, ConcurrentAppendException: a winner stands in the way.
        """
        given = assignments("set", set)
        if condition is not None:
            check_condition("condition", condition)
        snapshot = open_log(self._path).snapshot()
        values = resolve_values(given, snapshot, self._engine, self._alias)
        Update(self._path, values, self._condition(condition, snapshot)).run(self._engine, RunContext(at=snapshot))

    def merge(
        self, source: DataFrame, condition: str | Column, *, reads_target: bool | int = False
    ) -> DeltaMergeBuilder:
        """Begin a MERGE: rows of this table and of the source match where the condition is TRUE.

        Args:
            source: a DataFrame; it is evaluated once. Where it reads this table, the MERGE starts from the version
                that it reads, and any change since stands in its way.
            condition: SQL text or a Column over the columns of both, under their aliases.
            reads_target: says of a source which hides it (an RDD, collected rows) that it was computed from this
                table: from this version, or True for the newest.

        Returns:
            a builder; nothing happens before its ``execute()``.

        Raises:
            InvalidArgument: the source is no DataFrame, or the condition neither text nor a Column.
        """
        if not isinstance(source, DataFrame):
            given = f"{type(source).__module__}.{type(source).__qualname__}"
            reason = "it must be DataFrame of Spark, as spark.createDataFrame makes one."
            raise InvalidArgument(option="source", value=given, reason=reason)
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
            InvalidOption: the limit is no whole number from 0.
        """
        return self._engine.rows(as_table(history(self._path, limit), SHOWN_HISTORY))

    def timeline(self, last: int = LAST) -> Timeline:
        """The newest ``last`` versions: what each did, the table after it, and what would help. A notebook shows it as
        a page; ``save(path)`` writes that page. Delta-spark has no such method.

        Raises:
            InvalidOption: ``last`` is no whole number from 1.
        """
        return timeline_of(self._path, last)

    @honours("VACUUM")
    def vacuum(self, retentionHours: float | None = None) -> DataFrame:
        """Remove the files that no version needs which was the newest within the last ``retentionHours``, by default
        the table's ``delta.deletedFileRetentionDuration``. Gives an empty DataFrame, as delta-spark does.

        Raises:
            RetentionTooShort: that is less than the table says, and the session's setting
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
        found = detail(self._path)
        return self._engine.rows(
            as_table([found if self._name is None else {**found, "name": display_name(self._name)}], DETAIL)
        )

    @honours("ALTER")
    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Raise the versions of the protocol that the table demands; they never go down.

        Raises:
            InvalidOption: a version is lower than the table's, or there is none such.
            ProtocolChangedException: the table was written meanwhile.
        """
        for option, value in (("readerVersion", readerVersion), ("writerVersion", writerVersion)):
            whole_number(option, value)
        UpgradeProtocol(self._path, readerVersion, writerVersion).run()

    @honours("ALTER")
    def addFeatureSupport(self, featureName: str) -> None:
        """List a feature in the table's protocol; nothing happens where it has it.

        Raises:
            UnsupportedFeature: this version does not know it, or does not hold what it asks.
            ProtocolChangedException: the table was written meanwhile.
        """
        text("featureName", featureName)
        AddFeatureSupport(self._path, featureName).run()

    @honours("DROP FEATURE")
    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Take a feature out of the table's protocol, so that engines which do not know it can use the table.

        Args:
            featureName: its name; what uses it is removed first, as far as the feature can be removed.
            truncateHistory: whether history that is old enough is cut off, instead of being guarded.

        Raises:
            FeatureNotDropped: a rule forbids it, or history still needs the feature; its condition says which.
            DeltaConcurrentModificationException: the table was written meanwhile.
        """
        text("featureName", featureName)
        if truncateHistory is not None:
            of_type("truncateHistory", truncateHistory, bool, "a boolean")
        DropFeature(self._path, featureName, bool(truncateHistory)).run(self._engine)

    def clone(
        self, target: str, isShallow: bool = False, replace: bool = False, properties: Mapping[str, str] | None = None
    ) -> DeltaTable:
        """Make a table at another place that is as this one is now.

        Args:
            target: absolute path or URL of the clone, ``delta.`path` ``, or its name in Spark's catalog.
            isShallow: name this table's files instead of copying them; a VACUUM here may take them away.
            replace: put it in the place of a table that is there; only what has changed since is copied.
            properties: set in the clone, whatever this table says.

        Returns:
            the clone.

        Raises:
            TableAlreadyExists: there is a table, and this is not ``replace``.
            CloneRefused, InvalidProperty, MissingDataFile: it cannot be cloned so; nothing was committed.
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
            VersionNotFound: there is no such version.
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
        """As `clone`, of the version of a moment; without a zone, it is one of the session's.

        Raises:
            InvalidTimestamp, TimestampBeforeEarliestCommit, TimestampAfterLatestCommit: no version stands for it.
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
        said = {} if properties is None else properties
        if not isinstance(said, Mapping) or not all(isinstance(each, str) for pair in said.items() for each in pair):
            raise InvalidArgument(option="properties", value=properties, reason="it takes a dict of text to text.")
        at = {**at, "zone": self._engine.zone()} if "timestamp" in at else at
        clone = Clone(self._path, target, shallow, replace=replaces, properties=dict(said), **at)
        name = None if is_path(target) else parts_of(target)
        named = target if name is None else Resolver(self._spark).target(name)
        if isinstance(named, str):
            dataclasses.replace(clone, target=named).run()
            return DeltaTable.forPath(self._spark, named, self._file_settings)
        if named.entry is not None and not replaces:
            raise NameTaken(name=name_to_sql(named.name), table=named.location)
        with naming(self._spark, named):
            dataclasses.replace(clone, target=named.location).run()
        return DeltaTable.forName(self._spark, name_to_sql(named.name))

    def restoreToVersion(self, version: int) -> DataFrame:
        """Make the table again what it was at a version; one row of Delta's metrics.

        With ``spark.sql.files.ignoreMissingFiles`` it does without the files of that version that are gone.

        Raises:
            VersionNotFound: there is no such version, or not any more. RestoreFilesMissing: a file of it is gone.
            InvalidOption: it is no version, or the newest.
            DeltaConcurrentModificationException: the table was changed meanwhile, or a VACUUM runs.

        Example:
            >>> table.restoreToVersion(7).collect()
        """
        whole_number("version", version)
        return self._restore(Restore(self._path, version=version, ignore_missing=self._ignores_missing()))

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """Make the table again what it was at a moment, in the session's time zone; one row of Delta's metrics.

        Raises:
            InvalidTimestamp: it is none. TimestampBeforeEarliestCommit, TimestampAfterLatestCommit: no version is
            meant; and as `restoreToVersion`.

        Example:
            >>> table.restoreToTimestamp("2024-01-31")
        """
        text("timestamp", timestamp)
        ignores = self._ignores_missing()
        return self._restore(Restore(self._path, timestamp=timestamp, ignore_missing=ignores, zone=self._engine.zone()))

    def generate(self, mode: str) -> None:
        """Write manifests for readers that know no Delta; ``mode`` is ``symlink_format_manifest``.

        Raises:
            InvalidOption: there is no such mode.
            ManifestRefused: files have deletion vectors, or columns other names in files.
        """
        Generate(self._path, mode).run()

    def check(self, deep: bool = False) -> Report:
        """Whether what the log says of the newest version is true; ``deep`` reads every row."""
        return check_table(self._path, deep=deep)

    @honours("RESTORE")
    def _restore(self, command: Restore) -> DataFrame:
        found = command.run().row
        self._refresh_catalog()
        return self._engine.rows(pa.Table.from_pylist([found], schema=RESULT))

    def _refresh_catalog(self) -> None:
        """Let the catalog follow, where this handle has a name and the table may have other columns."""
        refresh_by_name(self._spark, self._name, self._path)

    def _ignores_missing(self) -> bool:
        return str(self._spark.conf.get("spark.sql.files.ignoreMissingFiles", "false")).strip().lower() == "true"

    def _condition(self, given: str | Column | None, snapshot: Snapshot) -> Condition:
        if given is None:
            return EVERY_ROW
        return resolve_condition(given, snapshot, self._engine, queries=True, alias=self._alias)


def _session(spark: SparkSession | None) -> SparkSession:
    found = spark or SparkSession.getActiveSession()
    if found is None:
        raise InvalidOption(option="sparkSession", value=None, reason="there is no active session; pass one.")
    check_session("sparkSession", found)
    return found
