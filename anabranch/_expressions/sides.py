"""Sides: which side of a MERGE a name refers to.

Knows how Spark resolves a name: as ``alias.column``, or as a column of which a member may be meant. Guarantee:
`MergeColumns.target_column` names a column only where no reading of the name leads elsewhere.
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
class MergeColumns:
    """The two sides of a MERGE, for resolving the names in its expressions.

    Attributes:
        table: the target's columns.
        source_columns: the names of the source's columns.
        target, source: their aliases, or None.
        evolved: the target's columns after schema evolution, where the MERGE may add some.
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
        """The columns of both sides; of the source's only the names are known."""
        return Struct((*self.table.fields, *self._source))

    def readings(self, parts: Sequence[str]) -> list[Reading]:
        """Every way in which a dotted name can be read; none where it is no column."""
        sides: tuple[Side, ...] = ("target", "source")
        matches = [self._column(side, path) for side in sides for path in self.paths(side, parts)]
        return [reading for reading in matches if reading is not None]

    def target_column(self, parts: Sequence[str]) -> str | None:
        """The table's top-level column that a dotted name refers to; None where it may refer to anything else."""
        match self.readings(parts):
            case [Reading("target", column, nested=False)]:
                return column
        return None

    def column(self, parts: Sequence[str], seen: Sequence[Side]) -> Expression | None:
        """The column that a dotted name refers to in a pair of rows, of which the sides ``seen`` are visible; None
        where it is ambiguous, or of an unknown type.
        """
        match = self._find_unique(parts, seen)
        resolved = None if match is None else column_of(tuple(match[1]), self._columns(match[0]))
        return None if match is None or resolved is None else with_columns(resolved, lambda c: _in_pair(c, match[0]))

    def is_one(self, parts: Sequence[str], seen: Sequence[Side]) -> bool:
        """Whether a dotted name refers to one column of the visible sides, or to something inside of one."""
        match = self._find_unique(parts, seen)
        return match is not None and _leads_somewhere(match[1], self._columns(match[0]))

    def _find_unique(self, parts: Sequence[str], seen: Sequence[Side]) -> tuple[Side, Sequence[str]] | None:
        """The side of the one column of these sides that a dotted name refers to, and its path there."""
        matches = [
            (side, candidate) for side in seen for candidate in self.paths(side, parts) if self._column(side, candidate)
        ]
        if len(matches) != 1:
            return None
        columns, path = self._columns(matches[0][0]), matches[0][1]
        return None if not columns.exact and len(columns.alike(path[0])) > 1 else matches[0]

    def _columns(self, side: Side) -> Struct:
        return self.table if side == "target" else self.described

    def paths(self, side: Side, parts: Sequence[str]) -> list[Sequence[str]]:
        """The ways to read a dotted name as a column of one side."""
        alias = self.target if side == "target" else self.source
        return [parts, parts[1:]] if len(parts) > 1 and _same(parts[0], alias) else [parts]

    def source_column(self, name: str) -> str | None:
        """The source's column of this name, else, unless names are exact, the one whose name differs only in case."""
        match = self._source.find(name)
        return None if match is None else match.name

    @lazy
    def _source(self) -> Struct:
        """The source's columns; only their names are known."""
        return replace(Struct(tuple(Field(name, "string") for name in self.source_columns)), exact=self.table.exact)

    def _column(self, side: Side, parts: Sequence[str]) -> Reading | None:
        nested = len(parts) > 1
        if side == "source":
            name = self.source_column(parts[0])
            return None if name is None else Reading(side, name, nested)
        match = self.table.find(parts[0])
        if match is None or (nested and isinstance(match.type, str)):
            return None
        return Reading(side, match.name, nested)


def _leads_somewhere(path: Sequence[str], kind: DataType) -> bool:
    """Whether a path leads to something inside a type; paths inside a list or a map are left to Spark."""
    if not path or not isinstance(kind, Struct):
        return not path or not isinstance(kind, str)
    member = kind.find(path[0])
    return member is not None and _leads_somewhere(path[1:], member.type)


def resolve_assignments(
    values: Mapping[str, Any] | None, option: str, sides: MergeColumns, context: Context, *, keeps: bool = False
) -> dict[str, Any]:
    """The values of an update or insert under the table's own spelling of its columns; None means ``*``.

    For ``*`` a column that the source lacks is left out where the table fills it: a generated or identity column, and
    in an insert one with a default.

    Args:
        option: the caller's name for the mapping, for messages.
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
    values: Mapping[str, Any] | None, schema: Struct, sides: MergeColumns, widened: Callable[[Struct, Struct], Struct]
) -> Struct:
    """Add the new columns of a clause: for ``*`` all that the source has, else those that the keys name.

    Types of existing columns are ``widened`` to the source's; whether values fit them is checked on assignment.
    """
    if values is None:
        return evolve_schema(widened(schema, sides.described), sides.described, None)
    for key in values:
        additions = (_select_path(path, sides.described) for path in _readings_of(key, sides))
        target = _find_path(key, sides, schema)
        addition = (
            _select_path(target, sides.described) if target else next((a for a in additions if a.fields), Struct())
        )
        schema = evolve_schema(widened(schema, addition), addition, None)
    return schema


def path_of(key: str, sides: MergeColumns, context: Context) -> Path:
    """The table's column, or member of one, that a key such as ``x``, ``t.x``, ``t.`a b` `` or ``s.x`` refers to.

    Raises:
        UnknownColumn: there is no such column.
    """
    path = _find_path(key, sides, sides.settable)
    if path is None:
        raise UnknownColumn(table=context.table, column=key, columns=", ".join(sides.settable.names))
    return path


def _has_own_value(field: Field, sides: MergeColumns, *, inserts: bool) -> bool:
    """Whether the table gives a column a value that the source lacks."""
    is_identity = STEP in field.metadata
    has_value = is_identity or generation_of(field) is not None or (inserts and default_of(field) is not None)
    return has_value and sides.source_column(field.name) is None


def _find_path(key: str, sides: MergeColumns, columns: Struct) -> Path | None:
    """The first existing column among the readings of a key."""
    paths = (find_path(path, columns) for path in _readings_of(key, sides))
    return next((path for path in paths if path is not None), None)


def _readings_of(key: str, sides: MergeColumns) -> list[Sequence[str]]:
    """The paths that a key can mean, as Spark tries them; the last one is a column of just this name."""
    parts = name_parts(key)
    return [*reversed(sides.paths("target", parts)), [key]] if parts else [[key]]


def _select_path(path: Sequence[str], columns: Struct) -> Struct:
    """The column at a path, within the structs that lead to it; no column where the path leads nowhere."""
    match = columns.find(path[0]) if path else None
    if match is None or len(path) == 1:
        return Struct(() if match is None else (match,))
    inner = _select_path(path[1:], match.type) if isinstance(match.type, Struct) else Struct()
    return Struct((replace(match, type=inner),)) if inner.fields else Struct()


def _star(sides: MergeColumns, context: Context, *, keeps: bool) -> dict[str, Any]:
    if sides.evolved is None:
        clause = "UPDATE" if keeps else "INSERT"
        fields = [f for f in sides.table if not _has_own_value(f, sides, inserts=not keeps)]
        return {field.name: _from_source(field, sides, context, clause) for field in fields}
    present = [field for field in sides.evolved if sides.source_column(field.name) is not None]
    return {field.name: _evolved_value(field, sides, keeps=keeps) for field in present}


def _evolved_value(field: Field, sides: MergeColumns, *, keeps: bool) -> Any:
    """The value of a column from the source; only the source's members of a struct, where the others keep theirs."""
    column = sides.source_column(field.name)
    assert column is not None
    whole = SourceColumn(column)
    return _restrict_to_source(whole, sides.described.field(column).type, field.type) if keeps else whole


def _restrict_to_source(value: SourceColumn, source: DataType, target: DataType) -> Any:
    if not isinstance(source, Struct) or not isinstance(target, Struct):
        return value
    parts = {}
    for member in target:
        match = source.find(member.name)
        if match is not None:
            inner = replace(value, members=(*value.members, match.name))
            parts[member.name] = _restrict_to_source(inner, match.type, member.type)
    is_whole = len(parts) == len(target) and not any(isinstance(part, Members) for part in parts.values())
    return value if is_whole else Members(parts, value)


def _from_source(field: Field, sides: MergeColumns, context: Context, clause: str) -> SourceColumn:
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
    """The parts of a dotted name, without backticks; none where the name is malformed."""
    parts, end = [], 0
    while end < len(name):
        match = _PART.match(name, end)
        if match is None:
            return []
        parts.append(match[1].replace("``", "`") if match[1] is not None else match[2].rstrip() or match[2])
        end = match.end()
    return [] if name.endswith(".") else parts


def _in_pair(column: Column, side: Side) -> Column:
    """A column of one side, named within a pair of rows."""
    return Column((side, *((column.name,) if isinstance(column.name, str) else column.name)), column.type)


def _same(name: str, alias: str | None) -> bool:
    return alias is not None and name.lower() == alias.lower()
