"""Resolves the clauses of a MERGE for Arrow: their conditions, and the values that they store.

Knows computations and the types of both sides' columns. Pure. Guarantee: the computations give what Spark would store,
and cannot fail to fit a column; anything else raises `Unsupported`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anabranch._arrow.assigned_values import check_stored
from anabranch._arrow.merge_source import SourceColumns
from anabranch._arrow.pairs import ActingClause
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.expressions.tree import Column, Constant, names_of, with_columns
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.merges import NOTHING_MORE, Clause, MergePlan, SourceColumn, When, name_in_table
from anabranch._protocol.schema.lengths import limits_of
from anabranch._protocol.schema.plain import are_plain
from anabranch._protocol.schema.types import VOID, DataType, Field, arrow_type
from anabranch._protocol.store_assignment import ComputedExpression
from anabranch._protocol.unsupported import Unsupported


def resolve_clauses(matching: MergePlan, when: When, files: FileSet, source: SourceColumns) -> list[ActingClause]:
    """The clauses of one kind, for a source with these columns. An insert stores a value in each column.

    Raises:
        Unsupported: only Spark computes part of them.
    """
    return [
        ActingClause(number, _condition(clause, source), clause.action == "update", _values(clause, files, source))
        for number, clause in matching.enumerate_clauses(when)
    ]


def _condition(clause: Clause, source: SourceColumns) -> Computation:
    if clause.condition is None:
        return NOTHING_MORE
    condition = require_computation(clause.condition, source)
    if not condition.is_condition:
        raise Unsupported("the condition of a clause is computed by Spark")
    return condition


def _values(clause: Clause, files: FileSet, source: SourceColumns) -> dict[str, Computation]:
    computations = {}
    for name, value in clause.values.items():
        field = files.schema.field(name)
        computations[field.name] = _computation_to_store(field, value, source)
    unassigned = (
        [column for column in files.schema if column.name not in computations] if clause.action == "insert" else []
    )
    for field in unassigned:
        if field.name in files.rules.defaults:
            raise Unsupported(f"the default value of the column {field.name} is computed by Spark")
        computations[field.name] = Computation(Constant(None, VOID))
    return computations


def _computation_to_store(field: Field, value: object, source: SourceColumns) -> Computation:
    """The computation of what a column stores of a value. A source column of the same type is stored as it is."""
    computation = require_computation(value, source)
    if isinstance(value, SourceColumn) and _is_stored_as_it_is(computation.tree.type, field):
        return computation
    return check_stored(computation, field)


def _is_stored_as_it_is(kind: DataType | None, field: Field) -> bool:
    """Whether a column stores values of a type without a change; names in files do not matter."""
    if kind is None or limits_of(field) is not None or not are_plain([field], nested=True):
        return False
    return kind == field.type or arrow_type(kind).equals(arrow_type(field.type))


def require_computation(value: object, source: SourceColumns) -> Computation:
    """The computation of an expression over pairs of rows. Raises Unsupported if only Spark computes it."""
    computation = _computation(value, source)
    if computation.reason is not None:
        raise Unsupported(computation.reason)
    if not is_seen(computation, source):
        raise Unsupported("a column of the source is read by Spark")
    return computation


def _computation(value: object, source: SourceColumns) -> Computation:
    match value:
        case ComputedExpression():
            return value.computation
        case SourceColumn(members=()):
            at, kind = source.place_of(value.name), source.type_of(value.name)
            if at is not None and kind is not None:
                return Computation(Column(("source", source.names[at]), kind))
    raise Unsupported("one of the expressions is computed by Spark")


def is_seen(computation: Computation, source: SourceColumns) -> bool:
    """Whether Arrow reads the source's columns of a computation just as Spark does."""
    names = [name for name in names_of(computation.tree) if name[0] == "source"]
    return all(source.type_of(name[1]) for name in names)


def columns_of(computations: Sequence[Computation]) -> list[str]:
    """The table's columns that these computations read."""
    names = {name[1] for computation in computations for name in names_of(computation.tree) if name[0] == "target"}
    return sorted(names)


def of_table(computation: Computation) -> Computation:
    """A computation over pairs that reads only the table's rows, converted to one over these rows."""
    return replace(computation, tree=with_columns(computation.tree, _of_table))


def _of_table(column: Column) -> Column:
    name = name_in_table(column)
    assert name is not None
    return Column(name, column.type)
