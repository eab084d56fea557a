"""Fits values of one type to columns of another, without silent changes.

Knows Spark's casts and the rules of store assignment. Knows nothing of files. Guarantee: a value that the column cannot
hold makes the query fail, whether or not the session is in ANSI mode; it never becomes NULL.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anabranch._protocol.rules.table_rules import NONE, Rules
from anabranch._protocol.schema.evolution import DIFFER, Misfit, misfit
from anabranch._protocol.schema.geospatial import GEOSPATIAL
from anabranch._protocol.schema.lengths import limits_of
from anabranch._protocol.schema.types import INTEGERS, DataType, Field, Struct, decimal_of, upcastable
from anabranch._spark.columns.lengths import enforce_lengths
from anabranch._spark.columns.rule_columns import default_column
from anabranch._spark.columns.shapes import convert_value
from anabranch._spark.columns.types import column, delta_type, fill_void_types, is_void, spark_type
from anabranch._spark.frames.failures import misfit_sentence, translate_errors
from anabranch.errors import SchemaMismatch
from anabranch.errors.rows import may_show_rows

_FLOATS = ("float", "double")
_TIMES = ("date", "timestamp", "timestamp_ntz")
_ADD = "The option mergeSchema = true adds it to the table."
_ADD_OR_REPLACE = f"{_ADD} The option overwriteSchema = true replaces the table's columns by those of the rows."
_ABSENT = "Column {}, which has a NOT NULL constraint, is missing from the data being written into the table."
_CAST = "Cast it, or replace the column by the option overwriteSchema = true in mode overwrite."


def fit_to_schema(rows: DataFrame, schema: Struct, table: str, rules: Rules = NONE) -> DataFrame:
    """Rows with exactly the columns of a schema, in its order; columns match by name, ignoring case.

    An absent column gets its default value, or NULL; a generated one is NULL for now. If the rules say ``casts``,
    values are stored as by `cast_for_assignment`.

    Raises:
        SchemaMismatch: a column is unknown, or occurs twice, or is absent though NOT NULL, or its type does not widen
            to the table's.
    """
    if _are_fit(rows, schema):
        return rows
    advice = _ADD_OR_REPLACE if rules.replaceable else _ADD
    source_columns, generated = _by_folded_name(rows, table), {rule.column for rule in rules.generated}
    fits = {
        field.name: _fit_column(field, source_column, table, advice, casts=rules.casts)
        for field in schema
        if (source_column := source_columns.get(field.name.lower())) is not None
    }
    _check_no_more(rows, schema, table, advice)  # last, since delta-spark reports types first
    columns = []
    for field in schema:
        if field.name in fits:
            columns.append(fits[field.name])
        elif field.name in rules.defaults or field.name in generated:
            columns.append(default_value(rows, field, rules, table).alias(field.name))
        else:
            columns.append(_absent(field, table))
    return rows.select(*columns)


def _are_fit(rows: DataFrame, schema: Struct) -> bool:
    """Whether the rows already have the columns of a schema, all of plain types and without lengths. Avoiding calls
    that create columns speeds up small writes noticeably.
    """
    if any(not isinstance(field.type, str) or limits_of(field) is not None for field in schema):
        return False
    expected = [(field.name, spark_type(field.type)) for field in schema]
    return [(field.name, field.dataType) for field in rows.schema] == expected


def present_columns(rows: DataFrame, schema: Struct) -> frozenset[str]:
    """The columns of a schema that rows have, as the schema spells them."""
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
        source_type = nothing.select(value.alias("value")).schema[0].dataType
        return cast_for_assignment(field, value, source_type, table, partial=True)  # the default may predate a member


def cast_for_assignment(
    field: Field, value: Column, source_type: T.DataType, table: str, *, partial: bool = False
) -> Column:
    """The value of an assignment to a column: any number for a number, text for any simple type, checked row by row.

    Structs are matched by member name; if values may be ``partial``, missing members are NULL.

    Raises:
        SchemaMismatch: no value of that type can fit.
    """
    return enforce_lengths(field, _cast(field, value, source_type, table, partial=partial), table)


def _cast(field: Field, value: Column, source_type: T.DataType, table: str, *, partial: bool) -> Column:
    target = spark_type(field.type)
    if is_void(source_type):
        return value.cast(target)
    whole = fill_void_types(source_type, field.type)
    value = value if whole == source_type else value.cast(whole)
    source = delta_type(whole, field.name)
    why = misfit(source, field.type, field.name, whole=not partial, fits=_assignable)
    if why is not None and isinstance(source, str) and isinstance(field.type, str):
        raise _mismatch(field, table, source_type, "no value of that type can be stored there.")
    if why is not None:
        raise why.error(table, _CAST)
    return convert_value(
        value,
        source,
        field.type,
        lambda part, kind, wanted: _cast_or_fail(field, part, kind, wanted, table),
    )


def _cast_or_fail(field: Field, value: Column, source: DataType, target: DataType, table: str) -> Column:
    """A value of a primitive type; a value that does not fit is an error."""
    if upcastable(source, target):
        return value
    # try_cast is the same in every session; its NULL for a value that does not fit becomes an error here.
    sentence, spark_target = F.lit(misfit_sentence(field.name, str(target))), spark_type(target)
    message = F.concat(sentence, F.lit(": "), value.cast("string")) if may_show_rows(table) else sentence
    return F.coalesce(
        value.try_cast(spark_target), F.when(value.isNotNull(), F.raise_error(message).cast(spark_target))
    )


def _by_folded_name(rows: DataFrame, table: str) -> dict[str, T.StructField]:
    by_name: dict[str, T.StructField] = {}
    for field in rows.schema:
        if field.name.lower() in by_name:
            reason = "the rows have two columns of this name (case does not count)."
            raise SchemaMismatch(column=field.name, table=table, reason=reason, expected="one", found="two")
        by_name[field.name.lower()] = field
    return by_name


def _check_no_more(rows: DataFrame, schema: Struct, table: str, advice: str) -> None:
    """Raises SchemaMismatch if the rows have a column that a schema lacks."""
    for name in rows.columns:
        if schema.find(name) is None:
            expected, actual = ", ".join(schema.names) or "none", ", ".join(rows.columns)
            raise Misfit(name, expected, actual, "it is not one of its columns.").error(table, advice)


def _absent(field: Field, table: str) -> Column:
    if not field.nullable:
        raise _mismatch(field, table, None, _ABSENT.format(field.name))
    return F.lit(None).cast(spark_type(field.type)).alias(field.name)


def _fit_column(field: Field, source_field: T.StructField, table: str, advice: str, *, casts: bool) -> Column:
    if is_void(source_field.dataType):
        return F.lit(None).cast(spark_type(field.type)).alias(field.name)
    source = delta_type(source_field.dataType, source_field.name)
    why = misfit(source, field.type, field.name, fits=_assignable if casts else upcastable)
    if casts and (why is None or why.reason == DIFFER):
        return cast_for_assignment(field, column(source_field.name), source_field.dataType, table, partial=True).alias(
            field.name
        )
    if why is not None:
        raise why.error(table, advice if why.reason != DIFFER else _CAST)
    return enforce_lengths(field, convert_value(column(source_field.name), source, field.type), table).alias(field.name)


def _mismatch(field: Field, table: str, source_type: T.DataType | None, reason: str) -> SchemaMismatch:
    expected, actual = (
        spark_type(field.type).simpleString(),
        source_type.simpleString() if source_type else "no such column",
    )
    return SchemaMismatch(column=field.name, table=table, reason=reason, expected=expected, found=actual)


def _assignable(source: DataType, target: DataType) -> bool:
    """Whether some values may fit, as in Spark's store assignment under ANSI; texts may be parsed too, as in Delta."""
    if not isinstance(source, str) or not isinstance(target, str) or upcastable(source, target):
        return upcastable(source, target)
    if source in GEOSPATIAL or target in GEOSPATIAL:
        return False
    text = target == "string" or (source == "string" and target != "binary")
    times = source in _TIMES and target in _TIMES
    return text or times or (_is_number(source) and _is_number(target))


def _is_number(data_type: str) -> bool:
    return data_type in INTEGERS or data_type in _FLOATS or decimal_of(data_type) is not None
