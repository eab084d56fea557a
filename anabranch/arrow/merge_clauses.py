"""What clauses of a MERGE compute without Spark: which of them acts, and what it stores.

Knows computations and the types of both sides' columns. Pure. Guarantee: what is given here is what Spark computes, and
nothing in it can fail to fit; of all else there is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anabranch.arrow.merge_source import SourceColumns
from anabranch.arrow.pairs import Acting
from anabranch.protocol.expressions.computation import Computation
from anabranch.protocol.expressions.tree import Column, Constant, names_of, with_columns
from anabranch.protocol.layout.file_sets import FileSet
from anabranch.protocol.merges import NOTHING_MORE, UNREAD, Clause, Matching, SourceColumn, When, name_in_table
from anabranch.protocol.rules.table_rules import LENGTH
from anabranch.protocol.schema.types import VOID, Field
from anabranch.protocol.storing import Computed, is_plain_column, stored_in


def computed_clauses(matching: Matching, when: When, files: FileSet, source: SourceColumns) -> list[Acting] | None:
    """The clauses of one kind, on a source of these columns; None where Spark computes some part of them. An insert
    stores something in each column.
    """
    found = []
    for number, clause in enumerate(matching.clauses):
        if clause.when == when:
            condition, values = _condition(clause, source), _values(clause, files, source)
            if condition is None or values is None:
                return None
            found.append(Acting(number, condition, clause.action == "update", values))
    return found


def _condition(clause: Clause, source: SourceColumns) -> Computation | None:
    if clause.condition is None:
        return NOTHING_MORE
    given = clause.condition.computation if isinstance(clause.condition, Computed) else None
    return given if given is not None and given.is_condition and is_seen(given, source) else None


def _values(clause: Clause, files: FileSet, source: SourceColumns) -> dict[str, Computation] | None:
    found = {}
    for name, value in clause.values.items():
        field = files.schema.find(name)
        stored = None if field is None else _stored(field, value, source)
        if field is None or stored is None:
            return None
        found[field.name] = stored
    lacking = [each for each in files.schema if each.name not in found] if clause.action == "insert" else []
    for field in lacking:
        if field.name in files.rules.defaults:
            return None
        found[field.name] = Computation(Constant(None, VOID))
    return found


def _stored(field: Field, value: object, source: SourceColumns) -> Computation | None:
    """What a column stores of a value; of a source's column of its own type just that, whatever the type."""
    given = _computation(value, source)
    if given is None or LENGTH in field.metadata or not is_seen(given, source):
        return None
    if isinstance(value, SourceColumn) and given.tree.type == field.type:
        return given
    stored = stored_in(given, field) if is_plain_column(field) else UNREAD
    return stored if stored.reason is None else None


def _computation(value: object, source: SourceColumns) -> Computation | None:
    match value:
        case Computed():
            return value.computation
        case SourceColumn(members=()):
            at, kind = source.place_of(value.name), source.type_of(value.name)
            return None if at is None or kind is None else Computation(Column(("source", source.names[at]), kind))
    return None


def is_seen(computation: Computation, source: SourceColumns) -> bool:
    """Whether Arrow sees the same in the source's columns of a computation as Spark."""
    names = [name for name in names_of(computation.tree) if name[0] == "source"]
    return all(source.type_of(name[1]) for name in names)


def columns_of(computations: Sequence[Computation]) -> list[str]:
    """The table's columns that these read."""
    names = {name[1] for each in computations for name in names_of(each.tree) if name[0] == "target"}
    return sorted(names)


def of_table(computation: Computation) -> Computation:
    """A computation over pairs that reads the table's rows alone, as one over these."""
    return replace(computation, tree=with_columns(computation.tree, _of_table))


def _of_table(column: Column) -> Column:
    name = name_in_table(column)
    assert name is not None
    return Column(name, column.type)
