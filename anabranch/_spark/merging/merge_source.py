"""The source of a MERGE: evaluated once, kept in a hidden folder, and read from there.

Knows Spark's plans and folders of kept rows. Knows nothing of the table. Guarantee: whatever is asked of a source after
`hold` is asked of the rows that were kept; the source itself is evaluated once.
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
from anabranch._arrow.reading import MOST_BYTES
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.merges import Joined
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import DataType, from_arrow, to_arrow
from anabranch._protocol.steps import OF_A_QUERY, READ_SOURCE, Step
from anabranch._protocol.unsupported import Unsupported
from anabranch._spark.columns.types import column, delta_type, spark_schema
from anabranch._spark.frames.dataframe_source import printed_plan
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.frames.fallback import try_first
from anabranch._spark.frames.outlooks import outlook
from anabranch._spark.merging.merge_clauses import Names
from anabranch._spark.writing import few_rows
from anabranch._spark.writing.scratch import keep, read_scratch, size_of
from anabranch._spark.writing.sites import is_here, site_of
from anabranch.errors import ExecutionFailed

_NUMBER = T.StructField("number", T.LongType())
_SMALL_BYTES, _MOST_ROWS = 4 << 20, 100_000
"""What a source reads, and how many rows it has, at most, to be brought here instead of being kept in files."""
NOT_SMALL = "its rows are too many, or too large, to be held here"
_KEEPS_NAMES = ("Filter", "Sort", "GlobalLimit", "LocalLimit", "Deduplicate", "Repartition", "ResolvedHint")
_ALIAS = re.compile(r"SubqueryAlias (?:.*\.)?(?:`((?:[^`]|``)+)`|([^`.]+))")


@dataclass(frozen=True, eq=False)
class TableRows:
    """All rows of a version of a table, as a source: a DataFrame of them, and the files, which may take no Spark."""

    frame: DataFrame
    files: FileSet


@dataclass(frozen=True)
class Held:
    """A source that was evaluated.

    Attributes:
        url: the folder of its rows; empty where they were at hand.
        schema: its columns.
        rows: how many rows it has.
        bytes: their size in the folder.
        here: the rows and their numbers, from 0 on, where they are few.
        arrow: the rows and their numbers, where they are few, or may be read by Arrow.
    """

    url: str
    schema: T.StructType
    rows: int
    bytes: int
    here: pa.Table | None = None
    arrow: pa.Table | None = None

    @property
    def columns(self) -> SourceColumns:
        """Its columns as Arrow sees them."""
        return source_columns(self.schema)

    @property
    def source(self) -> SourceRows:
        """Its rows. Raises Unsupported: they are too large to be held here."""
        if self.arrow is None:
            raise Unsupported("the rows of the source are too large to be held here")
        return SourceRows(self.columns, self.arrow)

    def left(self, joined: Sequence[Joined]) -> tuple[Held, Sequence[Joined]]:
        """A source that is here without the rows that joins have matched whose outcome is here, and the other joins."""
        tables = [(each, each.handle.place) for each in joined if each.handle is not None]
        others = [each for each, place in tables if isinstance(place, str)]
        if self.arrow is None or (self.here is None and others):
            return self, joined
        left = self.source.without([place["number"] for _, place in tables if not isinstance(place, str)]).table
        return replace(self, here=left, arrow=left, rows=len(left)), others

    @property
    def place(self) -> str | pa.Table:
        """Where its rows are."""
        return self.url if self.here is None else self.here


def source_columns(schema: T.StructType) -> SourceColumns:
    """A source's columns as Arrow sees them."""
    return SourceColumns(tuple(schema.names), tuple(map(_try_arrow_type, schema)))


def _try_arrow_type(field: T.StructField) -> DataType | None:
    """Delta's type of a source's column; None where it is none that Arrow sees as Spark does, or padded."""
    if LENGTH in (field.metadata or {}) or not few_rows.are_plain(T.StructType([field])):
        return None
    return delta_type(field.dataType, field.name)


def hold(spark: SparkSession, source: DataFrame, root: str, folder: str) -> Held:
    """Evaluate a source once, and keep its rows, numbered, in a hidden folder below ``root/folder``.

    Raises:
        UnsupportedType: a column (named) has a type that Parquet cannot hold.
        ExecutionFailed: a row could not be computed.
    """
    with translate_errors("the source of the MERGE", root):
        schema = T.StructType([to_kept_field(each) for each in source.schema])
        here = try_first(lambda: _at_once(source, is_here=is_here(spark, root)))
        if here is not None:
            return _few(_with_numbers(here), schema, here.nbytes)
        rows = source.select("*", F.monotonically_increasing_id().alias("number"))
        inside = f"{folder}/_source-{uuid4().hex}"
        url, files = keep(spark, rows, root, inside), few_rows.files_in(root, inside)
        if files is None:
            return Held(url, schema, *size_of(spark, url))
        most = MOST_BYTES if is_here(spark, root) else few_rows.MOST_BYTES
        count, found = few_rows.count_and_read_rows(root, files, T.StructType([*schema, _NUMBER]), most)
        size = sum(each.size for each in files)
        if found is not None and few_rows.are_few(schema, count) and found.nbytes <= few_rows.MOST_BYTES:
            return _few(_renumber(found), schema, size, url)
        return Held(url, schema, count, size, arrow=found)


def _few(rows: pa.Table, schema: T.StructType, size: int, url: str = "") -> Held:
    return Held(url, schema, len(rows), size, rows, rows)


def try_hold_here(spark: SparkSession, source: pa.Table | TableRows) -> Held | None:
    """A source that takes no Spark, as if it had been kept; None where it is not small, or takes Spark after all."""
    return _of_arrow(source) if isinstance(source, pa.Table) else _of_table(spark, source)


def _of_arrow(source: pa.Table) -> Held | None:
    found = from_arrow(source.schema)
    schema = spark_schema(found)
    if not few_rows.are_few(schema, len(source)) or source.nbytes > few_rows.MOST_BYTES:
        return None
    return _few(_with_numbers(source.cast(to_arrow(found), safe=False)), schema, source.nbytes)


def reading(whole: FileSet | None) -> Step:
    """The step that reads a source, all rows of a table or, where that is None, a query's; what is in the files decides
    too.
    """
    if whole is None:
        return Step(READ_SOURCE, OF_A_QUERY)
    return Step(READ_SOURCE, NOT_SMALL if _size(whole) > _SMALL_BYTES else None)


def _size(files: FileSet) -> int:
    return pc.sum(files.files["size"]).as_py() or 0


def _of_table(spark: SparkSession, source: TableRows) -> Held | None:
    if _size(source.files) > _SMALL_BYTES:
        return None
    rows = try_first(lambda: finding.live(site_of(spark, source.files.root), source.files))
    if rows is None or len(rows) > _MOST_ROWS or rows.nbytes > few_rows.MOST_BYTES:
        return None
    return _few(_with_numbers(rows), T.StructType([to_kept_field(each) for each in source.frame.schema]), rows.nbytes)


def _at_once(source: DataFrame, *, is_here: bool) -> pa.Table | None:
    """The rows of a source that Spark knows as soon as it has planned, or that are read in no time and go nowhere."""
    if not few_rows.are_few(source.schema, 1):
        return None
    found = outlook(source)
    if not found.is_constant and not (is_here and found.bytes is not None and found.bytes <= _SMALL_BYTES):
        return None
    most = few_rows.MOST_ROWS if found.is_constant else _MOST_ROWS
    return few_rows.try_collect(source.toDF(*(f"c{i}" for i in range(len(source.schema)))), inf, most)


def _renumber(rows: pa.Table) -> pa.Table:
    return _with_numbers(rows.select(range(rows.num_columns - 1)))


def _with_numbers(rows: pa.Table) -> pa.Table:
    return rows.append_column(_NUMBER.name, pa.array(range(len(rows)), pa.int64()))


def to_kept_field(field: T.StructField) -> T.StructField:
    """A source's column as it is kept: with the length of a char, by which Spark compares it."""
    said = {key: value for key, value in (field.metadata or {}).items() if key == LENGTH}
    return T.StructField(field.name, field.dataType, True, said)


def source_frame(spark: SparkSession, held: Held, names: Names) -> DataFrame:
    """The rows of a source under its alias, with their numbers."""
    schema = T.StructType([*held.schema, T.StructField(names.number, T.LongType())])
    is_known = held.here is not None or held.url
    rows = read_scratch(spark, [held.place], schema) if is_known else spark.createDataFrame([], schema)
    return rows.alias(names.source)


def few_values(spark: SparkSession, held: Held, column_name: str, limit: int) -> list[Any] | None:
    """The distinct values of a column of the kept rows; None where there are more than ``limit``."""
    rows = read_scratch(spark, [held.place], T.StructType([*held.schema, _NUMBER]))
    found = rows.select(column(column_name).alias("value")).distinct().limit(limit + 1).toArrow()
    return found["value"].to_pylist() if len(found) <= limit else None


def _is_choice_of_columns(node: str) -> bool:
    """Whether a node only chooses among columns, which stay those of their table, as the star of a query does."""
    return node.startswith("Project [") and " AS " not in node


def alias_of(rows: DataFrame) -> str | None:
    """The alias of a DataFrame, or the name of the view or table that it is; None without one."""
    nothing = rows.select(F.lit(1).alias("one"))  # else the names of columns stand first, with whatever is in them
    try:
        with translate_errors("the source of the MERGE", "the MERGE"):
            analysed = printed_plan(nothing).partition("== Analyzed Logical Plan ==\n")[2]
    except ExecutionFailed:
        return None  # Spark computes what is constant while it plans; `hold` says what failed, and for which table
    for line in analysed.splitlines()[2:]:
        node = line.lstrip(" +-")
        if match := _ALIAS.fullmatch(node):
            name = (match[1] or match[2]).replace("``", "`")
            return None if name.startswith("__anabranch_") else name
        if not node.startswith(_KEEPS_NAMES) and not _is_choice_of_columns(node):
            return None
    return None
