"""``Table`` with a session: the same verbs and the same Arrow rows; Spark does whatever Arrow cannot.

Settings of the session apply as for `anabranch.DeltaTable`. Guarantee: a row has the same types whether Spark or Arrow
reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import isfunction
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from anabranch._api.table import Table
from anabranch._api.table_merge import TableMerge
from anabranch._arrow.site import Site
from anabranch._catalog.resolver import Resolver
from anabranch._catalog.table_names import may_be_name
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.change_feed import Feed
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._spark.engine import SparkEngine
from anabranch._spark.sessions.file_settings import use_session_settings, with_session_settings
from anabranch._spark.sessions.settings import honours
from anabranch._spark.writing.few_rows import arrow_of
from anabranch._sql.conditions import resolve_condition, resolve_values
from anabranch._sql.merge_request import ClauseRequest, MergeRequest
from anabranch.commands.dml.merge import Merge
from anabranch.commands.opening import Location
from anabranch.errors import NeedsSpark


@dataclass(frozen=True)
class SessionTexts:
    """Reads texts for a version of a table, in a session."""

    snapshot: Snapshot
    engine: SparkEngine

    def condition(self, text: str) -> Condition:
        """A condition. Raises InvalidArgument, InvalidCondition, NotBuilt: it cannot be used."""
        return resolve_condition(text, self.snapshot, self.engine)

    def assignments(self, values: Mapping[str, str] | None) -> dict[str, Any]:
        """The values to set, by column. Raises UnknownColumn, InvalidCondition, NotBuilt: they cannot be used."""
        return resolve_values(values or {}, self.snapshot, self.engine)


def find_location(
    spark: SparkSession, path_or_name: Location, storage_options: Mapping[str, str] | None = None
) -> Location:
    """The location of a table; a name is looked up, unless the call has storage options, which only a path takes."""
    with use_session_settings(spark):
        by_name = storage_options is None and may_be_name(path_or_name)
        return Resolver(spark).anywhere(path_or_name).location if by_name else path_or_name


class SessionTable(Table):
    """A Delta table with a session; `anabranch.table` with ``spark=`` opens one."""

    def __init__(
        self, spark: SparkSession, path_or_name: Location, storage_options: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(find_location(spark, path_or_name, storage_options), storage_options)
        self._spark = spark

    def _read(self, snapshot: Snapshot, columns: list[str] | None, where: str | None) -> pa.Table:
        try:
            return super()._reader(snapshot, columns, where).read_all()
        except NeedsSpark:
            return self._by_spark(snapshot, columns, where)

    def _reader(self, snapshot: Snapshot, columns: list[str] | None, where: str | None) -> pa.RecordBatchReader:
        try:
            return super()._reader(snapshot, columns, where)
        except NeedsSpark:
            return self._by_spark(snapshot, columns, where).to_reader()

    def _by_spark(self, snapshot: Snapshot, columns: list[str] | None, where: str | None) -> pa.Table:
        files, names, condition = self._plan_scan(snapshot, columns, where)
        return arrow_of(self._engine.to_df(files, condition, names))

    def _read_changes(self, feed: Feed) -> pa.Table:
        try:
            return super()._read_changes(feed)
        except NeedsSpark:
            return arrow_of(self._engine.changes(feed))

    def _merge(self, merge: TableMerge, snapshot: Snapshot) -> Merge:
        engine, alias = self._engine, merge.target_alias
        clauses = tuple(
            ClauseRequest(clause.when, clause.action, clause.condition, clause.values, "set")
            for clause in merge.clauses
        )
        source = engine.rows(merge.source)
        request = MergeRequest(self._path, engine, source, merge.on, alias, clauses, source_alias=merge.source_alias)
        return replace(request.substitute_variables().command(snapshot), source=merge.source)

    @property
    def _zone(self) -> str:
        return self._engine.zone()

    @property
    def _engine(self) -> SparkEngine:  # type: ignore[override]
        return SparkEngine(self._spark)

    def _site(self, files: FileSet, *, obeys: bool = True) -> Site:
        return self._engine.site(files, obeys=obeys)

    def _texts(self, snapshot: Snapshot) -> SessionTexts:  # type: ignore[override]
        return SessionTexts(snapshot, self._engine)


_SETTINGS_VERBS = {
    "append": "WRITE",
    "overwrite": "WRITE",
    "delete": "DELETE",
    "update": "UPDATE",
    "run_merge": "MERGE",
}
"""Verbs that honour the session's settings."""

for _name in [name for name, method in vars(Table).items() if isfunction(method) and not name.startswith("_")]:
    _method = getattr(SessionTable, _name)
    _method = honours(_SETTINGS_VERBS[_name])(_method) if _name in _SETTINGS_VERBS else _method
    setattr(SessionTable, _name, with_session_settings(_method))
