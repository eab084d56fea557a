"""Matches the rows of an INSERT with the table's columns, by position or by name.

Knows Spark's columns. Knows nothing of files. Guarantee: a value is stored as an assignment stores it
(`anabranch._spark.columns.type_fit.cast_for_assignment`); members of structs match as columns do, by position or by
name at every depth; nothing is dropped and nothing is guessed.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct
from anabranch._spark.columns.type_fit import cast_for_assignment
from anabranch._spark.columns.types import column, delta_type, is_void, spark_type
from anabranch.errors import SchemaMismatch


def by_position(rows: DataFrame, schema: Struct, table: str, *, adds: bool = False) -> DataFrame:
    """The rows under the names and types of a table's columns; with ``adds``, further columns keep their own names.

    Raises:
        SchemaMismatch: the rows have more or fewer columns than the table, or a type from which no value fits.
    """
    row_fields, table_fields = rows.schema, schema.fields
    if len(row_fields) < len(table_fields) or (len(row_fields) > len(table_fields) and not adds):
        raise _wrong_count(row_fields, schema, table)
    numbered = rows.toDF(*(f"c{i}" for i in range(len(row_fields))))  # unique names without meaning
    values = []
    for i, field in enumerate(table_fields):
        type_ = _with_names_of(row_fields[i].dataType, field.type)
        value = column(f"c{i}") if type_ == row_fields[i].dataType else column(f"c{i}").cast(type_)
        values.append(cast_for_assignment(field, value, type_, table).alias(field.name))
    further = [column(f"c{i}").alias(row_fields[i].name) for i in range(len(table_fields), len(row_fields))]
    return numbered.select(*values, *further)


def columns_by_position(rows: DataFrame, schema: Struct) -> Struct:
    """The columns of rows by position: the table's names, as far as it has any, and the types of the rows.

    Raises:
        UnsupportedType: a column has a type that Delta lacks.
    """
    pairs = zip(schema, rows.schema, strict=False)  # columns beyond the table's are left out
    return Struct(tuple(Field(w.name, delta_type(_with_names_of(f.dataType, w.type), w.name)) for w, f in pairs))


def by_name(rows: DataFrame, schema: Struct, table: str) -> DataFrame:
    """The rows under the types of the columns that they name; ``schema`` has just these, in the order of the rows.

    Raises:
        SchemaMismatch: no value of a type fits, or a struct has more or fewer members than its column.
    """
    numbered = rows.toDF(*(f"c{i}" for i in range(len(schema))))
    numbered_pairs = enumerate(zip(schema, rows.schema, strict=True))
    return numbered.select(
        *(
            cast_for_assignment(field, column(f"c{i}"), row_field.dataType, table).alias(field.name)
            for i, (field, row_field) in numbered_pairs
        )
    )


def _with_names_of(source: T.DataType, wanted: DataType) -> T.DataType:
    """A type with the names of another's members, one for one as far as both go; a bare NULL gets the other's type."""
    if is_void(source):
        return spark_type(wanted)
    if isinstance(source, T.StructType) and isinstance(wanted, Struct):
        names = [*wanted.names, *source.names[len(wanted.names) :]]
        members = zip(source, wanted, strict=False)
        types = [_with_names_of(member.dataType, target.type) for member, target in members]
        types += [member.dataType for member in source.fields[len(types) :]]
        return T.StructType(
            [
                T.StructField(name, type_, member.nullable)
                for name, type_, member in zip(names, types, source.fields, strict=False)
            ]
        )
    if isinstance(source, T.ArrayType) and isinstance(wanted, Array):
        return T.ArrayType(_with_names_of(source.elementType, wanted.element), source.containsNull)
    if isinstance(source, T.MapType) and isinstance(wanted, Map):
        key, value = _with_names_of(source.keyType, wanted.key), _with_names_of(source.valueType, wanted.value)
        return T.MapType(key, value, source.valueContainsNull)
    return source


def _wrong_count(row_fields: T.StructType, schema: Struct, table: str) -> SchemaMismatch:
    """The error for the first column on either side that has no partner."""
    first = min(len(row_fields), len(schema.fields))
    missing = first == len(row_fields)
    field = schema.fields[first] if missing else None
    amount = "not enough" if missing else "too many"
    return SchemaMismatch(
        column=field.name if field is not None else row_fields[first].name,
        table=table,
        reason=f"{amount} data columns: rows by position need {len(schema.fields)}, and these have {len(row_fields)}.",
        expected=", ".join(schema.names),
        found=", ".join(row_fields.names),
    )
