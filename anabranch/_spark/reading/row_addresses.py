"""Finds the addresses of the rows that a condition selects.

Knows rows and bitmaps, and not what they are used for. Guarantee: exactly the live rows for which the condition is
TRUE, without duplicates; only the condition's columns are read, and no Python runs on the executors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch._arrow.marks import bitmap, positions_of
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.addresses import Address, address_of
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.stats.statistics import num_records
from anabranch._protocol.store_assignment import ComputedExpression
from anabranch._spark.columns.types import column, quote_identifier, spark_schema
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.reading.row_positions import file_keys
from anabranch._spark.reading.scan import scan
from anabranch._spark.sessions.sql_text import expression

_FEW_FILES, _FEW_ROWS = 64, 500_000


def find(spark: SparkSession, files: FileSet, condition: Condition) -> dict[str, BitMap64]:
    """Live rows for which ``condition`` is TRUE: path as in the log -> positions. Files without such rows are
    left out.

    Raises:
        InvalidCondition: the condition does not parse, does not fit the columns, or is not a condition.
        ExecutionFailed: it cannot be evaluated on some row.
    """
    if len(files.files) == 0:
        _check(spark, files, condition)
        return {}
    rows, paths = scan(spark, files, address=True), files.files["path"].to_pylist()
    rows = rows if condition.alias is None else rows.alias(condition.alias)
    collect = collect_rows if _are_few(files.files) else collect_words
    with translate_errors(condition.text, files.root, files.version):
        return collect(rows.filter(as_column(condition.expression, spark)), address_of(files.schema), paths)


@dataclass(frozen=True, eq=False)
class AliasedColumn:
    """A Column that may refer to the table's columns by an alias."""

    column: Column
    alias: str

    def __str__(self) -> str:
        return str(self.column)


def _check(spark: SparkSession, files: FileSet, condition: Condition) -> None:
    """Raises an error unless a condition fits the columns; needed if there is no file to scan."""
    with translate_errors(condition.text, files.root, files.version):
        no_rows = spark.createDataFrame([], spark_schema(files.schema))
        aliased = no_rows if condition.alias is None else no_rows.alias(condition.alias)
        _ = aliased.filter(as_column(condition.expression, spark)).schema


def as_column(value: object, spark: SparkSession) -> Column:
    """An expression as a Column; it may be SQL text, or a Column already."""
    value = value.expression if isinstance(value, ComputedExpression) else value
    if isinstance(value, AliasedColumn):
        return value.column
    return expression(value, spark) if isinstance(value, str) else value  # type: ignore[return-value]


def is_text(value: object) -> bool:
    """Whether an expression is SQL text. Of a Column only Spark knows to which DataFrame it is bound."""
    return isinstance(value.expression if isinstance(value, ComputedExpression) else value, str)


def alias_for_expressions(rows: DataFrame, expressions: Iterable[object]) -> DataFrame:
    """The rows under the alias that the expressions use for them, if any."""
    plain = [value.expression if isinstance(value, ComputedExpression) else value for value in expressions]
    aliases = {named.alias for named in plain if isinstance(named, AliasedColumn)}
    return rows.alias(aliases.pop()) if aliases else rows


# -- collecting addresses ----------------------------------------------------------------------------------------------


def collect_rows(hits: DataFrame, address: Address, paths: list[str]) -> dict[str, BitMap64]:
    """The addresses of rows, one by one: sets of positions by path, for paths that have any.

    One Spark stage, and 16 bytes per row: half the time of `collect_words` on a small table.
    """
    path_of, key = keys_of(paths)
    addresses = hits.select(key(column(address.path)).alias("key"), column(address.row).alias("row")).toArrow()
    return {path_of[file_key]: bitmap(np.asarray(rows["row"])) for file_key, rows in by_key(addresses.sort_by("key"))}


def collect_words(hits: DataFrame, address: Address, paths: list[str]) -> dict[str, BitMap64]:
    """As `collect_rows`, for any number of rows: executors combine 64 of them into one word.

    Two Spark stages, and at most 24 bytes for 64 rows.
    """
    path_of, key = keys_of(paths)
    bit = F.expr(f"shiftleft(1L, cast({quote_identifier(address.row)} & 63 as int))")
    words = hits.groupBy(key(column(address.path)).alias("key"), F.shiftright(column(address.row), 6).alias("number"))
    addresses = (
        words.agg(F.bit_or(bit).alias("word")).toArrow().sort_by([("key", "ascending"), ("number", "ascending")])
    )
    return {
        path_of[file_key]: positions_of(np.asarray(rows["number"]), np.asarray(rows["word"]))
        for file_key, rows in by_key(addresses)
    }


def _are_few(files: pa.Table) -> bool:
    """Whether statistics show that these files hold few rows, unless there are too many files to check."""
    counts = [num_records(stats) for stats in files["stats"].slice(0, _FEW_FILES + 1).to_pylist()]
    return len(counts) <= _FEW_FILES and None not in counts and sum(filter(None, counts)) <= _FEW_ROWS


def keys_of(paths: list[str]) -> tuple[dict[int | str, str], Callable[[Column], Column]]:
    """The path for each key of `file_keys`, and the expression that computes a path's key."""
    keys, key = file_keys(paths)
    return dict(zip(keys.to_pylist(), paths, strict=True)), key


def by_key(table: pa.Table) -> Iterator[tuple[int | str, pa.Table]]:
    """Split a table that is sorted by key."""
    runs = pc.run_end_encode(table["key"].combine_chunks())
    start = 0
    for key, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield key, table.slice(start, end - start)
        start = end
