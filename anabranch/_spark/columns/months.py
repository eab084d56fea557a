"""Months (``interval year to month``) as whole numbers, and back.

PySpark neither collects months nor has an Arrow type for them, so they cross between Spark and Python as numbers, as
files store them. Knows nothing of files. Guarantee: no value changes.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T

from anabranch._spark.columns.types import column

_COUNTED = T.YearMonthIntervalType(T.YearMonthIntervalType.MONTH, T.YearMonthIntervalType.MONTH)
"""The type whose casts from and to whole numbers count months."""


def months_as_numbers(rows: DataFrame) -> DataFrame:
    """The rows with each number of months, at any depth, as an integer."""
    return _recast(rows, T.IntegerType())


def months_as_texts(rows: DataFrame) -> DataFrame:
    """The rows with each number of months, at any depth, as the literal that Spark shows."""
    return _recast(rows, T.StringType())


def with_months(rows: DataFrame, schema: T.StructType) -> DataFrame:
    """Rows that `months_as_numbers` has made, with the types of ``schema`` again."""
    if not has_months(schema):
        return rows
    return rows.select(
        *[to_months(column(field.name), field.dataType).alias(field.name, metadata=field.metadata) for field in schema]
    )


def to_months(value: Column, target: T.DataType) -> Column:
    """A value that has integers where its type has months; values of other types are cast."""
    return (value.cast(_replace_months(target, _COUNTED)) if has_months(target) else value).cast(target)


def numbers_schema(schema: T.StructType) -> T.StructType:
    """A schema as `months_as_numbers` changes it."""
    fields = [
        T.StructField(field.name, _replace_months(field.dataType, T.IntegerType()), field.nullable, field.metadata)
        for field in schema
    ]
    return T.StructType(fields)


def has_months(kind: T.DataType) -> bool:
    """Whether a type contains months."""
    return isinstance(kind, T.YearMonthIntervalType) or any(map(has_months, _parts(kind)))


def _parts(kind: T.DataType) -> list[T.DataType]:
    match kind:
        case T.StructType():
            return [member.dataType for member in kind]
        case T.ArrayType():
            return [kind.elementType]
        case T.MapType():
            return [kind.keyType, kind.valueType]
    return []


def _recast(rows: DataFrame, by: T.DataType) -> DataFrame:
    schema = rows.schema
    if not has_months(schema):
        return rows
    names = [f"c{i}" for i in range(len(schema))]  # since names may be duplicate
    values = [
        column(name).cast(_replace_months(field.dataType, by)) if has_months(field.dataType) else column(name)
        for name, field in zip(names, schema, strict=True)
    ]
    return rows.toDF(*names).select(*values).toDF(*schema.names)


def _replace_months(kind: T.DataType, by: T.DataType) -> T.DataType:
    """The type with another one in place of months."""
    match kind:
        case T.YearMonthIntervalType():
            return by
        case T.StructType():
            return T.StructType(
                [T.StructField(member.name, _replace_months(member.dataType, by), member.nullable) for member in kind]
            )
        case T.ArrayType():
            return T.ArrayType(_replace_months(kind.elementType, by), kind.containsNull)
        case T.MapType():
            return T.MapType(
                _replace_months(kind.keyType, by), _replace_months(kind.valueType, by), kind.valueContainsNull
            )
    return kind
