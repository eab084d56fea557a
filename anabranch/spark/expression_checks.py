"""Checking: whether the expressions of a change can be run at all, before anything is read or written.

Knows Spark's analysis of rows that there are none of. Guarantees: no job is run; what cannot be resolved, does not fit
its column, or is not decided by the row alone is refused whether or not any row would meet it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.protocol.layout.file_sets import FileSet
from anabranch.protocol.predicates import Condition
from anabranch.protocol.schema.assignments import leaves
from anabranch.spark.failures import reported
from anabranch.spark.row_addresses import as_column, named_for
from anabranch.spark.scan import scan
from anabranch.spark.types import free_name
from anabranch.spark.write import changed, text_of


def check_change(
    spark: SparkSession, files: FileSet, condition: Condition, assignments: Mapping[str, Any] | None
) -> None:
    """Hold that a condition, and values assigned to columns, fit a table's columns and are decided by the row.

    Args:
        spark: the session.
        files: none; how the table looks.
        condition: text or a Column over the old row.
        assignments: as for `anabranch.spark.write.update`; None where rows are deleted.

    Raises:
        InvalidCondition: a name is unknown, or a part is an aggregate, a window, or something else that no row decides.
        Nondeterministic: a part has another value each time. SchemaMismatch: no value of that type fits its column.
    """
    rows = scan(spark, files, ids=True)
    with reported(condition.text, files.root, files.version):
        named = rows if condition.alias is None else rows.alias(condition.alias)
        filtered = named.filter(as_column(condition.expression, spark))
        _ = filtered.schema  # else Spark Connect looks at it only later
        check_deterministic(named, [as_column(condition.expression, spark)])
    if assignments:
        _ = changed(rows, files, assignments, F.lit(True)).schema
        values = [value for _, value in leaves(assignments)]
        with reported(text_of(assignments), files.root, files.version):
            check_deterministic(named_for(rows, values), [as_column(each, spark).isNull() for each in values])


def check_deterministic(rows: DataFrame, conditions: Sequence[Column]) -> None:
    """Hold that conditions over rows are the same each time that they are evaluated.

    Raises:
        AnalysisException: Spark's; one is not.
    """
    # Of a join Spark asks that its condition be decided by the rows; a WHERE may be random.
    other = rows.sparkSession.range(0).select(F.lit(1).alias(free_name("__anabranch_other", rows.columns)))
    _ = rows.join(other, reduce(Column.__and__, conditions)).schema
