"""Column mapping: the physical names of columns in files, and their ids there.

Knows PROTOCOL.md, section "Column Mapping". Knows nothing of rows, files or versions. Pure. Guarantee: under a mapping
every column and every member of a struct has an id and a physical name that no other of its table has or ever had, and
keeps both for good, so that a rename or a drop never touches a file.

All other code uses logical names. Physical ones are in the log (partition values, statistics, which are looked up by
`anabranch._protocol.schema.types.Field.physical_name`) and in Parquet files, whose boundaries are `physical_schema`,
`file_schema` and `Renaming`. Both directions are in this one module, hence its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any
from uuid import UUID

import pyarrow as pa

from anabranch._protocol.schema.editing import inside_of, put_inside
from anabranch._protocol.schema.types import (
    OPAQUE,
    PHYSICAL_NAME,
    VOID,
    Array,
    DataType,
    Field,
    Map,
    Struct,
    arrow_type,
    parts_of,
)
from anabranch.errors import InvalidProperty, InvalidSchema

MODE = "delta.columnMapping.mode"
MAX_ID = "delta.columnMapping.maxColumnId"
_DIGITS = 20
FIELD_ID = "delta.columnMapping.id"
NESTED_IDS = "delta.columnMapping.nested.ids"
ICEBERG_V2 = "delta.enableIcebergCompatV2"
ICEBERG_V3 = "delta.enableIcebergCompatV3"
UNMAPPED, BY_NAME, BY_ID = "none", "name", "id"
PARQUET_ID = b"PARQUET:field_id"
"""The key of a Parquet field id in the metadata of an Arrow field."""

IN_COLUMNS = (FIELD_ID, PHYSICAL_NAME, NESTED_IDS)
"""The keys of a column mapping in the metadata of a column."""


def mode_of(configuration: Mapping[str, str]) -> str:
    """``none``, ``name`` or ``id``. Raises InvalidProperty: the mode is unknown."""
    mode = configuration.get(MODE, UNMAPPED).strip().lower()
    if mode not in (UNMAPPED, BY_NAME, BY_ID):
        raise InvalidProperty(property=MODE, value=mode, reason="it takes none, name or id.")
    return mode


def is_mapped(configuration: Mapping[str, str]) -> bool:
    """Whether columns have physical names of their own."""
    return mode_of(configuration) != UNMAPPED


def apply_mapping_mode(schema: Struct, configuration: Mapping[str, str]) -> Struct:
    """Return a schema as the table's mode requires; without a mapping, leftover physical names are removed. Raises
    InvalidSchema: the table has a mapping, and a column lacks its id or name, or shares it.
    """
    try:
        mode = mode_of(configuration)
    except InvalidProperty as error:
        raise InvalidSchema(reason=f"{MODE} is {error.facts['value']}, which is no mode.") from None
    if mode != UNMAPPED:
        _check(schema)
        return schema
    return without_keys(schema, IN_COLUMNS)


def without_keys(schema: Struct, keys: Sequence[str]) -> Struct:
    """The schema without these keys in its fields' metadata, at any depth; the same object if no field has any."""
    if not any(key in field.metadata for field in fields_of(schema) for key in keys):
        return schema

    def bare(column: Field) -> Field:
        return replace(column, metadata={key: value for key, value in column.metadata.items() if key not in keys})

    return _change_fields(schema, bare)


def _check(schema: Struct) -> None:
    ids: set[int] = set()
    for field in fields_of(schema):
        number, name = field.metadata.get(FIELD_ID), field.metadata.get(PHYSICAL_NAME)
        if type(number) is not int or not isinstance(name, str) or not name:
            raise InvalidSchema(reason=f"the column {field.name} has no number or no physical name.")
        if number in ids:
            raise InvalidSchema(reason=f"the column {field.name} shares the number {number} with another.")
        ids.add(number)
    for struct in _structs(schema):
        names = [column.physical_name.lower() for column in struct]
        if len(set(names)) < len(names):
            raise InvalidSchema(reason="two columns have one physical name.")


# -- numbers and names -------------------------------------------------------------------------------------------------


def number_in(configuration: Mapping[str, str], key: str) -> int:
    """An integer property that writers maintain; 0 if it is not set. Raises InvalidProperty: it is not an integer."""
    text = configuration.get(key, "0").strip()
    if not (text.isascii() and text.isdigit() and len(text) < _DIGITS):
        raise InvalidProperty(property=key, value=text[:_DIGITS], reason="it must be a whole number.")
    return int(text)


def numbers_inside(configuration: Mapping[str, str]) -> bool:
    """Whether elements of arrays, and keys and values of maps, have field ids too."""
    return any(configuration.get(key, "").strip().lower() == "true" for key in (ICEBERG_V2, ICEBERG_V3))


def assign_ids_and_names(
    schema: Struct, configuration: Mapping[str, str], new_id: Callable[[], UUID], *, named: bool = False
) -> tuple[Struct, Mapping[str, str]]:
    """Assign an id and a physical name to every column without them; return the schema, and the properties with the
    highest id ever assigned.

    Args:
        schema: new columns have neither an id nor a physical name, all others both.
        configuration: without a mapping, nothing changes.
        new_id: returns the unique part of a name.
        named: whether files already hold the columns under their present names.

    Example:
        >>> assign_ids_and_names(Struct((Field("id", "long"),)), {MODE: "name"}, uuid4)[1][MAX_ID]
        '1'
    """
    if not is_mapped(configuration):
        return schema, configuration
    numbers = count(max([number_in(configuration, MAX_ID), *_numbers_in(schema)]) + 1)
    nests = numbers_inside(configuration)

    def complete(field: Field) -> Field:
        if FIELD_ID not in field.metadata or PHYSICAL_NAME not in field.metadata:
            name = field.name if named else f"col-{new_id()}"
            field = replace(field, metadata={**field.metadata, FIELD_ID: next(numbers), PHYSICAL_NAME: name})
        return _assign_nested_ids(field, numbers) if nests else field

    return _change_fields(schema, complete), {**configuration, MAX_ID: str(next(numbers) - 1)}


def _numbers_in(schema: Struct) -> Iterator[int]:
    for field in fields_of(schema):
        yield from [field.metadata[FIELD_ID]] if FIELD_ID in field.metadata else []
        yield from field.metadata.get(NESTED_IDS, {}).values()


def _assign_nested_ids(field: Field, numbers: Iterator[int]) -> Field:
    """The field with an id for each element, key and value in it, except those inside a nested struct."""
    present = field.metadata.get(NESTED_IDS, {})
    nested = {
        key: present[key] if key in present else next(numbers) for key in _nested_keys(field.type, field.physical_name)
    }
    return replace(field, metadata={**field.metadata, NESTED_IDS: nested}) if nested else field


def _nested_keys(data_type: DataType, path: str) -> Iterator[str]:
    for step, inner in inside_of(data_type).items():
        yield f"{path}.{step}"
        yield from _nested_keys(inner, f"{path}.{step}")


def highest_number(configuration: Mapping[str, str]) -> dict[str, str]:
    """The property with the highest assigned id, if it is set."""
    return {MAX_ID: configuration[MAX_ID]} if MAX_ID in configuration else {}


def inherit_mapping(new: Struct, old: Struct) -> Struct:
    """New columns with the ids and physical names of former columns of the same name and type."""
    return Struct(tuple(_inherit_in_field(field, old.find(field.name)) for field in new))


def _inherit_in_field(new: Field, old: Field | None) -> Field:
    if old is None or FIELD_ID not in old.metadata:
        return new
    if isinstance(new.type, str) and new.type != old.type:
        return new
    type_ = _inherit_in_type(new.type, old.type)
    if type_ is None:
        return new
    mapping = {key: old.metadata[key] for key in IN_COLUMNS if key in old.metadata}
    return replace(new, type=type_, metadata={**new.metadata, **mapping})


def _inherit_in_type(new: DataType, old: DataType) -> DataType | None:
    """The new type with the ids and names of the old type's members; None if they are of different kinds."""
    if isinstance(new, Struct) and isinstance(old, Struct):
        return inherit_mapping(new, old)
    if isinstance(new, Array) and isinstance(old, Array):
        element = _inherit_in_type(new.element, old.element)
        return None if element is None else replace(new, element=element)
    if isinstance(new, Map) and isinstance(old, Map):
        key, value = _inherit_in_type(new.key, old.key), _inherit_in_type(new.value, old.value)
        return None if key is None or value is None else replace(new, key=key, value=value)
    return new if new == old else None


def check_change(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Raises InvalidProperty unless a table that keeps its files may change its mode: only from ``none`` to ``name``.
    The highest id is never set by hand.
    """
    old, new = mode_of(before), mode_of(after)
    if old != new and (old, new) != (UNMAPPED, BY_NAME):
        raise InvalidProperty(property=MODE, value=new, reason=f"a table with files cannot change from mode {old}.")
    if before.get(MAX_ID) != after.get(MAX_ID):
        raise InvalidProperty(property=MAX_ID, value=after.get(MAX_ID, "unset"), reason="only the table assigns it.")


# -- walking -----------------------------------------------------------------------------------------------------------


def fields_of(data_type: DataType) -> Iterator[Field]:
    """All fields of a type, inner ones first."""
    if isinstance(data_type, Struct):
        for field in data_type:
            yield from fields_of(field.type)
            yield field
    for inner in inside_of(data_type).values():
        yield from fields_of(inner)


def _structs(data_type: DataType) -> Iterator[Struct]:
    if isinstance(data_type, Struct):
        yield data_type
    for _, inner in parts_of(data_type):
        yield from _structs(inner)


def _change_fields(struct: Struct, change: Callable[[Field], Field]) -> Struct:
    """The struct with ``change`` applied to each field, outer fields first, at any depth."""
    fields = [change(field) for field in struct]
    return Struct(tuple(replace(field, type=_change_fields_in(field.type, change)) for field in fields))


def _change_fields_in(data_type: DataType, change: Callable[[Field], Field]) -> DataType:
    if isinstance(data_type, Struct):
        return _change_fields(data_type, change)
    for step, inner in inside_of(data_type).items():
        data_type = put_inside(data_type, step, _change_fields_in(inner, change))
    return data_type


# -- files -------------------------------------------------------------------------------------------------------------


def physical_schema(schema: Struct) -> Struct:
    """The columns under their names in data files, at any depth; the rest of each field is unchanged.

    Example:
        >>> physical_schema(Struct((Field("id", "long", metadata={PHYSICAL_NAME: "col-7"}),))).names
        ('col-7',)
    """
    return _change_fields(schema, lambda field: replace(field, name=field.physical_name))


def file_shape(schema: Struct) -> pa.Schema:
    """As `file_schema`, to compare with what files hold: types that only Spark writes are null there."""
    return file_schema(_change_fields(schema, lambda field: replace(field, type=_without_opaque(field.type))))


def _without_opaque(data_type: DataType) -> DataType:
    for step, inner in inside_of(data_type).items():
        data_type = put_inside(data_type, step, _without_opaque(inner))
    return VOID if data_type in OPAQUE else data_type


def is_renamed(data_type: DataType) -> bool:
    """Whether any field has another name in files."""
    return any(field.physical_name != field.name for field in fields_of(data_type))


def file_schema(schema: Struct) -> pa.Schema:
    """The Arrow schema of new files with these columns: physical names, and ids as Parquet field ids."""
    return pa.schema([_file_field(field) for field in physical_schema(schema)])


def _file_field(field: Field) -> pa.Field:
    type_ = _file_type(field.type, field.name, field.metadata.get(NESTED_IDS, {}))
    return _field_with_id(field.name, type_, field.metadata.get(FIELD_ID))


def _field_with_id(name: str, type_: pa.DataType, number: int | None, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, type_, nullable, None if number is None else {PARQUET_ID: str(number).encode()})


def _file_type(data_type: DataType, path: str, nested: Mapping[str, int]) -> pa.DataType:
    def part(name: str, type_: DataType, *, nullable: bool = True) -> pa.Field:
        inner = f"{path}.{name}"
        return _field_with_id(name, _file_type(type_, inner, nested), nested.get(inner), nullable=nullable)

    if isinstance(data_type, Struct):
        return pa.struct([_file_field(member) for member in data_type])
    if isinstance(data_type, Array):
        return pa.list_(part("element", data_type.element))
    if isinstance(data_type, Map):
        return pa.map_(part("key", data_type.key, nullable=False), part("value", data_type.value))
    return arrow_type(data_type)


def relabel(rows: pa.Table, target: pa.Schema) -> pa.Table:
    """The same values under another schema of the same shape; members match by position."""
    columns = [_relabel_column(column, field.type) for column, field in zip(rows.columns, target, strict=True)]
    return pa.Table.from_arrays(columns, schema=target)


def _relabel_column(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([relabel_values(chunk, target) for chunk in column.chunks], target)


def relabel_values(values: pa.Array, target: pa.DataType) -> pa.Array:
    """The same values in another type of the same shape; members match by position.

    Example:
        >>> relabel_values(pa.array([{"col-7": 1}]), pa.struct([("id", pa.int64())])).to_pylist()
        [{'id': 1}]
    """
    if not pa.types.is_nested(target):
        return values
    whole = values.take(pa.array(range(len(values)), pa.int64()))  # begins at its buffers
    return _relabel_array(whole, target)


def _relabel_array(values: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_struct(target):
        parts = [_relabel_array(values.field(i), target.field(i).type) for i in range(target.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=values.is_null())
    if pa.types.is_map(target):
        keys, items = _relabel_array(values.keys, target.key_type), _relabel_array(values.items, target.item_type)
        return pa.MapArray.from_arrays(values.offsets, keys, items, type=target, mask=values.is_null())
    if pa.types.is_list(target):
        inner = _relabel_array(values.values, target.value_type)
        return pa.ListArray.from_arrays(values.offsets, inner, type=target, mask=values.is_null())
    return values


@dataclass(frozen=True)
class Renaming:
    """Where the fields of a struct are in a file: logical name -> physical name (None: absent) and nested renaming.

    Example:
        >>> renaming(pq.read_schema(file), schema).row({"col-7": 1})
        {'id': 1}
    """

    schema: Struct
    members: Mapping[str, tuple[str | None, Callable[[Any], Any]]]

    def row(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """A row of the file under logical names; NULL where the file has no value."""
        return {
            name: None if physical is None else inner(values[physical])
            for name, (physical, inner) in self.members.items()
        }

    def names(self) -> dict[str, str]:
        """Logical name -> name in the file, for the columns that it has."""
        return {name: physical for name, (physical, _) in self.members.items() if physical is not None}


def renaming(parquet_schema: pa.Schema, schema: Struct) -> Renaming:
    """Find these columns in a file of this Arrow schema, by their physical names."""
    members = {}
    for field in schema:
        index = parquet_schema.get_field_index(field.physical_name)
        column = None if index < 0 else parquet_schema.field(index)
        members[field.name] = (None, _same) if column is None else (column.name, _inner(column.type, field.type))
    return Renaming(schema, members)


def _same(value: Any) -> Any:
    return value


def _inner(file_type: pa.DataType, data_type: DataType) -> Callable[[Any], Any]:
    if not is_renamed(data_type):
        return _same
    if isinstance(data_type, Struct):
        inside = renaming(pa.schema(list(file_type)), data_type)
        return lambda value: None if value is None else inside.row(value)
    if isinstance(data_type, Array):
        element = _inner(file_type.value_type, data_type.element)
        return lambda value: None if value is None else [element(element_value) for element_value in value]
    assert isinstance(data_type, Map), "a renamed type is nested"
    key, item = _inner(file_type.key_type, data_type.key), _inner(file_type.item_type, data_type.value)
    return lambda value: None if value is None else [(key(k), item(v)) for k, v in value]


def resolve_by_id(schema: Struct, parquet_schema: pa.Schema) -> Struct:
    """Set each column's physical name to the file's name for its id, as mode ``id`` requires.

    A column whose id is not in the file gets a name that is not in the file either.
    """
    return _resolve_struct(schema, list(parquet_schema))


def has_ids(file_fields: pa.Schema) -> bool:
    """Whether any column of a file has a field id."""
    return any(PARQUET_ID in (field.metadata or {}) for field in file_fields)


def _resolve_struct(schema: Struct, file_fields: Sequence[pa.Field]) -> Struct:
    numbered = {int(field.metadata[PARQUET_ID]): field for field in file_fields if PARQUET_ID in (field.metadata or {})}
    names = {field.name.lower() for field in file_fields}
    return Struct(tuple(_resolve_field(field, numbered.get(field.metadata[FIELD_ID]), names) for field in schema))


def _resolve_field(field: Field, file_field: pa.Field | None, names: set[str]) -> Field:
    if file_field is not None:
        named = {**field.metadata, PHYSICAL_NAME: file_field.name}
        return replace(field, metadata=named, type=_resolve_type(field.type, file_field.type))
    name = field.physical_name
    while name.lower() in names:
        name += "_"
    return replace(field, metadata={**field.metadata, PHYSICAL_NAME: name})


def _resolve_type(data_type: DataType, file_type: pa.DataType) -> DataType:
    if isinstance(data_type, Struct) and pa.types.is_struct(file_type):
        return _resolve_struct(data_type, list(file_type))
    if isinstance(data_type, Array) and pa.types.is_list(file_type):
        return replace(data_type, element=_resolve_type(data_type.element, file_type.value_type))
    if isinstance(data_type, Map) and pa.types.is_map(file_type):
        key, value = (
            _resolve_type(data_type.key, file_type.key_type),
            _resolve_type(data_type.value, file_type.item_type),
        )
        return replace(data_type, key=key, value=value)
    return data_type
