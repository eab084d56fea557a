"""Schema evolution: whether rows fit a table's columns, and the schema of the table after rows add columns to it.

Knows names, in any case, and types. Pure. Guarantees: no column of a table is dropped, moved, or changed to another
type, unless requested (`rename_column`, `drop_column`); an added column is nullable and at the end of its struct, so
that files without it read as NULL.
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
    """Why rows do not fit: a column's full path, its type in the table and in the rows (or the names in its struct),
    and the reason.
    """

    column: str
    expected: str
    found: str
    reason: str

    def error(self, table: str, advice: str = "") -> SchemaMismatch:
        """Return the error for the user, with advice."""
        name = self.column.rpartition(".")[2]
        failed = f"Failed to merge fields '{name}' and '{name}': " if self.reason == DIFFER else ""
        reason = f"{failed}{self.reason} {advice}".rstrip()
        return SchemaMismatch(column=self.column, table=table, reason=reason, expected=self.expected, found=self.found)


TypeFits = Callable[[DataType, DataType], bool]
"""Whether values of one primitive type fit another."""


def misfit(
    source: DataType, target: DataType, path: str, *, whole: bool = False, fits: TypeFits = upcastable
) -> Misfit | None:
    """Find the first place where values of one type do not fit a column; None if all of them fit.

    Members of structs match by name; members that the rows lack are NULL, or misfits if the values must be ``whole``.
    Nullability is not checked; a void is NULL, and fits everywhere.

    Example:
        >>> misfit("integer", "long", "id") is None
        True
    """
    if source == VOID:
        return None
    if isinstance(source, Struct) and isinstance(target, Struct):
        return _members_misfit(source, target, path, whole, fits)
    if isinstance(source, Array) and isinstance(target, Array):
        return misfit(source.element, target.element, f"{path}.element", whole=whole, fits=fits)
    if isinstance(source, Map) and isinstance(target, Map):
        key = misfit(source.key, target.key, f"{path}.key", whole=whole, fits=fits)
        return key or misfit(source.value, target.value, f"{path}.value", whole=whole, fits=fits)
    if isinstance(source, str) and isinstance(target, str) and fits(source, target):
        return None
    return Misfit(path, sql_name(target), sql_name(source), DIFFER)


def _members_misfit(rows: Struct, target: Struct, path: str, whole: bool, fits: TypeFits) -> Misfit | None:
    for field in rows:
        target_field = target.find(field.name)
        inner = f"{path}.{field.name}"
        if target_field is None:
            reason = "it is not one of the struct's members."
            return Misfit(inner, ", ".join(target.names), ", ".join(rows.names), reason)
        if inner_misfit := misfit(field.type, target_field.type, inner, whole=whole, fits=fits):
            return inner_misfit
    missing = [member for member in target if rows.find(member.name) is None] if whole else []
    for field in missing:
        reason = "the value lacks this member."
        return Misfit(f"{path}.{field.name}", ", ".join(target.names), ", ".join(rows.names) or "none", reason)
    return None


def with_names_of(source: DataType, target: DataType) -> DataType:
    """Return a type with its members' names as another type spells them."""
    if isinstance(source, Struct) and isinstance(target, Struct):
        matches = ((field, target.find(field.name)) for field in source)
        return Struct(
            tuple(
                field if match is None else replace(field, name=match.name, type=with_names_of(field.type, match.type))
                for field, match in matches
            )
        )
    if isinstance(source, Array) and isinstance(target, Array):
        return replace(source, element=with_names_of(source.element, target.element))
    if isinstance(source, Map) and isinstance(target, Map):
        return replace(
            source, key=with_names_of(source.key, target.key), value=with_names_of(source.value, target.value)
        )
    return source


def evolve_schema(table: Struct, rows: Struct, where: str | None, prefix: str = "") -> Struct:
    """The table's columns, followed by the columns that only the rows have, also inside structs, arrays and maps; a
    void column of the table gets the rows' type. ``where`` names the table in messages; with None, columns of other
    types are left to the code that casts the values.

    Raises:
        SchemaMismatch: a type is neither the column's nor widens to it.

    Example:
        >>> evolve_schema(Struct((Field("id", "long"),)), Struct((Field("ID", "long"), Field("x", "date"))), "t").names
        ('id', 'x')
    """
    fields = [_evolve_field(field, rows.find(field.name), where, prefix) for field in table]
    return Struct((*fields, *(row for row in rows if table.find(row.name) is None)))


def _evolve_field(field: Field, incoming: Field | None, where: str | None, prefix: str) -> Field:
    if incoming is None:
        return field
    type_ = _evolve_type(field.type, incoming.type, where, prefix + field.name)
    return field if type_ == field.type else replace(field, type=type_)


def _evolve_type(table: DataType, rows: DataType, where: str | None, path: str) -> DataType:
    if table == VOID:  # like delta-spark: a column without a type gets the rows'
        return rows
    if isinstance(table, Struct) and isinstance(rows, Struct):
        return evolve_schema(table, rows, where, f"{path}.")
    if isinstance(table, Array) and isinstance(rows, Array):
        return replace(table, element=_evolve_type(table.element, rows.element, where, f"{path}.element"))
    if isinstance(table, Map) and isinstance(rows, Map):
        key = _evolve_type(table.key, rows.key, where, f"{path}.key")
        return replace(table, key=key, value=_evolve_type(table.value, rows.value, where, f"{path}.value"))
    if where is not None and (mismatch := misfit(rows, table, path)):
        raise mismatch.error(where, "Adding columns never changes a type: cast the column, or use overwriteSchema.")
    return table


def rewrite_at(columns: DataType, path: Sequence[str], change: Callable[[Struct, Field], Struct]) -> Any:
    """The columns with ``change`` applied to the struct of the field at a path; ``element``, ``key`` and ``value`` lead
    into arrays and maps. Raises UnknownColumn: no column has this path.
    """
    first, *rest = path
    if isinstance(columns, Array) and first.lower() == "element" and rest:
        return replace(columns, element=rewrite_at(columns.element, rest, change))
    if isinstance(columns, Map) and first.lower() in ("key", "value") and rest:
        inner = rewrite_at(getattr(columns, first.lower()), rest, change)
        return replace(columns, **{first.lower(): inner})
    if not isinstance(columns, Struct):
        raise UnknownColumn(column=first, columns=f"none inside {sql_name(columns)}")
    matched_field = columns.field(first)
    if not rest:
        return change(columns, matched_field)
    rewritten = replace(matched_field, type=rewrite_at(matched_field.type, rest, change))
    return Struct(tuple(rewritten if sibling is matched_field else sibling for sibling in columns))


def members_of(columns: Struct, path: Sequence[str]) -> tuple[str, ...]:
    """The prefix of a path that leads through structs only: a column and its members, down to an array or a map.

    Example:
        >>> members_of(Struct((Field("a", Struct((Field("m", Map("string", "long")),))),)), ("A", "m", "value"))
        ('a', 'm')
    """
    names: list[str] = []
    type_: DataType = columns
    for name in path:
        if not isinstance(type_, Struct) or (field := type_.find(name)) is None:
            break
        names.append(field.name)
        type_ = field.type
    return tuple(names)


def rename_column(columns: Struct, path: Sequence[str], name: str) -> Struct:
    """The columns with the one at a path renamed.

    Raises:
        UnknownColumn: no column has this path.
        InvalidOption: another field of the struct has that name, in any case.

    Example:
        >>> rename_column(Struct((Field("id", "long"),)), ["ID"], "key").names
        ('key',)
    """

    def change(struct: Struct, field: Field) -> Struct:
        if any(sibling.name.lower() == name.lower() for sibling in struct if sibling is not field) or not name:
            raise InvalidOption(
                option="columns", value=name, reason=f"a column {name} already exists, or it is not a name."
            )
        return Struct(tuple(replace(sibling, name=name) if sibling is field else sibling for sibling in struct))

    return cast(Struct, rewrite_at(columns, path, change))


def drop_column(columns: Struct, path: Sequence[str]) -> Struct:
    """The columns without the one at a path.

    Raises:
        UnknownColumn: no column has this path.
        InvalidOption: it is the only field of its struct.
    """

    def change(struct: Struct, field: Field) -> Struct:
        if len(struct) == 1:
            raise InvalidOption(option="columns", value=field.name, reason="it is the only field of its struct.")
        return Struct(tuple(sibling for sibling in struct if sibling is not field))

    return cast(Struct, rewrite_at(columns, path, change))


def all_nullable(columns: Struct) -> Struct:
    """Columns as Delta creates them from rows: nullable at any depth, since rows declare no NOT NULL."""
    return Struct(tuple(replace(column, nullable=True, type=nullable_type(column.type)) for column in columns))


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
        return f"struct<{','.join(f'{field.name}:{sql_name(field.type)}' for field in type_)}>"
    if isinstance(type_, Array):
        return f"array<{sql_name(type_.element)}>"
    if isinstance(type_, Map):
        return f"map<{sql_name(type_.key)},{sql_name(type_.value)}>"
    return _SQL_NAMES.get(type_, type_)
