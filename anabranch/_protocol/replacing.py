"""REPLACE COLUMNS: all columns of a table declared again, as far as no file must change.

Knows names, nesting, and what delta-spark's REPLACE COLUMNS allows: order, comments, NULL where there was NOT NULL,
wider types, and columns added or dropped, but never both in one place, which would look like a rename. Pure. Guarantee:
a column that stays keeps its id, physical name, default and rules.
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
"""Why the table forbids another type at a path; None where it does not."""

_DECLARED = {DEFAULT: "a default", GENERATION: "a generating expression", STEP: "an identity", LENGTH: "a length"}


def replace_columns(schema: Struct, wanted: Struct, objection: Objection) -> Struct:
    """The ``wanted`` columns, each with the metadata of the present one of that name.

    Raises:
        InvalidOption: a change is not allowed here; it names the column.

    Example:
        >>> replaced(Struct((Field("a", "long"), Field("b", "long"))), Struct((Field("B", "long"), Field("A", "long"))),
        ...          lambda path, before, after: None).names
        ('b', 'a')
    """
    for path, type_ in list(_types(schema, wanted, ())):
        schema = with_type(schema, path, type_, partial(objection, path))
    return _members(schema, wanted, ())


def paths_to_drop(known: DataType, wanted: DataType, path: Path = ()) -> Iterator[Path]:
    """The paths of present columns and members that are not wanted."""
    if isinstance(known, Struct) and isinstance(wanted, Struct):
        for field in known:
            found = wanted.find(field.name)
            if found is None:
                yield (*path, field.name)
            else:
                yield from paths_to_drop(field.type, found.type, (*path, field.name))
    for step, inner in inside_of(known).items():
        if step in inside_of(wanted):
            yield from paths_to_drop(inner, inside_of(wanted)[step], (*path, step))


def _types(known: DataType, wanted: DataType, path: Path) -> Iterator[tuple[Path, DataType]]:
    """The paths at which another primitive type is wanted."""
    if isinstance(known, str) and isinstance(wanted, str) and known != wanted:
        yield path, wanted
    if isinstance(known, Struct) and isinstance(wanted, Struct):
        for field in known:
            if (found := wanted.find(field.name)) is not None:
                yield from _types(field.type, found.type, (*path, field.name))
    for step, inner in inside_of(known).items():
        if step in inside_of(wanted):
            yield from _types(inner, inside_of(wanted)[step], (*path, step))


def _members(known: Struct, wanted: Struct, path: Path) -> Struct:
    names = [each.name.lower() for each in wanted]
    for name in names:
        if names.count(name) > 1:
            _refuse((*path, name), "it is named twice.")
    come = [each for each in wanted if known.find(each.name) is None]
    gone = [each for each in known if wanted.find(each.name) is None]
    if come and gone:
        reason = f"it would come while {gone[0].name} goes, which could be a rename: say so by RENAME COLUMN."
        _refuse((*path, come[0].name), reason)
    return Struct(tuple(_member(known.find(each.name), each, (*path, each.name)) for each in wanted))


def _member(known: Field | None, wanted: Field, path: Path) -> Field:
    if known is None:
        if not wanted.nullable:
            _refuse(path, "rows that are there would have NULL in it; add it without NOT NULL.")
        if set(wanted.metadata) - {"comment"}:
            _refuse(path, "a new column is added with nothing but a comment.")
        return wanted
    if known.nullable and not wanted.nullable:
        _refuse(path, "it may be NULL; SET NOT NULL looks at the rows.")
    for key, what in _DECLARED.items():
        said = wanted.metadata.get(key)
        if said != known.metadata.get(key) and (said is not None or key == LENGTH):
            _refuse(path, f"{what} is not given or changed by it.")
    comment = {key: value for key, value in wanted.metadata.items() if key == "comment"}
    type_ = _type(known.type, wanted.type, path)
    return replace(known, type=type_, nullable=wanted.nullable, metadata={**known.metadata, **comment})


def _type(known: DataType, wanted: DataType, path: Path) -> DataType:
    match known, wanted:
        case Struct(), Struct():
            return _members(known, wanted, path)
        case Array(), Array():
            _check_loosened(known.contains_null, wanted.contains_null, path)
            known = replace(known, contains_null=wanted.contains_null)
        case Map(), Map():
            _check_loosened(known.value_contains_null, wanted.value_contains_null, path)
            known = replace(known, value_contains_null=wanted.value_contains_null)
        case str(), str():  # is the wanted one by now
            return known
        case _:
            _refuse(path, f"it is {sql_name(known)}, and does not become {sql_name(wanted)}.")
    for step, inner in inside_of(wanted).items():
        known = put_inside(known, step, _type(inside_of(known)[step], inner, (*path, step)))
    return known


def _check_loosened(known: bool, wanted: bool, path: Path) -> None:
    if known and not wanted:
        _refuse(path, "what lies in it may be NULL.")


def _refuse(path: Path, reason: str) -> NoReturn:
    raise InvalidOption(option="REPLACE COLUMNS", value=".".join(path), reason=reason)
