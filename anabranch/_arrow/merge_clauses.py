"""What clauses of a MERGE compute without Spark: which of them acts, and what it stores.

Knows computations and the types of both sides' columns. Pure. Guarantee: what is given here is what Spark computes, and
nothing in it can fail to fit; of all else there is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anabranch._arrow.merge_source import SourceColumns
from anabranch._arrow.pairs import Acting
from anabranch._arrow.values import check_stored
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.expressions.tree import Column, Constant, names_of, with_columns
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.merges import NOTHING_MORE, Clause, Matching, SourceColumn, When, name_in_table
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import VOID, Field
from anabranch._protocol.storing import Computed
from anabranch._protocol.unsupported import Unsupported


def resolve_clauses(matching: Matching, when: When, files: FileSet, source: SourceColumns) -> list[Acting]:
    """The clauses of one kind, on a source of these columns. An insert stores something in each column.

    Raises:
        Unsupported: only Spark computes some part of them.
    """
    return [
        Acting(number, _condition(clause, source), clause.action == "update", _values(clause, files, source))
        for number, clause in matching.enumerate_clauses(when)
    ]


def _condition(clause: Clause, source: SourceColumns) -> Computation:
    if clause.condition is None:
        return NOTHING_MORE
    found = require_computation(clause.condition, source)
    if not found.is_condition:
        raise Unsupported("what a clause requires is no condition that is read here")
    return found


def _values(clause: Clause, files: FileSet, source: SourceColumns) -> dict[str, Computation]:
    found = {}
    for name, value in clause.values.items():
        field = files.schema.field(name)
        found[field.name] = _computation_to_store(field, value, source)
    lacking = [each for each in files.schema if each.name not in found] if clause.action == "insert" else []
    for field in lacking:
        if field.name in files.rules.defaults:
            raise Unsupported(f"the default value of the column {field.name} is computed by Spark")
        found[field.name] = Computation(Constant(None, VOID))
    return found


def _computation_to_store(field: Field, value: object, source: SourceColumns) -> Computation:
    """What a column stores of a value; of a source's column of its own type just that, whatever the type."""
    given = require_computation(value, source)
    if isinstance(value, SourceColumn) and given.tree.type == field.type and LENGTH not in field.metadata:
        return given
    return check_stored(given, field)


def require_computation(value: object, source: SourceColumns) -> Computation:
    """How an expression over pairs of rows is computed. Raises Unsupported: only Spark computes it."""
    found = _computation(value, source)
    if found.reason is not None:
        raise Unsupported(found.reason)
    if not is_seen(found, source):
        raise Unsupported("a column of the source is read by Spark")
    return found


def _computation(value: object, source: SourceColumns) -> Computation:
    match value:
        case Computed():
            return value.computation
        case SourceColumn(members=()):
            at, kind = source.place_of(value.name), source.type_of(value.name)
            if at is not None and kind is not None:
                return Computation(Column(("source", source.names[at]), kind))
    raise Unsupported("one of the expressions is computed by Spark")


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
