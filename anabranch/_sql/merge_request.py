"""A MERGE as a user asks for it, by SQL text or by the builder, and the one command that comes of it.

Guarantee: making the command reads nothing of the source but its columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from pyspark.sql import Column, DataFrame

from anabranch._expressions import (
    Context,
    Sides,
    analyze_merge,
    check_order,
    evolve_by_clause,
    parameters_of,
    resolve_assignments,
)
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.features.widening import following
from anabranch._protocol.layout.file_sets import FileSet
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
class AskedClause:
    """A WHEN clause as the user asked for it; ``values`` is None for ``*``, ``option`` what the caller calls it."""

    when: When
    action: Action
    condition: Condition
    values: Values
    option: str = "set"

    def clause(self, sides: Sides, context: Context) -> Clause:
        """The clause, with the table's own names for its columns."""
        if self.action == "delete":
            return Clause(self.when, self.action, self.condition)
        try:
            values = resolve_assignments(self.values, self.option, sides, context, keeps=self.action == "update")
        except UnknownColumn as error:
            raise UnknownColumn(**{**error.facts, "clause": self.action.upper()}) from None
        return Clause(self.when, self.action, self.condition, values)

    def substitute_variables(self, engine: SparkEngine) -> AskedClause:
        """The clause with its texts as Spark reads them."""
        values = None if self.values is None else {k: as_spark_reads(v, engine) for k, v in self.values.items()}
        return replace(self, condition=as_spark_reads(self.condition, engine), values=values)


@dataclass(frozen=True, eq=False)
class MergeRequest:
    """What a MERGE is asked to do.

    Attributes:
        table: the target's location.
        engine: the engine that will run it.
        source: the rows to merge.
        condition: what makes two rows a match, over both sides.
        alias: the name by which the texts speak of the target.
        clauses: the WHEN clauses in their order.
        source_alias: the alias of the source, where the caller gave it one; else Spark is asked for it.
        whole: the files of a table, where the source is all of its rows.
        reads_target: whether the source was computed from the target, or from which version of it.
        reads_anew: whether the source is computed anew where the request is made again, as in a statement.
        evolves: whether the target may get columns and wider types from the source.
    """

    table: Location
    engine: SparkEngine
    source: DataFrame
    condition: str | Column
    alias: str | None = None
    clauses: tuple[AskedClause, ...] = ()
    reads_target: bool | int = False
    reads_anew: bool = False
    source_alias: str | None = None
    whole: FileSet | None = None
    evolves: bool = False

    def command(self, snapshot: Snapshot) -> Merge:
        """The command for a version of the table; it has not run yet.

        Raises:
            InvalidOption: there is no clause, or one that is not the last of its kind has no condition.
            UnknownColumn, SchemaMismatch, InvalidCondition: the request does not fit the table or the source.
        """
        check_order(self.clauses)
        context = context_of(snapshot, self.engine)
        sides = _sides(self, snapshot, context.schema)
        clauses = [asked.clause(sides, context) for asked in self.clauses]
        where, matching = analyze_merge(self.condition, clauses, sides, context)
        read = parse_declared_version("reads_target", self.reads_target, snapshot.version)
        parameters = parameters_of(where, matching)
        source = self.source if self.whole is None else TableRows(self.source, self.whole)
        return Merge(self.table, source, matching, where, parameters, sides.evolved, read, self.reads_anew)

    def substitute_variables(self: Request) -> Request:
        """The same with ``${…}`` in its texts filled in, as Spark reads them."""
        clauses = tuple(each.substitute_variables(self.engine) for each in self.clauses)
        return replace(self, condition=as_spark_reads(self.condition, self.engine), clauses=clauses)


def _sides(asked: MergeRequest, snapshot: Snapshot, named: Struct) -> Sides:
    """Both sides, with the table's columns as the session names them, and what they become if they may."""
    alias = asked.source_alias or asked.engine.alias(asked.source)
    described = all_nullable(asked.engine.describe(asked.source))
    described = described.exactly() if named.exact else described
    sides = Sides(named, tuple(asked.source.columns), asked.alias, alias, described=described)
    if not (asked.evolves or asked.engine.merges_schema()):
        return sides
    schema = snapshot.schema
    for clause in asked.clauses:
        if clause.action != "delete" and clause.when != "not matched by source":
            schema = evolve_by_clause(
                clause.values, schema, sides, lambda was, rows: following(snapshot.metadata, rows, was)
            )
    return replace(sides, evolved=schema)
