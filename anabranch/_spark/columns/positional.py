"""Rows of an INSERT: matched with the table's columns by position, whatever their names, or by name.

Knows Spark's columns. Knows nothing of files. Guarantee: a value is stored as an assignment stores it
(`anabranch._spark.columns.type_fit.cast_for_assignment`), members of structs as columns are, by position or by name at
every depth; nothing is dropped and nothing is guessed.
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
    Raises SchemaMismatch: they have more or fewer columns than the table, or a type from which no value fits.
    """
    found, wanted = rows.schema, schema.fields
    if len(found) < len(wanted) or (len(found) > len(wanted) and not adds):
        raise _wrong_count(found, schema, table)
    numbered = rows.toDF(*(f"c{i}" for i in range(len(found))))  # names that are unique and mean nothing
    values = []
    for i, field in enumerate(wanted):
        type_ = _with_names_of(found[i].dataType, field.type)
        value = column(f"c{i}") if type_ == found[i].dataType else column(f"c{i}").cast(type_)
        values.append(cast_for_assignment(field, value, type_, table).alias(field.name))
    further = [column(f"c{i}").alias(found[i].name) for i in range(len(wanted), len(found))]
    return numbered.select(*values, *further)


def columns_by_position(rows: DataFrame, schema: Struct) -> Struct:
    """The columns of rows by position: the table's names, as far as it has any, and the types of the rows. Raises
    UnsupportedType: a column (named) has a type that Delta lacks.
    """
    both = zip(schema, rows.schema, strict=False)  # further ones are no matter of the table's columns
    return Struct(tuple(Field(w.name, delta_type(_with_names_of(f.dataType, w.type), w.name)) for w, f in both))


def by_name(rows: DataFrame, schema: Struct, table: str) -> DataFrame:
    """The rows under the types of the columns that they name; ``schema`` has just these, in the order of the rows.
    Raises SchemaMismatch: a type from which no value fits, or a struct with more or fewer members than its column's.
    """
    numbered = rows.toDF(*(f"c{i}" for i in range(len(schema))))
    found = enumerate(zip(schema, rows.schema, strict=True))
    return numbered.select(
        *(
            cast_for_assignment(field, column(f"c{i}"), given.dataType, table).alias(field.name)
            for i, (field, given) in found
        )
    )


def _with_names_of(found: T.DataType, wanted: DataType) -> T.DataType:
    """A type with the names of another's members, one for one as far as both go; a bare NULL has the other's type."""
    if is_void(found):
        return spark_type(wanted)
    if isinstance(found, T.StructType) and isinstance(wanted, Struct):
        names = [*wanted.names, *found.names[len(wanted.names) :]]
        types = [_with_names_of(f.dataType, w.type) for f, w in zip(found, wanted, strict=False)]
        types += [each.dataType for each in found.fields[len(types) :]]
        return T.StructType(
            [T.StructField(name, t, f.nullable) for name, t, f in zip(names, types, found.fields, strict=False)]
        )
    if isinstance(found, T.ArrayType) and isinstance(wanted, Array):
        return T.ArrayType(_with_names_of(found.elementType, wanted.element), found.containsNull)
    if isinstance(found, T.MapType) and isinstance(wanted, Map):
        key, value = _with_names_of(found.keyType, wanted.key), _with_names_of(found.valueType, wanted.value)
        return T.MapType(key, value, found.valueContainsNull)
    return found


def _wrong_count(found: T.StructType, schema: Struct, table: str) -> SchemaMismatch:
    """The first column of either that has no partner."""
    first = min(len(found), len(schema.fields))
    missing = first == len(found)
    field = schema.fields[first] if missing else None
    amount = "not enough" if missing else "too many"
    return SchemaMismatch(
        column=field.name if field is not None else found[first].name,
        table=table,
        reason=f"{amount} data columns: rows by position need {len(schema.fields)}, and these have {len(found)}.",
        expected=", ".join(schema.names),
        found=", ".join(found.names),
    )
