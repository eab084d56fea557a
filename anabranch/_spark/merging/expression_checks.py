"""Checks whether a change's expressions can run, before anything is read or written.

Uses Spark's analysis of empty rows. Guarantees: no job is run; an expression that cannot be resolved, does not fit its
column, or depends on more than its row raises an error even if no row would meet it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch._arrow.assigned_values import resolve_assignments
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.schema.assignments import leaves
from anabranch._protocol.unsupported import why_unsupported
from anabranch._spark.columns.types import tree_reduce
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.reading.row_addresses import alias_for_expressions, as_column, is_text
from anabranch._spark.reading.scan import scan
from anabranch._spark.writing.write import assign_where, text_of


def check_change(
    spark: SparkSession, files: FileSet, condition: Condition, assignments: Mapping[str, Any] | None
) -> None:
    """Raises an error unless a condition and assigned values fit a table's columns and depend on the row alone.

    Args:
        condition: text or a Column over the old row.
        assignments: as for `anabranch._spark.writing.write.update`; None if rows are deleted.

    Raises:
        InvalidCondition: a name is unknown, or a part is an aggregate, a window, or otherwise not determined by a row.
        Nondeterministic: a part may differ between evaluations.
        SchemaMismatch: no value of that type fits its column.
    """
    values = [value for _, value in leaves(assignments or {})]
    is_known = (
        condition.computation is not None and condition.computation.is_condition and is_text(condition.expression)
    )
    reason = why_unsupported(lambda: resolve_assignments(assignments or {}, files.schema))
    are_known = reason is None and all(map(is_text, values))
    if is_known and are_known:
        return  # their parts have the types that Spark gives them, too
    rows = scan(spark, files, ids=True)
    if not is_known:
        _check_condition(spark, rows, files, condition)
    if assignments and not are_known:
        _ = assign_where(rows, files, assignments, F.lit(True)).schema
        with translate_errors(text_of(assignments), files.root, files.version):
            check_deterministic(
                alias_for_expressions(rows, values), [as_column(value, spark).isNull() for value in values]
            )


def _check_condition(spark: SparkSession, rows: DataFrame, files: FileSet, condition: Condition) -> None:
    with translate_errors(condition.text, files.root, files.version):
        aliased = rows if condition.alias is None else rows.alias(condition.alias)
        filtered = aliased.filter(as_column(condition.expression, spark))
        _ = filtered.schema  # otherwise Spark Connect analyses it only later
        check_deterministic(aliased, [as_column(condition.expression, spark)])


def check_deterministic(rows: DataFrame, conditions: Sequence[Column]) -> None:
    """Raises Spark's AnalysisException unless conditions over rows are deterministic."""
    # Spark requires this of the arguments of an aggregate, but not of a WHERE, and allows the same subqueries in both.
    # In the condition of a join it would allow no correlated scalar subquery.
    _ = rows.agg(F.count(tree_reduce(Column.__and__, conditions))).schema
