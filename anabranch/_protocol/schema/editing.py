"""Changes one column of a schema, at any depth; the others stay unchanged.

Knows names and nesting. Knows nothing of types, rows or versions. Pure. A path is a column, then members of structs,
and ``element``, ``key`` and ``value`` inside arrays and maps, in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct, parts_of
from anabranch.errors import InvalidOption, UnknownColumn


def inside_of(data_type: DataType) -> dict[str, DataType]:
    """The types inside an array or a map, by step."""
    return {} if isinstance(data_type, Struct) else dict(parts_of(data_type))


def put_inside(data_type: DataType, step: str, inner: DataType) -> DataType:
    """An array or a map with another type at a step."""
    assert isinstance(data_type, Array | Map), "only these have steps inside"
    return replace(data_type, **{step: inner})  # type: ignore[arg-type]


def field_at(schema: Struct, path: Sequence[str]) -> Field:
    """The column or member at a path. Raises UnknownColumn: it does not exist."""
    fields: list[Field] = []

    def note(field: Field) -> Field:
        fields.append(field)
        return field

    edit_field(schema, path, note)
    return fields[0]


def edit_field(schema: Struct, path: Sequence[str], edit: Callable[[Field], Field]) -> Struct:
    """The schema with ``edit`` applied to the column or member at a path. Raises UnknownColumn: it does not exist."""

    def edit_in(struct: Struct) -> Struct:
        field = _require_field(struct, path[-1], path)
        return Struct(tuple(edit(sibling) if sibling is field else sibling for sibling in struct))

    return _in_parent(schema, path, edit_in)


def insert_field(
    schema: Struct, parent: Sequence[str], field: Field, *, first: bool = False, after: str | None = None
) -> Struct:
    """The schema with a new column or member: at the end of the struct at ``parent``, first in it, or after another
    one.

    Example:
        >>> insert_field(Struct((Field("a", "long"),)), (), Field("b", "long"), first=True).names
        ('b', 'a')

    Raises:
        InvalidOption: a field of this name exists.
        UnknownColumn: the struct or the column before it does not exist.
    """

    def insert_in(struct: Struct) -> Struct:
        if struct.find(field.name) is not None:
            raise InvalidOption(option="columns", value=field.name, reason=f"a column {field.name} already exists.")
        before = None if after is None else _require_field(struct, after, (*parent, after))
        place = 0 if first else len(struct) if before is None else struct.fields.index(before) + 1
        return Struct((*struct.fields[:place], field, *struct.fields[place:]))

    return _in_parent(schema, (*parent, field.name), insert_in)


def move_field(schema: Struct, path: Sequence[str], *, first: bool = False, after: str | None = None) -> Struct:
    """The schema with a column or member moved to the front of its struct, or after another one; a move after itself
    changes nothing.

    Example:
        >>> move_field(Struct((Field("a", "long"), Field("b", "long"))), ("b",), first=True).names
        ('b', 'a')

    Raises:
        UnknownColumn: one of the two does not exist.
    """

    def move_in(struct: Struct) -> Struct:
        field = _require_field(struct, path[-1], path)
        siblings = [sibling for sibling in struct if sibling is not field]
        if after is None:
            return Struct((field, *siblings) if first else struct.fields)
        before = _require_field(struct, after, (*path[:-1], after))
        if before is field:
            return struct
        place = siblings.index(before) + 1
        return Struct((*siblings[:place], field, *siblings[place:]))

    return _in_parent(schema, path, move_in)


def _in_parent(schema: Struct, path: Sequence[str], edit: Callable[[Struct], Struct]) -> Struct:
    if not path:
        raise InvalidOption(option="column", value="none", reason="name the column to change.")
    changed = _within(schema, path[:-1], path, edit)
    assert isinstance(changed, Struct), "an edited schema is a struct"
    return changed


def _within(
    data_type: DataType, steps: Sequence[str], path: Sequence[str], edit: Callable[[Struct], Struct]
) -> DataType:
    """The type with ``edit`` applied to the struct at these steps."""
    if not steps:
        if not isinstance(data_type, Struct):
            raise UnknownColumn(column=".".join(path), columns=", ".join(inside_of(data_type)) or "no members")
        return edit(data_type)
    if isinstance(data_type, Struct):
        field = _require_field(data_type, steps[0], path)
        changed = replace(field, type=_within(field.type, steps[1:], path, edit))
        return Struct(tuple(changed if sibling is field else sibling for sibling in data_type))
    inner, step = inside_of(data_type), steps[0].lower()
    if step not in inner:
        raise UnknownColumn(column=".".join(path), columns=", ".join(inner) or "no members")
    return put_inside(data_type, step, _within(inner[step], steps[1:], path, edit))


def _require_field(struct: Struct, name: str, path: Sequence[str]) -> Field:
    field = struct.find(name)
    if field is None:
        raise UnknownColumn(column=".".join(path), columns=", ".join(struct.names))
    return field
