"""``anabranch.session``, ``anabranch.read`` and ``anabranch.changes``: a ready session, DataFrames of a version's rows
with file skipping, and of changes between versions. For the command line, the entries of the session's catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession

from anabranch._api.install import install
from anabranch._api.session_first import takes_session_first
from anabranch._catalog.entry import Entry
from anabranch._catalog.resolver import Resolver
from anabranch._catalog.table_names import parts_of
from anabranch._spark.engine import SparkEngine
from anabranch._spark.sessions.consoles import find_site_settings, outlives_sessions
from anabranch._spark.sessions.file_settings import use_session_settings
from anabranch._spark.sessions.session import build
from anabranch._sql.conditions import resolve_condition
from anabranch._storage.open import for_spark
from anabranch.commands.opening import Location, file_set
from anabranch.commands.queries.change_feed import ReadChanges
from anabranch.commands.queries.read import Read, files_to_read, row_id_columns
from anabranch.commands.queries.time_travel import AsOf
from anabranch.errors import MissingJava, UnknownColumn, UnknownPathOrName
from anabranch.errors.inputs import check_session

__all__ = ["changes", "read", "session"]

_CATALOG = "spark.sql.catalogImplementation"
_IN_MEMORY = f"Spark's catalog is in the memory of one application, and lasts no longer ({_CATALOG})."


def session(app: str = "anabranch", master: str | None = None, **conf: Any) -> SparkSession:
    """Builds or gets a local session with `anabranch.install` done.

    The workers use this Python, Parquet timestamps are micros, and memory suits the machine.

    Args:
        app: the application's name.
        master: as for Spark; ``local[*]`` if not given.
        conf: further settings, dots written as double underscores (``spark__sql__shuffle__partitions=4``) or as a
            ``**dict``.

    Raises:
        MissingJava: no Java 17 or newer is found.
    """
    return install(build(app, master, {name.replace("__", "."): str(value) for name, value in conf.items()}))


@takes_session_first
def read(
    path_or_name: Location,
    where: str | Column | None = None,
    columns: Sequence[str] | None = None,
    version: int | None = None,
    timestamp: Any = None,
    row_ids: bool = False,
    storage_options: Mapping[str, str] | None = None,
    *,
    spark: SparkSession | None = None,
) -> DataFrame:
    """The rows for which ``where`` is TRUE, without opening files that the log's statistics rule out.

    Args:
        path_or_name: path or URL of the table, or its name if no such path exists; ``@v3`` or ``@20240131000000000``
            behind a path selects a version too.
        where: SQL text or a Column; text skips more.
        columns: the columns to keep, in this order.
        version: an older version.
        timestamp: text, a date or a datetime: selects the newest version at that time, in the session's time zone
            unless it names one.
        row_ids: adds the columns ``_row_id`` and ``_row_commit_version``, if the table tracks its rows.
        storage_options: as in obstore, for this call; Spark reads the rows with the same ones.
        spark: any session; by default the active one. It may also be the first argument, before the table.

    Raises:
        NotATable, VersionNotFound, UnknownColumn, InvalidCondition.
        TimestampBeforeEarliestCommit, TimestampAfterLatestCommit: no version exists at that time.
        InvalidTimestamp, AmbiguousTimeTravel: the version is specified wrongly, or more than once.
        InvalidArgument: ``spark`` is not a session, or none is active.
        InvalidOption: ``row_ids`` of a table that does not track its rows.
        NotBuilt: Spark's connector does not support one of the ``storage_options``.
    """
    spark = _active(spark)
    with use_session_settings(spark):
        path = Resolver(spark).anywhere(path_or_name).location
    with use_session_settings(spark, for_spark(path, storage_options or {})):
        as_of = AsOf(path, version, timestamp, SparkEngine(spark).zone(), storage_options)
        return _read(spark, as_of, where, columns, row_ids)


def _read(
    spark: SparkSession, as_of: AsOf, where: str | Column | None, columns: Sequence[str] | None, row_ids: bool
) -> DataFrame:
    engine, (location, number) = SparkEngine(spark), as_of.resolve_version()
    snapshot = Read(location, number, storage_options=as_of.storage_options).snapshot()
    condition = None if where is None else resolve_condition(where, snapshot, engine)
    files = file_set(snapshot, files_to_read(snapshot, condition.predicate if condition else None, condition))
    for name in columns or ():
        if files.schema.find(name) is None:
            raise UnknownColumn(table=files.root, column=name, columns=", ".join(files.schema.names))
    ids = row_id_columns(files) if row_ids else None
    return engine.to_df(files, condition, columns, ids, as_of=number is not None, whole=condition is None)


def look_up_entry(name: str, start: Callable[[], SparkSession] = session) -> Entry | None:
    """The entry of a table in the catalog of this machine's session; None if the name is not valid. Starts no session
    for a catalog that would be empty.

    Args:
        start: returns the session.

    Raises:
        UnknownPathOrName: the table does not exist, or there is no session; with the reason.
    """
    if parts_of(name) is None:
        return None
    if SparkSession.getActiveSession() is None and not outlives_sessions(find_site_settings()):
        raise UnknownPathOrName(name=name, reason=_IN_MEMORY)
    try:
        spark = start()
    except MissingJava as error:
        raise UnknownPathOrName(name=name, reason=error.message) from None
    with use_session_settings(spark):
        table = Resolver(spark).find(name)
    if table is None:
        in_memory = spark.conf.get(_CATALOG) == "in-memory"
        raise UnknownPathOrName(name=name, reason=_IN_MEMORY if in_memory else "check its schema.")
    return table.entry


@takes_session_first
def changes(
    path_or_name: Location,
    start: int | None = None,
    end: int | None = None,
    start_timestamp: Any = None,
    end_timestamp: Any = None,
    *,
    spark: SparkSession | None = None,
) -> DataFrame:
    """The rows that each version of a range inserted and deleted, followed by the columns ``_change_type``,
    ``_commit_version`` and ``_commit_timestamp``.

    Args:
        path_or_name: path or URL of the table, or its name if no such path exists.
        start: the first version.
        end: the last version, by default the newest.
        start_timestamp: instead of ``start``, selects the first version at or after this time: text, a date or a
            datetime, in the session's time zone unless it names one.
        end_timestamp: instead of ``end``, selects the last version at or before this time.
        spark: any session; by default the active one. It may also be the first argument, before the table.

    Raises:
        ChangeDataNotRecorded: the table did not record its changes at one of these versions.
        NoChangeStart, InvalidChangeRange, InvalidOption, InvalidTimestamp: the range is invalid.
        NotATable, VersionNotFound, TimestampBeforeEarliestCommit, TimestampAfterLatestCommit: no version matches.
        ChangeSchemaChanged, ChangeSchemaDiffers: the columns changed within the range.
        ChangeFilesMissing: a VACUUM has removed a file of these versions.

    Example:
        >>> anabranch.changes("/data/flights", start=3).filter("_change_type = 'delete'").show()
    """
    spark = _active(spark)
    with use_session_settings(spark):
        engine, path = SparkEngine(spark), Resolver(spark).anywhere(path_or_name).location
        command = ReadChanges(path, start, end, start_timestamp, end_timestamp, engine.zone(), engine.reads_beyond())
        return engine.changes(command.run())


def _active(spark: SparkSession | None) -> SparkSession:
    """The given session, or the active one. Raises `InvalidArgument`."""
    session = spark if spark is not None else SparkSession.getActiveSession()
    check_session("spark", session)
    return cast("SparkSession", session)
