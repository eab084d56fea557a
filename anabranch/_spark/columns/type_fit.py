"""Type fit: fits a value of one type to a column of another, never changing it silently.

Knows Spark's casts and the rules of store assignment. Knows nothing of files. Guarantee: a value that the column
cannot hold makes the query fail, whether or not the session is in ANSI mode; it never becomes NULL.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anabranch._protocol.rules.table_rules import NONE, Rules
from anabranch._protocol.schema.evolution import DIFFER, Misfit, misfit
from anabranch._protocol.schema.lengths import limits_of
from anabranch._protocol.schema.types import INTEGERS, DataType, Field, Struct, decimal_of, upcastable
from anabranch._spark.columns.lengths import enforce_lengths
from anabranch._spark.columns.rule_columns import default_column
from anabranch._spark.columns.shapes import convert_value
from anabranch._spark.columns.types import column, delta_type, fill_void_types, is_void, spark_type
from anabranch._spark.frames.failures import translate_errors, unfit
from anabranch.errors import SchemaMismatch
from anabranch.errors.rows import may_show_rows

_FLOATS = ("float", "double")
_TIMES = ("date", "timestamp", "timestamp_ntz")
_ADD = "The option mergeSchema = true adds it to the table."
_ADD_OR_REPLACE = f"{_ADD} The option overwriteSchema = true replaces the table's columns by those of the rows."
_ABSENT = "Column {}, which has a NOT NULL constraint, is missing from the data being written into the table."
_CAST = "Cast it, or replace the column by the option overwriteSchema = true in mode overwrite."


def fit_to_schema(rows: DataFrame, schema: Struct, table: str, rules: Rules = NONE) -> DataFrame:
    """Rows with exactly the columns of a schema, in its order: matched by name whatever the case.

    A column that is absent has its default value, or else NULL; a generated one is NULL for now. Where the rules say
    ``casts``, values are stored as `cast_for_assignment` stores them.

    Raises:
        SchemaMismatch: a column too many, one twice, a NOT NULL one absent, or a type that does not widen to its own.
    """
    if _are_fit(rows, schema):
        return rows
    advice = _ADD_OR_REPLACE if rules.replaceable else _ADD
    given, generated = _by_folded_name(rows, table), {each.column for each in rules.generated}
    fits = {
        field.name: _fit_column(field, there, table, advice, casts=rules.casts)
        for field in schema
        if (there := given.get(field.name.lower())) is not None
    }
    _check_no_more(rows, schema, table, advice)  # last, since delta-spark speaks of types first
    found = []
    for field in schema:
        if field.name in fits:
            found.append(fits[field.name])
        elif field.name in rules.defaults or field.name in generated:
            found.append(default_value(rows, field, rules, table).alias(field.name))
        else:
            found.append(_absent(field, table))
    return rows.select(*found)


def _are_fit(rows: DataFrame, schema: Struct) -> bool:
    """Whether the rows have the very columns of a schema, all of plain types and without a length to keep: each call
    that makes a column costs a small write much of its time.
    """
    if any(not isinstance(each.type, str) or limits_of(each) is not None for each in schema):
        return False
    return [(each.name, each.dataType) for each in rows.schema] == [(e.name, spark_type(e.type)) for e in schema]


def present_columns(rows: DataFrame, schema: Struct) -> frozenset[str]:
    """The columns of a schema that rows have, in its spelling."""
    return frozenset(field.name for name in rows.columns if (field := schema.find(name)) is not None)


def default_value(rows: DataFrame, field: Field, rules: Rules, table: str) -> Column:
    """The value of a column that rows lack: its default, or NULL.

    Raises:
        RuleRefused: the default may not be evaluated.
        InvalidCondition: it is not a value.
        SchemaMismatch: no value of its type fits the column.
    """
    text = rules.defaults.get(field.name)
    if text is None:
        return F.lit(None).cast(spark_type(field.type))
    with translate_errors(f"{field.name} DEFAULT {text}", table):
        value, nothing = default_column(rows.sparkSession, field.name, text, table), rows.select()
        found = nothing.select(value.alias("value")).schema[0].dataType
        return cast_for_assignment(field, value, found, table, partial=True)  # a member may be younger than the default


def cast_for_assignment(field: Field, value: Column, found: T.DataType, table: str, *, partial: bool = False) -> Column:
    """The value of an assignment to a column: any number for a number, text for any simple type, checked row by row.

    Structs are taken apart by name; where values may be ``partial``, members that they lack are NULL.

    Raises:
        SchemaMismatch: no value of that type could fit.
    """
    return enforce_lengths(field, _cast(field, value, found, table, partial=partial), table)


def _cast(field: Field, value: Column, found: T.DataType, table: str, *, partial: bool) -> Column:
    target = spark_type(field.type)
    if is_void(found):
        return value.cast(target)
    whole = fill_void_types(found, field.type)
    value = value if whole == found else value.cast(whole)
    source = delta_type(whole, field.name)
    why = misfit(source, field.type, field.name, whole=not partial, fits=_assignable)
    if why is not None and isinstance(source, str) and isinstance(field.type, str):
        raise _mismatch(field, table, found, "no value of that type can be stored there.")
    if why is not None:
        raise why.error(table, _CAST)
    return convert_value(
        value, source, field.type, lambda each, given, wanted: _cast_or_fail(field, each, given, wanted, table)
    )


def _cast_or_fail(field: Field, value: Column, source: DataType, target: DataType, table: str) -> Column:
    """A value of a type that is not nested; one that does not fit is an error."""
    if upcastable(source, target):
        return value
    # try_cast is the same in every session; what it cannot do is an error here, not a null.
    sentence, wanted = F.lit(unfit(field.name, str(target))), spark_type(target)
    said = F.concat(sentence, F.lit(": "), value.cast("string")) if may_show_rows(table) else sentence
    return F.coalesce(value.try_cast(wanted), F.when(value.isNotNull(), F.raise_error(said).cast(wanted)))


def _by_folded_name(rows: DataFrame, table: str) -> dict[str, T.StructField]:
    given: dict[str, T.StructField] = {}
    for each in rows.schema:
        if each.name.lower() in given:
            reason = "the rows have two columns of this name (case does not count)."
            raise SchemaMismatch(column=each.name, table=table, reason=reason, expected="one", found="two")
        given[each.name.lower()] = each
    return given


def _check_no_more(rows: DataFrame, schema: Struct, table: str, advice: str) -> None:
    """Raises SchemaMismatch: the rows have a column that a schema lacks."""
    for name in rows.columns:
        if schema.find(name) is None:
            known, found = ", ".join(schema.names) or "none", ", ".join(rows.columns)
            raise Misfit(name, known, found, "it is not one of its columns.").error(table, advice)


def _absent(field: Field, table: str) -> Column:
    if not field.nullable:
        raise _mismatch(field, table, None, _ABSENT.format(field.name))
    return F.lit(None).cast(spark_type(field.type)).alias(field.name)


def _fit_column(field: Field, given: T.StructField, table: str, advice: str, *, casts: bool) -> Column:
    if is_void(given.dataType):
        return F.lit(None).cast(spark_type(field.type)).alias(field.name)
    source = delta_type(given.dataType, given.name)
    why = misfit(source, field.type, field.name, fits=_assignable if casts else upcastable)
    if casts and (why is None or why.reason == DIFFER):
        return cast_for_assignment(field, column(given.name), given.dataType, table, partial=True).alias(field.name)
    if why is not None:
        raise why.error(table, advice if why.reason != DIFFER else _CAST)
    return enforce_lengths(field, convert_value(column(given.name), source, field.type), table).alias(field.name)


def _mismatch(field: Field, table: str, found: T.DataType | None, reason: str) -> SchemaMismatch:
    expected, given = spark_type(field.type).simpleString(), found.simpleString() if found else "no such column"
    return SchemaMismatch(column=field.name, table=table, reason=reason, expected=expected, found=given)


def _assignable(source: DataType, target: DataType) -> bool:
    """Whether some values may fit, as in Spark's store assignment under ANSI; texts are read too, as Delta does."""
    if not isinstance(source, str) or not isinstance(target, str) or upcastable(source, target):
        return upcastable(source, target)
    text = target == "string" or (source == "string" and target != "binary")
    times = source in _TIMES and target in _TIMES
    return text or times or (_is_number(source) and _is_number(target))


def _is_number(data_type: str) -> bool:
    return data_type in INTEGERS or data_type in _FLOATS or decimal_of(data_type) is not None
