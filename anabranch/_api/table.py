"""``Table``: a Delta table without Spark.

Turns the user's arguments into the same commands that `DeltaTable` runs, on rows in Arrow. Imports no PySpark.
Guarantee: `NeedsSpark` refuses what only Spark can do, with the reason, before anything is committed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._api import functions
from anabranch._api.dials import uses_dials
from anabranch._api.table_merge import TableMerge
from anabranch._api.table_texts import TableTexts
from anabranch._api.timeline.view import Timeline
from anabranch._api.timeline.view import timeline as timeline_of
from anabranch._arrow import finding
from anabranch._arrow.backend import ArrowBackend, without_spark
from anabranch._arrow.changes import changes, feed_schema
from anabranch._arrow.changes import check as check_feed
from anabranch._arrow.merge_source import source_columns
from anabranch._arrow.site import Site, site_without_spark
from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.change_feed import Feed
from anabranch._protocol.conditions import Condition
from anabranch._protocol.dials import NO_DIALS
from anabranch._protocol.layout.clustering import paths_of
from anabranch._protocol.layout.file_sets import FileSet, count_of
from anabranch._protocol.schema.types import Struct, arrow_type
from anabranch._protocol.steps import RowPlan
from anabranch.commands.command_plans import change_plan, merge_plan, optimize_plan
from anabranch.commands.context import RunContext
from anabranch.commands.dml.append import Append, as_arrow
from anabranch.commands.dml.delete import EVERY_ROW, Delete
from anabranch.commands.dml.merge import Merge, MergeResult
from anabranch.commands.dml.update import Update
from anabranch.commands.dml.write import SchemaChange, Write
from anabranch.commands.idempotence import application
from anabranch.commands.maintenance.check import Report
from anabranch.commands.maintenance.optimize import Optimize, OptimizeResult
from anabranch.commands.maintenance.optimize_result import WORKERS
from anabranch.commands.maintenance.restore import RestoreResult
from anabranch.commands.maintenance.vacuum import VacuumResult
from anabranch.commands.opening import Location, file_set, filter_files, live_rows, open_log
from anabranch.commands.queries.change_feed import ReadChanges
from anabranch.commands.queries.describe import detail
from anabranch.commands.queries.read import files_to_read, note_query
from anabranch.commands.queries.time_travel import AsOf
from anabranch.commands.queries.timeline.read import LAST
from anabranch.commands.row_changes import Outcome
from anabranch.errors import InvalidArgument, InvalidOption, UnknownColumn
from anabranch.errors.secrets import without_secrets

__all__ = ["Table"]


@uses_dials
class Table:
    """A Delta table at a path, without Spark: rows in Arrow, in this process.

    A handle acts on the version that is newest when each call starts. Conditions and values are SQL texts over the
    table's columns, as for `DeltaTable`; times without a zone are in UTC. Whatever needs Spark raises `NeedsSpark`.

    Example:
        >>> flights = anabranch.table("/data/flights")
        >>> flights.update("carrier = 'UA'", {"dep_delay": "dep_delay - 5"}).rows
        >>> flights.to_arrow(columns=["carrier", "dep_delay"], where="dep_delay > 60")
    """

    _dials = NO_DIALS  # `anabranch.table` sets others

    def __init__(self, path: Location, storage_options: Mapping[str, str] | None = None) -> None:
        self._path, self._options = path, storage_options

    def __repr__(self) -> str:
        return f"Table({without_secrets(str(self._path))!r})"

    # -- reading rows --------------------------------------------------------------------------------------------------

    def to_arrow(
        self,
        columns: list[str] | None = None,
        where: str | None = None,
        *,
        version: int | None = None,
        timestamp: str | dt.datetime | dt.date | None = None,
    ) -> pa.Table:
        """The rows of the newest version, or of another one, as an Arrow table.

        Args:
            columns: the columns to read; None: all.
            where: SQL text; files without a row for which it can be TRUE are skipped.
            version: the version to read.
            timestamp: reads the newest version at this time, in UTC unless it names a zone.

        Raises:
            NotATable, VersionNotFound, UnknownColumn, InvalidCondition, NeedsSpark, MissingDataFile.
        """
        return self._read(self.snapshot(version, timestamp), columns, where)

    def to_batches(
        self,
        columns: list[str] | None = None,
        where: str | None = None,
        *,
        version: int | None = None,
        timestamp: str | dt.datetime | dt.date | None = None,
    ) -> pa.RecordBatchReader:
        """The rows as `to_arrow` reads them, file by file, as a stream for DuckDB, Polars and others.

        Example:
            >>> duckdb.from_arrow(flights.to_batches(["carrier", "dep_delay"], "day = DATE '2024-01-31'"))
        """
        return self._reader(self.snapshot(version, timestamp), columns, where)

    def _read(self, snapshot: Snapshot, columns: list[str] | None, where: str | None) -> pa.Table:
        """Reads all the rows."""
        return self._reader(snapshot, columns, where).read_all()

    def _reader(self, snapshot: Snapshot, columns: list[str] | None, where: str | None) -> pa.RecordBatchReader:
        """Reads the rows as a stream."""
        files, names, condition = self._plan_scan(snapshot, columns, where)
        with without_spark("reading", snapshot.table):
            _ = condition and finding.check_condition(files.schema, condition)
            finding.check_scanned(files, names)
        schema = pa.schema([(name, arrow_type(files.schema.field(name).type)) for name in names])
        return pa.RecordBatchReader.from_batches(schema, self._rows(snapshot, files, names, condition))

    def _plan_scan(
        self, snapshot: Snapshot, columns: list[str] | None, where: str | None
    ) -> tuple[FileSet, list[str], Condition | None]:
        """The files to read, the columns in the table's spelling, and the condition."""
        condition = None if where is None else self._texts(snapshot).condition(where)
        predicate = None if condition is None else condition.predicate
        files = file_set(snapshot, files_to_read(snapshot, predicate, condition or EVERY_ROW))
        return files, _resolve_columns(snapshot, columns), condition

    def count(
        self,
        where: str | None = None,
        *,
        version: int | None = None,
        timestamp: str | dt.datetime | dt.date | None = None,
    ) -> int:
        """Counts the rows, or those for which a condition is TRUE. Files that the log can count are not read.

        Args:
            where: SQL text.
            version: the version to read, and ``timestamp``: as for `to_arrow`.

        Raises:
            InvalidCondition, NeedsSpark: the condition does not fit, or needs Spark. MissingDataFile.

        Example:
            >>> flights.count("day >= '2024-01-01'")
            1545
        """
        snapshot = self.snapshot(version, timestamp)
        condition = self._condition(where, snapshot)
        could = snapshot.facts.could_match(condition.predicate)
        note_query(snapshot, condition.predicate, condition)
        whole = pc.and_(could, snapshot.facts.must_match(condition.predicate))
        logged = live_rows(filter_files(snapshot.files, whole))
        unread = could if logged is None else pc.and_not(could, whole)
        marks = self._engine.find(file_set(snapshot, filter_files(snapshot.files, unread)), condition)
        return (logged or 0) + count_of(marks)

    def changes(
        self,
        start: int | None = None,
        end: int | None = None,
        *,
        start_timestamp: str | dt.datetime | dt.date | None = None,
        end_timestamp: str | dt.datetime | dt.date | None = None,
    ) -> pa.Table:
        """The rows that versions inserted, updated and deleted, with the columns ``_change_type``, ``_commit_version``
        and ``_commit_timestamp``; see `anabranch.changes`.

        Args:
            start: the first version, and ``end`` the last one; without an end it is the newest.
            start_timestamp: instead of ``start``, and ``end_timestamp`` instead of ``end``; in UTC unless they
                name a zone.

        Raises:
            ChangeDataNotRecorded: the table does not record changes. NoChangeStart, InvalidChangeRange,
            ChangeStartAfterLatest: the range is invalid. ChangeFilesMissing: a file is gone. NeedsSpark.
        """
        since, until = start_timestamp, end_timestamp
        command = ReadChanges(self._path, start, end, since, until, self._zone, storage_options=self._options)
        return self._read_changes(command.run())

    def _read_changes(self, feed: Feed) -> pa.Table:
        with without_spark("reading changes", feed.root):
            check_feed(feed)
            return pa.Table.from_batches(changes(site_without_spark(self._log.store), feed), feed_schema(feed))

    def to_pandas(
        self,
        columns: list[str] | None = None,
        where: str | None = None,
        *,
        version: int | None = None,
        timestamp: str | dt.datetime | dt.date | None = None,
    ) -> Any:
        """The rows as `to_arrow` reads them, as a pandas DataFrame."""
        return self.to_arrow(columns, where, version=version, timestamp=timestamp).to_pandas()

    def _rows(
        self, snapshot: Snapshot, files: FileSet, names: list[str], condition: Condition | None
    ) -> Iterator[pa.RecordBatch]:
        with without_spark("reading", snapshot.table):
            yield from finding.scan(site_without_spark(snapshot.store), files, names, condition)

    # -- changing rows -------------------------------------------------------------------------------------------------

    def append(
        self,
        rows: Any,
        *,
        txn_app_id: str | None = None,
        txn_version: int | None = None,
        schema_change: Literal["merge"] | None = None,
    ) -> int:
        """Appends rows in one commit; see `anabranch.append`."""
        append = Append(self._path, rows, storage_options=self._options, txn=application(txn_app_id, txn_version))
        return replace(append, schema_change=schema_change).run().version

    def overwrite(
        self, rows: Any, replace_where: str | None = None, *, schema_change: SchemaChange | None = None
    ) -> int:
        """Replaces every row, or those that ``replace_where`` selects, by these, in one commit.

        Args:
            rows: an Arrow table, a pandas DataFrame, a list of dicts or a dict of lists.
            replace_where: SQL text, which must be TRUE for every new row.
            schema_change: ``merge`` adds columns that only the rows have, ``overwrite`` replaces the columns.

        Returns:
            the version with the new rows.

        Raises:
            SchemaMismatch, RowViolation, ReplaceWhereMismatch: a row does not fit; nothing was committed.
            DeltaConcurrentModificationException: a winner stands in the way.
        """
        if schema_change not in (None, "merge", "overwrite"):
            reason = "it takes merge, overwrite or None."
            raise InvalidOption(option="schema_change", value=f"{schema_change}", reason=reason)
        snapshot = self.snapshot()
        where = None if replace_where is None else self._texts(snapshot).condition(replace_where)
        write = Write(
            self._path,
            as_arrow(rows),
            "overwrite",
            replace_where=where,
            schema_change=schema_change,
            storage_options=self._options,
        )
        committed = write.run(self._engine, RunContext(at=snapshot))
        assert committed is not None, "an overwrite without an application's number is always committed"
        return committed.version

    def delete(self, where: str | None = None) -> Outcome:
        """Deletes the rows for which the condition is TRUE, or every row.

        Returns:
            the number of ``rows``, and Delta's ``metrics``.

        Raises:
            InvalidCondition, NeedsSpark: the condition does not fit, or needs Spark.
            ConcurrentDeleteReadException, ConcurrentAppendException: a winner stands in the way.
        """
        snapshot = self.snapshot()
        command = Delete(self._path, self._condition(where, snapshot), storage_options=self._options)
        return command.run(self._engine, RunContext(at=snapshot))

    def explain_delete(self, where: str | None = None) -> RowPlan:
        """Whether Arrow or Spark does each step of such a `delete`, and why; reads only the log. Raises as `delete`.

        Example:
            >>> print(flights.explain_delete("soundex(carrier) = 'U000'"))
            find rows: Spark, since `soundex` is not in the table of functions
        """
        snapshot = self.snapshot()
        return change_plan(snapshot, self._condition(where, snapshot), None, self._site)

    def update(self, where: str | None = None, set: Mapping[str, str] | None = None) -> Outcome:
        """Sets columns of the rows for which the condition is TRUE, or of every row.

        Args:
            where: SQL text.
            set: column -> SQL text, evaluated on the old row.

        Returns:
            the number of ``rows``, and Delta's ``metrics``.

        Raises:
            UnknownColumn, InvalidCondition, NeedsSpark: the command does not fit, or needs Spark.
            ConcurrentDeleteReadException, ConcurrentAppendException: a winner stands in the way.
        """
        snapshot = self.snapshot()
        values = self._texts(snapshot).assignments(set)
        command = Update(self._path, values, self._condition(where, snapshot), storage_options=self._options)
        return command.run(self._engine, RunContext(at=snapshot))

    def explain_update(self, where: str | None = None, set: Mapping[str, str] | None = None) -> RowPlan:
        """Whether Arrow or Spark does each step of such an `update`; see `explain_delete`."""
        snapshot = self.snapshot()
        values = self._texts(snapshot).assignments(set)
        return change_plan(snapshot, self._condition(where, snapshot), values, self._site)

    def merge(
        self, source: Any, on: str, *, source_alias: str | None = "source", target_alias: str | None = "target"
    ) -> TableMerge:
        """Begins a MERGE: rows of this table and of the source match where the condition is TRUE.

        Args:
            source: an Arrow table, a pandas DataFrame, a list of dicts or a dict of lists.
            on: SQL text over the columns of both, which compares columns of one with columns of the other.
            source_alias: the name of the source in the SQL texts.
            target_alias: the name of this table in the SQL texts.

        Returns:
            a builder; nothing happens before its ``execute()``.

        Example:
            >>> flights.merge(updates, "source.id = target.id").when_matched_update_all().execute().metrics
        """
        for option, name in (("source_alias", source_alias), ("target_alias", target_alias)):
            if name is not None and not (isinstance(name, str) and name):
                raise InvalidArgument(option=option, value=type(name).__name__, reason="it takes a name, or None.")
        rows = _cast_null_columns(as_arrow(source), self.snapshot().schema)
        return TableMerge(rows, on, source_alias, target_alias, self)

    def run_merge(self, merge: TableMerge) -> MergeResult:
        """Runs a MERGE for `TableMerge.execute`."""
        snapshot = self.snapshot()
        return self._merge(merge, snapshot).run(self._engine, RunContext(at=snapshot))

    def explain_merge(self, merge: TableMerge) -> RowPlan:
        """Plans a MERGE for `TableMerge.explain`."""
        snapshot = self.snapshot()
        return merge_plan(
            snapshot, self._merge(merge, snapshot).matching, source_columns(merge.source.schema), self._site
        )

    def _merge(self, merge: TableMerge, snapshot: Snapshot) -> Merge:
        where, matching, parameters = self._texts(snapshot).merge(merge)
        return Merge(self._path, merge.source, matching, where, parameters, storage_options=self._options)

    def optimize(self, where: str | None = None) -> TableOptimize:
        """An OPTIMIZE of all partitions, or of those that SQL text selects.

        Returns:
            an object with ``compact()`` and ``z_order(*columns)``.

        Example:
            >>> flights.optimize("day >= '2024-01-01'").compact().metrics["numRemovedFiles"]
        """
        return TableOptimize(self, where)

    def run_optimize(self, where: str | None, columns: tuple[str, ...]) -> OptimizeResult:
        """Runs an OPTIMIZE for `TableOptimize`."""
        snapshot = self.snapshot()
        return self._optimize(where, columns, snapshot).run(self._engine, RunContext(at=snapshot))

    def explain_optimize(self, where: str | None = None, *columns: str) -> RowPlan:
        """The number of files that `optimize(where)` would rewrite with ``compact()``, or given columns with
        ``z_order(*columns)``, and whether Arrow or Spark does it; see `explain_delete`.
        """
        snapshot = self.snapshot()
        return optimize_plan(self._optimize(where, columns, snapshot), snapshot, self._site)[1]

    def _optimize(self, where: str | None, columns: tuple[str, ...], snapshot: Snapshot) -> Optimize:
        condition = self._condition(where, snapshot)
        return Optimize(self._path, condition, paths_of([*columns]), workers=WORKERS, storage_options=self._options)

    # -- the table -----------------------------------------------------------------------------------------------------

    def snapshot(self, version: int | None = None, timestamp: str | dt.datetime | dt.date | None = None) -> Snapshot:
        """The newest version, or another one. Raises NotATable, VersionNotFound: it does not exist."""
        path, at = AsOf(self._path, version, timestamp, self._zone, self._options).resolve_version()
        return open_log(path, self._options).snapshot(at)

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The newest commits first; see `anabranch.history`."""
        return functions.history(self._path, limit, self._options)

    def detail(self) -> dict[str, Any]:
        """The row of DESCRIBE DETAIL."""
        return detail(self._path, self._options)

    def check(self, version: int | None = None, *, deep: bool = False) -> Report:
        """Checks that the log describes the table correctly; see `anabranch.check`."""
        return functions.check(self._path, version, deep=deep, storage_options=self._options)

    def restore(self, version: int | None = None, timestamp: Any = None) -> RestoreResult:
        """Restores an older version; see `anabranch.restore`."""
        return functions.restore(self._path, version, timestamp, storage_options=self._options)

    def vacuum(self, retention_hours: float | None = None, *, dry_run: bool = False) -> VacuumResult:
        """Removes files that no version needs; see `anabranch.vacuum`."""
        return functions.vacuum(self._path, retention_hours, dry_run=dry_run, storage_options=self._options)

    def timeline(self, last: int = LAST) -> Timeline:
        """The changes of each of the newest versions; see `anabranch.DeltaTable.timeline`."""
        return timeline_of(self._path, last, storage_options=self._options)

    @property
    def _log(self) -> Log:
        return open_log(self._path, self._options)

    @property
    def _zone(self) -> str:
        return "UTC"

    @property
    def _engine(self) -> ArrowBackend:
        return ArrowBackend(site_without_spark(self._log.store))

    def _site(self, files: FileSet, *, obeys: bool = True) -> Site:
        """The place where rows are read and written."""
        return self._engine.site

    def _texts(self, snapshot: Snapshot) -> TableTexts:
        return TableTexts(snapshot.table, snapshot.schema)

    def _condition(self, where: str | None, snapshot: Snapshot) -> Condition:
        return EVERY_ROW if where is None else self._texts(snapshot).condition(where)


@dataclass(frozen=True)
class TableOptimize:
    """An OPTIMIZE of a table, made by `Table.optimize`."""

    table: Table = field(repr=False)
    where: str | None = None

    def compact(self) -> OptimizeResult:
        """Combines small files, and files with many deleted rows, into larger ones; orders a clustered table by its
        clustering columns. It conflicts with no change of rows.

        Raises:
            InvalidCondition: the condition names columns other than partition columns.
            NeedsSpark: rows are to be ordered, and files are in a bucket or too large.
        """
        return self.table.run_optimize(self.where, ())

    def z_order(self, *columns: str) -> OptimizeResult:
        """Puts rows with similar values of these columns into the same files, so that queries of any of them skip
        files.

        Raises:
            InvalidOption: a column does not exist, or cannot be used for skipping; and as `compact`.
        """
        if not columns:
            raise InvalidOption(option="columns", value="nothing", reason="it takes the names of columns.")
        return self.table.run_optimize(self.where, columns)


def _cast_null_columns(rows: pa.Table, schema: Struct) -> pa.Table:
    """Gives columns that hold only NULL, and so have no type, the type of the table's column of that name."""
    for at, column in enumerate(rows.schema):
        field = schema.find(column.name)
        if pa.types.is_null(column.type) and field is not None:
            rows = rows.set_column(at, column.name, pa.nulls(len(rows), arrow_type(field.type)))
    return rows


def _resolve_columns(snapshot: Snapshot, columns: list[str] | None) -> list[str]:
    """The columns in the table's spelling. Raises UnknownColumn: one does not exist."""
    schema, resolved = snapshot.schema, dict[str, None]()
    if columns is not None and not (
        isinstance(columns, list | tuple) and all(isinstance(item, str) for item in columns)
    ):
        raise InvalidArgument(option="columns", value=type(columns).__name__, reason="it takes a list of names.")
    for name in schema.names if columns is None else columns:
        field = schema.find(name)
        if field is None:
            raise UnknownColumn(table=snapshot.table, column=name, columns=", ".join(schema.names))
        if field.name in resolved:
            raise InvalidArgument(option="columns", value=name, reason="it is listed twice.")
        resolved[field.name] = None
    return list(resolved)
