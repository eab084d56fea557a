"""Evaluates the source of a MERGE once, and keeps its rows in memory or in a hidden folder.

Knows Spark's plans and folders of kept rows. Knows nothing of the table. Guarantee: after `hold` only the kept rows are
read; the source itself is evaluated once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anabranch._arrow import finding
from anabranch._arrow.merge_source import SourceColumns, SourceRows
from anabranch._arrow.projection import project
from anabranch._arrow.reading import MOST_BYTES
from anabranch._arrow.site import Site
from anabranch._protocol.conditions import Condition
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.merges import Joined
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import DataType, from_arrow, to_arrow
from anabranch._protocol.steps import OF_A_QUERY, READ_SOURCE, Step
from anabranch._protocol.unsupported import Unsupported
from anabranch._spark.columns.months import months_as_numbers
from anabranch._spark.columns.types import column, delta_type, spark_schema
from anabranch._spark.frames.dataframe_source import printed_plan
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.frames.fallback import try_first
from anabranch._spark.frames.outlooks import outlook
from anabranch._spark.merging.merge_clauses import Names
from anabranch._spark.writing import few_rows
from anabranch._spark.writing.scratch import keep, read_scratch, size_of
from anabranch._spark.writing.sites import is_local, site_of
from anabranch.errors import ExecutionFailed

_NUMBER = T.StructField("number", T.LongType())
_SMALL_BYTES, _MOST_ROWS = 4 << 20, 100_000
"""Maximum bytes that a source reads, and maximum number of its rows, to be collected instead of being written to
files.
"""
_TOO_LARGE = "the rows of the source are too large to be held here"
NOT_SMALL = "its rows are too many, or too large, to be held here"
_KEEPS_NAMES = ("Filter", "Sort", "GlobalLimit", "LocalLimit", "Deduplicate", "Repartition", "ResolvedHint")
_ALIAS = re.compile(r"SubqueryAlias (?:.*\.)?(?:`((?:[^`]|``)+)`|([^`.]+))")


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows of a version of a table, as a source: as a DataFrame, and as files, which Arrow may be able to read.

    Attributes:
        frame: the rows.
        files: the files that may hold them.
        values: how each column is computed of the table's; None: they are the table's, in its order.
        condition: only rows for which it is TRUE; None: all.
    """

    frame: DataFrame
    files: FileSet
    values: tuple[Computation, ...] | None = None
    condition: Condition | None = None


@dataclass(frozen=True)
class MergeSource:
    """A source that has been evaluated.

    Attributes:
        url: folder of its rows; empty if they were in memory from the start.
        schema: its columns.
        rows: number of rows.
        bytes: size of the rows in the folder.
        here: the rows and their numbers, from 0, if they are few.
        arrow: the rows and their numbers, if they are few, or if Arrow may read them.
    """

    url: str
    schema: T.StructType
    rows: int
    bytes: int
    here: pa.Table | None = None
    arrow: pa.Table | None = None

    @property
    def columns(self) -> SourceColumns:
        """The columns as Arrow sees them."""
        return source_columns(self.schema)

    @property
    def source(self) -> SourceRows:
        """The rows. Raises Unsupported if they do not fit into memory, or Arrow may read other values than Spark."""
        if self.arrow is None:
            foreign = [name for name, kind in zip(self.columns.names, self.columns.types, strict=True) if kind is None]
            reason = f"the column {foreign[0]} of the source is held by Spark" if foreign else _TOO_LARGE
            raise Unsupported(reason)
        return SourceRows(self.columns, self.arrow)

    def left(self, joined: Sequence[Joined]) -> tuple[MergeSource, Sequence[Joined]]:
        """If the source is in memory, the source without the rows that joins have matched whose results are in memory,
        and the other joins.
        """
        tables = [(result, result.handle.place) for result in joined if result.handle is not None]
        on_spark = [result for result, place in tables if isinstance(place, str)]
        if self.arrow is None or (self.here is None and on_spark):
            return self, joined
        unmatched = self.source.without([place["number"] for _, place in tables if not isinstance(place, str)]).table
        return replace(self, here=unmatched, arrow=unmatched, rows=len(unmatched)), on_spark

    @property
    def place(self) -> str | pa.Table:
        """The place of its rows."""
        return self.url if self.here is None else self.here


def source_columns(schema: T.StructType) -> SourceColumns:
    """A source's columns as Arrow sees them."""
    return SourceColumns(tuple(schema.names), tuple(map(_try_arrow_type, schema)))


def _try_arrow_type(field: T.StructField) -> DataType | None:
    """Delta's type of a source's column; None if Arrow reads other values than Spark, or the column is padded."""
    if LENGTH in (field.metadata or {}) or not few_rows.are_plain(T.StructType([field])):
        return None
    return delta_type(field.dataType, field.name)


def hold(spark: SparkSession, source: DataFrame, root: str, folder: str) -> MergeSource:
    """Evaluate a source once, and keep its rows, numbered, in memory or in a hidden folder below ``root/folder``.

    Raises:
        UnsupportedType: Parquet cannot hold a column's type.
        ExecutionFailed: a row could not be computed.
    """
    with translate_errors("the source of the MERGE", root):
        schema = T.StructType([to_kept_field(column_field) for column_field in source.schema])
        collected = try_first(lambda: _at_once(source, is_here=is_local(spark, root)))
        if collected is not None:
            return _few(_with_numbers(collected), schema, collected.nbytes)
        rows = source.select("*", F.monotonically_increasing_id().alias("number"))
        subfolder = f"{folder}/_source-{uuid4().hex}"
        url, files = keep(spark, rows, root, subfolder), few_rows.files_in(root, subfolder)
        if files is None:
            return MergeSource(url, schema, *size_of(spark, url))
        most = MOST_BYTES if is_local(spark, root) else few_rows.MOST_BYTES
        count, arrow_rows = few_rows.count_and_read_rows(root, files, T.StructType([*schema, _NUMBER]), most)
        size = sum(file.size for file in files)
        if arrow_rows is not None and few_rows.are_few(schema, count) and arrow_rows.nbytes <= few_rows.MOST_BYTES:
            return _few(_renumber(arrow_rows), schema, size, url)
        return MergeSource(url, schema, count, size, arrow=arrow_rows)


def _few(rows: pa.Table, schema: T.StructType, size: int, url: str = "") -> MergeSource:
    return MergeSource(url, schema, len(rows), size, rows, rows)


def try_hold_in_memory(spark: SparkSession, source: pa.Table | TableRows) -> MergeSource | None:
    """A source that does not need Spark, as if it had been kept; None if it is not small, or needs Spark after all."""
    return _of_arrow(source) if isinstance(source, pa.Table) else _of_table(spark, source)


def _of_arrow(source: pa.Table) -> MergeSource | None:
    columns = from_arrow(source.schema)
    schema = spark_schema(columns)
    if not few_rows.are_few(schema, len(source)) or source.nbytes > few_rows.MOST_BYTES:
        return None
    return _few(_with_numbers(source.cast(to_arrow(columns), safe=False)), schema, source.nbytes)


def reading(source: TableRows | None) -> Step:
    """The step that reads a source: rows of one table, or, if None, the rows of another query. The contents of files
    may change the step.
    """
    if source is None:
        return Step(READ_SOURCE, OF_A_QUERY)
    return Step(READ_SOURCE, NOT_SMALL if _size(source.files) > _SMALL_BYTES else None)


def _size(files: FileSet) -> int:
    return pc.sum(files.files["size"]).as_py() or 0


def _of_table(spark: SparkSession, source: TableRows) -> MergeSource | None:
    if _size(source.files) > _SMALL_BYTES:
        return None
    rows = try_first(lambda: _read(site_of(spark, source.files.root), source))
    if rows is None or len(rows) > _MOST_ROWS or rows.nbytes > few_rows.MOST_BYTES:
        return None
    return _few(
        _with_numbers(rows),
        T.StructType([to_kept_field(column_field) for column_field in source.frame.schema]),
        rows.nbytes,
    )


def _read(site: Site, source: TableRows) -> pa.Table:
    if source.values is None:
        return finding.fetch_live(site, replace(source.files, tracked=None))  # ids of rows are no columns of a source
    if [value.tree.type for value in source.values] != list(map(_try_arrow_type, source.frame.schema)):
        raise Unsupported("Spark gives the columns other types")
    return project(site, source.files, source.values, source.condition, few_rows.MOST_BYTES)


def _at_once(source: DataFrame, *, is_here: bool) -> pa.Table | None:
    """The rows of a source that Spark knows once it has planned, or that are small and stay on this machine."""
    if not few_rows.are_few(source.schema, 1):
        return None
    plan = outlook(source)
    if not plan.is_constant and not (is_here and plan.bytes is not None and plan.bytes <= _SMALL_BYTES):
        return None
    most = few_rows.MOST_ROWS if plan.is_constant else _MOST_ROWS
    return few_rows.try_collect(source.toDF(*(f"c{i}" for i in range(len(source.schema)))), inf, most)


def _renumber(rows: pa.Table) -> pa.Table:
    return _with_numbers(rows.select(range(rows.num_columns - 1)))


def _with_numbers(rows: pa.Table) -> pa.Table:
    return rows.append_column(_NUMBER.name, pa.array(range(len(rows)), pa.int64()))


def to_kept_field(field: T.StructField) -> T.StructField:
    """A source's column as it is kept: with the length of a char, which affects Spark's comparisons."""
    metadata = {key: value for key, value in (field.metadata or {}).items() if key == LENGTH}
    return T.StructField(field.name, field.dataType, True, metadata)


def source_frame(spark: SparkSession, held: MergeSource, names: Names) -> DataFrame:
    """The rows of a source under its alias, with their numbers."""
    return _rows(spark, held, T.StructField(names.number, T.LongType())).alias(names.source)


def rows_of(spark: SparkSession, held: MergeSource) -> DataFrame:
    """The rows of a source, with its columns alone."""
    return _rows(spark, held)


def _rows(spark: SparkSession, held: MergeSource, *further: T.StructField) -> DataFrame:
    schema = T.StructType([*held.schema, *further])
    is_known = held.here is not None or held.url
    return read_scratch(spark, [held.place], schema) if is_known else spark.createDataFrame([], schema)


def few_values(spark: SparkSession, held: MergeSource, column_name: str, limit: int) -> list[Any] | None:
    """The distinct values of a column of the kept rows; None if there are more than ``limit``."""
    rows = read_scratch(spark, [held.place], T.StructType([*held.schema, _NUMBER]))
    distinct = rows.select(column(column_name).alias("value")).distinct().limit(limit + 1)
    values = months_as_numbers(distinct).toArrow()
    return values["value"].to_pylist() if len(values) <= limit else None


def _is_choice_of_columns(node: str) -> bool:
    """Whether a node only selects columns, as the star of a query does, so that they remain those of their table."""
    return node.startswith("Project [") and " AS " not in node


def alias_of(rows: DataFrame) -> str | None:
    """The alias of a DataFrame, or the name of its view or table; None without one."""
    constant = rows.select(F.lit(1).alias("one"))  # otherwise the plan begins with names of columns, whatever they are
    try:
        with translate_errors("the source of the MERGE", "the MERGE"):
            analysed = printed_plan(constant).partition("== Analyzed Logical Plan ==\n")[2]
    except ExecutionFailed:
        return None  # Spark evaluates constants while it plans; `hold` reports the error with the table's name
    for line in analysed.splitlines()[2:]:
        node = line.lstrip(" +-")
        if match := _ALIAS.fullmatch(node):
            name = (match[1] or match[2]).replace("``", "`")
            return None if name.startswith("__anabranch_") else name
        if not node.startswith(_KEEPS_NAMES) and not _is_choice_of_columns(node):
            return None
    return None
