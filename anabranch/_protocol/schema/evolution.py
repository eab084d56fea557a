"""Schema evolution: how rows fit a table's columns, and what the table becomes where they may add to it.

Knows names, in any case, and types. Pure. Guarantees: no column of a table is dropped, moved, or given another type,
unless requested (`rename_column`, `drop_column`); what is added is nullable and at the end of its struct, so that files
without it read as NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from anabranch._protocol.schema.types import VOID, Array, DataType, Field, Map, Struct, upcastable
from anabranch.errors import InvalidOption, SchemaMismatch, UnknownColumn

_SQL_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
DIFFER = "the types differ."
"""The reason of a type misfit; the other reasons are about names."""


@dataclass(frozen=True)
class Misfit:
    """Why rows do not fit: a column's full path, and its type in the table and in the rows, or the names beside it."""

    column: str
    expected: str
    found: str
    reason: str

    def error(self, table: str, advice: str = "") -> SchemaMismatch:
        """The error for the user, with what can be done about it."""
        name = self.column.rpartition(".")[2]
        failed = f"Failed to merge fields '{name}' and '{name}': " if self.reason == DIFFER else ""
        reason = f"{failed}{self.reason} {advice}".rstrip()
        return SchemaMismatch(column=self.column, table=table, reason=reason, expected=self.expected, found=self.found)


Fits = Callable[[DataType, DataType], bool]
"""Whether values of one type fit another, where neither is nested."""


def misfit(
    given: DataType, target: DataType, path: str, *, whole: bool = False, fits: Fits = upcastable
) -> Misfit | None:
    """The first place where values of one type do not fit a column; None where all of them fit.

    Members of structs are matched by name; members that the rows lack are NULL, or misfits where the values must be
    ``whole``. Nullability is not checked; a void is NULL, and fits everywhere.

    Example:
        >>> misfit("integer", "long", "id") is None
        True
    """
    if given == VOID:
        return None
    if isinstance(given, Struct) and isinstance(target, Struct):
        return _members_misfit(given, target, path, whole, fits)
    if isinstance(given, Array) and isinstance(target, Array):
        return misfit(given.element, target.element, f"{path}.element", whole=whole, fits=fits)
    if isinstance(given, Map) and isinstance(target, Map):
        key = misfit(given.key, target.key, f"{path}.key", whole=whole, fits=fits)
        return key or misfit(given.value, target.value, f"{path}.value", whole=whole, fits=fits)
    if isinstance(given, str) and isinstance(target, str) and fits(given, target):
        return None
    return Misfit(path, sql_name(target), sql_name(given), DIFFER)


def _members_misfit(given: Struct, target: Struct, path: str, whole: bool, fits: Fits) -> Misfit | None:
    for each in given:
        known = target.find(each.name)
        inner = f"{path}.{each.name}"
        if known is None:
            reason = "it is not one of the struct's members."
            return Misfit(inner, ", ".join(target.names), ", ".join(given.names), reason)
        if found := misfit(each.type, known.type, inner, whole=whole, fits=fits):
            return found
    lacking = [each for each in target if given.find(each.name) is None] if whole else []
    for each in lacking:
        reason = "the value lacks this member."
        return Misfit(f"{path}.{each.name}", ", ".join(target.names), ", ".join(given.names) or "none", reason)
    return None


def with_names_of(given: DataType, target: DataType) -> DataType:
    """A type with its members' names as another type spells them."""
    if isinstance(given, Struct) and isinstance(target, Struct):
        known = ((field, target.find(field.name)) for field in given)
        return Struct(
            tuple(
                field if found is None else replace(field, name=found.name, type=with_names_of(field.type, found.type))
                for field, found in known
            )
        )
    if isinstance(given, Array) and isinstance(target, Array):
        return replace(given, element=with_names_of(given.element, target.element))
    if isinstance(given, Map) and isinstance(target, Map):
        return replace(given, key=with_names_of(given.key, target.key), value=with_names_of(given.value, target.value))
    return given


def evolve_schema(table: Struct, rows: Struct, where: str | None, prefix: str = "") -> Struct:
    """The table's columns, followed by those that only the rows have, as they are, also inside structs, arrays and
    maps; a void column of the table gets the rows' type. ``where`` names the table in messages; None leaves columns of
    other types to the code that casts the values.

    Raises:
        SchemaMismatch: a type is neither the column's nor widens to it.

    Example:
        >>> evolved(Struct((Field("id", "long"),)), Struct((Field("ID", "long"), Field("x", "date"))), "t").names
        ('id', 'x')
    """
    fields = [_evolve_field(each, rows.find(each.name), where, prefix) for each in table]
    return Struct((*fields, *(each for each in rows if table.find(each.name) is None)))


def _evolve_field(field: Field, given: Field | None, where: str | None, prefix: str) -> Field:
    if given is None:
        return field
    type_ = _evolve_type(field.type, given.type, where, prefix + field.name)
    return field if type_ == field.type else replace(field, type=type_)


def _evolve_type(table: DataType, rows: DataType, where: str | None, path: str) -> DataType:
    if table == VOID:  # as delta-spark: a column that has no type yet gets the rows'
        return rows
    if isinstance(table, Struct) and isinstance(rows, Struct):
        return evolve_schema(table, rows, where, f"{path}.")
    if isinstance(table, Array) and isinstance(rows, Array):
        return replace(table, element=_evolve_type(table.element, rows.element, where, f"{path}.element"))
    if isinstance(table, Map) and isinstance(rows, Map):
        key = _evolve_type(table.key, rows.key, where, f"{path}.key")
        return replace(table, key=key, value=_evolve_type(table.value, rows.value, where, f"{path}.value"))
    if where is not None and (found := misfit(rows, table, path)):
        raise found.error(where, "Adding columns never changes a type: cast the column, or use overwriteSchema.")
    return table


def rewrite_at(columns: DataType, path: Sequence[str], change: Callable[[Struct, Field], Struct]) -> Any:
    """The columns with ``change`` applied to the struct of the field at a path; ``element``, ``key`` and ``value`` lead
    into arrays and maps. Raises UnknownColumn: there is nothing at this path.
    """
    first, *rest = path
    if isinstance(columns, Array) and first.lower() == "element" and rest:
        return replace(columns, element=rewrite_at(columns.element, rest, change))
    if isinstance(columns, Map) and first.lower() in ("key", "value") and rest:
        inner = rewrite_at(getattr(columns, first.lower()), rest, change)
        return replace(columns, **{first.lower(): inner})
    if not isinstance(columns, Struct):
        raise UnknownColumn(column=first, columns=f"none inside {sql_name(columns)}")
    found = columns.field(first)
    if not rest:
        return change(columns, found)
    field = replace(found, type=rewrite_at(found.type, rest, change))
    return Struct(tuple(field if each is found else each for each in columns))


def members_of(columns: Struct, path: Sequence[str]) -> tuple[str, ...]:
    """As much of a path as leads through structs alone: a column and its members, down to an array or a map.

    Example:
        >>> members_of(Struct((Field("a", Struct((Field("m", Map("string", "long")),))),)), ("A", "m", "value"))
        ('a', 'm')
    """
    found: list[str] = []
    type_: DataType = columns
    for name in path:
        if not isinstance(type_, Struct) or (field := type_.find(name)) is None:
            break
        found.append(field.name)
        type_ = field.type
    return tuple(found)


def rename_column(columns: Struct, path: Sequence[str], name: str) -> Struct:
    """The columns with the one at a path renamed.

    Raises:
        UnknownColumn: there is none.
        InvalidOption: another one beside it has that name, in any case.

    Example:
        >>> renamed(Struct((Field("id", "long"),)), ["ID"], "key").names
        ('key',)
    """

    def change(struct: Struct, field: Field) -> Struct:
        if any(each.name.lower() == name.lower() for each in struct if each is not field) or not name:
            raise InvalidOption(
                option="columns", value=name, reason=f"a column {name} already exists, or it is not a name."
            )
        return Struct(tuple(replace(each, name=name) if each is field else each for each in struct))

    return cast(Struct, rewrite_at(columns, path, change))


def drop_column(columns: Struct, path: Sequence[str]) -> Struct:
    """The columns without the one at a path.

    Raises:
        UnknownColumn: there is none.
        InvalidOption: it is the last of its struct.
    """

    def change(struct: Struct, field: Field) -> Struct:
        if len(struct) == 1:
            raise InvalidOption(option="columns", value=field.name, reason="it is the last one in its struct.")
        return Struct(tuple(each for each in struct if each is not field))

    return cast(Struct, rewrite_at(columns, path, change))


def all_nullable(columns: Struct) -> Struct:
    """Columns as Delta creates them from rows: all nullable at any depth, since rows promise no NOT NULL."""
    return Struct(tuple(replace(each, nullable=True, type=nullable_type(each.type)) for each in columns))


def nullable_type(type_: DataType) -> DataType:
    """The type with NULL allowed everywhere inside."""
    if isinstance(type_, Struct):
        return all_nullable(type_)
    if isinstance(type_, Array):
        return Array(nullable_type(type_.element), True)
    return Map(nullable_type(type_.key), nullable_type(type_.value), True) if isinstance(type_, Map) else type_


def sql_name(type_: DataType) -> str:
    """A type as Spark's SQL spells it.

    Example:
        >>> sql_name(Array(Struct((Field("id", "long"),))))
        'array<struct<id:bigint>>'
    """
    if isinstance(type_, Struct):
        return f"struct<{','.join(f'{each.name}:{sql_name(each.type)}' for each in type_)}>"
    if isinstance(type_, Array):
        return f"array<{sql_name(type_.element)}>"
    if isinstance(type_, Map):
        return f"map<{sql_name(type_.key)},{sql_name(type_.value)}>"
    return _SQL_NAMES.get(type_, type_)
