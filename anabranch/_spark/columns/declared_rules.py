"""Checks whether a table's expressions fit its columns, before there are rows.

Knows expressions over no rows. Guarantee: rules that pass can be enforced in every row; nothing of the table is read.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anabranch._protocol.rules.allowed import check_allowed, check_name, read_generated, refusal
from anabranch._protocol.rules.table_rules import Check, Generated, Rules, columns_in_text
from anabranch._protocol.schema.types import Field, Struct, upcastable
from anabranch._spark.columns.rule_columns import check_column, default_column, generated_column
from anabranch._spark.columns.rules import Writing, enforce_rules
from anabranch._spark.columns.type_fit import default_value
from anabranch._spark.columns.types import column, delta_type, is_void, spark_schema, spark_type
from anabranch._spark.frames.failures import translate_errors
from anabranch.errors import ConstraintNotBoolean, DefaultDoesNotFit, GeneratedTypeMismatch, InvalidCondition


def check_expressions(spark: SparkSession, schema: Struct, rules: Rules, table: str) -> None:
    """Raises an error unless a table's expressions fit its columns.

    Raises:
        RuleRefused: an expression may not be evaluated.
        InvalidCondition: an expression does not fit, or a generated column needs more than its row's plain columns.
        ConstraintNotBoolean: a constraint is not a condition.
        GeneratedTypeMismatch: a generated column has another type than its expression.
        DefaultDoesNotFit, SchemaMismatch: a default is not a value that its column can hold.
    """
    check_allowed(rules, schema, table)
    rows = spark.createDataFrame([], spark_schema(schema))
    for rule in rules.generated:
        _check_generated(rows, schema, rule, rules, table)
    for check in rules.checks:
        _check_condition(rows, schema, check, table)
    for field in schema:
        _check_default(rows, field, rules, table)
    _ = enforce_rules(rows, schema, rules, [Writing(F.lit(True), frozenset(), new=True)], table).schema


def _check_condition(rows: DataFrame, schema: Struct, check: Check, table: str) -> None:
    check_name(check, table)
    with translate_errors(check.expression, table):
        condition = check_column(rows.sparkSession, check, _with_session_case(rows.sparkSession, schema), table)
        type_ = rows.select(condition.alias("value")).schema[0].dataType
    if not isinstance(type_, T.BooleanType):
        facts = {"constraint": check.name, "expression": check.expression, "found": type_.simpleString()}
        raise ConstraintNotBoolean(table=table, **facts)


def _with_session_case(spark: SparkSession, schema: Struct) -> Struct:
    """The columns with the session's case sensitivity, which applies to those who declare a rule."""
    is_exact = (spark.conf.get("spark.sql.caseSensitive", None) or "false").lower() == "true"
    return schema.exactly() if is_exact else schema


def _check_generated(rows: DataFrame, schema: Struct, rule: Generated, rules: Rules, table: str) -> None:
    generated = {other_rule.column for other_rule in rules.generated}
    if generated_inputs := sorted(rule.columns & generated) or columns_in_text(rule.expression, [rule.column]):
        reason = f"it refers to {next(iter(generated_inputs))}, which is generated itself."
        raise InvalidCondition(expression=rule.expression, table=table, reason=reason)
    if read_generated(rule, schema, table).subscripts:
        reason = "Delta allows no subscript in a generated column; use element_at(…) or name a member"
        raise refusal(f"generated column {rule.column}", rule.expression, table, "[ ]", reason)
    plain = rows.select(*[column(name) for name in schema.names if name not in generated])
    with translate_errors(rule.expression, table):
        value = generated_column(rows.sparkSession, rule, schema, table)
        # Spark demands a deterministic condition of a join, but not of a WHERE.
        other = plain.select(F.lit(1).alias("__anabranch_other")).limit(0)
        _ = plain.join(other, value.isNull()).schema
        type_ = plain.select(value.alias("value")).schema[0].dataType
    field = schema.field(rule.column)
    if is_void(type_) or spark_type(delta_type(type_, rule.column)) != spark_type(field.type):
        facts = {"expected": spark_type(field.type).simpleString(), "found": type_.simpleString()}
        reason = "a generated column has the type of its expression"
        raise GeneratedTypeMismatch(column=rule.column, table=table, reason=reason, **facts)


# -- defaults ----------------------------------------------------------------------------------------------------------


def _check_default(rows: DataFrame, field: Field, rules: Rules, table: str) -> None:
    text = rules.defaults.get(field.name)
    if text is None:
        return
    value = default_value(rows, field, rules, table)
    with translate_errors(f"{field.name} DEFAULT {text}", table):
        plain = default_column(rows.sparkSession, field.name, text, table)
        type_ = rows.select().select(plain.alias("value")).schema[0].dataType
        if not is_void(type_) and not _always_fits(type_, field):
            _check_value(rows.sparkSession, plain, field, text, table)
        _ = rows.select().select(value.alias("value")).schema


def _always_fits(type_: T.DataType, field: Field) -> bool:
    """Whether a column can hold every value of a type; nested values have been checked member by member."""
    source = delta_type(type_, field.name)
    nested = not isinstance(source, str) or not isinstance(field.type, str)
    return nested or field.type == "string" or upcastable(source, field.type)


def _check_value(spark: SparkSession, value: Column, field: Field, text: str, table: str) -> None:
    """Raises `DefaultDoesNotFit` unless the column can hold this very value, as Spark demands of defaults."""
    (row,) = spark.range(1).select(value.isNull(), value.try_cast(spark_type(field.type)).isNull()).collect()
    if row[1] and not row[0]:
        expected = spark_type(field.type).simpleString()
        raise DefaultDoesNotFit(column=field.name, table=table, expected=expected, expression=text)
