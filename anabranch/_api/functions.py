"""The functions that need no Spark: ``append``, ``appender``, ``clone``, ``files``, ``explain``, ``history``,
``check``, ``restore``, ``fsck``, ``generate``, ``vacuum``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa

from anabranch._api.session_first import takes_session_first
from anabranch._catalog.table_names import may_be_name
from anabranch._expressions import Context, condition, conjuncts, describe_unusable
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.layout.clustering import paths_of
from anabranch._protocol.predicates import Predicate
from anabranch._transaction.commit import CommitResult
from anabranch.commands.context import Progress, RunContext, ignore_progress
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.appender import Appender
from anabranch.commands.idempotence import application
from anabranch.commands.maintenance.check import Report, check_table
from anabranch.commands.maintenance.clone import Clone
from anabranch.commands.maintenance.fsck import Fsck, Repair
from anabranch.commands.maintenance.generate import Generate, Manifests
from anabranch.commands.maintenance.restore import Restore, RestoreResult
from anabranch.commands.maintenance.vacuum import Vacuum, VacuumResult
from anabranch.commands.opening import Location, open_log
from anabranch.commands.queries.describe import history as describe_history
from anabranch.commands.queries.explain import Skipping
from anabranch.commands.queries.explain import explain as explain_skipping
from anabranch.commands.queries.read import files as live_files
from anabranch.errors.html import Rows
from anabranch.errors.inputs import check_session

__all__ = [
    "append",
    "appender",
    "check",
    "clone",
    "explain",
    "files",
    "fsck",
    "generate",
    "history",
    "restore",
    "vacuum",
]


@takes_session_first
def append(
    path_or_name: Location,
    rows: Any,
    *,
    spark: Any = None,
    partition_by: str | tuple[str, ...] | list[str] | None = None,
    cluster_by: str | tuple[str, ...] | list[str] | None = None,
    properties: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    txn_app_id: str | None = None,
    txn_version: int | None = None,
    schema_change: Literal["merge"] | None = None,
) -> int:
    """Appends rows in one commit, without a Spark job; creates the table with them if it does not exist.

    A blind append, unless it changes the columns: it conflicts with nothing, and reads protocol and metadata only.

    Args:
        path_or_name: path or URL of the table, or, with a session, the name of an existing one.
        rows: an Arrow table, a pandas DataFrame, a list of dicts or a dict of lists; no rows make a version too, if the
            table exists or they name columns.
        spark: a session, whose settings apply as to a write of a DataFrame. It resolves the table's name, and opens
            stores that neither the environment nor ``storage_options`` configure. It may also be the first argument,
            before the table.
        partition_by: a column, or several, for a new table.
        cluster_by: a column, or several, for a new table; not together with ``partition_by``.
        properties: for a new table.
        storage_options: as in obstore.
        txn_app_id: makes the append idempotent, together with ``txn_version``: if this application has already
            committed this version or a later one, nothing is done.
        txn_version: a whole number that grows from one write of the application to the next.
        schema_change: ``merge`` adds the columns, and the members of structs, that only the rows have, and widens
            types if the table has type widening, as the option ``mergeSchema`` of a DataFrame writer does.

    Returns:
        the version with the rows; if nothing was done, the newest one.

    Raises:
        SchemaMismatch: a column does not fit the table; nothing was written.
        RowViolation: a row breaks a rule of the table, such as a CHECK constraint; nothing was written.
        NotBuilt: the table has a rule that only Spark can check; nothing was written.
        ConcurrentTransactionException: the same application wrote meanwhile; run it again.
        MetadataChangedException: the columns change, and others changed them meanwhile; run it again.
        CommitOutcomeUnknown: the store never answered.

    Example:
        >>> anabranch.append("/data/flights", [{"carrier": "UA", "flight": 1545}])
        0
    """
    command = _append(spark, path_or_name, partition_by, cluster_by, properties, storage_options)
    with _speaking(spark), _honouring(spark):
        txn = application(txn_app_id, txn_version)
        return replace(command, rows=rows, txn=txn, schema_change=schema_change).run().version


@takes_session_first
def appender(
    path_or_name: Location,
    *,
    spark: Any = None,
    partition_by: str | tuple[str, ...] | list[str] | None = None,
    cluster_by: str | tuple[str, ...] | list[str] | None = None,
    properties: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Appender:
    """Combines the appends of many threads of this process into few commits.

    Rows that arrive during a commit wait, and go together into the next one: many small concurrent appends make few
    versions and few files. Each caller gets the version with its own rows. The first rows create a missing table.

    Args:
        path_or_name, spark, partition_by, cluster_by, properties, storage_options: as for `append`.

    Returns:
        an object with ``append(rows)``, which waits for its commit, and ``submit(rows)``, which returns a
        ``concurrent.futures.Future`` of the version. Use it in a ``with`` statement, or ``close()`` it.

    Raises:
        UnknownPathOrName: no table has this name.

    Example:
        >>> with anabranch.appender("/data/flights") as flights:
        ...     flights.append([{"carrier": "UA", "flight": 1545}])  # from any thread
        0
    """
    command = _append(spark, path_or_name, partition_by, cluster_by, properties, storage_options)
    with _speaking(spark):
        return Appender(command)


def _speaking(spark: Any) -> AbstractContextManager[None]:
    """Within the block, stores are opened with the settings of the session, if any."""
    if spark is None:
        return nullcontext()
    from anabranch._spark.sessions.file_settings import use_session_settings

    return use_session_settings(spark)


def _honouring(spark: Any) -> AbstractContextManager[None]:
    """Within the block, the settings of the session apply, if any."""
    if spark is None:
        return nullcontext()
    from anabranch._spark.sessions.settings import honour_settings

    return honour_settings(spark, "WRITE")


def _append(
    spark: Any,
    path_or_name: Location,
    partition_by: str | tuple[str, ...] | list[str] | None,
    cluster_by: str | tuple[str, ...] | list[str] | None,
    properties: Mapping[str, str] | None,
    storage_options: Mapping[str, str] | None,
) -> Append:
    """An append without its rows."""
    place = path_or_name
    if spark is not None:
        check_session("spark", spark)
    if spark is not None and may_be_name(path_or_name):
        from anabranch._catalog.resolver import Resolver  # needs Spark; paths do not

        with _speaking(spark):
            place = Resolver(spark).anywhere(path_or_name).location
    return Append(
        place,
        (),
        _names(partition_by),
        dict(properties or {}),
        storage_options,
        cluster_by=None if cluster_by is None else paths_of(_names(cluster_by) or ()),
    )


def _names(columns: str | tuple[str, ...] | list[str] | None) -> tuple[str, ...] | None:
    return (columns,) if isinstance(columns, str) else None if columns is None else tuple(columns)


def clone(
    source: Location,
    target: Location,
    *,
    shallow: bool,
    version: int | None = None,
    timestamp: str | dt.datetime | dt.date | None = None,
    replace: bool = False,
    properties: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    target_options: Mapping[str, str] | None = None,
) -> CommitResult:
    """Creates a table at ``target`` with the state of ``source``, now or at a version or time, in one commit.

    Args:
        source: path or URL of a table.
        target: path or URL of the clone; neither may be in the other's folder.
        shallow: refer to the source's files instead of copying them; a VACUUM of the source may remove them.
        version: of the source; the newest by default.
        timestamp: of the source; in UTC unless it names a zone.
        replace: replace an existing table; only what has changed since is copied.
        properties: set in the clone; they override the source's.
        storage_options: of the source, as in obstore, and of the target unless it has ``target_options``.
        target_options: of the target.

    Returns:
        the clone's ``version`` and ``metrics``.

    Raises:
        TableAlreadyExists: the target exists, and ``replace`` is False.
        CloneRefused, InvalidProperty, MissingDataFile: it cannot be cloned; nothing was committed.
        DeltaConcurrentModificationException: the target was written meanwhile.

    Example:
        >>> anabranch.clone("/data/flights", "/data/copy", shallow=False).metrics["numCopiedFiles"]
        14
    """
    return Clone(
        source,
        target,
        shallow,
        version,
        timestamp,
        replace=replace,
        properties=dict(properties or {}),
        storage_options=storage_options,
        target_options=target_options,
    ).run()


def files(
    path: Location,
    where: str | None = None,
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> pa.Table:
    """The live files that may hold rows for which ``where`` is TRUE, as an Arrow table (path, size, rows, partition
    values, vector).

    Raises:
        NotATable, VersionNotFound, InvalidCondition.
    """
    if where is None:
        return live_files(path, None, version, storage_options)
    snapshot = open_log(path, storage_options).snapshot(version)
    predicate = _resolve_predicate(where, snapshot, _context(snapshot))
    return live_files(path, predicate, version, storage_options)


def explain(
    path: Location, where: str, version: int | None = None, storage_options: Mapping[str, str] | None = None
) -> Skipping:
    """Explains the file skipping of ``where``: files and bytes in total and to read, and for each part of the
    condition how many files it ruled out and why not more. Print it, or read its fields.

    Raises:
        NotATable, VersionNotFound, InvalidCondition.

    Example:
        >>> print(anabranch.explain("/data/flights", "day = '2013-01-01' AND length(carrier) > 2"))
        file:///data/flights at version 7: 1 of 365 files, 0.8 MB of 290.4 MB
          day = '2013-01-01': 364 ruled out
          length(carrier) > 2: 0 ruled out (not understood)
    """
    snapshot = open_log(path, storage_options).snapshot(version)
    context = _context(snapshot)
    return explain_skipping(snapshot, where, _resolve_predicate(where, snapshot, context), conjuncts(where, context))


def _context(snapshot: Snapshot) -> Context:
    return Context(snapshot.table, snapshot.schema, dt.datetime.now(dt.UTC), "UTC", lambda names: True)


def _resolve_predicate(where: str, snapshot: Snapshot, context: Context) -> Predicate:
    parsed = condition(where, context)
    if parsed.columns is None:
        raise describe_unusable(where, context)
    return parsed.predicate


def history(
    path: Location, limit: int | None = None, storage_options: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """The newest commits first, one dict per commit, with the columns of DESCRIBE HISTORY, ``txnId``, and ``steps``:
    whether Arrow, Spark or the log alone did each step. A notebook shows them as a table.

    Raises:
        NotATable: the path has no table.
    """
    return Rows(describe_history(path, limit, storage_options), f"history of {path}")


def check(
    path: Location, version: int | None = None, *, deep: bool = False, storage_options: Mapping[str, str] | None = None
) -> Report:
    """Checks that the log describes a version correctly: files, sizes, vectors, statistics, protocol; ``deep`` reads
    every row.

    Raises:
        NotATable, VersionNotFound, CorruptLog: the version cannot be opened.
    """
    return check_table(path, version, deep=deep, storage_options=storage_options)


def restore(
    path: Location,
    version: int | None = None,
    timestamp: Any = None,
    *,
    ignore_missing: bool = False,
    dry_run: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> RestoreResult:
    """Restores the table to a version or timestamp: rows, columns, partitioning, properties.

    Args:
        timestamp: as in time travel; in UTC unless it names a zone.
        ignore_missing: leave out missing files of that version, instead of raising.
        dry_run: commit nothing; only report what would be done.

    Returns:
        the restored version, and Delta's metrics.

    Raises:
        VersionNotFound, TimestampBeforeEarliestCommit, TimestampAfterLatestCommit: the version does not exist.
        RestoreFilesMissing: a file of it is missing; nothing was written.
        DeltaConcurrentModificationException: the table was changed meanwhile, or a VACUUM runs; run it again.

    Example:
        >>> anabranch.restore("/data/flights", version=7).metrics["numRestoredFiles"]
        3
    """
    return Restore(path, version, timestamp, ignore_missing, storage_options=storage_options, dry_run=dry_run).run()


def fsck(path: Location, *, dry_run: bool = True, storage_options: Mapping[str, str] | None = None) -> Repair:
    """Finds live files that cannot be read, since their data or their deletion vector is missing; without ``dry_run``
    removes them, and so their rows, from the table.

    Raises:
        StoreError: the store did not answer whether a file exists; nothing was written.
        DeltaConcurrentModificationException: one of the files changed, or reappeared, meanwhile; run it again.

    Example:
        >>> anabranch.fsck("/data/flights").missing
        ()
    """
    return Fsck(path, dry_run, storage_options).run()


def generate(
    path: Location, mode: str = "symlink_format_manifest", *, storage_options: Mapping[str, str] | None = None
) -> Manifests:
    """Writes manifests, which list the live files, for readers without Delta support.

    Raises:
        InvalidOption: the mode does not exist. ManifestRefused: a list of files cannot represent the table.

    Example:
        >>> anabranch.generate("/data/flights").written
        ('_symlink_format_manifest/manifest',)
    """
    return Generate(path, mode, storage_options).run()


def vacuum(
    path: Location,
    retention_hours: float | None = None,
    dry_run: bool = False,
    lite: bool = False,
    *,
    check_retention: bool = True,
    storage_options: Mapping[str, str] | None = None,
    progress: Progress = ignore_progress,
) -> VacuumResult:
    """Removes files that no version of the last ``retention_hours`` needs.

    Writers and readers may run meanwhile; no live file is ever removed, however long any of them pauses.

    Args:
        path: path or URL of the table.
        retention_hours: by default the table's ``delta.deletedFileRetentionDuration``.
        dry_run: remove and commit nothing; only report what would be removed.
        lite: consider only files that the log has as removed, without listing the folder.
        check_retention: refuse a shorter retention than the table's.
        storage_options: as in obstore.
        progress: called for each step with its name, the amount done, and the total.

    Returns:
        the files with their sizes, the files that could not be removed and why, and the running jobs that were spared.

    Raises:
        RetentionTooShort: the retention is shorter than the table's.
        LiteVacuumImpossible: the log that LITE needs was cleaned up.
        NotATable, UnsupportedFeature, StoreError.

    Example:
        >>> anabranch.vacuum("/data/flights", dry_run=True).bytes
    """
    command = Vacuum(path, retention_hours, dry_run, lite, check_retention, storage_options)
    return command.run(context=RunContext(progress=progress))
