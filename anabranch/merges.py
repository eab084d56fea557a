"""``DeltaMergeBuilder``, name for name as in ``delta.tables``.

A door: it collects what a MERGE is to do, and makes one command of it when it is executed. Guarantee: before `execute`
nothing is read, and each step leaves the builder that it is called on as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from anabranch.commands.merge import Merge
from anabranch.commands.opening import Location, open_log
from anabranch.commands.sources import declared_version
from anabranch.conditions import as_spark_reads, context_of
from anabranch.errors import InvalidArgument, InvalidOption
from anabranch.errors.rows import statement
from anabranch.log.snapshot import Snapshot
from anabranch.parsing import Context, Sides, assigned, evolved_by, parameters_of, understood_merge
from anabranch.protocol.evolution import all_nullable
from anabranch.protocol.merges import Action, Clause, When
from anabranch.protocol.schema import Struct
from anabranch.protocol.widening import following
from anabranch.spark.engine import SparkEngine
from anabranch.spark.settings import honours

__all__ = ["DeltaMergeBuilder"]

Condition = str | Column | None
Values = Mapping[str, str | Column] | None

_COUNTS = {
    "num_updated_rows": "numTargetRowsUpdated",
    "num_deleted_rows": "numTargetRowsDeleted",
    "num_inserted_rows": "numTargetRowsInserted",
}
"""The columns of `DeltaMergeBuilder.execute`, and the metrics that they show."""


@dataclass(frozen=True, eq=False)
class _Asked:
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
        values = assigned(self.values, self.option, sides, context, keeps=self.action == "update")
        return Clause(self.when, self.action, self.condition, values)

    def filled(self, engine: SparkEngine) -> _Asked:
        """The clause with its texts as Spark reads them."""
        values = None if self.values is None else {k: as_spark_reads(v, engine) for k, v in self.values.items()}
        return replace(self, condition=as_spark_reads(self.condition, engine), values=values)


@dataclass(frozen=True, eq=False)
class DeltaMergeBuilder:
    """Says clause by clause what a MERGE does; each step gives a builder with one more clause.

    Of the clauses of one kind the first whose condition is TRUE acts; only the last of a kind may lack a condition.
    `anabranch.DeltaTable.merge` begins one. What it calls when the table may have got other columns is ``reshaped``.

    Example:
        >>> (
        ...     table.alias("t")
        ...     .merge(updates.alias("s"), "t.id = s.id")
        ...     .whenMatchedUpdate("s.gone = false", {"x": "s.x", "count": "t.count + 1"})
        ...     .whenMatchedDelete()
        ...     .whenNotMatchedInsertAll()
        ...     .execute()
        ... )
    """

    table: Location
    engine: SparkEngine
    source: DataFrame
    condition: str | Column
    alias: str | None = None
    clauses: tuple[_Asked, ...] = ()
    reads_target: bool | int = False
    evolves: bool = False
    reshaped: Callable[[], None] | None = None

    def whenMatchedUpdate(self, condition: Condition | Values = None, set: Values = None) -> DeltaMergeBuilder:
        """Set columns of a row that matches, where the condition is TRUE of the pair.

        Args:
            condition: SQL text or a Column over both sides; None: always.
            set: column, or member of a struct such as ``s.a`` -> SQL text or a Column over both sides, evaluated on the
                old row.
        """
        return self._with("matched", "update", *_arguments("set", condition, set))

    def whenMatchedUpdateAll(self, condition: Condition = None) -> DeltaMergeBuilder:
        """Set every column of the table to the source's column of the same name; others of the source are ignored, or
        added to the table `withSchemaEvolution`, where columns that the source lacks keep their values.
        """
        return self._with("matched", "update", condition, None)

    def whenMatchedDelete(self, condition: Condition = None) -> DeltaMergeBuilder:
        """Delete a row that matches, where the condition is TRUE of the pair."""
        return self._with("matched", "delete", condition, {})

    def whenNotMatchedInsert(self, condition: Condition | Values = None, values: Values = None) -> DeltaMergeBuilder:
        """Insert a row for a source row that matches nothing, where the condition is TRUE of it.

        Args:
            condition: SQL text or a Column over the source; None: always.
            values: column -> SQL text or a Column over the source; a column that is not named has its default value,
                else NULL, and a generated one is computed.
        """
        return self._with("not matched", "insert", *_arguments("values", condition, values), option="values")

    def whenNotMatchedInsertAll(self, condition: Condition = None) -> DeltaMergeBuilder:
        """Insert the source's columns of the table's names; others of the source are ignored, or added to the table
        `withSchemaEvolution`, where columns that the source lacks are NULL.
        """
        return self._with("not matched", "insert", condition, None, option="values")

    def whenNotMatchedBySourceUpdate(
        self, condition: Condition | Values = None, set: Values = None
    ) -> DeltaMergeBuilder:
        """Set columns of a row that no source row matches, where the condition is TRUE of it.

        Args:
            condition: SQL text or a Column over the table; None: always.
            set: column -> SQL text or a Column over the table, evaluated on the old row.
        """
        return self._with("not matched by source", "update", *_arguments("set", condition, set))

    def whenNotMatchedBySourceDelete(self, condition: Condition = None) -> DeltaMergeBuilder:
        """Delete a row that no source row matches, where the condition is TRUE of it."""
        return self._with("not matched by source", "delete", condition, {})

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Add to the table what only the source has: every column, for the All forms, else those of the keys' names;
        members of structs too, at any depth. With an All form columns become as wide as the source's, where the table
        has ``delta.enableTypeWidening``. The session's autoMerge setting does the same.
        """
        return replace(self, evolves=True)

    @honours("MERGE")
    def execute(self) -> DataFrame:
        """Run the MERGE in one transaction.

        Returns:
            one row: num_affected_rows, num_updated_rows, num_deleted_rows, num_inserted_rows.

        Raises:
            InvalidOption: there is no clause, or one that is not the last of its kind has no condition.
            UnknownColumn, SchemaMismatch, InvalidCondition: the command does not fit the table or the source.
            AmbiguousMerge: several source rows would change one row.
            ConcurrentDeleteReadException, ConcurrentAppendException: a winner stands in the way.
        """
        snapshot = open_log(self.table).snapshot()
        command = command_of(self._filled(), snapshot)
        with statement():
            outcome = command.run(self.engine, at=snapshot)
        if self.reshaped is not None and command.schema not in (None, snapshot.schema):
            self.reshaped()
        counts = {column: int(outcome.metrics.get(metric, 0)) for column, metric in _COUNTS.items()}
        return self.engine.rows(pa.Table.from_pylist([{"num_affected_rows": sum(counts.values()), **counts}]))

    def _filled(self) -> DeltaMergeBuilder:
        """The same, with the texts as Spark reads them."""
        clauses = (each.filled(self.engine) for each in self.clauses)
        return replace(self, condition=as_spark_reads(self.condition, self.engine), clauses=tuple(clauses))

    def _with(
        self, when: When, action: Action, condition: Condition, values: Values, option: str = "set"
    ) -> DeltaMergeBuilder:
        if condition is not None and not isinstance(condition, str | Column):
            raise InvalidArgument(option="condition", value=condition, reason="it takes SQL text or a Column.")
        return replace(self, clauses=(*self.clauses, _Asked(when, action, condition, values, option)))


def command_of(builder: DeltaMergeBuilder, snapshot: Snapshot) -> Merge:
    """The MERGE as a command that has not run yet, understood for a version of the table.

    Raises:
        InvalidOption, UnknownColumn, SchemaMismatch, InvalidCondition: as for `DeltaMergeBuilder.execute`.
    """
    _check_order(builder.clauses)
    context = context_of(snapshot, builder.engine)
    sides = _sides(builder, snapshot, context.schema)
    clauses = [asked.clause(sides, context) for asked in builder.clauses]
    where, matching = understood_merge(builder.condition, clauses, sides, context)
    read = declared_version("reads_target", builder.reads_target, snapshot.version)
    parameters = parameters_of(where, matching)
    return Merge(builder.table, builder.source, matching, where, parameters, sides.evolved, read)


def _sides(builder: DeltaMergeBuilder, snapshot: Snapshot, named: Struct) -> Sides:
    """Both sides, with the table's columns as the session names them, and what they become if they may."""
    alias = builder.engine.alias(builder.source)
    sides = Sides(named, tuple(builder.source.columns), builder.alias, alias)
    if not (builder.evolves or builder.engine.merges_schema()):
        return sides
    sides = replace(sides, described=all_nullable(builder.engine.describe(builder.source)))
    takes_all = any(asked.values is None and asked.action != "delete" for asked in builder.clauses)
    schema = following(snapshot.metadata, sides.described) if takes_all else snapshot.schema
    for asked in builder.clauses:
        if asked.action != "delete" and asked.when != "not matched by source":
            schema = evolved_by(asked.values, schema, sides)
    return replace(sides, evolved=schema)


def _arguments(option: str, condition: Any, values: Any) -> tuple[Condition, Values]:
    """Condition and values as they are meant: a mapping that is given alone and by position holds the values.

    Raises:
        InvalidArgument: the values are no dict of columns to SQL text or Columns.
    """
    if isinstance(condition, Mapping) and values is None:
        condition, values = None, condition
    if not isinstance(values, Mapping) or not all(
        isinstance(key, str) and isinstance(value, str | Column) for key, value in values.items()
    ):
        raise InvalidArgument(option=option, value=values, reason="it takes a dict of columns to SQL text or Columns.")
    return condition, dict(values)


def _check_order(clauses: tuple[_Asked, ...]) -> None:
    if not clauses:
        raise InvalidOption(option="when", value="empty", reason="a MERGE needs at least one WHEN clause.")
    last = {asked.when: asked for asked in clauses}
    for asked in clauses:
        if asked.condition is None and asked is not last[asked.when]:
            reason = f"of the clauses WHEN {asked.when.upper()} only the last may lack a condition."
            raise InvalidOption(option="condition", value=None, reason=reason)
