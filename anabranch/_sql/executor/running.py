"""The context of one running statement: its session, its snapshots, and its queries with DataFrames for Delta tables.

Guarantee: a statement reads a table from one snapshot; the text around a table's name reaches Spark as it was written;
nothing remains in the session.
"""

from __future__ import annotations

import datetime as dt
import os
import uuid
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anabranch._expressions.blocks import block_predicate
from anabranch._expressions.dialect import TokenizedText
from anabranch._log.snapshot import Snapshot
from anabranch._spark.columns.types import column, quote_identifier
from anabranch._spark.engine import TEXT_ENDS, SparkEngine
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.reading.metadata_column import NAME as METADATA
from anabranch._spark.sessions.cached_rows import find_cached_rows, is_cached
from anabranch._spark.sessions.sql_text import exact_sql, expression, split_at_frames
from anabranch._sql.conditions import context_of
from anabranch._sql.executor.error_position import of_spark, of_view
from anabranch._sql.grammar.parts import Changes, Expression, Query, Reference, Table, View
from anabranch._sql.grammar.qualifiers import Edit, apply_edits, shifting
from anabranch._sql.grammar.selects import SelectItem, select_from_one_table
from anabranch.commands.context import RunContext
from anabranch.commands.opening import Location, file_set, open_log
from anabranch.commands.queries.change_feed import ReadChanges
from anabranch.commands.queries.read import (
    count_from_log,
    extent_from_log,
    files_to_read,
    note_named_version,
    note_whole_table,
)
from anabranch.commands.queries.time_travel import AsOf
from anabranch.errors import InvalidOption, NotBuilt
from anabranch.errors.rows import keep_out, may_show_rows

_BOUNDS = (T.IntegralType, T.StringType, T.TimestampType, T.TimestampNTZType, T.DateType)
Pinned = tuple[Location, int | None]


def check_quotes(spark: SparkSession, text: str) -> None:
    """Check that the session tokenizes a text as we do.

    Raises:
        InvalidOption: a setting makes Spark parse its quoted strings differently.
    """
    if not ('"' in text or "\\" in text):
        return
    for name in TEXT_ENDS:
        if (spark.conf.get(name, None) or "false").lower() == "true":
            reason = "with it Spark reads the quoted strings in this statement differently."
            raise InvalidOption(option=name, value="true", reason=reason)


class StatementContext:
    """One running statement in one session; ``frames`` are the user's DataFrames by their names in its text."""

    def __init__(self, spark: SparkSession, frames: Mapping[str, DataFrame] | None = None) -> None:
        self.spark, self.engine, self.frames = spark, SparkEngine(spark), frames or {}
        self._snapshots: dict[tuple[str, int | None], Snapshot] = {}

    def anew(self) -> StatementContext:
        """The same, which has read nothing yet."""
        return StatementContext(self.spark, self.frames)

    # -- versions

    def snapshot(self, table: Table) -> Snapshot:
        """Return the snapshot of a table that this statement reads, the same on each call.

        Raises:
            NotATable, VersionNotFound, InvalidTimestamp, AmbiguousTimeTravel: there is no such snapshot.
        """
        path, version = self.location_and_version(table)
        key = (os.fspath(path), version)
        if key not in self._snapshots:
            self._snapshots[key] = snapshot = open_log(path).snapshot(version)
            if not (snapshot.properties.rows_in_errors and may_show_rows(snapshot.table)):
                keep_out()
        return self._snapshots[key]

    def newest(self, table: Table) -> Snapshot:
        """As `snapshot`, of a table that the statement changes. Raises InvalidOption if its path names a version."""
        path, version = self.location_and_version(table)
        if version is not None:
            reason = f"only a query takes a version; the table itself is {os.fspath(path)}."
            raise InvalidOption(option="table", value=os.fspath(table.location), reason=reason)
        return self.snapshot(table)

    def location_and_version(self, table: Table) -> Pinned:
        """Return the location of a table and the version that its name or AS OF specifies, None for the newest."""
        return AsOf(table.location, *self.version_and_moment(table), self.engine.zone()).resolve_version()

    def version_and_moment(self, table: Table) -> tuple[int | str | None, Any]:
        """Return the version and the timestamp of AS OF, None for one that is not specified."""
        has_text = table.timestamp is None or table.moment is not None
        return table.number, table.moment if has_text else self._evaluate_timestamp(str(table.timestamp))

    def zone_of(self, moment: Any) -> str:
        """Return the time zone in which a timestamp is interpreted; UTC if there is none."""
        return "UTC" if moment is None else self.engine.zone()

    def _evaluate_timestamp(self, text: str) -> Any:
        """Evaluate the expression of TIMESTAMP AS OF in Spark."""
        with translate_errors(text, "TIMESTAMP AS OF"):
            (row,) = self._single_row().select(F.unix_micros(expression(text, self.spark).cast("timestamp"))).collect()
        if row[0] is None:
            return text
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=row[0])

    # -- rows

    def query(self, query: Query) -> DataFrame:
        """Run a query in Spark, with each Delta table at its version and without the files that its WHERE rules out.

        Raises:
            SqlSyntaxError, SqlAnalysisError: Spark cannot parse or analyse it.
            NotBuilt: it names ``_metadata`` where that column is not available.
        """
        if any(map(self._shows_metadata, query.references)):
            query = _with_metadata(query)
        frames = [self.frame(reference) for reference in query.references]
        pieces: list[str | DataFrame] = []
        text, end = query.text, 0
        for frame, reference in zip(frames, query.references, strict=True):
            pieces += [*split_at_frames(text[end : reference.start], self.frames), frame, _alias(reference)]
            end = reference.stop
        with of_spark(query, self.spark):
            return exact_sql(self.spark, [*pieces, *split_at_frames(text[end:], self.frames)], _arguments(query))

    def aggregate(self, query: Query) -> DataFrame | None:
        """Answer a query of COUNT, MIN and MAX over a whole table from the log.

        Returns None if it is another query, if the log lacks a value, or if Spark caches the table's rows.
        """
        selected = select_from_one_table(query)
        if selected is None or selected.where is not None or not all(map(_is_of_log, selected.selected)):
            return None
        snapshot = self.snapshot(selected.table)
        if is_cached(self.spark, snapshot.table):
            return None
        parts = [(item.aggregate, "".join(item.path), item.name) for item in selected.selected]
        literals = [self._literal_from_log(snapshot, function, column_name) for function, column_name, _ in parts]
        if None in literals:
            return None
        as_of = self.location_and_version(selected.table)[1] is not None
        names = [quote_identifier(alias or f"{function}({column_name or 1})") for function, column_name, alias in parts]
        rows = exact_sql(self.spark, f"VALUES ({', '.join(map(str, literals))}) AS aggregates({', '.join(names)})")
        return self.engine.with_version_alias(rows, file_set(snapshot, snapshot.files.slice(0, 0)), as_of=as_of)

    def _literal_from_log(self, snapshot: Snapshot, function: str, name: str) -> str | None:
        """Return a count, or a column's minimum or maximum, from the log as a literal; None if the log lacks it."""
        if function == "count":
            count = count_from_log(snapshot)
            return None if count is None else f"{count}L"
        is_plain = [field.name for field in snapshot.schema.alike(name)] == [name]
        extent = extent_from_log(snapshot, name) if is_plain else None
        if extent is None:
            return None
        value = extent[function == "max"]
        literal = "NULL" if value is None else f"'{value}'"
        return f"CAST({literal} AS {snapshot.schema.field(name).type})"

    def frame(self, reference: Reference) -> DataFrame:
        """Return the rows of a table or view that a query may need."""
        if reference.view is not None:
            return self.view(reference.view)
        snapshot = self.snapshot(reference.table)
        if reference.changes is not None:
            return self.engine.changes(
                self._changes_command(reference.table, reference.changes).run(context=RunContext(at=snapshot))
            )
        metadata = self._shows_metadata(reference)
        cached = None if metadata else self._try_cached_rows(reference.table, snapshot)
        if cached is not None:
            note_whole_table(snapshot)
            return cached
        predicate = None
        if reference.where is not None:
            table, context = reference.table, context_of(snapshot, self.engine)
            names = table.name if table.alias is None else (table.alias,)
            predicate = block_predicate(reference.where, names, context, sole=reference.sole)
        if metadata:
            note_whole_table(snapshot)
        files = file_set(snapshot, files_to_read(snapshot, predicate))
        as_of = self.location_and_version(reference.table)[1] is not None
        if as_of:
            note_named_version(snapshot)
        return self.engine.to_df(files, metadata=metadata, as_of=as_of, whole=predicate is None)

    def _shows_metadata(self, reference: Reference) -> bool:
        """Whether the query names ``_metadata`` and the table has no column of that name."""
        if not reference.asks_metadata or reference.view is not None or reference.changes is not None:
            return False
        return self.snapshot(reference.table).schema.find(METADATA) is None

    def _try_cached_rows(self, table: Table, snapshot: Snapshot) -> DataFrame | None:
        """Return the rows of this version from CACHE TABLE; the newest version replaces an older one in the cache."""
        if not is_cached(self.spark, snapshot.table):
            return None
        is_newest = self.location_and_version(table)[1] is None
        newer = (lambda: self.engine.to_df(file_set(snapshot))) if is_newest else None
        return find_cached_rows(self.spark, snapshot.table, *state_of(snapshot), newer)

    def view(self, view: View) -> DataFrame:
        """Return the rows of a persistent view, with the columns that it had when it was created.

        A view that evolves has the current columns of its query.
        """
        if view.broken is not None:
            raise view.broken
        check_quotes(self.spark, view.query.text)
        with of_view(view.name):
            rows = self.query(view.query)
            if not view.output:
                return rows
            with of_spark(view.query, self.spark):
                if len(set(view.output)) == len(view.output):
                    rows = rows.select(*map(column, view.output))
                rows = rows.toDF(*view.columns)
                _ = rows.schema  # else Spark Connect analyses it later, and the error does not name the view
                return rows

    def _changes_command(self, table: Table, changes: Changes) -> ReadChanges:
        start, end = (
            self._evaluate_bound(changes.start),
            (None, None) if changes.end is None else self._evaluate_bound(changes.end),
        )
        return ReadChanges(
            table.location, start[0], end[0], start[1], end[1], self.engine.zone(), self.engine.reads_beyond()
        )

    def _evaluate_bound(self, text: str) -> tuple[int | None, Any]:
        """Evaluate a bound of ``table_changes``: a whole number is a version, a string or a time is a timestamp.

        Raises:
            InvalidOption: it is neither. InvalidCondition: it cannot be evaluated.
        """
        if text.isdigit():
            return int(text), None
        with translate_errors(text, "table_changes"):
            bound = self._single_row().select(expression(text, self.spark).alias("bound"))
            type_ = bound.schema["bound"].dataType
            is_version = isinstance(type_, T.IntegralType)
            (row,) = bound.select("bound" if is_version else expression(text, self.spark).cast("string")).collect()
        if row[0] is None or not isinstance(type_, _BOUNDS):
            reason = "it takes a version, which is a whole number, or a timestamp."
            raise InvalidOption(option="table_changes", value=text, reason=reason)
        return (row[0], None) if is_version else (None, row[0])

    @contextmanager
    def substitute_views(self, expression: Expression) -> Iterator[TokenizedText]:
        """Yield the expression with temporary views of this statement's snapshots for the tables of its subqueries."""
        if not expression.references:
            yield expression.source
            return
        views = [f"__anabranch_{uuid.uuid4().hex}" for _ in expression.references]
        pieces, end = [], 0
        try:
            for view, reference in zip(views, expression.references, strict=True):
                self.frame(reference).createOrReplaceTempView(view)
                pieces += [expression.text[end : reference.start], view, _alias(reference)]
                end = reference.stop
            yield TokenizedText("".join([*pieces, expression.text[end:]]))
        finally:
            for view in views:
                self.spark.catalog.dropTempView(view)

    def _single_row(self) -> DataFrame:
        """Return one row without columns, so that no name in a constant expression resolves."""
        return self.spark.range(1).select()

    # -- results

    def nothing(self) -> DataFrame:
        """Return the empty result of a statement without rows."""
        return self.spark.range(0).select()

    def row_of_counts(self, **counts: int) -> DataFrame:
        """Return one row with these numbers."""
        return self.engine.rows(pa.Table.from_pylist([counts]))

    def frame_from_columns(self, columns: Mapping[str, Any], schema: pa.Schema) -> DataFrame:
        """Return rows from columns."""
        return self.engine.rows(pa.Table.from_pydict(dict(columns), schema=schema))


def _is_of_log(item: SelectItem) -> bool:
    """Whether the log may hold this aggregate: the count of rows, or a bound of a column."""
    return item.value is None if item.aggregate == "count" else bool(item.aggregate) and len(item.path) == 1


def _with_metadata(query: Query) -> Query:
    """Exclude ``_metadata`` from the stars of a query.

    Raises:
        NotBuilt: the query selects all columns by other means too.
    """
    if query.refused is not None:
        raise NotBuilt(what=query.refused, instead="Name the columns, in one SELECT of a subquery for instance.")
    edits = [Edit(place, place, f" EXCEPT ({METADATA})") for place in query.stars]
    shift = shifting(0, edits)
    references = (
        replace(reference, start=shift(reference.start), stop=shift(reference.stop)) for reference in query.references
    )
    return replace(
        query, text=apply_edits(query.text, 0, len(query.text), edits), references=tuple(references), stars=()
    )


def state_of(snapshot: Snapshot) -> tuple[Hashable, Hashable]:
    """Return the key of cached rows: the table's id, and its version."""
    return snapshot.metadata.id, (snapshot.version, snapshot.identity)


def _arguments(query: Query) -> dict[str, Any] | list[Any] | None:
    if not query.arguments:
        return None
    return dict(query.arguments) if isinstance(query.arguments, Mapping) else list(query.arguments)


def _alias(reference: Reference) -> str:
    """Return an AS clause for a table that has no alias in the query."""
    return f" AS {quote_identifier(reference.called or reference.table.name[-1])}" if reference.takes_alias else ""
