"""Names and types of columns, translated between Delta and Spark.

Knows how Spark quotes names and which of its types Delta can hold. Knows nothing of files. Guarantee:
``schema_of(spark_schema(s)) == s`` up to NOT NULL and metadata other than comments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anabranch._protocol.rules.identity import EXPLICIT, START, STEP
from anabranch._protocol.rules.table_rules import DEFAULT, GENERATION, INVARIANT
from anabranch._protocol.schema.geospatial import GEOSPATIAL, KINDS, canonical_geospatial
from anabranch._protocol.schema.intervals import DAY_SECOND, YEAR_MONTH, canonical_type
from anabranch._protocol.schema.lengths import LENGTH, char_length
from anabranch._protocol.schema.types import (
    DEEPEST,
    VOID,
    Array,
    DataType,
    Field,
    Map,
    Struct,
    check_depth,
    decimal_of,
    distinct,
    from_arrow,
    to_arrow,
)
from anabranch.errors import InvalidOption, UnreadableType, UnsupportedType

_T = TypeVar("_T")

_SPARK_TYPES: dict[str, T.DataType] = {
    "string": T.StringType(),
    "long": T.LongType(),
    "integer": T.IntegerType(),
    "short": T.ShortType(),
    "byte": T.ByteType(),
    "float": T.FloatType(),
    "double": T.DoubleType(),
    "boolean": T.BooleanType(),
    "binary": T.BinaryType(),
    "date": T.DateType(),
    "timestamp": T.TimestampType(),
    "timestamp_ntz": T.TimestampNTZType(),
    "variant": T.VariantType(),
    YEAR_MONTH: T.YearMonthIntervalType(),
    DAY_SECOND: T.DayTimeIntervalType(),
    VOID: T.NullType(),
}
_RULES = frozenset({DEFAULT, GENERATION, INVARIANT, LENGTH, START, STEP, EXPLICIT})
"""Keys of a declared column's metadata that writers obey."""
_DELTA_NAMES = {spark: name for name, spark in _SPARK_TYPES.items()}


# -- names -------------------------------------------------------------------------------------------------------------


def quote_identifier(name: str) -> str:
    """A column's name as SQL text, in which dots, spaces and backticks have no meaning.

    Example:
        >>> quote_identifier("a`b.c")
        '`a``b.c`'
    """
    return "`" + name.replace("`", "``") + "`"


def column(name: str) -> Column:
    """The top-level column of exactly this name."""
    return F.col(quote_identifier(name))


def tree_reduce(join: Callable[[_T, _T], _T], parts: Sequence[_T]) -> _T:
    """Join all parts into one, pairwise: Spark Connect does not accept a chain of a hundred.

    Example:
        >>> tree_reduce(lambda one, other: f"({one} {other})", "abc")
        '((a b) c)'
    """
    while len(parts) > 1:
        left_over = parts[len(parts) - len(parts) % 2 :]
        parts = [*map(join, parts[::2], parts[1::2]), *left_over]
    return parts[0]


# -- Delta to Spark ----------------------------------------------------------------------------------------------------


def spark_schema(struct: Struct) -> T.StructType:
    """The schema to read with. Everything is nullable; of the metadata it keeps comments, and the lengths of chars, to
    which Spark pads when it reads and compares.

    Raises:
        UnsupportedType: this version cannot read a type.
    """
    return T.StructType([_spark_field(field) for field in struct])


def spark_type(data_type: DataType, path: str = "") -> T.DataType:
    """Spark's type, with everything inside it nullable; ``path`` is the column's name in errors."""
    if isinstance(data_type, Struct):
        return T.StructType(
            [T.StructField(member.name, spark_type(member.type, f"{path}.{member.name}")) for member in data_type]
        )
    if isinstance(data_type, Array):
        return T.ArrayType(spark_type(data_type.element, f"{path}.element"))
    if isinstance(data_type, Map):
        return T.MapType(spark_type(data_type.key, f"{path}.key"), spark_type(data_type.value, f"{path}.value"))
    if data_type in GEOSPATIAL:
        return _geospatial_type(data_type, path)
    digits = decimal_of(data_type)
    if digits is None and data_type not in _SPARK_TYPES:
        raise UnsupportedType(column=path, type=data_type)
    return _SPARK_TYPES[data_type] if digits is None else T.DecimalType(*digits)


def _geospatial_type(name: str, path: str) -> T.DataType:
    """Spark's geometry or geography. Raises UnsupportedType: PySpark knows it from 4.1 on."""
    column = {"name": path, "type": name, "nullable": True, "metadata": {}}
    try:
        return T.StructType.fromJson({"type": "struct", "fields": [column]})[0].dataType
    except PySparkException:
        raise UnsupportedType(column=path, type=name, holder="a table of this version of Spark") from None


def parse_type(ddl: str) -> T.DataType:
    """The type of an SQL name such as ``BIGINT`` or ``decimal(10,2)``. Raises UnreadableType if there is no such
    type.
    """
    _check_brackets(ddl)
    try:
        return T.DataType.fromDDL(ddl)
    except PySparkException as error:
        reason = f"there is no such type ({error.getCondition()})."
        raise UnreadableType(option="dataType", value=ddl, reason=reason) from None


def parse_columns(ddl: str) -> T.StructType:
    """The columns of SQL text such as ``day DATE, hour INT``. Raises InvalidOption if it is not a list of columns."""
    _check_brackets(ddl)
    try:
        columns = T.DataType.fromDDL(ddl)
    except PySparkException as error:
        reason = f"it is no list of columns and types ({error.getCondition()})."
        raise UnreadableType(option="columns", value=ddl, reason=reason) from None
    if not isinstance(columns, T.StructType):
        raise InvalidOption(option="columns", value=ddl, reason="it is a type, and no list of columns and types.")
    return columns


def _check_brackets(ddl: str) -> None:
    """Raises InvalidSchema if types are nested some thousand levels deep, where Spark's parser would overflow the JVM's
    stack.
    """
    level = 0
    for sign in ddl:
        level += {"<": 1, ">": -1}.get(sign, 0)
        if level > 2 * DEEPEST:  # names in backticks may contain some
            check_depth(level)


def arrow_rows(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows of an Arrow table as a DataFrame, with their Delta types. Raises UnsupportedType if Delta lacks a
    column's type.
    """
    schema = from_arrow(table.schema)
    # Without a schema Spark reads a timestamp without zone as one with, shifted by the session's zone.
    return local_rows(spark, table.cast(to_arrow(schema), safe=False), spark_schema(schema))


def local_rows(spark: SparkSession, table: pa.Table, schema: T.StructType) -> DataFrame:
    """The rows of an Arrow table. Spark drops whatever follows an empty batch, so empty batches are left out; a table
    without rows keeps one, without which Spark would not know the types of its nested columns.
    """
    batches = [batch for batch in table.to_batches() if batch.num_rows]
    rows = pa.Table.from_batches(batches, table.schema) if batches else table.schema.empty_table()
    return spark.createDataFrame(rows, schema)


def frame_from_rows(spark: SparkSession, rows: Sequence[Mapping[str, Any]], ddl: str) -> DataFrame:
    """A few rows with columns in SQL text. Spark keeps the rows in its plan, so that showing them runs no job."""
    schema = parse_columns(ddl)
    return spark.createDataFrame(pa.Table.from_pylist([*rows], to_arrow(schema_of(schema))), schema)


def unknown_row(spark: SparkSession, schema: T.StructType) -> DataFrame:
    """A row of these columns whose values Spark does not know while it plans. If rows were known, or absent, its
    optimizer would remove the expressions over them.
    """
    rows = F.array_repeat(F.lit(None).cast(schema), F.col("id").cast("int"))
    row = spark.range(1).select(F.explode(rows).alias("row"))
    return row.select(*[row["row"][field.name].alias(field.name, metadata=field.metadata) for field in schema.fields])


def _spark_field(field: Field) -> T.StructField:
    metadata = {"comment": field.metadata["comment"]} if "comment" in field.metadata else {}
    if (length := char_length([field])) is not None:
        metadata[LENGTH] = f"char({length})"
    return T.StructField(field.name, spark_type(field.type, field.name), True, metadata)


# -- Spark to Delta ----------------------------------------------------------------------------------------------------


def describe(rows: DataFrame) -> Struct:
    """The Delta columns of a DataFrame.

    Raises:
        UnsupportedType: a column has a type that Delta lacks, such as ``TIME``.
        InvalidSchema: two columns have the same name, ignoring case.
    """
    return schema_of(rows.schema)


def schema_of(columns: T.StructType) -> Struct:
    """As `describe`, for a Spark schema, such as the columns passed to a builder."""
    return _struct(columns, "", 1)


def declared_schema(columns: T.StructType) -> Struct:
    """As `schema_of`, for the declared columns of a table: keeps rules, and lengths of texts.

    Raises:
        UnsupportedType, InvalidSchema: as for `describe`.
    """
    pairs = zip(schema_of(columns), columns, strict=True)
    return Struct(tuple(replace(field, metadata={**field.metadata, **_rules_in(spark)}) for field, spark in pairs))


def _rules_in(field: T.StructField) -> dict[str, Any]:
    """The rules in the metadata of a column, with the lengths in its type."""
    metadata = {key: value for key, value in (field.metadata or {}).items() if key in _RULES}
    has_lengths = _has_lengths(field.dataType)
    return {**metadata, LENGTH: field.dataType.simpleString()} if has_lengths else metadata


def _has_lengths(data_type: T.DataType) -> bool:
    match data_type:
        case T.CharType() | T.VarcharType():
            return True
        case T.StructType():
            return any(_has_lengths(member.dataType) for member in data_type)
        case T.ArrayType():
            return _has_lengths(data_type.elementType)
        case T.MapType():
            return _has_lengths(data_type.keyType) or _has_lengths(data_type.valueType)
    return False


def delta_type(spark: T.DataType, path: str, level: int = 1) -> DataType:
    """Delta's type for one of Spark's; ``path`` is the column's name in errors, ``level`` its depth of nesting.

    Raises:
        UnsupportedType: Delta has no such type.
        InvalidSchema: it is nested too deep.
    """
    check_depth(level)
    inside = level + 1
    if isinstance(spark, T.StructType):
        return _struct(spark, f"{path}.", inside)
    if isinstance(spark, T.ArrayType):
        return Array(delta_type(spark.elementType, f"{path}.element", inside), spark.containsNull)
    if isinstance(spark, T.MapType):
        key = delta_type(spark.keyType, f"{path}.key", inside)
        value = delta_type(spark.valueType, f"{path}.value", inside)
        return Map(key, value, spark.valueContainsNull)
    if isinstance(spark, T.DecimalType):
        return f"decimal({spark.precision},{spark.scale})"
    if isinstance(spark, T.CharType | T.VarcharType):
        return "string"
    if isinstance(spark, T.YearMonthIntervalType | T.DayTimeIntervalType):
        return canonical_type(spark.simpleString())
    if spark.typeName() in KINDS:
        name = canonical_geospatial(str(spark.jsonValue()))
        if name not in GEOSPATIAL:
            raise UnsupportedType(column=path, type=spark.simpleString())
        return name
    if spark not in _DELTA_NAMES:
        raise UnsupportedType(column=path, type=spark.simpleString())
    return _DELTA_NAMES[spark]


def is_void(spark: T.DataType) -> bool:
    """Whether this is the type of a bare NULL."""
    return isinstance(spark, T.NullType)


def fill_void_types(source: T.DataType, wanted: DataType) -> T.DataType:
    """A type in which every bare NULL, at any depth, gets the wanted type at its place; members of structs match by
    name.
    """
    if is_void(source):
        return spark_type(wanted)
    if isinstance(source, T.StructType) and isinstance(wanted, Struct):
        return T.StructType([_fill_field(member, wanted.find(member.name)) for member in source])
    if isinstance(source, T.ArrayType) and isinstance(wanted, Array):
        return T.ArrayType(fill_void_types(source.elementType, wanted.element), source.containsNull)
    if isinstance(source, T.MapType) and isinstance(wanted, Map):
        key, value = fill_void_types(source.keyType, wanted.key), fill_void_types(source.valueType, wanted.value)
        return T.MapType(key, value, source.valueContainsNull)
    return source


def _fill_field(member: T.StructField, wanted: Field | None) -> T.StructField:
    type_ = member.dataType if wanted is None else fill_void_types(member.dataType, wanted.type)
    return T.StructField(member.name, type_, member.nullable)


def _struct(schema: T.StructType, prefix: str, level: int) -> Struct:
    return distinct((_delta_field(field, prefix, level) for field in schema), prefix)


def _delta_field(field: T.StructField, prefix: str, level: int) -> Field:
    """A table keeps the comment from the metadata; the rest is for Spark's own use."""
    metadata: dict[str, Any] = field.metadata or {}
    comment = {"comment": metadata["comment"]} if "comment" in metadata else {}
    return Field(field.name, delta_type(field.dataType, prefix + field.name, level), field.nullable, comment)
