"""Implements the engine of commands with Spark, using Arrow in this process where it gives the same result.

Knows rows, through the other modules of this folder. Decides nothing, commits nothing, and never sees a conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.util import inheritable_thread_target

from anabranch._arrow.backend import ArrowBackend
from anabranch._arrow.change_plans import rewrite_step
from anabranch._arrow.clustering import check_ordered
from anabranch._arrow.merge_outcome import split_joined
from anabranch._arrow.packing import check_packed
from anabranch._arrow.site import Site
from anabranch._log.positions import SourceVersions
from anabranch._protocol.actions import empty_files
from anabranch._protocol.change_feed import Feed, Images
from anabranch._protocol.conditions import Condition
from anabranch._protocol.expressions.resolving import ALTERING, TIMESTAMPS
from anabranch._protocol.layout.curves import Curve
from anabranch._protocol.layout.file_sets import FileSet, Marks
from anabranch._protocol.merges import Joined, MergePlan
from anabranch._protocol.parquet_files import WrittenFiles
from anabranch._protocol.rules.table_rules import NONE, Rules
from anabranch._protocol.schema.intervals import YEAR_MONTH
from anabranch._protocol.schema.types import Struct, arrow_type, from_arrow
from anabranch._protocol.settings import ASSIGNS
from anabranch._protocol.steps import (
    FIND_ROWS,
    INSERT_ROWS,
    JOIN,
    OF_A_QUERY,
    READ_SOURCE,
    RECORD_CHANGES,
    WRITE_FILES_ANEW,
    WRITE_NEW_ROWS,
    WRITE_ROWS,
    Step,
    StepListener,
    ignore_step,
)
from anabranch._protocol.store_assignment import is_plain_column
from anabranch._protocol.unsupported import why_unsupported
from anabranch._spark.columns import types
from anabranch._spark.columns.declared_rules import check_expressions
from anabranch._spark.frames import dataframe_source
from anabranch._spark.frames.failures import translate_errors, translate_execution_errors
from anabranch._spark.frames.fallback import arrow_else_spark
from anabranch._spark.merging import change_files, expression_queries, merge, merge_source, row_numbers
from anabranch._spark.merging.expression_checks import check_change
from anabranch._spark.merging.merge_source import TableRows
from anabranch._spark.reading import row_addresses
from anabranch._spark.reading.change_feed import changes
from anabranch._spark.reading.pruned_frames import ScanOrigin
from anabranch._spark.reading.row_addresses import as_column
from anabranch._spark.reading.scan import parts_of, scan
from anabranch._spark.sessions.functions import are_builtin
from anabranch._spark.sessions.session import allows_reads_beyond_newest, merges_schema
from anabranch._spark.writing import arrow_clustering, arrow_packing, relocating, write
from anabranch._spark.writing.sites import site_of, writing_site
from anabranch.errors import TableWithoutColumns
from anabranch.errors.rows import keep_out, may_show_rows, statement

TEXT_ENDS = ("spark.sql.ansi.doubleQuotedIdentifiers", "spark.sql.parser.escapedStringLiterals")
"""Settings that make Spark parse quoted strings differently from our tokenizer; both are false by default."""
QUOTES = (*TEXT_ENDS, "spark.sql.legacy.consecutiveStringLiterals.enabled")
"""Settings that change what quotes and backslashes in texts mean; all are false by default."""
SETTINGS = (
    *("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive"),
    *(*ALTERING, TIMESTAMPS),
)
"""Settings that the value of an expression depends on."""


_T = TypeVar("_T")


@dataclass(frozen=True)
class SparkEngine:
    """An engine over one session, classic or Connect. Each method promises what the function of its name promises.

    Example:
        >>> Delete("/data/flights", where).run(SparkEngine(spark)).rows
    """

    spark: SparkSession
    tell: StepListener = field(default=ignore_step, repr=False, compare=False)

    def telling(self, tell: StepListener) -> SparkEngine:
        """The same engine, which reports each step."""
        return replace(self, tell=tell)

    def check(self, files: FileSet, condition: Condition, assignments: Mapping[str, Any] | None) -> None:
        """See `anabranch._spark.merging.expression_checks.check_change`."""
        check_change(self.spark, files, condition, assignments)

    def check_merge(self, files: FileSet, matching: MergePlan, source: Any) -> None:
        """See `anabranch._spark.merging.merge.check`; the source is a DataFrame or an Arrow table."""
        merge.check(self.spark, files, matching, self._columns(source))

    def find(self, files: FileSet, condition: Condition) -> Marks:
        """Positions of the live rows for which the condition is TRUE, by file."""
        return self._arrow_else_spark(
            FIND_ROWS,
            lambda: self._arrow(files).find(files, condition),
            lambda: row_addresses.find(self.spark, files, condition),
            log=not len(files.files),
        )

    def update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str) -> WrittenFiles:
        """Write the new images of the marked rows."""
        return self._arrow_else_spark(
            WRITE_NEW_ROWS,
            lambda: self._writer(files).update(files, marks, assignments, folder),
            lambda: write.update(self.spark, files, marks, assignments, folder),
        )

    def rewrite(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any] | None, folder: str) -> WrittenFiles:
        """Write the live rows again, with the marked ones updated, or left out if there are no assignments."""
        return self._arrow_else_spark(
            WRITE_FILES_ANEW,
            lambda: self._writer(files, obeys=assignments is not None).rewrite(files, marks, assignments, folder),
            lambda: write.rewrite(self.spark, files, marks, assignments, folder),
        )

    def record(self, changes: Sequence[Images], folder: str) -> WrittenFiles:
        """Write the rows of these changes as files of change data."""
        obeys = any(change.joined for change in changes)
        return self._arrow_else_spark(
            RECORD_CHANGES,
            lambda: self._writer(changes[0].files, obeys=obeys).record(changes, folder),
            lambda: change_files.record(self.spark, changes, folder),
        )

    @contextmanager
    def beside(self, work: Callable[[], None]) -> Iterator[None]:
        """Run a Spark job while the block runs others; it has the same job group and tags."""
        with ThreadPoolExecutor(1, thread_name_prefix="anabranch-beside") as pool:
            job = pool.submit(self.for_other_thread(work))
            yield
            job.result()

    def for_other_thread(self, work: Callable[[], None]) -> Callable[[], None]:
        """The same work for one call by another thread, with the context, job group and tags of this one."""
        inheriting: Any = inheritable_thread_target(self.spark)
        with_job_group: Callable[[], None] = inheriting(partial(copy_context().run, work))
        return with_job_group

    def record_update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str) -> WrittenFiles:
        """Write each marked row as it was, and as it becomes, as files of change data."""
        return self._arrow_else_spark(
            RECORD_CHANGES,
            lambda: self._writer(files).record_update(files, marks, assignments, folder),
            lambda: change_files.record_update(self.spark, files, marks, assignments, folder),
        )

    def write_postimages(self, files: FileSet, count: int, folder: str) -> WrittenFiles:
        """Write the new images that `record_update` recorded in these files."""
        return self._arrow_else_spark(
            WRITE_NEW_ROWS,
            lambda: self._writer(files, obeys=False).write_postimages(files, count, folder),
            lambda: change_files.write_postimages(self.spark, files, count, folder),
        )

    def pack(self, files: FileSet, folder: str) -> None:
        """See `anabranch._spark.writing.relocating.pack`."""
        relocating.pack(self.spark, files, folder)
        self.tell(rewrite_step(files, None, self._why_not(lambda site: check_packed(site, files), files)))

    def pack_together(self, bins: Sequence[tuple[FileSet, str]]) -> frozenset[int]:
        """See `anabranch._spark.writing.arrow_packing.pack_bins`."""
        if not bins:
            return frozenset()
        with translate_errors("the rows to pack", bins[0][0].root):
            packed = arrow_packing.pack_bins(self.spark, bins)
        for number in packed:
            self.tell(rewrite_step(bins[number][0], None))
        return packed

    def cluster(self, files: FileSet, curve: Curve, outputs: int, folder: str, moves: str | None) -> None:
        """See `anabranch._spark.writing.relocating.cluster`; Arrow does it where it can."""
        with translate_errors("the rows to cluster", files.root):
            is_clustered = arrow_clustering.try_cluster(self.spark, files, curve, outputs, folder, moves)
        if is_clustered:
            self.tell(rewrite_step(files, curve))
            return
        relocating.cluster(self.spark, files, curve, outputs, folder, moves)
        self.tell(rewrite_step(files, curve, self._why_not(lambda site: check_ordered(site, files, curve), files)))

    def write(
        self,
        source: Any,
        schema: Struct,
        partition_columns: tuple[str, ...],
        root: str,
        folder: str,
        rules: Rules = NONE,
    ) -> WrittenFiles:
        """Write rows of a DataFrame or an Arrow table, fitted to the schema."""
        columns = schema, partition_columns, root, folder, rules

        def by_spark() -> WrittenFiles:
            return write.write(self.spark, self._frame(source), *columns)

        with self._without_rows_in_messages(source):
            if isinstance(source, pa.Table) and _fits(source, schema):
                files = FileSet(root, schema, partition_columns, empty_files(), {}, rules)
                return self._arrow_else_spark(WRITE_ROWS, lambda: self._writer(files).write(source, *columns), by_spark)
            written = by_spark()
        fits = "it fits the rows to the table's columns"
        self.tell(Step(WRITE_ROWS, fits if isinstance(source, pa.Table) else OF_A_QUERY))
        return written

    def hold(self, source: Any, schema: Struct, root: str, folder: str) -> merge_source.MergeSource:
        """See `anabranch._spark.merging.merge_source`; the source is a DataFrame, Arrow rows, or a table's rows."""
        with self._without_rows_in_messages(source):
            in_memory = None if isinstance(source, DataFrame) else merge_source.try_hold_in_memory(self.spark, source)
            held = in_memory or merge_source.hold(self.spark, self._frame(source), root, folder)
        self._report_reading(source, is_in_memory=in_memory is not None)
        return held

    def rows_of(self, held: merge_source.MergeSource) -> DataFrame:
        """See `anabranch._spark.merging.merge_source.rows_of`."""
        return merge_source.rows_of(self.spark, held)

    def with_numbers(self, held: merge_source.MergeSource, values: Mapping[str, range]) -> DataFrame:
        """See `anabranch._spark.merging.row_numbers.with_numbers`."""
        return row_numbers.with_numbers(self.spark, held.place, held.schema, values)

    def join(self, files: FileSet, matching: MergePlan, held: merge_source.MergeSource, folder: str) -> Joined:
        """Match the live rows of these files with the source's, once, and find what each clause does."""
        return self._arrow_else_spark(
            JOIN,
            lambda: self._arrow(files).join(files, matching, held.source, folder),
            lambda: merge.join(self.spark, files, matching, held, folder),
            log=not len(files.files),
        )

    def split(self, files: FileSet, matching: MergePlan, joined: Joined, rows: Marks) -> tuple[Joined, Joined] | None:
        """The results of a join for all rows but these, and for these alone; None for rows that Spark has written."""
        return split_joined(joined, rows, files, matching)

    def write_images(self, files: FileSet, joined: Joined, folder: str) -> WrittenFiles:
        """Write the new images that `join` computed."""
        return self._arrow_else_spark(
            WRITE_NEW_ROWS,
            lambda: self._writer(files).write_images(files, joined, folder),
            lambda: merge.write_images(self.spark, files, joined, folder),
        )

    def write_inserts(
        self, files: FileSet, matching: MergePlan, held: merge_source.MergeSource, joined: Sequence[Joined], folder: str
    ) -> WrittenFiles:
        """Write the inserts of the source rows that no join matched."""
        return self._arrow_else_spark(
            INSERT_ROWS,
            lambda: self._writer(files).write_inserts(files, matching, held.source, joined, folder),
            lambda: merge.write_inserts(self.spark, files, matching, held, joined, folder),
        )

    def check_rules(self, schema: Struct, rules: Rules, table: str) -> None:
        """See `anabranch._spark.columns.declared_rules.check_expressions`."""
        check_expressions(self.spark, schema, rules, table)

    def extent(self, files: FileSet, column: str) -> tuple[Any, Any]:
        """Minimum and maximum of a column in the live rows; None if there is no value."""
        with translate_errors(column, files.root, files.version):
            value = types.column(files.schema.field(column).name)
            row = scan(self.spark, files, [column]).agg(F.min(value), F.max(value)).collect()[0]
        return row[0], row[1]

    def few_values(self, held: merge_source.MergeSource, column: str, limit: int) -> list[Any] | None:
        """See `anabranch._spark.merging.merge_source.few_values`."""
        return merge_source.few_values(self.spark, held, column, limit)

    def alias(self, source: Any) -> str | None:
        """See `anabranch._spark.merging.merge_source.alias_of`; an Arrow table has none."""
        return merge_source.alias_of(source) if isinstance(source, DataFrame) else None

    def describe(self, source: Any) -> Struct:
        """See `anabranch._spark.columns.types.describe`."""
        return types.describe(self._frame(source))

    def source_versions(self, source: Any, root: str, table_id: str) -> SourceVersions | None:
        """See `anabranch._spark.frames.dataframe_source.source_versions`; an Arrow table reads nothing."""
        if isinstance(source, pa.Table):
            return None
        with translate_execution_errors("the rows to write", root):  # Spark evaluates constants while it plans
            return dataframe_source.source_versions(self._frame(source), root, table_id)

    def query_versions(
        self, condition: Condition, values: Sequence[Any], schema: Struct, root: str, table_id: str
    ) -> SourceVersions | None:
        """See `anabranch._spark.merging.expression_queries.query_versions`."""
        return expression_queries.query_versions(self.spark, condition, values, schema, root, table_id)

    def merge_versions(
        self, source: Any, matching: MergePlan, schema: Struct, root: str, table_id: str
    ) -> SourceVersions | None:
        """See `anabranch._spark.merging.expression_queries.merge_versions`; the source is a DataFrame or Arrow rows."""
        columns = self._columns(source)
        return expression_queries.merge_versions(self.spark, matching, columns, schema, root, table_id)

    def settings(self) -> dict[str, str]:
        """The settings that the value of an expression depends on."""
        return {name: str(self.spark.conf.get(name)) for name in SETTINGS}

    def has_usual_quotes(self) -> bool:
        """Whether the session reads quotes and backslashes in texts as Spark does by default."""
        if self.spark.version.startswith("4.0."):  # there 'it''s' is two texts, joined, and no setting says so
            return False
        return all(str(self.spark.conf.get(name, "false")).lower() == "false" for name in QUOTES)

    def zone(self) -> str:
        """The session's time zone."""
        return str(self.spark.conf.get(SETTINGS[0]))

    def to_df(
        self,
        files: FileSet,
        condition: Condition | None = None,
        columns: Sequence[str] | None = None,
        ids: Mapping[str, str] | None = None,
        *,
        metadata: bool = False,
        as_of: bool = False,
        whole: bool = False,
    ) -> DataFrame:
        """The live rows for which the condition is TRUE (None: all). See `anabranch._spark.reading.scan.scan`.

        Args:
            columns: names of the columns; None: all of the schema.
            ids: hidden columns, with the names under which they are shown.
            metadata: adds the column of that name to all rows.
            as_of: whether the user requested this version.
            whole: whether the files are all that the version has.

        Raises:
            InvalidCondition: the condition does not fit the columns.
            TableWithoutColumns: the table has none yet.
        """
        if not files.schema.names:
            raise TableWithoutColumns(table=files.root)
        names, shown = [files.schema.field(name).name for name in columns or files.schema.names], ids or {}
        if condition is None:
            rows = scan(self.spark, files, columns, ids=bool(shown), metadata=metadata)
        else:
            with translate_errors(condition.text, files.root, files.version):
                live_rows = scan(self.spark, files, ids=bool(shown))
                aliased = live_rows if condition.alias is None else live_rows.alias(condition.alias)
                rows = aliased.filter(as_column(condition.expression, self.spark))
                _ = rows.schema  # otherwise Spark Connect analyses the condition only when rows are requested
        hidden = [types.column(name).alias(alias) for name, alias in shown.items()]
        if condition is not None or hidden:
            rows = rows.select(*map(types.column, names), *hidden)
        is_whole = whole and condition is None and columns is None and not (hidden or metadata)
        return self.with_version_alias(rows, files, as_of, whole=is_whole)

    def scan_for_pruning(self, files: FileSet, *, as_of: bool = False) -> tuple[DataFrame, ScanOrigin]:
        """All live rows of all files of a version, as `to_df` returns them, and what later pruning of files needs.

        Raises:
            TableWithoutColumns: the table has none yet.
        """
        if not files.schema.names:
            raise TableWithoutColumns(table=files.root)
        parts = parts_of(self.spark, files)
        rows = reduce(DataFrame.unionAll, parts) if parts else scan(self.spark, files)
        finish = partial(self.with_version_alias, files=files, as_of=as_of)
        return finish(rows, whole=True), ScanOrigin(self.spark, files, tuple(parts), finish, count=len(files.files))

    def with_version_alias(self, rows: DataFrame, files: FileSet, as_of: bool, *, whole: bool = False) -> DataFrame:
        """The rows under an alias that names their version. If the user requested the version, VACUUM may have removed
        its files.
        """
        if as_of:
            with translate_errors("the scan", files.root, files.version):
                _ = rows.schema  # otherwise Spark Connect looks for the files only when rows are requested
        shown = may_show_rows(files.root)
        root = files.root if whole else None
        return dataframe_source.with_source_alias(
            rows, files.table_id, files.version, commit=files.commit, shown=shown, as_of=as_of, whole=root
        )

    def changes(self, feed: Feed) -> DataFrame:
        """See `anabranch._spark.reading.change_feed.changes`."""
        return changes(self.spark, feed)

    def rows(self, table: pa.Table) -> DataFrame:
        """An Arrow table as a DataFrame."""
        return types.arrow_rows(self.spark, table)

    def are_builtin(self, functions: Iterable[str]) -> bool:
        """See `anabranch._spark.sessions.functions.are_builtin`."""
        return are_builtin(self.spark, functions)

    def reads_beyond(self) -> bool:
        """See `anabranch._spark.sessions.session.allows_reads_beyond_newest`."""
        return allows_reads_beyond_newest(self.spark)

    def merges_schema(self) -> bool:
        """See `anabranch._spark.sessions.session.merges_schema`."""
        return merges_schema(self.spark)

    def casts(self) -> bool:
        """Whether the session casts a value to its column's type if it fits."""
        return str(self.spark.conf.get(ASSIGNS)).upper() == "ANSI"

    def user(self) -> str:
        """The user who runs the session."""
        (row,) = self.spark.range(1).select(F.current_user()).collect()
        return str(row[0])

    def _arrow_else_spark(
        self, does: str, by_arrow: Callable[[], _T], by_spark: Callable[[], _T], *, log: bool = False
    ) -> _T:
        """Try Arrow, then Spark, and report which did the step; ``log`` reports that the log sufficed, as there is no
        file to read.
        """
        reasons = list[str]()
        result = arrow_else_spark(by_arrow, by_spark, reasons.append)
        reason = reasons[0] if reasons else None
        self.tell(Step(does, reason, log=log and reason is None))
        return result

    def _report_reading(self, source: Any, *, is_in_memory: bool) -> None:
        """Report what has read a source; rows in memory need no reading."""
        if isinstance(source, DataFrame):
            self.tell(merge_source.reading(None))
        elif not is_in_memory:
            self.tell(Step(READ_SOURCE, merge_source.NOT_SMALL))
        elif isinstance(source, TableRows):
            self.tell(Step(READ_SOURCE))

    def _why_not(self, check: Callable[[Site], None], files: FileSet) -> str:
        """Why Arrow has not rewritten these files, although it was tried first."""
        reason = why_unsupported(lambda: check(site_of(self.spark, files.root)))
        return reason or "Arrow does not read or write what is in the files just as Spark does"

    def _arrow(self, files: FileSet) -> ArrowBackend:
        """The Arrow backend for reading rows."""
        return ArrowBackend(site_of(self.spark, files.root))

    def site(self, files: FileSet, *, obeys: bool = True) -> Site:
        """See `anabranch._spark.writing.sites.writing_site`."""
        return writing_site(self.spark, files, obeys=obeys)

    def _writer(self, files: FileSet, *, obeys: bool = True) -> ArrowBackend:
        """The Arrow backend for writing rows. Rows obey the table's rules unless they are only copied."""
        return ArrowBackend(self.site(files, obeys=obeys))

    @contextmanager
    def _without_rows_in_messages(self, source: Any) -> Iterator[None]:
        """Keep rows out of messages if the source reads a table that hides its rows."""
        with statement():
            if not isinstance(source, pa.Table) and dataframe_source.hides_rows(self._frame(source)):
                keep_out()
            yield

    def _columns(self, source: Any) -> T.StructType:
        return (
            types.spark_schema(from_arrow(source.schema))
            if isinstance(source, pa.Table)
            else self._frame(source).schema
        )

    def _frame(self, source: Any) -> DataFrame:
        if isinstance(source, TableRows):
            return source.frame
        return self.rows(source) if isinstance(source, pa.Table) else source


def _fits(rows: pa.Table, schema: Struct) -> bool:
    """Whether rows have exactly a table's columns, in order and type, and Spark changes none of their values."""
    return (
        all(is_plain_column(field) and field.type != YEAR_MONTH for field in schema)  # numbers are no months to Spark
        and rows.column_names == list(schema.names)
        and all(column.type == arrow_type(field.type) for column, field in zip(rows.schema, schema, strict=True))
    )
