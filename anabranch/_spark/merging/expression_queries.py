"""Finds the version of its own table that a command reads through queries in its conditions and values.

Knows plans of expressions, over rows of which Spark knows nothing while it plans; a function that contains a query
shows up as one. Guarantee: no job is run; an expression that does not fit its columns is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from anabranch._log.positions import SourceVersions, all_versions
from anabranch._protocol.conditions import Condition
from anabranch._protocol.merges import MergePlan, When
from anabranch._protocol.schema.types import Struct
from anabranch._spark.columns.types import spark_schema, unknown_row
from anabranch._spark.frames.dataframe_source import source_versions
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.merging.merge_clauses import Decider, Names, translate_clause_errors
from anabranch._spark.reading.row_addresses import alias_for_expressions, as_column


def query_versions(
    spark: SparkSession, condition: Condition, values: Sequence[Any], schema: Struct, root: str, table_id: str
) -> SourceVersions | None:
    """As `anabranch._spark.frames.dataframe_source.source_versions`, for the queries in a condition and in values.

    Raises:
        InvalidCondition: one does not fit the columns.
        UnknownSourceVersion: as there.
    """
    with translate_errors(condition.text, root):
        row = unknown_row(spark, spark_schema(schema))
        aliased = row if condition.alias is None else row.alias(condition.alias)
        with_queries = aliased.filter(as_column(condition.expression, spark))
        if values:
            with_queries = alias_for_expressions(with_queries, values).select(
                *[as_column(value, spark) for value in values]
            )
        return source_versions(with_queries, root, table_id)


def merge_versions(
    spark: SparkSession, matching: MergePlan, source: T.StructType, schema: Struct, root: str, table_id: str
) -> SourceVersions | None:
    """As `query_versions`, for all expressions of a MERGE.

    Args:
        source: the columns of its source.

    Raises:
        InvalidCondition, UnknownColumn: one does not fit the columns.
        UnknownSourceVersion: as for `query_versions`.
    """
    with translate_clause_errors(f"MERGE ON {matching.on}", root):
        frames = _frames_with_expressions(spark, matching, source, schema, root)
        return all_versions(source_versions(frame, root, table_id) for frame in frames)


def _frames_with_expressions(
    spark: SparkSession, matching: MergePlan, source: T.StructType, schema: Struct, root: str
) -> Iterator[DataFrame]:
    names = Names.beside([*schema.names, *source.names], matching)
    decider = Decider(root, schema, source.names, names)
    target = unknown_row(spark, spark_schema(schema)).alias(names.target)
    other = unknown_row(spark, source).alias(names.source)
    pairs = target.crossJoin(other)
    sides: dict[When, DataFrame] = {"matched": pairs, "not matched": other, "not matched by source": target}
    yield pairs.filter(as_column(matching.on, spark))
    for when, rows in sides.items():
        with_expressions = rows
        for clause in matching.of(when):
            with_expressions = decider.apply_expressions(with_expressions, clause)
        if with_expressions is not rows:
            yield with_expressions
