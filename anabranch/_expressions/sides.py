"""Sides: whose column a name in a MERGE is.

Knows how Spark looks a name up: as ``alias.column``, or as a column of which a member may be meant. Guarantee:
`Sides.target_column` names a column only where no reading of the name leads elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from anabranch._expressions.context import Context
from anabranch._log.lazy import lazy
from anabranch._protocol.expressions.computation import column_of
from anabranch._protocol.expressions.tree import Column, Expression, with_columns
from anabranch._protocol.merges import Side, SourceColumn
from anabranch._protocol.rules.identity import STEP
from anabranch._protocol.rules.table_rules import default_of, generation_of
from anabranch._protocol.schema.assignments import Members, Path, build_assignments, find_path
from anabranch._protocol.schema.evolution import evolve_schema
from anabranch._protocol.schema.types import DataType, Field, Struct
from anabranch.errors import InvalidOption, SchemaMismatch, UnknownColumn

_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`\s*|([^`.]+))(?:\.|$)")


@dataclass(frozen=True)
class Reading:
    """One way to read a name: the column of a side, and whether a member of that column is meant."""

    side: Side
    column: str
    nested: bool


@dataclass(frozen=True)
class Sides:
    """The two sides of a MERGE, as its expressions speak of them.

    Attributes:
        table: the target's columns.
        source_columns: the source's.
        target, source: their aliases, None where there is none.
        evolved: what the target's columns become, where the MERGE may add some.
        described: the source's columns with their types.
    """

    table: Struct
    source_columns: tuple[str, ...]
    target: str | None = None
    source: str | None = None
    evolved: Struct | None = None
    described: Struct = field(default_factory=Struct)

    @property
    def settable(self) -> Struct:
        """The columns that may be set."""
        if self.evolved is None:
            return self.table
        return self.evolved.exactly() if self.table.exact else self.evolved

    @property
    def all_columns(self) -> Struct:
        """Every name that stands for a column; of the source's only the names are known."""
        return Struct((*self.table.fields, *self._source))

    def readings(self, parts: Sequence[str]) -> list[Reading]:
        """Every way in which a dotted name can be read; none where it is no column."""
        sides: tuple[Side, ...] = ("target", "source")
        found = [self._column(side, some) for side in sides for some in self.paths(side, parts)]
        return [reading for reading in found if reading is not None]

    def target_column(self, parts: Sequence[str]) -> str | None:
        """The table's top-level column that a dotted name stands for; None where it may stand for anything else."""
        match self.readings(parts):
            case [Reading("target", column, nested=False)]:
                return column
        return None

    def column(self, parts: Sequence[str], seen: Sequence[Side]) -> Expression | None:
        """What a dotted name stands for in a pair of rows, of which these sides are seen; None where it may stand for
        several things, or is of no type that is known.
        """
        found = self._find_unique(parts, seen)
        known = None if found is None else column_of(tuple(found[1]), self._columns(found[0]))
        return None if found is None or known is None else with_columns(known, lambda each: _in_pair(each, found[0]))

    def is_one(self, parts: Sequence[str], seen: Sequence[Side]) -> bool:
        """Whether a dotted name stands for one column of the sides that are seen, or for something inside of one."""
        found = self._find_unique(parts, seen)
        return found is not None and _leads(found[1], self._columns(found[0]))

    def _find_unique(self, parts: Sequence[str], seen: Sequence[Side]) -> tuple[Side, Sequence[str]] | None:
        """The side of the one column of these sides that a dotted name leads to, and its path there."""
        found = [(side, some) for side in seen for some in self.paths(side, parts) if self._column(side, some)]
        if len(found) != 1:
            return None
        columns, path = self._columns(found[0][0]), found[0][1]
        return None if not columns.exact and len(columns.alike(path[0])) > 1 else found[0]

    def _columns(self, side: Side) -> Struct:
        return self.table if side == "target" else self.described

    def paths(self, side: Side, parts: Sequence[str]) -> list[Sequence[str]]:
        """The ways to read a dotted name as a column of one side."""
        alias = self.target if side == "target" else self.source
        return [parts, parts[1:]] if len(parts) > 1 and _same(parts[0], alias) else [parts]

    def source_column(self, name: str) -> str | None:
        """The source's column of this name, else, unless names are exact, the one whose name differs only in case."""
        found = self._source.find(name)
        return None if found is None else found.name

    @lazy
    def _source(self) -> Struct:
        """The source's columns; only their names are known."""
        return replace(Struct(tuple(Field(name, "string") for name in self.source_columns)), exact=self.table.exact)

    def _column(self, side: Side, parts: Sequence[str]) -> Reading | None:
        nested = len(parts) > 1
        if side == "source":
            name = self.source_column(parts[0])
            return None if name is None else Reading(side, name, nested)
        found = self.table.find(parts[0])
        if found is None or (nested and isinstance(found.type, str)):
            return None
        return Reading(side, found.name, nested)


def _leads(path: Sequence[str], kind: DataType) -> bool:
    """Whether a path leads to something inside a type; of a list or a map only Spark says what is there."""
    if not path or not isinstance(kind, Struct):
        return not path or not isinstance(kind, str)
    found = kind.find(path[0])
    return found is not None and _leads(path[1:], found.type)


def resolve_assignments(
    values: Mapping[str, Any] | None, option: str, sides: Sides, context: Context, *, keeps: bool = False
) -> dict[str, Any]:
    """The values of an update or insert under the table's own spelling of its columns; None stands for ``*``.

    Of ``*`` a column that the source lacks is left out where the table gives it a value: one that is generated or
    counted, and in an insert one with a default.

    Args:
        option: what the caller calls the mapping, for messages.
        keeps: whether columns and members that are not named keep their values, as in an update.

    Raises:
        UnknownColumn: the table has no such column or member. SchemaMismatch: ``*`` needs a column that the source
        lacks. InvalidOption: no column is named, or one twice.
    """
    if values is None:
        return _star(sides, context, keeps=keeps)
    if not values:
        raise InvalidOption(option=option, value="{}", reason="it names no column.")
    return build_assignments([(key, path_of(key, sides, context), value) for key, value in values.items()], option)


def evolve_by_clause(
    values: Mapping[str, Any] | None, schema: Struct, sides: Sides, widened: Callable[[Struct, Struct], Struct]
) -> Struct:
    """Columns with what a clause adds to them: for ``*`` all that the source has, else what it has of the keys' names.

    Types of columns that are there are ``widened`` by those; whether values fit them is seen when they are fitted.
    """
    if values is None:
        return evolve_schema(widened(schema, sides.described), sides.described, None)
    for key in values:
        found = (_only_at(path, sides.described) for path in _readings_of(key, sides))
        there = _find_path(key, sides, schema)
        given = _only_at(there, sides.described) if there else next((each for each in found if each.fields), Struct())
        schema = evolve_schema(widened(schema, given), given, None)
    return schema


def path_of(key: str, sides: Sides, context: Context) -> Path:
    """The table's column, or member of one, that a key such as ``x``, ``t.x``, ``t.`a b` `` or ``s.x`` means.

    Raises:
        UnknownColumn: there is none.
    """
    found = _find_path(key, sides, sides.settable)
    if found is None:
        raise UnknownColumn(table=context.table, column=key, columns=", ".join(sides.settable.names))
    return found


def _has_own_value(field: Field, sides: Sides, *, inserts: bool) -> bool:
    """Whether the table gives a column a value that the source lacks."""
    counted = STEP in field.metadata
    given = counted or generation_of(field) is not None or (inserts and default_of(field) is not None)
    return given and sides.source_column(field.name) is None


def _find_path(key: str, sides: Sides, columns: Struct) -> Path | None:
    """The first of the readings of a key that is there."""
    found = (find_path(path, columns) for path in _readings_of(key, sides))
    return next((path for path in found if path is not None), None)


def _readings_of(key: str, sides: Sides) -> list[Sequence[str]]:
    """The paths that a key can mean, as Spark tries them; the last one is a column of just this name."""
    parts = name_parts(key)
    return [*reversed(sides.paths("target", parts)), [key]] if parts else [[key]]


def _only_at(path: Sequence[str], columns: Struct) -> Struct:
    """Of these columns the one at a path, in the structs that lead to it; none where there is none."""
    found = columns.find(path[0]) if path else None
    if found is None or len(path) == 1:
        return Struct(() if found is None else (found,))
    inner = _only_at(path[1:], found.type) if isinstance(found.type, Struct) else Struct()
    return Struct((replace(found, type=inner),)) if inner.fields else Struct()


def _star(sides: Sides, context: Context, *, keeps: bool) -> dict[str, Any]:
    if sides.evolved is None:
        clause = "UPDATE" if keeps else "INSERT"
        wanted = [each for each in sides.table if not _has_own_value(each, sides, inserts=not keeps)]
        return {field.name: _from_source(field, sides, context, clause) for field in wanted}
    there = [field for field in sides.evolved if sides.source_column(field.name) is not None]
    return {field.name: _evolving(field, sides, keeps=keeps) for field in there}


def _evolving(field: Field, sides: Sides, *, keeps: bool) -> Any:
    """A column that the source has; of a struct that it has in part, just that part where the rest is kept."""
    column = sides.source_column(field.name)
    assert column is not None
    whole = SourceColumn(column)
    return _in_part(whole, sides.described.field(column).type, field.type) if keeps else whole


def _in_part(value: SourceColumn, given: DataType, target: DataType) -> Any:
    if not isinstance(given, Struct) or not isinstance(target, Struct):
        return value
    parts = {}
    for each in target:
        known = given.find(each.name)
        if known is not None:
            inner = replace(value, members=(*value.members, known.name))
            parts[each.name] = _in_part(inner, known.type, each.type)
    is_whole = len(parts) == len(target) and not any(isinstance(part, Members) for part in parts.values())
    return value if is_whole else Members(parts, value)


def _from_source(field: Field, sides: Sides, context: Context, clause: str) -> SourceColumn:
    name = sides.source_column(field.name)
    if name is None:
        raise SchemaMismatch(
            column=field.name,
            table=context.table,
            reason=f"Cannot resolve {field.name} in {clause} clause given columns {', '.join(sides.source_columns)}: "
            "all columns are to be taken from the source, which has none of this name",
            expected=field.name,
            found=", ".join(sides.source_columns),
        )
    return SourceColumn(name)


def name_parts(name: str) -> list[str]:
    """The parts of a dotted name, without backticks; none where it is not one."""
    parts, end = [], 0
    while end < len(name):
        match = _PART.match(name, end)
        if match is None:
            return []
        parts.append(match[1].replace("``", "`") if match[1] is not None else match[2].rstrip() or match[2])
        end = match.end()
    return [] if name.endswith(".") else parts


def _in_pair(column: Column, side: Side) -> Column:
    """A column of one side as it stands in a pair of rows."""
    return Column((side, *((column.name,) if isinstance(column.name, str) else column.name)), column.type)


def _same(name: str, alias: str | None) -> bool:
    return alias is not None and name.lower() == alias.lower()
