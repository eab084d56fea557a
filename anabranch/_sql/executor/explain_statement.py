"""EXPLAIN of a change of rows and of OPTIMIZE.

Shows the files that a change reads, its steps, and Spark's plan of the query that selects or computes its rows; of
OPTIMIZE the files that it would rewrite. Marking and writing rows is up to the commands and not in the plan. Guarantee:
nothing is run, written or committed; a change that would be refused is refused here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from anabranch._expressions import condition, conjuncts
from anabranch._expressions.blocks import strip_qualifiers
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.conditions import Condition
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.merges import MergePlan
from anabranch._protocol.schema.assignments import Path, leaves
from anabranch._protocol.schema.types import Struct
from anabranch._protocol.steps import OF_A_QUERY, WRITE_ROWS, RowPlan, Step
from anabranch._protocol.store_assignment import ComputedExpression, cast_to_column
from anabranch._spark.columns.types import quote_identifier
from anabranch._spark.merging.merge_source import reading, source_columns
from anabranch._spark.sessions.sql_text import exact_sql
from anabranch._sql.conditions import context_of
from anabranch._sql.executor import row_statements
from anabranch._sql.executor.maintenance_statements import optimize_command
from anabranch._sql.executor.running import StatementContext
from anabranch._sql.grammar.parts import Expression, Query, Reference, Table
from anabranch._sql.grammar.row_values import (
    DeleteRows,
    InsertRows,
    MergeRows,
    RowChange,
    TruncateTable,
    UpdateRows,
)
from anabranch._sql.grammar.statement_values import ExplainChange, OptimizeTable
from anabranch.commands.command_plans import change_plan, merge_plan, optimize_plan
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.queries.explain import explain as skipping
from anabranch.commands.queries.explain import format_size

_VERBS: dict[type[RowChange], str] = {
    DeleteRows: "DELETE",
    TruncateTable: "TRUNCATE",
    UpdateRows: "UPDATE",
    MergeRows: "MERGE",
    InsertRows: "INSERT",
}


def explain(statement: ExplainChange, run: StatementContext) -> DataFrame:
    """EXPLAIN; returns one row with a text, as Spark does."""
    change, snapshot = statement.change, run.newest(statement.change.table)
    if isinstance(change, OptimizeTable):
        return _text(_optimize_lines(change, snapshot, run), run)
    lines = _row_change_lines(change, snapshot, run)
    head = f"EXPLAIN {statement.mode} "
    if isinstance(change, InsertRows):
        rows = row_statements.rows_to_insert(
            change, run, snapshot, evolves=change.evolves or run.engine.merges_schema()
        )
        plan = exact_sql(run.spark, [f"{head}SELECT * FROM ", rows])
    else:
        query = _join_query(change) if isinstance(change, MergeRows) else _selection_query(change, snapshot, run)
        _ = run.query(query)  # raises an error that EXPLAIN would show as a plan
        plan = run.query(_prefix_query(head, query))
    (row,) = plan.collect()
    return _text([*lines, "", row["plan"]], run)


def _text(lines: Sequence[str], run: StatementContext) -> DataFrame:
    """Return the result of EXPLAIN: one row with these lines."""
    text = "\n".join(["== Delta Command ==", *lines])
    return run.frame_from_columns({"plan": [text]}, pa.schema([("plan", pa.string())]))


def _optimize_lines(statement: OptimizeTable, snapshot: Snapshot, run: StatementContext) -> list[str]:
    """Describe the files that an OPTIMIZE would rewrite, and its steps."""
    groups, plan = optimize_plan(optimize_command(statement, snapshot, run), snapshot, run.engine.site)
    total = sum(len(group.files) for group in groups)
    size = sum(pc.sum(group.files["size"]).as_py() or 0 for group in groups)
    head = (
        f"OPTIMIZE: {snapshot.table} at version {snapshot.version}: writes {total} of {len(snapshot.files)} files anew"
    )
    return [f"{head}, {format_size(size)}", *_step_lines(plan)]


def _row_change_lines(change: RowChange, snapshot: Snapshot, run: StatementContext) -> list[str]:
    """Describe a change: the version, where each expression is computed, and the steps."""
    head = f"{_VERBS[type(change)]}: {snapshot.table} at version {snapshot.version}"
    if isinstance(change, MergeRows):
        return [head, *_merge_lines(change, snapshot, run)]
    where, resolved = getattr(change, "where", None), EVERY_ROW
    if where is not None:
        context = context_of(snapshot, run.engine)
        text = strip_qualifiers(where.source, change.table.qualifier, snapshot.schema).text
        resolved = condition(text, context, queries=True)
        skipping_text = skipping(snapshot, text, resolved.predicate, conjuncts(text, context))
        head = f"{_VERBS[type(change)]}: {skipping_text}\n  WHERE: {_format_reason(_reason(resolved))}"
    if isinstance(change, InsertRows):
        return [head, f"  {_insert_step(change, snapshot, run)}"]
    return [
        head,
        *(() if isinstance(change, TruncateTable) else _delete_or_update_lines(change, resolved, snapshot, run)),
    ]


def _insert_step(change: InsertRows, snapshot: Snapshot, run: StatementContext) -> Step:
    """Return the step that writes the rows of an INSERT."""
    plain = row_statements.literals(change, run, snapshot, evolves=change.evolves or run.engine.merges_schema())
    return Step(WRITE_ROWS, OF_A_QUERY if plain is None else None)


def _delete_or_update_lines(
    change: DeleteRows | UpdateRows, where: Condition, snapshot: Snapshot, run: StatementContext
) -> Iterator[str]:
    """Describe the values and the steps of a DELETE or an UPDATE."""
    values = row_statements.resolve_assignments(change, snapshot, run) if isinstance(change, UpdateRows) else None
    yield from _value_lines(values or {}, snapshot.schema)
    yield from _step_lines(change_plan(snapshot, where, values, run.engine.site))


def _merge_lines(change: MergeRows, snapshot: Snapshot, run: StatementContext) -> Iterator[str]:
    """Describe the expressions and the steps of a MERGE."""
    request = row_statements.merge_request(change, snapshot, run)
    matching, columns = request.command(snapshot).matching, source_columns(request.source.schema)
    yield from _matching_lines(matching, snapshot.schema)
    yield f"  {reading(request.table_rows)}"
    yield from _step_lines(merge_plan(snapshot, matching, columns, run.engine.site))


def _step_lines(plan: RowPlan) -> Iterator[str]:
    """Format the steps of a change."""
    yield from (f"  {step}" for step in plan.steps)


def _reason(resolved: Condition) -> str | None:
    """Return why Spark computes a condition; None if it is computed without Spark."""
    return "it holds a subquery" if resolved.computation is None else _condition_reason(resolved.computation)


def _condition_reason(computation: Computation) -> str | None:
    return computation.reason or (None if computation.is_condition else "it is no condition")


def _value_lines(values: Mapping[str, Any], schema: Struct) -> Iterator[str]:
    """Describe where each value of an UPDATE is computed."""
    for path, value in leaves(values):
        store_reason = "it is a member of a struct" if len(path) > 1 else _store_reason(value.computation, path, schema)
        yield f"  SET {'.'.join(path)}: {_format_reason(store_reason)}"


def _matching_lines(matching: MergePlan, schema: Struct) -> Iterator[str]:
    """Describe where each expression of a MERGE is computed."""
    keys = ", ".join(ours for ours, _ in matching.keys)
    reason = matching.rest.reason if keys else "it requires no column of the table to equal one of the source"
    yield f"  ON: {_format_reason(reason)}"
    for clause in matching.clauses:
        if clause.condition is not None:
            how = _format_reason(_condition_reason(clause.condition.computation))
            yield f"  WHEN {clause.when.upper()} AND {clause.condition}: {how}"
        for path, value in leaves(clause.values):
            if isinstance(value, ComputedExpression):
                how = _format_reason(_store_reason(value.computation, path, schema))
                yield f"  {clause.action.upper()} {'.'.join(path)}: {how}"


def _store_reason(value: Computation, path: Path, schema: Struct) -> str | None:
    """Return why Spark computes the value of a column; None if it is computed without Spark."""
    if len(path) > 1:
        return "it is a member of a struct"
    return value.reason or cast_to_column(value, schema.field(path[0])).reason


def _format_reason(reason: str | None) -> str:
    return "computed without Spark" if reason is None else f"computed by Spark, since {reason}"


# -- queries -----------------------------------------------------------------------------------------------------------


def _selection_query(
    change: DeleteRows | TruncateTable | UpdateRows, snapshot: Snapshot, run: StatementContext
) -> Query:
    """Return the query that selects the rows of a change, with their new values."""
    values = ""
    if isinstance(change, UpdateRows):
        row_statements.resolve_assignments(change, snapshot, run)
        values = "".join(f", {value.text}" for _, value in change.values if value is not None)
    where = None if isinstance(change, TruncateTable) else change.where
    head = f"SELECT *{values} FROM "
    table = _table_reference(change.table, len(head), where)
    if where is None:
        return Query(head, (table,))
    between = f"{head} WHERE "
    references = tuple(_shift_reference(reference, len(between)) for reference in where.references)
    return Query(between + where.text, (table, *references), span=where.span)


def _join_query(change: MergeRows) -> Query:
    """Return the query that joins a MERGE's target and source, with the join type that its clauses need."""
    kinds = {clause.when for clause in change.clauses}
    join_sides = {"not matched": "RIGHT", "not matched by source": "LEFT"}
    sides = [side for when, side in join_sides.items() if when in kinds]
    head = "SELECT * FROM "
    before = f"{head} {'FULL' if len(sides) == 2 else (sides or ['INNER'])[0]} JOIN ("
    alias = f" AS {quote_identifier(change.source_alias)}" if change.source_alias is not None else ""
    references = tuple(_shift_reference(reference, len(before)) for reference in change.source.references)
    text = f"{before}{change.source.text}){alias} ON {change.on.text}"
    return Query(
        text,
        (_table_reference(change.table, len(head), None), *references),
        change.source.arguments,
        change.source.span,
    )


def _table_reference(table: Table, at: int, where: Expression | None) -> Reference:
    """Return a reference to a table at position ``at`` of a text, with the statement's alias."""
    condition_text = None if where is None else where.text
    return Reference(table, at, at, takes_alias=True, where=condition_text, sole=True, called=table.alias)


def _shift_reference(reference: Reference, by: int) -> Reference:
    return replace(reference, start=reference.start + by, stop=reference.stop + by)


def _prefix_query(head: str, query: Query) -> Query:
    return replace(
        query,
        text=head + query.text,
        references=tuple(_shift_reference(reference, len(head)) for reference in query.references),
    )
