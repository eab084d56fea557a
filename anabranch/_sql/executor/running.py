"""Running: one statement's session, its snapshots, and queries whose Delta tables are put into place.

Guarantee: all that a statement reads of one table comes from one snapshot; the text around a table's name reaches Spark
as it was written; nothing is left behind in the session.
"""

from __future__ import annotations

import datetime as dt
import os
import re
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
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._spark.columns.types import column, quote_identifier
from anabranch._spark.engine import SparkEngine
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.reading.metadata_column import NAME as METADATA
from anabranch._spark.sessions.cached_rows import find_kept_rows, is_kept
from anabranch._spark.sessions.sql_text import cut, exact_sql, expression
from anabranch._sql.conditions import context_of
from anabranch._sql.executor.error_position import of_spark, of_view
from anabranch._sql.grammar.parts import Changes, Expression, Query, Reference, Table, View
from anabranch._sql.grammar.qualifiers import Edit, apply_edits, shifting
from anabranch.commands.context import RunContext
from anabranch.commands.opening import Location, file_set, open_log
from anabranch.commands.queries.change_feed import ReadChanges
from anabranch.commands.queries.read import count_from_log, extent_from_log, files_to_read
from anabranch.commands.queries.time_travel import AsOf
from anabranch.errors import InvalidOption, NotBuilt
from anabranch.errors.rows import keep_out, may_show_rows

_BOUNDS = (T.IntegralType, T.StringType, T.TimestampType, T.TimestampNTZType, T.DateType)
_QUOTES = ("spark.sql.ansi.doubleQuotedIdentifiers", "spark.sql.parser.escapedStringLiterals")
"""Settings by which Spark reads texts in quotes in another way than is known here."""
_NAME = r"[a-z_]\w*|`[^`]+`"
_AGGREGATE = rf"(?:COUNT\s*\(\s*[*1]\s*\)|(?:MIN|MAX)\s*\(\s*(?:{_NAME})\s*\))(?:\s+(?:AS\s+)?(?!FROM\b)(?:{_NAME}))?"
_AGGREGATES = re.compile(rf"\s*SELECT\s+({_AGGREGATE}(?:\s*,\s*{_AGGREGATE})*)\s+FROM\s+", re.IGNORECASE)
_PARTS = re.compile(rf"(COUNT|MIN|MAX)\s*\(\s*([*1]|{_NAME})\s*\)(?:\s+(?:AS\s+)?({_NAME}))?", re.IGNORECASE)
Pinned = tuple[Location, int | None]


def check_quotes(spark: SparkSession, text: str) -> None:
    """Raise an error unless a session cuts a text into words as it is done here.

    Raises:
        InvalidOption: it does not.
    """
    if not ('"' in text or "\\" in text):
        return
    for name in _QUOTES:
        if (spark.conf.get(name, None) or "false").lower() == "true":
            reason = "with it the texts in this statement mean something else than is known here."
            raise InvalidOption(option=name, value="true", reason=reason)


class Running:
    """One statement on its way, in one session; ``frames``: what its user put into it, by the names in its text."""

    def __init__(self, spark: SparkSession, frames: Mapping[str, DataFrame] | None = None) -> None:
        self.spark, self.engine, self.frames = spark, SparkEngine(spark), frames or {}
        self._snapshots: dict[tuple[str, int | None], Snapshot] = {}

    def anew(self) -> Running:
        """The same, which has read nothing yet."""
        return Running(self.spark, self.frames)

    # -- versions

    def snapshot(self, table: Table) -> Snapshot:
        """The version of a table that this statement reads, the same whenever it is asked.

        Raises:
            NotATable, VersionNotFound, InvalidTimestamp, AmbiguousTimeTravel: there is none.
        """
        path, version = self.location_and_version(table)
        key = (os.fspath(path), version)
        if key not in self._snapshots:
            self._snapshots[key] = found = open_log(path).snapshot(version)
            if not (found.properties.rows_in_errors and may_show_rows(found.table)):
                keep_out()
        return self._snapshots[key]

    def newest(self, table: Table) -> Snapshot:
        """As `snapshot`, of a table that the statement changes. Raises InvalidOption: its path names a version."""
        path, version = self.location_and_version(table)
        if version is not None:
            reason = f"only a query takes a version; the table itself is {os.fspath(path)}."
            raise InvalidOption(option="table", value=os.fspath(table.location), reason=reason)
        return self.snapshot(table)

    def location_and_version(self, table: Table) -> Pinned:
        """A table's place and the version that it is named with, None for the newest."""
        return AsOf(table.location, *self.version_and_moment(table), self.engine.zone()).resolve_version()

    def version_and_moment(self, table: Table) -> tuple[int | str | None, Any]:
        """The version and the moment behind AS OF, as far as they are said."""
        has_text = table.timestamp is None or table.moment is not None
        return table.number, table.moment if has_text else self._moment(str(table.timestamp))

    def zone_of(self, moment: Any) -> str:
        """The time zone in which a moment is read; that of none, where none is said."""
        return "UTC" if moment is None else self.engine.zone()

    def _moment(self, text: str) -> Any:
        """What an expression behind TIMESTAMP AS OF means, as Spark evaluates it."""
        with translate_errors(text, "TIMESTAMP AS OF"):
            (row,) = self._one().select(F.unix_micros(expression(text, self.spark).cast("timestamp"))).collect()
        if row[0] is None:
            return text
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=row[0])

    # -- rows

    def query(self, query: Query) -> DataFrame:
        """What Spark makes of a query, with each Delta table pinned, and without the files that its WHERE rules out.

        Raises:
            SqlSyntaxError, SqlAnalysisError: Spark cannot make sense of it.
            NotBuilt: it asks for ``_metadata`` where that cannot be had.
        """
        if any(map(self._shows_metadata, query.references)):
            query = _with_metadata(query)
        frames = [self.frame(each) for each in query.references]
        pieces: list[str | DataFrame] = []
        text, end = query.text, 0
        for frame, each in zip(frames, query.references, strict=True):
            pieces += [*cut(text[end : each.start], self.frames), frame, _alias(each)]
            end = each.stop
        with of_spark(query, self.spark):
            return exact_sql(self.spark, [*pieces, *cut(text[end:], self.frames)], _arguments(query))

    def aggregate(self, query: Query) -> DataFrame | None:
        """What Spark makes of a query that counts the rows of a table, or asks for the least and greatest values of
        columns, if the log says them; else None. Rows that Spark keeps are looked at by it.
        """
        asked = _AGGREGATES.fullmatch(query.text[: query.references[0].start]) if len(query.references) == 1 else None
        if asked is None or not query.ends_with_table:
            return None
        [read] = query.references
        snapshot = self.snapshot(read.table)
        if is_kept(self.spark, snapshot.table):
            return None
        parts = [(function.lower(), name, alias) for function, name, alias in _PARTS.findall(asked[1])]
        known = [self._literal_from_log(snapshot, function, name.strip("`")) for function, name, _ in parts]
        if None in known:
            return None
        as_of = self.location_and_version(read.table)[1] is not None
        names = [
            alias or quote_identifier(f"{function}({name.strip('`').replace('*', '1')})")
            for function, name, alias in parts
        ]
        found = exact_sql(self.spark, f"VALUES ({', '.join(map(str, known))}) AS aggregates({', '.join(names)})")
        return self.engine.with_version_alias(found, file_set(snapshot, snapshot.files.slice(0, 0)), as_of=as_of)

    def _literal_from_log(self, snapshot: Snapshot, function: str, name: str) -> str | None:
        """What the log says of a count, or of a column's least or greatest value, as a literal."""
        if function == "count":
            count = count_from_log(snapshot)
            return None if count is None else f"{count}L"
        is_plain = [each.name for each in snapshot.schema.alike(name)] == [name]
        extent = extent_from_log(snapshot, name) if is_plain else None
        if extent is None:
            return None
        value = extent[function == "max"]
        literal = "NULL" if value is None else f"'{value}'"
        return f"CAST({literal} AS {snapshot.schema.field(name).type})"

    def whole_table(self, query: Query) -> FileSet | None:
        """The files of a table, where a query asks for every column of all its rows, and does no more."""
        if query.whole is None:
            return None
        snapshot = self.snapshot(query.whole)
        return None if is_kept(self.spark, snapshot.table) else file_set(snapshot)

    def frame(self, reference: Reference) -> DataFrame:
        """The rows of a table, or view, that a query may need."""
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
            return cached
        predicate = None
        if reference.where is not None:
            table, context = reference.table, context_of(snapshot, self.engine)
            names = table.name if table.alias is None else (table.alias,)
            predicate = block_predicate(reference.where, names, context, sole=reference.sole)
        files = file_set(snapshot, files_to_read(snapshot, predicate))
        as_of = self.location_and_version(reference.table)[1] is not None
        return self.engine.to_df(files, metadata=metadata, as_of=as_of, whole=predicate is None)

    def _shows_metadata(self, reference: Reference) -> bool:
        """Whether a table is to have the column ``_metadata``, which its query asks for; one of its own is that."""
        if not reference.asks_metadata or reference.view is not None or reference.changes is not None:
            return False
        return self.snapshot(reference.table).schema.find(METADATA) is None

    def _try_cached_rows(self, table: Table, snapshot: Snapshot) -> DataFrame | None:
        """The rows of this version where CACHE TABLE keeps them; the newest is kept in the place of an older one."""
        if not is_kept(self.spark, snapshot.table):
            return None
        is_newest = self.location_and_version(table)[1] is None
        newer = (lambda: self.engine.to_df(file_set(snapshot))) if is_newest else None
        return find_kept_rows(self.spark, snapshot.table, *state_of(snapshot), newer)

    def view(self, view: View) -> DataFrame:
        """The rows of a lasting view: the columns that it had when it was made, whatever came to its tables since, or
        those of its query.
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
                _ = rows.schema  # else Spark Connect looks at it only later, where the view is not spoken of
                return rows

    def _changes_command(self, table: Table, changes: Changes) -> ReadChanges:
        start, end = self._bound(changes.start), (None, None) if changes.end is None else self._bound(changes.end)
        return ReadChanges(
            table.location, start[0], end[0], start[1], end[1], self.engine.zone(), self.engine.reads_beyond()
        )

    def _bound(self, text: str) -> tuple[int | None, Any]:
        """A version or a moment: a whole number is the one, a text or a time the other.

        Raises:
            InvalidOption: it is neither. InvalidCondition: it cannot be evaluated.
        """
        if text.isdigit():
            return int(text), None
        with translate_errors(text, "table_changes"):
            found = self._one().select(expression(text, self.spark).alias("bound"))
            type_ = found.schema["bound"].dataType
            is_version = isinstance(type_, T.IntegralType)
            (row,) = found.select("bound" if is_version else expression(text, self.spark).cast("string")).collect()
        if row[0] is None or not isinstance(type_, _BOUNDS):
            reason = "it takes a version, which is a whole number, or a moment, as a text or a timestamp."
            raise InvalidOption(option="table_changes", value=text, reason=reason)
        return (row[0], None) if is_version else (None, row[0])

    @contextmanager
    def substitute_views(self, expression: Expression) -> Iterator[TokenizedText]:
        """An expression whose subqueries read views of these very snapshots, for as long as the block lasts."""
        if not expression.references:
            yield expression.source
            return
        views = [f"__anabranch_{uuid.uuid4().hex}" for _ in expression.references]
        pieces, end = [], 0
        try:
            for view, each in zip(views, expression.references, strict=True):
                self.frame(each).createOrReplaceTempView(view)
                pieces += [expression.text[end : each.start], view, _alias(each)]
                end = each.stop
            yield TokenizedText("".join([*pieces, expression.text[end:]]))
        finally:
            for view in views:
                self.spark.catalog.dropTempView(view)

    def _one(self) -> DataFrame:
        """One row without a column, so that no name in a constant means anything."""
        return self.spark.range(1).select()

    # -- results

    def nothing(self) -> DataFrame:
        """What a statement gives that has no rows to show."""
        return self.spark.range(0).select()

    def row_of_counts(self, **counts: int) -> DataFrame:
        """One row of numbers."""
        return self.engine.rows(pa.Table.from_pylist([counts]))

    def frame_from_columns(self, columns: Mapping[str, Any], schema: pa.Schema) -> DataFrame:
        """Rows by columns."""
        return self.engine.rows(pa.Table.from_pydict(dict(columns), schema=schema))


def _with_metadata(query: Query) -> Query:
    """A query whose stars do not stand for the column that its table is given.

    Raises:
        NotBuilt: more than stars does.
    """
    if query.refused is not None:
        raise NotBuilt(what=query.refused, instead="Name the columns, in one SELECT of a subquery for instance.")
    edits = [Edit(place, place, f" EXCEPT ({METADATA})") for place in query.stars]
    moved = shifting(0, edits)
    references = (replace(each, start=moved(each.start), stop=moved(each.stop)) for each in query.references)
    return replace(
        query, text=apply_edits(query.text, 0, len(query.text), edits), references=tuple(references), stars=()
    )


def state_of(snapshot: Snapshot) -> tuple[Hashable, Hashable]:
    """By what rows that are cached are known: which table it is, and which version of it."""
    return snapshot.metadata.id, (snapshot.version, snapshot.identity)


def _arguments(query: Query) -> dict[str, Any] | list[Any] | None:
    if not query.arguments:
        return None
    return dict(query.arguments) if isinstance(query.arguments, Mapping) else list(query.arguments)


def _alias(reference: Reference) -> str:
    """The name by which the query may speak of a table that it gives no other."""
    return f" AS {quote_identifier(reference.called or reference.table.name[-1])}" if reference.takes_alias else ""
