"""``Table`` with a session: the same verbs and the same Arrow rows, and nothing is refused for want of Spark.

A door: what Arrow does, it does as for tables without Spark; what it leaves, the session does. Settings of the session
count as for `anabranch.DeltaTable`. Guarantee: a row that Spark reads has the types that it has when Arrow reads it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from inspect import isfunction
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from anabranch.api.table import Table, changed_rows, columns_named
from anabranch.api.table_merge import TableMerge
from anabranch.catalog.names import may_be_name
from anabranch.catalog.resolver import Resolver
from anabranch.commands.context import RunContext
from anabranch.commands.dml.merge import Merged
from anabranch.commands.opening import Location, file_set
from anabranch.commands.queries.read import kept
from anabranch.commands.row_changes import Outcome
from anabranch.errors import NeedsSpark
from anabranch.log.snapshot import Snapshot
from anabranch.protocol.conditions import Condition
from anabranch.spark.engine import SparkEngine
from anabranch.spark.few_rows import arrow_of
from anabranch.spark.file_settings import speaking
from anabranch.spark.settings import honours
from anabranch.statements.conditions import understood, understood_values
from anabranch.statements.merge_request import AskedClause, MergeRequest


@dataclass(frozen=True)
class SessionTexts:
    """What texts mean for a version of a table, in a session."""

    snapshot: Snapshot
    engine: SparkEngine

    def condition(self, text: str) -> Condition:
        """A condition. Raises InvalidArgument, InvalidCondition, NotBuilt: it cannot be used."""
        return understood(text, self.snapshot, self.engine)

    def assignments(self, values: Mapping[str, str] | None) -> dict[str, Any]:
        """Values to be set, by column. Raises UnknownColumn, InvalidCondition, NotBuilt: they cannot be used."""
        return understood_values(values or {}, self.snapshot, self.engine)


class SessionTable(Table):
    """A Delta table with a session; `anabranch.table` with ``spark=`` opens one."""

    def __init__(
        self, spark: SparkSession, path_or_name: Location, storage_options: Mapping[str, str] | None = None
    ) -> None:
        with speaking(spark):
            by_name = storage_options is None and may_be_name(path_or_name)
            location = Resolver(spark).anywhere(path_or_name).location if by_name else path_or_name
        super().__init__(location, storage_options)
        self._spark = spark

    def to_arrow(
        self,
        columns: list[str] | None = None,
        where: str | None = None,
        *,
        version: int | None = None,
        timestamp: str | dt.datetime | dt.date | None = None,
    ) -> pa.Table:
        """See `Table.to_arrow`."""
        try:
            return super().to_batches(columns, where, version=version, timestamp=timestamp).read_all()
        except NeedsSpark:
            return self._by_spark(columns, where, self.snapshot(version, timestamp))

    def to_batches(
        self,
        columns: list[str] | None = None,
        where: str | None = None,
        *,
        version: int | None = None,
        timestamp: str | dt.datetime | dt.date | None = None,
    ) -> pa.RecordBatchReader:
        """See `Table.to_batches`; what only Spark reads is here at once."""
        try:
            return super().to_batches(columns, where, version=version, timestamp=timestamp)
        except NeedsSpark:
            return self._by_spark(columns, where, self.snapshot(version, timestamp)).to_reader()

    def _by_spark(self, columns: list[str] | None, where: str | None, snapshot: Snapshot) -> pa.Table:
        condition = None if where is None else self._texts(snapshot).condition(where)
        files = file_set(snapshot, kept(snapshot, None if condition is None else condition.predicate))
        return arrow_of(self._engine.to_df(files, condition, columns_named(snapshot, columns)))

    def changes(
        self,
        start: int | None = None,
        end: int | None = None,
        *,
        start_timestamp: str | dt.datetime | dt.date | None = None,
        end_timestamp: str | dt.datetime | dt.date | None = None,
    ) -> pa.Table:
        """See `Table.changes`."""
        feed = self._feed(start, end, start_timestamp, end_timestamp)
        try:
            return changed_rows(feed, self.snapshot().store)
        except NeedsSpark:
            return arrow_of(self._engine.changes(feed))

    @honours("WRITE")
    def overwrite(self, rows: Any, replace_where: str | None = None, *, schema_change: Any = None) -> int:
        """See `Table.overwrite`."""
        return super().overwrite(rows, replace_where, schema_change=schema_change)

    @honours("DELETE")
    def delete(self, where: str | None = None) -> Outcome:
        """See `Table.delete`."""
        return super().delete(where)

    @honours("UPDATE")
    def update(self, where: str | None = None, set: Mapping[str, str] | None = None) -> Outcome:
        """See `Table.update`."""
        return super().update(where, set)

    def _run_merge(self, asked: TableMerge) -> Merged:
        with speaking(self._spark):
            return self._merge_now(asked)

    @honours("MERGE")
    def _merge_now(self, asked: TableMerge) -> Merged:
        snapshot, engine = self.snapshot(), self._engine
        clauses = tuple(
            AskedClause(each.when, each.action, each.condition, each.values, "set") for each in asked.clauses
        )
        source, alias = engine.rows(asked.source), asked.target_alias
        request = MergeRequest(self._path, engine, source, asked.on, alias, clauses, source_alias=asked.source_alias)
        command = request.filled().command(snapshot)
        return replace(command, source=asked.source).run(engine, RunContext(at=snapshot))

    @property
    def _zone(self) -> str:
        return self._engine.zone()

    @property
    def _engine(self) -> SparkEngine:  # type: ignore[override]
        return SparkEngine(self._spark)

    def _texts(self, snapshot: Snapshot) -> SessionTexts:  # type: ignore[override]
        return SessionTexts(snapshot, self._engine)


def _speaking_method(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def run(self: SessionTable, *args: Any, **named: Any) -> Any:
        with speaking(self._spark):
            return method(self, *args, **named)

    return run


for _name in [name for name, method in vars(Table).items() if isfunction(method) and not name.startswith("_")]:
    setattr(SessionTable, _name, _speaking_method(getattr(SessionTable, _name)))
