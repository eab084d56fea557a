"""Converts rules to Spark Columns.

Knows sessions. Guarantee: of a rule only the text that `anabranch._protocol.rules.allowed` wrote anew reaches Spark,
and each function in it is Spark's own in this session.
"""

from __future__ import annotations

from pyspark.sql import Column, SparkSession

from anabranch._protocol.rules.allowed import read_check, read_default, read_generated, refusal
from anabranch._protocol.rules.rule_expressions import CheckedExpression
from anabranch._protocol.rules.table_rules import Check, Generated, Rules
from anabranch._protocol.schema.types import Struct
from anabranch._spark.sessions.functions import are_builtin
from anabranch._spark.sessions.sql_text import expression


def check_column(spark: SparkSession, check: Check, schema: Struct, table: str) -> Column:
    """The condition of a constraint. Raises RuleRefused if it may not be evaluated."""
    reading = read_check(check, schema, table)
    return _column(spark, reading, f"constraint {check.name}", check.expression, table)


def generated_column(spark: SparkSession, rule: Generated, schema: Struct, table: str) -> Column:
    """The value of a generated column. Raises as `check_column`."""
    reading = read_generated(rule, schema, table)
    return _column(spark, reading, f"generated column {rule.column}", rule.expression, table)


def default_column(spark: SparkSession, column: str, text: str, table: str) -> Column:
    """The default of a column. Raises as `check_column`."""
    return _column(spark, read_default(column, text, table), f"default of {column}", text, table)


def default_text(spark: SparkSession, column: str, text: str, table: str) -> str:
    """The default of a column as SQL text. Raises as `check_column`."""
    reading = read_default(column, text, table)
    _check_own(spark, reading, f"default of {column}", text, table)
    return reading.text


def check_own_functions(spark: SparkSession, rules: Rules, schema: Struct, table: str) -> None:
    """Raises RuleRefused unless all functions in checks and generated columns are Spark's own in the session."""
    checked = frozenset[str]()
    for check in rules.checks:
        reading = read_check(check, schema, table)
        checked |= _check_own(spark, reading, f"constraint {check.name}", check.expression, table, checked)
    for rule in rules.generated:
        reading = read_generated(rule, schema, table)
        checked |= _check_own(spark, reading, f"generated column {rule.column}", rule.expression, table, checked)


def _column(spark: SparkSession, reading: CheckedExpression, rule: str, text: str, table: str) -> Column:
    _check_own(spark, reading, rule, text, table)
    return expression(reading.text, spark)


def _check_own(
    spark: SparkSession,
    reading: CheckedExpression,
    rule: str,
    text: str,
    table: str,
    checked: frozenset[str] = frozenset(),
) -> frozenset[str]:
    """The functions that a rule calls. Raises RuleRefused unless all but those already checked are Spark's own."""
    for name in sorted(reading.functions - checked):
        if not are_builtin(spark, [name]):
            reason = "in this session it is not Spark's own: drop the function that was registered under this name"
            raise refusal(rule, text, table, f"the function {name}", reason)
    return reading.functions
