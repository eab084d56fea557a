"""Sides: whose column a name in a MERGE is.

Knows how Spark looks a name up: as ``alias.column``, or as a column of which a member may be meant. Guarantee:
`Sides.target_column` names a column only where no reading of the name leads elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from anabranch.errors import InvalidOption, NotBuilt, SchemaMismatch, UnknownColumn
from anabranch.protocol.identity import STEP
from anabranch.protocol.merges import SourceColumn
from anabranch.protocol.rules import default_of, generation_of
from anabranch.protocol.schema import Field, Struct
from anabranch.sql.context import Context

_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`.]+?))\s*(?:\.|$)")


@dataclass(frozen=True)
class Reading:
    """One way to read a name: the column of a side, and whether a member of that column is meant."""

    side: Literal["target", "source"]
    column: str
    nested: bool


@dataclass(frozen=True)
class Sides:
    """The two sides of a MERGE, as its expressions speak of them.

    Attributes:
        table: the target's columns. source_columns: the source's. target, source: their aliases, None where there is
        none.
    """

    table: Struct
    source_columns: tuple[str, ...]
    target: str | None = None
    source: str | None = None

    @property
    def all_columns(self) -> Struct:
        """Every name that stands for a column; of the source's only the names are known."""
        return Struct((*self.table.fields, *(Field(name, "string") for name in self.source_columns)))

    def readings(self, parts: Sequence[str]) -> list[Reading]:
        """Every way in which a dotted name can be read; none where it is no column."""
        found = [self._column("target", parts), self._column("source", parts)]
        if len(parts) > 1:
            found += [self._column("target", parts[1:])] if _same(parts[0], self.target) else []
            found += [self._column("source", parts[1:])] if _same(parts[0], self.source) else []
        return [reading for reading in found if reading is not None]

    def target_column(self, parts: Sequence[str]) -> str | None:
        """The table's top-level column that a dotted name stands for; None where it may stand for anything else."""
        match self.readings(parts):
            case [Reading("target", column, nested=False)]:
                return column
        return None

    def source_column(self, name: str) -> str | None:
        """The source's column of this name, else the one whose name differs only in case, else None."""
        alike = [each for each in self.source_columns if each.lower() == name.lower()]
        return name if name in alike else next(iter(alike), None)

    def _column(self, side: Literal["target", "source"], parts: Sequence[str]) -> Reading | None:
        nested = len(parts) > 1
        if side == "source":
            name = self.source_column(parts[0])
            return None if name is None else Reading(side, name, nested)
        found = self.table.find(parts[0])
        if found is None or (nested and isinstance(found.type, str)):
            return None
        return Reading(side, found.name, nested)


def assigned(values: Mapping[str, Any] | None, option: str, sides: Sides, context: Context) -> dict[str, Any]:
    """The values of an update or insert under the table's own spelling of its columns; None stands for ``*``.

    Of ``*`` a column that the source lacks is left out where the table gives it a value: one that is generated or
    counted, and in an insert one with a default.

    Args:
        option: what the caller calls the mapping: ``values`` for an insert.

    Raises:
        UnknownColumn: the table has no such column. SchemaMismatch: ``*`` needs a column that the source lacks.
        InvalidOption: no column is named, or one twice. NotBuilt: a member of a struct is to be set.
    """
    if values is None:
        wanted = [each for each in sides.table if not _has_own_value(each, sides, inserts=option == "values")]
        return {field.name: _from_source(field, sides, context) for field in wanted}
    if not values:
        raise InvalidOption(option=option, value="{}", reason="it names no column.")
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = _spelled(key, sides, context)
        if name in found:
            raise InvalidOption(option=option, value=key, reason="the column is set twice.")
        found[name] = value
    return found


def _has_own_value(field: Field, sides: Sides, *, inserts: bool) -> bool:
    """Whether the table gives a column a value that the source lacks."""
    counted = STEP in field.metadata
    given = counted or generation_of(field) is not None or (inserts and default_of(field) is not None)
    return given and sides.source_column(field.name) is None


def _from_source(field: Field, sides: Sides, context: Context) -> SourceColumn:
    name = sides.source_column(field.name)
    if name is None:
        raise SchemaMismatch(
            column=field.name,
            table=context.table,
            reason="all columns are to be taken from the source, which has none of this name",
            expected=f"{field.name} {field.type if isinstance(field.type, str) else 'nested'}",
            found=", ".join(sides.source_columns),
        )
    return SourceColumn(name)


def _spelled(key: str, sides: Sides, context: Context) -> str:
    """The table's column that a key such as ``x``, ``t.x`` or ``t.`a b` `` means."""
    direct, parts = sides.table.find(key), name_parts(key)
    if direct is not None:
        return direct.name
    if len(parts) > 1 and _same(parts[0], sides.target):
        parts = parts[1:]
    column = sides.table.find(parts[0]) if parts else None
    if column is None or (len(parts) > 1 and isinstance(column.type, str)):
        raise UnknownColumn(table=context.table, column=key, columns=", ".join(sides.table.names))
    if len(parts) > 1:
        raise NotBuilt(what=f"setting {key}, a member of a struct", instead=f"Set all of {column.name}.")
    return column.name


def name_parts(name: str) -> list[str]:
    """The parts of a dotted name, without backticks; none where it is not one."""
    parts, end = [], 0
    while end < len(name):
        match = _PART.match(name, end)
        if match is None:
            return []
        parts.append(match[1].replace("``", "`") if match[1] is not None else match[2])
        end = match.end()
    return [] if name.endswith(".") else parts


def _same(name: str, alias: str | None) -> bool:
    return alias is not None and name.lower() == alias.lower()
