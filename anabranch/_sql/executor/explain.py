"""EXPLAIN of a change of rows: which files it looks at, and Spark's plan of the query that finds or makes its rows; and
of OPTIMIZE: which files it would write anew.

Knows what a change reads; how its rows are marked and written is the commands' own business, and no plan shows it.
Guarantee: nothing is run, written or committed; what the change itself would refuse is refused here, too.
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
from anabranch._protocol.merges import Matching
from anabranch._protocol.schema.assignments import Path, leaves
from anabranch._protocol.schema.types import Struct
from anabranch._protocol.steps import OF_A_QUERY, WRITE_ROWS, RowPlan, Step
from anabranch._protocol.storing import Computed, cast_to_column
from anabranch._spark.columns.types import quote_identifier
from anabranch._spark.merging.merge_source import reading, source_columns
from anabranch._spark.sessions.sql_text import exact_sql
from anabranch._sql.conditions import context_of
from anabranch._sql.executor import row_changes
from anabranch._sql.executor.maintenance import optimizing
from anabranch._sql.executor.running import Running
from anabranch._sql.grammar.parts import Expression, Query, Reference, Table
from anabranch._sql.grammar.row_values import (
    DeleteRows,
    InsertRows,
    MergeRows,
    RowChange,
    TruncateTable,
    UpdateRows,
)
from anabranch._sql.grammar.values import ExplainChange, OptimizeTable
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.plans import change_plan, merge_plan, optimize_plan
from anabranch.commands.queries.explain import explain as skipping
from anabranch.commands.queries.explain import format_size

_VERBS: dict[type[RowChange], str] = {
    DeleteRows: "DELETE",
    TruncateTable: "TRUNCATE",
    UpdateRows: "UPDATE",
    MergeRows: "MERGE",
    InsertRows: "INSERT",
}


def explain(statement: ExplainChange, run: Running) -> DataFrame:
    """EXPLAIN; gives one row with a text, as Spark does."""
    change, snapshot = statement.change, run.newest(statement.change.table)
    if isinstance(change, OptimizeTable):
        return _text(_optimize_lines(change, snapshot, run), run)
    lines = _row_change_lines(change, snapshot, run)
    head = f"EXPLAIN {statement.mode} "
    if isinstance(change, InsertRows):
        rows = row_changes.rows_to_insert(change, run, snapshot, evolves=change.evolves or run.engine.merges_schema())
        plan = exact_sql(run.spark, [f"{head}SELECT * FROM ", rows])
    else:
        query = _join_query(change) if isinstance(change, MergeRows) else _selection_query(change, snapshot, run)
        _ = run.query(query)  # an error of it is raised, where EXPLAIN would make a plan of it
        plan = run.query(_behind(head, query))
    (shown,) = plan.collect()
    return _text([*lines, "", shown["plan"]], run)


def _text(lines: Sequence[str], run: Running) -> DataFrame:
    """The one row of an EXPLAIN."""
    text = "\n".join(["== Delta Command ==", *lines])
    return run.frame_from_columns({"plan": [text]}, pa.schema([("plan", pa.string())]))


def _optimize_lines(statement: OptimizeTable, snapshot: Snapshot, run: Running) -> list[str]:
    """Which files an OPTIMIZE would write anew, and what does it."""
    groups, plan = optimize_plan(optimizing(statement, snapshot, run), snapshot, run.engine.site)
    taken = sum(len(each.files) for each in groups)
    size = sum(pc.sum(each.files["size"]).as_py() or 0 for each in groups)
    head = (
        f"OPTIMIZE: {snapshot.table} at version {snapshot.version}: writes {taken} of {len(snapshot.files)} files anew"
    )
    return [f"{head}, {format_size(size)}", *_steps(plan)]


def _row_change_lines(change: RowChange, snapshot: Snapshot, run: Running) -> list[str]:
    """What is done to which version, where each expression is computed, and what does each step."""
    head = f"{_VERBS[type(change)]}: {snapshot.table} at version {snapshot.version}"
    if isinstance(change, MergeRows):
        return [head, *_merge_lines(change, snapshot, run)]
    where, understood = getattr(change, "where", None), EVERY_ROW
    if where is not None:
        context = context_of(snapshot, run.engine)
        text = strip_qualifiers(where.source, change.table.qualifier, snapshot.schema).text
        understood = condition(text, context, queries=True)
        skipped = skipping(snapshot, text, understood.predicate, conjuncts(text, context))
        head = f"{_VERBS[type(change)]}: {skipped}\n  WHERE: {_format_reason(_reason(understood))}"
    if isinstance(change, InsertRows):
        return [head, f"  {_insert_step(change, snapshot, run)}"]
    return [
        head,
        *(() if isinstance(change, TruncateTable) else _delete_or_update_lines(change, understood, snapshot, run)),
    ]


def _insert_step(change: InsertRows, snapshot: Snapshot, run: Running) -> Step:
    """The one step of an INSERT, but for the rows that it replaces."""
    plain = row_changes.literals(change, run, snapshot, evolves=change.evolves or run.engine.merges_schema())
    return Step(WRITE_ROWS, OF_A_QUERY if plain is None else None)


def _delete_or_update_lines(
    change: DeleteRows | UpdateRows, where: Condition, snapshot: Snapshot, run: Running
) -> Iterator[str]:
    """Of a DELETE or an UPDATE the values and the steps."""
    values = row_changes.resolve_assignments(change, snapshot, run) if isinstance(change, UpdateRows) else None
    yield from _values(values or {}, snapshot.schema)
    yield from _steps(change_plan(snapshot, where, values, run.engine.site))


def _merge_lines(change: MergeRows, snapshot: Snapshot, run: Running) -> Iterator[str]:
    """Of a MERGE the expressions and the steps."""
    request = row_changes.merge_request(change, snapshot, run)
    matching, columns = request.command(snapshot).matching, source_columns(request.source.schema)
    yield from _matching_lines(matching, snapshot.schema)
    yield f"  {reading(request.whole)}"
    yield from _steps(merge_plan(snapshot, matching, columns, run.engine.site))


def _steps(plan: RowPlan) -> Iterator[str]:
    """The steps of a change, with what does each."""
    yield from (f"  {step}" for step in plan.steps)


def _reason(understood: Condition) -> str | None:
    """Why Spark computes a condition; None where it does not."""
    return "it holds a subquery" if understood.computation is None else _truth(understood.computation)


def _truth(computation: Computation) -> str | None:
    return computation.reason or (None if computation.is_condition else "it is no condition")


def _values(values: Mapping[str, Any], schema: Struct) -> Iterator[str]:
    """For each value of an UPDATE, where it is computed."""
    for path, value in leaves(values):
        said = "it is a member of a struct" if len(path) > 1 else _store_reason(value.computation, path, schema)
        yield f"  SET {'.'.join(path)}: {_format_reason(said)}"


def _matching_lines(matching: Matching, schema: Struct) -> Iterator[str]:
    """Of a MERGE, where each expression is computed."""
    keys = ", ".join(ours for ours, _ in matching.keys)
    reason = matching.rest.reason if keys else "it requires no column of the table to equal one of the source"
    yield f"  ON: {_format_reason(reason)}"
    for clause in matching.clauses:
        if clause.condition is not None:
            said = _format_reason(_truth(clause.condition.computation))
            yield f"  WHEN {clause.when.upper()} AND {clause.condition}: {said}"
        for path, value in leaves(clause.values):
            if isinstance(value, Computed):
                said = _format_reason(_store_reason(value.computation, path, schema))
                yield f"  {clause.action.upper()} {'.'.join(path)}: {said}"


def _store_reason(value: Computation, path: Path, schema: Struct) -> str | None:
    """Why Spark computes what a column stores; None where it does not."""
    if len(path) > 1:
        return "it is a member of a struct"
    return value.reason or cast_to_column(value, schema.field(path[0])).reason


def _format_reason(reason: str | None) -> str:
    return "computed without Spark" if reason is None else f"computed by Spark, since {reason}"


# -- queries -----------------------------------------------------------------------------------------------------------


def _selection_query(change: DeleteRows | TruncateTable | UpdateRows, snapshot: Snapshot, run: Running) -> Query:
    """The query of the rows that a condition chooses, and of their new values."""
    values = ""
    if isinstance(change, UpdateRows):
        row_changes.resolve_assignments(change, snapshot, run)
        values = "".join(f", {value.text}" for _, value in change.values if value is not None)
    where = None if isinstance(change, TruncateTable) else change.where
    head = f"SELECT *{values} FROM "
    table = _read(change.table, len(head), where)
    if where is None:
        return Query(head, (table,))
    between = f"{head} WHERE "
    inside = tuple(_shift_reference(each, len(between)) for each in where.references)
    return Query(between + where.text, (table, *inside), span=where.span)


def _join_query(change: MergeRows) -> Query:
    """The query that joins the rows of a table with those of a MERGE's source, as far as its clauses need them."""
    says = {each.when for each in change.clauses}
    kept = {"not matched": "RIGHT", "not matched by source": "LEFT"}
    sides = [side for when, side in kept.items() if when in says]
    head = "SELECT * FROM "
    before = f"{head} {'FULL' if len(sides) == 2 else (sides or ['INNER'])[0]} JOIN ("
    alias = f" AS {quote_identifier(change.source_alias)}" if change.source_alias is not None else ""
    inside = tuple(_shift_reference(each, len(before)) for each in change.source.references)
    text = f"{before}{change.source.text}){alias} ON {change.on.text}"
    return Query(text, (_read(change.table, len(head), None), *inside), change.source.arguments, change.source.span)


def _read(table: Table, at: int, where: Expression | None) -> Reference:
    """A table put at a place in a text, under the name by which the statement speaks of it."""
    condition_text = None if where is None else where.text
    return Reference(table, at, at, takes_alias=True, where=condition_text, sole=True, called=table.alias)


def _shift_reference(reference: Reference, by: int) -> Reference:
    return replace(reference, start=reference.start + by, stop=reference.stop + by)


def _behind(head: str, query: Query) -> Query:
    return replace(
        query, text=head + query.text, references=tuple(_shift_reference(each, len(head)) for each in query.references)
    )
