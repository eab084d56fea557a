"""Enforces a table's rules in the same pass that writes the rows.

Knows expressions over rows that have the table's columns. Knows nothing of files. Guarantees: a row that breaks a rule
makes the query fail, with the first rule that it breaks; no job is added; copied rows are not checked. The checks are
part of a column that is written, so that no optimiser can remove them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch._protocol.layout.addresses import free_name
from anabranch._protocol.rules.table_rules import Check, Generated, NotNull, Rules
from anabranch._protocol.schema.geospatial import GEOSPATIAL, KINDS
from anabranch._protocol.schema.lengths import Inside, Step
from anabranch._protocol.schema.types import Field, Struct, kind_of, type_names
from anabranch._protocol.schema.voids import has_void, type_in_files
from anabranch._spark.columns.rule_columns import check_column, generated_column
from anabranch._spark.columns.type_fit import cast_for_assignment
from anabranch._spark.columns.types import column, spark_type, tree_reduce
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.frames.violations import error_sentence, raise_in_query
from anabranch.errors import CheckConstraintViolated, NotNullViolated

_SHOWN_COLUMNS = 20
"""Maximum number of values that an error shows of a row that breaks NOT NULL."""


@dataclass(frozen=True)
class Writing:
    """How some rows are written.

    Attributes:
        where: TRUE for these rows.
        given: columns with provided values.
        new: whether the rows are new, and not images of old ones.
    """

    where: Column
    given: frozenset[str]
    new: bool = False


def enforce_rules(
    rows: DataFrame,
    schema: Struct,
    rules: Rules,
    writings: Sequence[Writing],
    table: str,
    *,
    beside: Sequence[str] = (),
) -> DataFrame:
    """Rows that obey the table's rules: generated columns are computed, and a row that breaks a rule fails the
    query.

    A provided value of a generated column is checked; a missing one is computed if the row is new, or if inputs of the
    column were provided; otherwise the old value stays.

    Args:
        rows: at least the schema's columns.
        writings: conditions of rows, with how these are written; at most one applies to a row. A row to which none
            applies is copied.
        table: for messages.
        beside: further columns of the rows, which no rule names.

    Returns:
        The schema's columns, and those of ``beside``.

    Raises:
        RuleRefused: a rule may not be evaluated.
        InvalidCondition: its expression does not fit the columns.
        CheckConstraintViolated, NotNullViolated: when the rows are evaluated, and one breaks a rule.
    """
    if rules.bind_rows:
        for rule in rules.generated:
            rows = _compute_generated(rows, schema, rule, writings, table)
        rows = _add_checks(rows, schema, rules, writings, table, beside)
    columns = [*schema.names, *beside]
    return rows if rows.columns == columns else rows.select(*map(column, columns))


# -- generated columns -------------------------------------------------------------------------------------------------


def _compute_generated(
    rows: DataFrame, schema: Struct, rule: Generated, writings: Sequence[Writing], table: str
) -> DataFrame:
    """The rows with this generated column computed where required."""
    conditions = [
        writing.where
        for writing in writings
        if rule.column not in writing.given and (writing.new or rule.columns & writing.given)
    ]
    if not conditions:
        return rows
    field, name = schema.field(rule.column), free_name("__anabranch_generated", rows.columns)
    with translate_errors(f"{rule.column} GENERATED ALWAYS AS ({rule.expression})", table):
        # In a column of its own, because otherwise the cast would compute the expression a second time.
        computed = generated_column(rows.sparkSession, rule, schema, table)
        with_value = rows.select("*", F.when(_any(conditions), computed).alias(name))
        value = cast_for_assignment(field, column(name), with_value.schema[name].dataType, table, partial=True)
        image = F.when(_any(conditions), value).otherwise(column(rule.column))
        return with_value.select(*[image.alias(n) if n == rule.column else column(n) for n in rows.columns])


# -- checks ------------------------------------------------------------------------------------------------------------


def _add_checks(
    rows: DataFrame, schema: Struct, rules: Rules, writings: Sequence[Writing], table: str, beside: Sequence[str]
) -> DataFrame:
    written = _any([writing.where for writing in writings])
    checks = [*_null_checks(schema, rules.not_null, table), *_checks(rows.sparkSession, schema, rules.checks, table)]
    checks = [(F.when(written, broken), failure) for broken, failure in checks]
    for rule in rules.generated:
        provided = [writing.where for writing in writings if rule.column in writing.given]
        if provided:
            checks.append(
                (F.when(_any(provided), _differs(rows, schema, rule, table)), _violation(schema, rule.check, table))
            )
    if not checks:
        return rows
    with translate_errors("the table's rules", table):
        # A column that is written unchanged; void columns are not written.
        carrier = min(schema, key=lambda field: (type_in_files(field.type) is None, has_void(field.type))).name
        checked = F.when(F.lit(False), column(carrier))
        for broken, failure in checks:
            checked = checked.when(
                F.coalesce(broken, F.lit(False)), failure.cast(spark_type(schema.field(carrier).type))
            )
        checked = checked.otherwise(column(carrier)).alias(carrier)
        further_columns = map(column, beside)
        return rows.select(*[checked if name == carrier else column(name) for name in schema.names], *further_columns)


def _null_checks(schema: Struct, rules: Sequence[NotNull], table: str) -> Iterator[tuple[Column, Column]]:
    """A single check for all NOT NULL rules, since all of them show the same row."""
    if rules:
        message = F.when(F.lit(False), F.lit(""))
        for rule in rules:
            top, *inner = rule.path
            message = message.when(
                _is_broken(column(str(top)), inner), error_sentence(NotNullViolated, column=rule.column)
            )
        values = {field.name: _text(field) for field in schema.fields[:_SHOWN_COLUMNS]}
        yield message.isNotNull(), raise_in_query(NotNullViolated, message, values, table)


def _is_broken(value: Column, path: Sequence[Step]) -> Column:
    """Whether a value at a path is NULL somewhere; NULL if nothing exists at the path."""
    if not path:
        return value.isNull()
    step, remaining_path = path[0], path[1:]
    match step:
        case Inside.ELEMENTS:
            elements = value
        case Inside.KEYS:
            elements = F.map_keys(value)
        case Inside.VALUES:
            elements = F.map_values(value)
        case _:
            return F.when(value.isNotNull(), _is_broken(value.getField(step), remaining_path))
    return F.exists(elements, lambda element: F.coalesce(_is_broken(element, remaining_path), F.lit(False)))


def _checks(
    spark: SparkSession, schema: Struct, checks: Iterable[Check], table: str
) -> Iterator[tuple[Column, Column]]:
    for check in checks:
        yield ~F.coalesce(check_column(spark, check, schema, table), F.lit(False)), _violation(schema, check, table)


def _differs(rows: DataFrame, schema: Struct, rule: Generated, table: str) -> Column:
    """Whether a provided value differs from that of the expression."""
    with translate_errors(f"{rule.column} GENERATED ALWAYS AS ({rule.expression})", table):
        value = generated_column(rows.sparkSession, rule, schema, table)
        source_type = rows.select(value.alias("value")).schema[0].dataType
        return ~column(rule.column).eqNullSafe(
            cast_for_assignment(schema.field(rule.column), value, source_type, table, partial=True)
        )


def _violation(schema: Struct, check: Check, table: str) -> Column:
    values = {field.name: _text(field) for field in schema if field.name in check.columns}
    facts = error_sentence(CheckConstraintViolated, constraint=check.name, expression=check.expression)
    return raise_in_query(CheckConstraintViolated, facts, values, table)


def _text(field: Field) -> Column:
    value = column(field.name)
    if field.type in GEOSPATIAL:
        return F.hex(F.call_function("st_asbinary", value))
    if not type_names(field.type).isdisjoint(KINDS):  # no text to which Spark casts it
        return F.lit(kind_of(field.type))
    return F.hex(value) if field.type == "binary" else value.cast("string")


def _any(conditions: Sequence[Column]) -> Column:
    return tree_reduce(Column.__or__, conditions)
