"""Rules: enforces a table's rules in the same pass that writes the rows.

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
from anabranch._protocol.schema.lengths import Inside, Step
from anabranch._protocol.schema.types import Field, Struct
from anabranch._protocol.schema.voids import has_void, type_in_files
from anabranch._spark.columns.rule_columns import check_column, generated_column
from anabranch._spark.columns.type_fit import cast_for_assignment
from anabranch._spark.columns.types import column, spark_type, tree_reduce
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.frames.violations import error_sentence, raise_in_query
from anabranch.errors import CheckConstraintViolated, NotNullViolated

_SHOWN_COLUMNS = 20
"""How many values of a row that breaks NOT NULL are shown."""


@dataclass(frozen=True)
class Writing:
    """How some rows are written.

    Attributes:
        where: TRUE for these rows.
        given: the columns that are given.
        new: whether they are new rows, and not images of old ones.
    """

    where: Column
    given: frozenset[str]
    new: bool = False


def obeying(
    rows: DataFrame,
    schema: Struct,
    rules: Rules,
    writings: Sequence[Writing],
    table: str,
    *,
    beside: Sequence[str] = (),
) -> DataFrame:
    """Rows that obey the table's rules: generated columns are computed, and a row that breaks a rule fails the query.

    A generated column that is given is checked; that of a new row, or one whose inputs are given, is computed; any
    other is kept.

    Args:
        rows: at least the schema's columns.
        writings: which rows are written how, each row in at most one way; where in none, it is only copied.
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
        for each in rules.generated:
            rows = _compute_generated(rows, schema, each, writings, table)
        rows = _add_checks(rows, schema, rules, writings, table, beside)
    wanted = [*schema.names, *beside]
    return rows if rows.columns == wanted else rows.select(*map(column, wanted))


# -- generated columns -------------------------------------------------------------------------------------------------


def _compute_generated(
    rows: DataFrame, schema: Struct, rule: Generated, writings: Sequence[Writing], table: str
) -> DataFrame:
    """The rows with this column computed wherever it has to be."""
    wanted = [
        each.where for each in writings if rule.column not in each.given and (each.new or rule.columns & each.given)
    ]
    if not wanted:
        return rows
    field, name = schema.field(rule.column), free_name("__anabranch_generated", rows.columns)
    with translate_errors(f"{rule.column} GENERATED ALWAYS AS ({rule.expression})", table):
        # A column of its own: what is computed must not be computed a second time when it is fitted.
        computed = generated_column(rows.sparkSession, rule, schema, table)
        valued = rows.select("*", F.when(_any(wanted), computed).alias(name))
        value = cast_for_assignment(field, column(name), valued.schema[name].dataType, table, partial=True)
        image = F.when(_any(wanted), value).otherwise(column(rule.column))
        return valued.select(*[image.alias(n) if n == rule.column else column(n) for n in rows.columns])


# -- checks ------------------------------------------------------------------------------------------------------------


def _add_checks(
    rows: DataFrame, schema: Struct, rules: Rules, writings: Sequence[Writing], table: str, beside: Sequence[str]
) -> DataFrame:
    written = _any([each.where for each in writings])
    found = [*_null_checks(schema, rules.not_null, table), *_checks(rows.sparkSession, schema, rules.checks, table)]
    found = [(F.when(written, broken), failure) for broken, failure in found]
    for each in rules.generated:
        given = [w.where for w in writings if each.column in w.given]
        if given:
            found.append(
                (F.when(_any(given), _differs(rows, schema, each, table)), _violation(schema, each.check, table))
            )
    if not found:
        return rows
    with translate_errors("the table's rules", table):
        # A column that is written as it is; void columns are not written.
        carrier = min(schema, key=lambda each: (type_in_files(each.type) is None, has_void(each.type))).name
        judged = F.when(F.lit(False), column(carrier))
        for broken, failure in found:
            judged = judged.when(F.coalesce(broken, F.lit(False)), failure.cast(spark_type(schema.field(carrier).type)))
        judged = judged.otherwise(column(carrier)).alias(carrier)
        others = map(column, beside)
        return rows.select(*[judged if name == carrier else column(name) for name in schema.names], *others)


def _null_checks(schema: Struct, rules: Sequence[NotNull], table: str) -> Iterator[tuple[Column, Column]]:
    """One check for all of them, since each shows the same row."""
    if rules:
        which = F.when(F.lit(False), F.lit(""))
        for rule in rules:
            top, *inner = rule.path
            which = which.when(_is_broken(column(str(top)), inner), error_sentence(NotNullViolated, column=rule.column))
        values = {each.name: _text(each) for each in schema.fields[:_SHOWN_COLUMNS]}
        yield which.isNotNull(), raise_in_query(NotNullViolated, which, values, table)


def _is_broken(value: Column, path: Sequence[Step]) -> Column:
    """Whether what lies at a path is NULL somewhere; NULL where there is nothing at all."""
    if not path:
        return value.isNull()
    step, rest = path[0], path[1:]
    match step:
        case Inside.ELEMENTS:
            inside = value
        case Inside.KEYS:
            inside = F.map_keys(value)
        case Inside.VALUES:
            inside = F.map_values(value)
        case _:
            return F.when(value.isNotNull(), _is_broken(value.getField(step), rest))
    return F.exists(inside, lambda each: F.coalesce(_is_broken(each, rest), F.lit(False)))


def _checks(
    spark: SparkSession, schema: Struct, checks: Iterable[Check], table: str
) -> Iterator[tuple[Column, Column]]:
    for check in checks:
        yield ~F.coalesce(check_column(spark, check, schema, table), F.lit(False)), _violation(schema, check, table)


def _differs(rows: DataFrame, schema: Struct, rule: Generated, table: str) -> Column:
    """Whether a value that was given is not the one that the expression has."""
    with translate_errors(f"{rule.column} GENERATED ALWAYS AS ({rule.expression})", table):
        value = generated_column(rows.sparkSession, rule, schema, table)
        found = rows.select(value.alias("value")).schema[0].dataType
        return ~column(rule.column).eqNullSafe(
            cast_for_assignment(schema.field(rule.column), value, found, table, partial=True)
        )


def _violation(schema: Struct, check: Check, table: str) -> Column:
    values = {each.name: _text(each) for each in schema if each.name in check.columns}
    facts = error_sentence(CheckConstraintViolated, constraint=check.name, expression=check.expression)
    return raise_in_query(CheckConstraintViolated, facts, values, table)


def _text(field: Field) -> Column:
    return F.hex(column(field.name)) if field.type == "binary" else column(field.name).cast("string")


def _any(conditions: Sequence[Column]) -> Column:
    return tree_reduce(Column.__or__, conditions)
