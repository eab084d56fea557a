"""A MERGE as a user specifies it, in SQL or by the builder, and the command for it.

Guarantee: creating the command reads nothing of the source but its columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from pyspark.sql import Column, DataFrame

from anabranch._expressions import (
    Context,
    MergeColumns,
    analyze_merge,
    check_order,
    evolve_by_clause,
    parameters_of,
    resolve_assignments,
)
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.features.widening import widen_to_rows
from anabranch._protocol.merges import Action, Clause, When
from anabranch._protocol.schema.evolution import all_nullable
from anabranch._protocol.schema.types import Struct
from anabranch._spark.engine import SparkEngine
from anabranch._spark.merging.merge_source import TableRows
from anabranch._sql.conditions import as_spark_reads, context_of
from anabranch.commands.dml.merge import Merge
from anabranch.commands.opening import Location
from anabranch.commands.sources import parse_declared_version
from anabranch.errors import UnknownColumn

Condition = str | Column | None
Values = Mapping[str, str | Column] | None
Request = TypeVar("Request", bound="MergeRequest")


@dataclass(frozen=True, eq=False)
class ClauseRequest:
    """A WHEN clause as the user specified it.

    Attributes:
        values: the assignments; None for ``*``.
        option: the caller's name for the values, for messages.
    """

    when: When
    action: Action
    condition: Condition
    values: Values
    option: str = "set"

    def clause(self, sides: MergeColumns, context: Context) -> Clause:
        """Resolve the clause's columns to the table's names."""
        if self.action == "delete":
            return Clause(self.when, self.action, self.condition)
        try:
            values = resolve_assignments(self.values, self.option, sides, context, keeps=self.action == "update")
        except UnknownColumn as error:
            raise UnknownColumn(**{**error.facts, "clause": self.action.upper()}) from None
        return Clause(self.when, self.action, self.condition, values)

    def substitute_variables(self, engine: SparkEngine) -> ClauseRequest:
        """Substitute ``${…}`` in the clause's texts, as Spark does."""
        values = None if self.values is None else {k: as_spark_reads(v, engine) for k, v in self.values.items()}
        return replace(self, condition=as_spark_reads(self.condition, engine), values=values)


@dataclass(frozen=True, eq=False)
class MergeRequest:
    """The specification of a MERGE.

    Attributes:
        table: the target's location.
        engine: the engine that will run it.
        source: the rows to merge.
        condition: the ON condition over target and source.
        alias: the target's alias in the texts.
        clauses: the WHEN clauses in their order.
        reads_target: whether the source was computed from the target, or from which version of it.
        reads_anew: whether the source is recomputed if the request is repeated, as in a statement.
        source_alias: the source's alias, if the caller specified one; else the DataFrame's.
        table_rows: the source as rows of one table, if it only selects values of them.
        evolves: whether the target may get columns and wider types from the source.
    """

    table: Location
    engine: SparkEngine
    source: DataFrame
    condition: str | Column
    alias: str | None = None
    clauses: tuple[ClauseRequest, ...] = ()
    reads_target: bool | int = False
    reads_anew: bool = False
    source_alias: str | None = None
    table_rows: TableRows | None = None
    evolves: bool = False

    def command(self, snapshot: Snapshot) -> Merge:
        """Return the command for a version of the table, not yet run.

        Raises:
            InvalidOption: there is no clause, or a clause that is not the last of its kind has no condition.
            UnknownColumn, SchemaMismatch, InvalidCondition: the request does not fit the table or the source.
        """
        check_order(self.clauses)
        context = context_of(snapshot, self.engine)
        sides = _sides(self, snapshot, context.schema)
        clauses = [when_clause.clause(sides, context) for when_clause in self.clauses]
        where, matching = analyze_merge(self.condition, clauses, sides, context)
        read = parse_declared_version("reads_target", self.reads_target, snapshot.version)
        parameters = parameters_of(where, matching)
        return Merge(
            self.table,
            self.table_rows or self.source,
            matching,
            where,
            parameters,
            sides.evolved,
            read,
            self.reads_anew,
        )

    def substitute_variables(self: Request) -> Request:
        """Substitute ``${…}`` in the texts of the request, as Spark does."""
        clauses = tuple(clause.substitute_variables(self.engine) for clause in self.clauses)
        return replace(self, condition=as_spark_reads(self.condition, self.engine), clauses=clauses)


def _sides(request: MergeRequest, snapshot: Snapshot, columns: Struct) -> MergeColumns:
    """Return target and source, the target's columns with the session's case sensitivity, and the evolved schema."""
    alias = request.source_alias or request.engine.alias(request.source)
    source_schema = all_nullable(request.engine.describe(request.source))
    source_schema = source_schema.exactly() if columns.exact else source_schema
    sides = MergeColumns(columns, tuple(request.source.columns), request.alias, alias, described=source_schema)
    if not (request.evolves or request.engine.merges_schema()):
        return sides
    schema = snapshot.schema
    for clause in request.clauses:
        if clause.action != "delete" and clause.when != "not matched by source":
            schema = evolve_by_clause(
                clause.values, schema, sides, lambda was, rows: widen_to_rows(snapshot.metadata, rows, was)
            )
    return replace(sides, evolved=schema)
