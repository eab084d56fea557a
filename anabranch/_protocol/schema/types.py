"""Schemas: the columns of a table as values, as Delta's JSON and as Arrow types.

Knows PROTOCOL.md, sections "Schema Serialization Format" and "Column Mapping" (only where a physical name is kept).
Knows nothing of rows, files or versions. Pure. Guarantee: ``parse_schema(schema_json(s)) == s``, and the metadata of a
field is preserved, whether or not its keys are known. The types and their two conversions are one subject, hence the
length of this module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property  # noqa: TID251 - what it computes waits for nobody
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from anabranch._protocol.schema.geospatial import GEOSPATIAL, canonical_geospatial
from anabranch._protocol.schema.intervals import DAY_SECOND, YEAR_MONTH, canonical_type
from anabranch.errors import InvalidSchema, UnknownColumn, UnsupportedType

VOID = "void"
"""The type of a column that is NULL in every row, such as a literal NULL."""

OPAQUE = GEOSPATIAL | {"variant"}
"""The types whose values only Spark reads and writes; they have no order."""

PHYSICAL_NAME = "delta.columnMapping.physicalName"
DEEPEST = 100
"""The maximum nesting depth of types; Spark's own schema parser fails at some 330 structs."""

LEVELS_IN_FILES = 99
"""The maximum number of levels of a Parquet schema that Arrow reads below its root: a struct takes one, a list or map
two, a value one.
"""

INTEGERS = ("byte", "short", "integer", "long")
"""The integer types, narrowest first."""

_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_FLOATS = ("float", "double")
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(-?\d{1,2})\s*\)")
_MOST_DIGITS = 38


@dataclass(frozen=True)
class Field:
    """One column, or one member of a struct. ``metadata`` is preserved unchanged."""

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def physical_name(self) -> str:
        """The name in data files, statistics and partition values (PROTOCOL.md "Column Mapping")."""
        return self.metadata.get(PHYSICAL_NAME, self.name)


@dataclass(frozen=True)
class Struct:
    """Fields in order: a table's schema, or a struct column. If ``exact``, names are case-sensitive."""

    fields: tuple[Field, ...] = ()
    exact: bool = field(default=False, compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names in order."""
        return tuple(member.name for member in self.fields)

    def find(self, name: str) -> Field | None:
        """Find the field of this name, else, unless names are exact, the one that differs only in case, else None."""
        alike = self.alike(name)
        exact = [member for member in alike if member.name == name]
        return next(iter(exact or (() if self.exact else alike)), None)

    def alike(self, name: str) -> Sequence[Field]:
        """The fields whose names equal this one, ignoring case."""
        return self._by_folded_name.get(name.lower(), ())

    @cached_property
    def _by_folded_name(self) -> dict[str, list[Field]]:
        groups: dict[str, list[Field]] = {}
        for member in self.fields:
            groups.setdefault(member.name.lower(), []).append(member)
        return groups

    def exactly(self) -> Struct:
        """The same columns, and members of structs, with case-sensitive names."""
        return Struct(tuple(replace(member, type=_exactly(member.type)) for member in self.fields), exact=True)

    def field(self, name: str) -> Field:
        """Like `find`; raises `UnknownColumn` if there is no such field."""
        match = self.find(name)
        if match is None:
            raise UnknownColumn(column=name, columns=", ".join(self.names))
        return match

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


@dataclass(frozen=True)
class Array:
    """A list of elements of one type."""

    element: DataType
    contains_null: bool = True


@dataclass(frozen=True)
class Map:
    """Keys with values."""

    key: DataType
    value: DataType
    value_contains_null: bool = True


DataType: TypeAlias = str | Struct | Array | Map
"""A primitive type by its name in Delta's JSON, such as ``"long"`` or ``"decimal(10,2)"``, or a nested type."""

Schema = Struct


def _exactly(type_: DataType) -> DataType:
    match type_:
        case Struct():
            return type_.exactly()
        case Array():
            return replace(type_, element=_exactly(type_.element))
        case Map():
            return replace(type_, key=_exactly(type_.key), value=_exactly(type_.value))
    return type_


# -- Delta's JSON ------------------------------------------------------------------------------------------------------


def parse_schema(text: str) -> Struct:
    """The schema in a ``schemaString`` (PROTOCOL.md "Schema Serialization Format").

    Any name of a primitive type is accepted: the table features refuse unreadable ones. Narrowed interval types, such
    as ``interval day``, become those that writers name (`anabranch._protocol.schema.intervals`), and geometries get
    their default reference system (`anabranch._protocol.schema.geospatial`). Raises `InvalidSchema` if the text is not
    a schema, or is nested deeper than `DEEPEST`.

    Example:
        >>> text = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":false,"metadata":{}}]}'
        >>> parse_schema(text).names
        ('id',)
    """
    try:
        parsed = _data_type(json.loads(text), 0)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidSchema(reason=f"the JSON of the schema is damaged ({type(error).__name__}: {error}).") from error
    if not isinstance(parsed, Struct):
        raise InvalidSchema(reason="its outermost type is not a struct.")
    return parsed


def schema_json(struct: Struct) -> str:
    """The text for ``schemaString``, compact, with keys in Spark's order.

    Raises `InvalidSchema` if types are nested deeper than `DEEPEST`.
    """
    try:
        return json.dumps(_type_json(struct, 0), ensure_ascii=False, separators=(",", ":"))
    except RecursionError:  # other engines' metadata of a field may be nested
        raise InvalidSchema(reason="the metadata of a field is nested too deep.") from None


def check_depth(level: int) -> None:
    """Raises `InvalidSchema` unless types may be nested to this level; a column's own type is at level 1."""
    if level > DEEPEST:
        raise InvalidSchema(reason=f"it has types nested more than {DEEPEST} levels deep.")


def parts_of(data_type: DataType) -> tuple[tuple[str, DataType], ...]:
    """The types directly inside a type by step: a member's name, or ``element``, ``key`` or ``value``."""
    if isinstance(data_type, Struct):
        return tuple((member.name, member.type) for member in data_type)
    if isinstance(data_type, Array):
        return (("element", data_type.element),)
    return (("key", data_type.key), ("value", data_type.value)) if isinstance(data_type, Map) else ()


def type_names(data_type: DataType) -> frozenset[str]:
    """The names of the primitive types inside a type, without their parameters.

    Example:
        >>> sorted(type_names(Map("string", Array("decimal(10,2)"))))
        ['decimal', 'string']
    """
    if isinstance(data_type, str):
        return frozenset({data_type.partition("(")[0]})
    return frozenset().union(*(type_names(inner) for _, inner in parts_of(data_type)))


def kind_of(data_type: DataType) -> str:
    """``struct``, ``array`` or ``map``, or else the type itself.

    Example:
        >>> kind_of(Array("long")), kind_of("long")
        ('array', 'long')
    """
    return data_type if isinstance(data_type, str) else type(data_type).__name__.lower()


def levels_in_files(data_type: DataType) -> int:
    """The number of levels of a column of this type in a Parquet file's schema."""
    if isinstance(data_type, str):
        return 1
    inside = max((levels_in_files(inner) for _, inner in parts_of(data_type)), default=0)
    return inside + (1 if isinstance(data_type, Struct) else 2)


def _data_type(parsed: Any, level: int) -> DataType:
    check_depth(level)
    if isinstance(parsed, str):
        return canonical_geospatial(canonical_type(parsed))
    kind = parsed["type"]
    if kind == "struct":
        struct = Struct(tuple(_field(member, level + 1) for member in parsed["fields"]))
        if len(set(struct.names)) < len(struct):
            raise ValueError("two columns of a struct have one name")
        return struct
    if kind == "array":
        return Array(_data_type(parsed["elementType"], level + 1), bool(parsed.get("containsNull", True)))
    if kind == "map":
        key, value = (_data_type(parsed[key_name], level + 1) for key_name in ("keyType", "valueType"))
        return Map(key, value, bool(parsed.get("valueContainsNull", True)))
    raise ValueError(f"there is no nested type {kind!r}")


def _field(parsed: Any, level: int) -> Field:
    name = parsed["name"]
    if not isinstance(name, str):
        raise TypeError("a field's name is not a string")
    metadata = dict(parsed.get("metadata") or {})
    return Field(name, _data_type(parsed["type"], level), bool(parsed.get("nullable", True)), metadata)


def _type_json(data_type: DataType, level: int) -> Any:
    check_depth(level)
    if isinstance(data_type, Struct):
        fields = [
            {
                "name": member.name,
                "type": _type_json(member.type, level + 1),
                "nullable": member.nullable,
                "metadata": dict(member.metadata),
            }
            for member in data_type
        ]
        return {"type": "struct", "fields": fields}
    if isinstance(data_type, Array):
        return {
            "type": "array",
            "elementType": _type_json(data_type.element, level + 1),
            "containsNull": data_type.contains_null,
        }
    if isinstance(data_type, Map):
        return {
            "type": "map",
            "keyType": _type_json(data_type.key, level + 1),
            "valueType": _type_json(data_type.value, level + 1),
            "valueContainsNull": data_type.value_contains_null,
        }
    return data_type


# -- Arrow -------------------------------------------------------------------------------------------------------------

_TO_ARROW: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    YEAR_MONTH: pa.int32(),
    DAY_SECOND: pa.duration("us"),
    VOID: pa.null(),
}

_FROM_ARROW: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pt.is_boolean, "boolean"),
    (pt.is_int8, "byte"),
    (lambda t: pt.is_int16(t) or pt.is_uint8(t), "short"),
    (lambda t: pt.is_int32(t) or pt.is_uint16(t), "integer"),
    (lambda t: pt.is_int64(t) or pt.is_uint32(t), "long"),
    (lambda t: pt.is_float16(t) or pt.is_float32(t), "float"),
    (pt.is_float64, "double"),
    (lambda t: pt.is_string(t) or pt.is_large_string(t) or pt.is_string_view(t), "string"),
    (
        lambda t: pt.is_binary(t) or pt.is_large_binary(t) or pt.is_binary_view(t) or pt.is_fixed_size_binary(t),
        "binary",
    ),
    (pt.is_date, "date"),
    (lambda t: pt.is_timestamp(t) and t.tz is not None, "timestamp"),
    (pt.is_timestamp, "timestamp_ntz"),
    (pt.is_duration, DAY_SECOND),
    (pt.is_null, VOID),
)
"""Unsigned integers map to the next wider signed type, as in delta-rs; uint64 has none."""


def to_arrow(struct: Struct) -> pa.Schema:
    """The Arrow schema of rows with these columns; timestamps are microseconds, ``timestamp`` in UTC, and an ``interval
    year to month`` is its number of months, as Arrow cannot store its own type of it in Parquet.

    Raises `UnsupportedType` for a type without an Arrow type (`OPAQUE`).
    """
    return pa.schema(_arrow_fields(struct, ""))


def arrow_type(data_type: DataType, column: str = "") -> pa.DataType:
    """The Arrow type of one column; ``column`` is its name in an `UnsupportedType` error."""
    if isinstance(data_type, Struct):
        return pa.struct(_arrow_fields(data_type, f"{column}."))
    if isinstance(data_type, Array):
        inner = arrow_type(data_type.element, f"{column}.element")
        return pa.list_(pa.field("element", inner, data_type.contains_null))
    if isinstance(data_type, Map):
        value = pa.field("value", arrow_type(data_type.value, f"{column}.value"), data_type.value_contains_null)
        return pa.map_(pa.field("key", arrow_type(data_type.key, f"{column}.key"), nullable=False), value)
    digits = decimal_of(data_type)
    if data_type in OPAQUE:
        raise UnsupportedType(column=column, type=data_type, holder="a row outside Spark")
    if digits is None and data_type not in _TO_ARROW:
        raise UnsupportedType(column=column, type=data_type)
    return _TO_ARROW[data_type] if digits is None else pa.decimal128(*digits)


def check_storable(data_type: DataType, column: str) -> None:
    """Raises UnsupportedType, with the column and the unsupported type inside it, unless a table can store a column of
    this type: a type of Arrow rows, or an opaque one.
    """
    for step, inner in parts_of(data_type):
        check_storable(inner, f"{column}.{step}")
    if isinstance(data_type, str) and data_type not in OPAQUE:
        arrow_type(data_type, column)


def _arrow_fields(struct: Struct, prefix: str) -> list[pa.Field]:
    return [pa.field(member.name, arrow_type(member.type, prefix + member.name), member.nullable) for member in struct]


def from_arrow(schema: pa.Schema) -> Struct:
    """The Delta schema that can hold rows of an Arrow schema without loss.

    Any kind of string, binary, list or dictionary becomes Delta's one; timestamps of any unit and zone become
    ``timestamp``, those without a zone ``timestamp_ntz`` (a finer unit than microseconds is cut by the writer); uint8,
    uint16 and uint32 become the next wider signed type; a duration becomes an ``interval day to second``. Raises
    `UnsupportedType`, naming column and type, for what Delta cannot hold (uint64, times, …), and `InvalidSchema` where
    two names differ at most in case, or types are nested deeper than `DEEPEST`.
    """
    return _struct_of(schema, "", 1)


def distinct(fields: Iterable[Field], prefix: str) -> Struct:
    """The struct of fields below ``prefix``. Raises InvalidSchema: two of them have one name, ignoring case."""
    struct, seen = Struct(tuple(fields)), set[str]()
    for member in struct:
        if member.name.lower() in seen:
            raise InvalidSchema(reason=f"Found duplicate column(s): {prefix}{member.name} (case does not count).")
        seen.add(member.name.lower())
    return struct


def _struct_of(arrow_fields: Any, prefix: str, level: int) -> Struct:
    fields = (
        Field(arrow_field.name, _type_of(arrow_field.type, prefix + arrow_field.name, level), arrow_field.nullable)
        for arrow_field in arrow_fields
    )
    return distinct(fields, prefix)


def _type_of(arrow: pa.DataType, column: str, level: int) -> DataType:
    check_depth(level)
    arrow, inside = _plain(arrow), level + 1
    if pt.is_struct(arrow):
        return _struct_of([arrow.field(i) for i in range(arrow.num_fields)], f"{column}.", inside)
    if pt.is_map(arrow):
        value = _type_of(arrow.item_type, f"{column}.value", inside)
        return Map(_type_of(arrow.key_type, f"{column}.key", inside), value, arrow.item_field.nullable)
    if _is_list(arrow):
        return Array(_type_of(arrow.value_type, f"{column}.element", inside), arrow.value_field.nullable)
    if pt.is_decimal(arrow) and 0 <= arrow.scale <= arrow.precision <= _MOST_DIGITS:
        return f"decimal({arrow.precision},{arrow.scale})"
    for fits, name in _FROM_ARROW:
        if fits(arrow):
            return name
    raise UnsupportedType(column=column, type=str(arrow))


def _plain(arrow: pa.DataType) -> pa.DataType:
    """The type of the values, without dictionary, run-end or extension wrapping."""
    while True:
        if pt.is_dictionary(arrow) or pt.is_run_end_encoded(arrow):
            arrow = arrow.value_type
        elif isinstance(arrow, pa.BaseExtensionType):
            arrow = arrow.storage_type
        else:
            return arrow


def _is_list(arrow: pa.DataType) -> bool:
    views = pt.is_list_view(arrow) or pt.is_large_list_view(arrow)
    return views or pt.is_list(arrow) or pt.is_large_list(arrow) or pt.is_fixed_size_list(arrow)


# -- types -------------------------------------------------------------------------------------------------------------


def decimal_of(data_type: DataType) -> tuple[int, int] | None:
    """Precision and scale of a decimal type; None for any other type, and for more digits than Spark supports.

    Example:
        >>> decimal_of("decimal(10,2)")
        (10, 2)
    """
    if data_type == "decimal":
        return (10, 0)  # Spark's default
    match = _DECIMAL.fullmatch(data_type) if isinstance(data_type, str) else None
    precision, scale = (int(match[1]), int(match[2])) if match else (0, 0)
    return (precision, scale) if 1 <= precision <= _MOST_DIGITS and -_MOST_DIGITS <= scale <= precision else None


def upcastable(from_type: DataType, to_type: DataType) -> bool:
    """Whether every value of one type is a value of the other, so that store assignment never fails or loses digits.

    Integers widen to wider integers and to decimals with enough digits, ``float`` to ``double``, decimals to decimals
    with at least as many digits on both sides of the point. Nested types are compared element by element (members of a
    struct by position and name), and a nullable element never becomes one that is not.

    Example:
        >>> upcastable("integer", "decimal(12,2)"), upcastable("long", "integer")
        (True, False)
    """
    if isinstance(from_type, Struct) and isinstance(to_type, Struct):
        same = len(from_type) == len(to_type)
        return same and all(_field_upcastable(a, b) for a, b in zip(from_type, to_type, strict=True))
    if isinstance(from_type, Array) and isinstance(to_type, Array):
        return from_type.contains_null <= to_type.contains_null and upcastable(from_type.element, to_type.element)
    if isinstance(from_type, Map) and isinstance(to_type, Map):
        parts = upcastable(from_type.key, to_type.key) and upcastable(from_type.value, to_type.value)
        return parts and from_type.value_contains_null <= to_type.value_contains_null
    return from_type == to_type or _primitive_upcastable(from_type, to_type)


def _field_upcastable(source: Field, target: Field) -> bool:
    named = source.name.lower() == target.name.lower()
    return named and source.nullable <= target.nullable and upcastable(source.type, target.type)


def _primitive_upcastable(source: DataType, target: DataType) -> bool:
    for ladder in (INTEGERS, _FLOATS):
        if source in ladder and target in ladder:
            return ladder.index(str(source)) <= ladder.index(str(target))
    target_digits, source_digits = decimal_of(target), digits_of(source)
    return (
        target_digits is not None
        and source_digits is not None
        and target_digits[0] - target_digits[1] >= source_digits[0]
        and target_digits[1] >= source_digits[1]
    )


def digits_of(data_type: DataType) -> tuple[int, int] | None:
    """Digits before and after the point that an exact number of this type can have; None for every other type."""
    if isinstance(data_type, str) and data_type in _DIGITS:
        return (_DIGITS[data_type], 0)
    digits = decimal_of(data_type)
    return digits and (digits[0] - digits[1], digits[1])
