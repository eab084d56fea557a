"""REPLACE COLUMNS: redeclares all columns of a table, as far as no file must change.

Knows names, nesting, and what delta-spark's REPLACE COLUMNS allows: order, comments, NULL where there was NOT NULL,
wider types, and columns added or dropped, but never both in one struct, which would look like a rename. Pure.
Guarantee: a column that stays keeps its id, physical name, default and rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import NoReturn

from anabranch._protocol.features.widening import with_type
from anabranch._protocol.rules.identity import STEP
from anabranch._protocol.rules.table_rules import DEFAULT, GENERATION
from anabranch._protocol.schema.editing import inside_of, put_inside
from anabranch._protocol.schema.evolution import sql_name
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct
from anabranch.errors import InvalidOption

Path = tuple[str, ...]
Objection = Callable[[Path, DataType, DataType], "str | None"]
"""Returns why the table forbids another type at a path; None if it allows it."""

_DECLARED = {DEFAULT: "a default", GENERATION: "a generating expression", STEP: "an identity", LENGTH: "a length"}


def replace_columns(schema: Struct, declared: Struct, objection: Objection) -> Struct:
    """Return the ``declared`` columns, each with the metadata of the present column of that name.

    Raises:
        InvalidOption: a change is not allowed; the error names the column.

    Example:
        >>> replace_columns(
        ...     Struct((Field("a", "long"), Field("b", "long"))), Struct((Field("B", "long"), Field("A", "long"))),
        ...     lambda path, before, after: None).names
        ('b', 'a')
    """
    for path, type_ in list(_changed_types(schema, declared, ())):
        schema = with_type(schema, path, type_, partial(objection, path))
    return _replace_members(schema, declared, ())


def paths_to_drop(present: DataType, declared: DataType, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of present columns and members that are not declared."""
    if isinstance(present, Struct) and isinstance(declared, Struct):
        for field in present:
            match = declared.find(field.name)
            if match is None:
                yield (*path, field.name)
            else:
                yield from paths_to_drop(field.type, match.type, (*path, field.name))
    for step, inner in inside_of(present).items():
        if step in inside_of(declared):
            yield from paths_to_drop(inner, inside_of(declared)[step], (*path, step))


def _changed_types(present: DataType, declared: DataType, path: Path) -> Iterator[tuple[Path, DataType]]:
    """Yield the paths with another declared primitive type, with that type."""
    if isinstance(present, str) and isinstance(declared, str) and present != declared:
        yield path, declared
    if isinstance(present, Struct) and isinstance(declared, Struct):
        for field in present:
            if (match := declared.find(field.name)) is not None:
                yield from _changed_types(field.type, match.type, (*path, field.name))
    for step, inner in inside_of(present).items():
        if step in inside_of(declared):
            yield from _changed_types(inner, inside_of(declared)[step], (*path, step))


def _replace_members(present: Struct, declared: Struct, path: Path) -> Struct:
    names = [field.name.lower() for field in declared]
    for name in names:
        if names.count(name) > 1:
            _refuse((*path, name), "it is named twice.")
    added = [field for field in declared if present.find(field.name) is None]
    dropped = [field for field in present if declared.find(field.name) is None]
    if added and dropped:
        reason = (
            f"it would be added while {dropped[0].name} is dropped, which could be a rename: use RENAME COLUMN instead."
        )
        _refuse((*path, added[0].name), reason)
    return Struct(tuple(_replace_field(present.find(field.name), field, (*path, field.name)) for field in declared))


def _replace_field(present: Field | None, declared: Field, path: Path) -> Field:
    if present is None:
        if not declared.nullable:
            _refuse(path, "existing rows would have NULL in it; add it without NOT NULL.")
        if set(declared.metadata) - {"comment"}:
            _refuse(path, "a new column can only have a comment.")
        return declared
    if present.nullable and not declared.nullable:
        _refuse(path, "it may be NULL; use SET NOT NULL, which checks the rows.")
    for key, what in _DECLARED.items():
        declared_value = declared.metadata.get(key)
        if declared_value != present.metadata.get(key) and (declared_value is not None or key == LENGTH):
            _refuse(path, f"it cannot add or change {what}.")
    comment = {key: value for key, value in declared.metadata.items() if key == "comment"}
    type_ = _replace_type(present.type, declared.type, path)
    return replace(present, type=type_, nullable=declared.nullable, metadata={**present.metadata, **comment})


def _replace_type(present: DataType, declared: DataType, path: Path) -> DataType:
    match present, declared:
        case Struct(), Struct():
            return _replace_members(present, declared, path)
        case Array(), Array():
            _check_nullability(present.contains_null, declared.contains_null, path)
            present = replace(present, contains_null=declared.contains_null)
        case Map(), Map():
            _check_nullability(present.value_contains_null, declared.value_contains_null, path)
            present = replace(present, value_contains_null=declared.value_contains_null)
        case str(), str():  # already changed to the declared type
            return present
        case _:
            _refuse(path, f"it is {sql_name(present)} and cannot become {sql_name(declared)}.")
    for step, inner in inside_of(declared).items():
        present = put_inside(present, step, _replace_type(inside_of(present)[step], inner, (*path, step)))
    return present


def _check_nullability(nullable: bool, wanted_nullable: bool, path: Path) -> None:
    if nullable and not wanted_nullable:
        _refuse(path, "its elements may be NULL.")


def _refuse(path: Path, reason: str) -> NoReturn:
    raise InvalidOption(option="REPLACE COLUMNS", value=".".join(path), reason=reason)
