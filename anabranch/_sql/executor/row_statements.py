"""Runs DELETE, UPDATE, MERGE and INSERT as the commands that ``DeltaTable`` runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from anabranch._expressions import condition
from anabranch._expressions.blocks import strip_qualifiers
from anabranch._expressions.context import Context
from anabranch._expressions.dialect import TokenizedText
from anabranch._expressions.sides import MergeColumns, path_of
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.conditions import Condition
from anabranch._protocol.features.widening import widen_to_rows
from anabranch._protocol.rules.identity import STEP
from anabranch._protocol.rules.table_rules import default_of, generation_of
from anabranch._protocol.schema.evolution import evolve_schema
from anabranch._protocol.schema.types import Field, Struct
from anabranch._spark.columns.positional import by_name, by_position, columns_by_position
from anabranch._spark.columns.rule_columns import default_text
from anabranch._spark.columns.types import quote_identifier, spark_type
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.frames.fallback import try_first
from anabranch._spark.sessions.sql_text import expression
from anabranch._sql.conditions import context_of, resolve_values, with_session_case
from anabranch._sql.executor.running import StatementContext
from anabranch._sql.executor.scalar_subqueries import evaluate_subqueries
from anabranch._sql.executor.table_rows import table_rows
from anabranch._sql.grammar.parts import Expression, Query, Table
from anabranch._sql.grammar.row_values import (
    DeleteRows,
    InsertRows,
    MergeClause,
    MergeRows,
    MultiInsert,
    TruncateTable,
    UpdateRows,
    assignments_by_key,
)
from anabranch._sql.merge_request import ClauseRequest, MergeRequest
from anabranch._sql.plain_rows import field_of, fields_of, plain_rows
from anabranch._sql.replace_request import ReplaceRequest
from anabranch.commands.context import RunContext
from anabranch.commands.dml.delete import EVERY_ROW, Delete
from anabranch.commands.dml.update import Update
from anabranch.commands.dml.write import Write
from anabranch.errors import InvalidOption, UnknownColumn

_OVERWRITES = "spark.sql.sources.partitionOverwriteMode"


def resolve_where(
    where: Expression | None, where_text: str | TokenizedText, table: Table, context: Context
) -> Condition:
    """Resolve a statement's condition; ``where_text`` is its text with views for the tables of its subqueries."""
    if where is None:
        return EVERY_ROW
    resolved = condition(where_text, context, queries=True, names=table.qualifier)
    return replace(resolved, text=where.text) if resolved.asks else resolved


def delete(statement: DeleteRows, run: StatementContext) -> DataFrame:
    """DELETE; returns ``num_affected_rows``."""
    snapshot = run.newest(statement.table)
    with run.substitute_views(statement.where or Expression("")) as where_text:
        command = delete_command(statement, where_text, context_of(snapshot, run.engine))
        outcome = command.run(run.engine, RunContext(at=snapshot))
    return run.row_of_counts(num_affected_rows=outcome.rows)


def truncate(statement: TruncateTable, run: StatementContext) -> DataFrame:
    """TRUNCATE TABLE, as a DELETE of every row; returns no rows."""
    snapshot = run.newest(statement.table)
    Delete(statement.table.location, operation="TRUNCATE").run(run.engine, RunContext(at=snapshot))
    return run.nothing()


def delete_command(statement: DeleteRows, where_text: str | TokenizedText, context: Context) -> Delete:
    """Return the command, the same as of ``DeltaTable.delete``."""
    return Delete(statement.table.location, resolve_where(statement.where, where_text, statement.table, context))


def update(statement: UpdateRows, run: StatementContext) -> DataFrame:
    """UPDATE; returns ``num_affected_rows``."""
    snapshot = run.newest(statement.table)
    values = [(path, value and evaluate_subqueries(value, snapshot, run)) for path, value in statement.values]
    reads_target = snapshot.version if any(value and value[1] for _, value in values) else None
    statement = replace(statement, values=tuple((path, value and value[0]) for path, value in values))
    assignments = resolve_assignments(statement, snapshot, run)
    with run.substitute_views(statement.where or Expression("")) as where_text:
        where = resolve_where(statement.where, where_text, statement.table, context_of(snapshot, run.engine))
        command = Update(statement.table.location, assignments, where, reads_target=reads_target)
        outcome = command.run(run.engine, RunContext(at=snapshot))
    return run.row_of_counts(num_affected_rows=outcome.rows)


def resolve_assignments(statement: UpdateRows, snapshot: Snapshot, run: StatementContext) -> dict[str, Any]:
    """Resolve the values of an UPDATE for its command.

    Raises:
        UnknownColumn, InvalidOption, InvalidCondition, NotBuilt: they cannot be assigned.
    """
    names = statement.table.qualifier
    values = {key: _value(value, key, snapshot, names, run) for key, value in assignments_by_key(statement.values)}
    return resolve_values(values, snapshot, run.engine, names[-1], filled=True)


def _value(
    value: Expression | None, key: str, snapshot: Snapshot, names: tuple[str, ...], run: StatementContext
) -> str | TokenizedText:
    if value is None:
        return _default(key, names[-1], snapshot, run) or "NULL"
    return strip_qualifiers(value.source, names, snapshot.schema)


def _default(key: str, alias: str, snapshot: Snapshot, run: StatementContext, *, inserts: bool = False) -> str | None:
    """Return the SQL text of DEFAULT for a column: its default value, or NULL.

    Returns None in an insert if the table computes the column, which must then not be named.

    Raises:
        InvalidOption: the target is a field of a struct column.
        RuleRefused: the default may not be evaluated.
    """
    try:
        path = path_of(key, MergeColumns(snapshot.schema, (), alias), context_of(snapshot, run.engine))
    except UnknownColumn:  # a column that the statement adds; any other is refused later
        return "NULL"
    if len(path) > 1:
        reason = "DEFAULT applies to a whole column, not to a field of one."
        raise InvalidOption(option="set", value=key, reason=reason)
    field = snapshot.schema.field(path[0])
    return None if inserts and _is_computed(field) else _default_of(field, snapshot, run)


def _is_computed(field: Field) -> bool:
    """Whether the table computes a column's values."""
    return generation_of(field) is not None or STEP in field.metadata


def _default_of(field: Field, snapshot: Snapshot, run: StatementContext) -> str:
    """Return the SQL text of a column's default, or NULL.

    Raises:
        RuleRefused: it may not be evaluated.
    """
    text = default_of(field)
    return "NULL" if text is None else default_text(run.spark, field.name, text, snapshot.table)


# -- MERGE -------------------------------------------------------------------------------------------------------------


def merge(statement: MergeRows, run: StatementContext) -> DataFrame:
    """MERGE; returns the four counts of ``DeltaMergeBuilder.execute``."""
    snapshot = run.newest(statement.table)
    outcome = merge_request(statement, snapshot, run).command(snapshot).run(run.engine, RunContext(at=snapshot))
    return run.row_of_counts(**outcome.counts)


def merge_request(statement: MergeRows, snapshot: Snapshot, run: StatementContext) -> MergeRequest:
    """Return the request of a MERGE, with its source as a DataFrame that has not been read."""
    source = run.query(statement.source)
    if statement.source_alias is not None:
        source = source.alias(statement.source_alias)
    return MergeRequest(
        statement.table.location,
        run.engine,
        source,
        statement.on.text,
        statement.table.qualifier[-1],
        tuple(_build_clause(clause, statement.table.qualifier[-1], snapshot, run) for clause in statement.clauses),
        source_alias=statement.source_alias,
        table_rows=table_rows(statement.source, source, run),
        reads_anew=True,
        evolves=statement.evolves,
    )


def _build_clause(clause: MergeClause, alias: str, snapshot: Snapshot, run: StatementContext) -> ClauseRequest:
    """Return a WHEN clause with the texts of its condition and values."""
    where = None if clause.condition is None else clause.condition.text
    if clause.action == "delete":
        return ClauseRequest(clause.when, clause.action, where, {})
    values = None if clause.values is None else _clause_values(clause, alias, snapshot, run)
    option = "values" if clause.action == "insert" else "set"
    return ClauseRequest(clause.when, clause.action, where, values, option)


def _clause_values(clause: MergeClause, alias: str, snapshot: Snapshot, run: StatementContext) -> dict[str, Any]:
    """Return the values of a clause; DEFAULT in an insert gives the value of a column that is not named."""
    inserts = clause.action == "insert"
    pairs = assignments_by_key(clause.values or ())
    texts = {k: _default(k, alias, snapshot, run, inserts=inserts) if v is None else v.text for k, v in pairs}
    return {key: text for key, text in texts.items() if text is not None}


# -- INSERT ------------------------------------------------------------------------------------------------------------


def insert(statement: InsertRows, run: StatementContext) -> DataFrame:
    """INSERT; returns no rows."""
    with _prepare_insert(statement, run) as write:
        write()
    return run.nothing()


def insert_each(statement: MultiInsert, run: StatementContext) -> DataFrame:
    """FROM … INSERT … INSERT …; resolves all INSERTs before the first runs, and returns no rows."""
    with ExitStack() as stack:
        writes = [stack.enter_context(_prepare_insert(insert_statement, run)) for insert_statement in statement.inserts]
        for write in writes:
            write()
    return run.nothing()


@contextmanager
def _prepare_insert(statement: InsertRows, run: StatementContext) -> Iterator[Callable[[], None]]:
    """Resolve an INSERT's table, columns and query, and yield the function that runs it within the block."""
    snapshot = run.newest(statement.table)
    evolves = statement.evolves or run.engine.merges_schema()
    plain = literals(statement, run, snapshot, evolves=evolves)
    rows = rows_to_insert(statement, run, snapshot, evolves=evolves) if plain is None else plain
    request = replace_request(statement, run, snapshot, evolves=evolves) if statement.is_matched else None
    with run.substitute_views(statement.where or Expression("")) as where_text:
        write = Write(
            statement.table.location,
            rows,
            "overwrite" if statement.overwrites else "append",
            replace_where=_overwrite_condition(statement, where_text, snapshot, run),
            matching=None if request is None else request.matching(snapshot, run.engine),
            dynamic=_is_dynamic(statement, run),
            schema_change="merge" if evolves else None,
            reads_anew=True,
        )
        if plain is None:
            with translate_errors("INSERT", snapshot.table):
                _ = rows.schema  # else Spark Connect analyses it later

        def write_rows() -> None:
            # Spark evaluates constant rows as soon as their plan is read.
            with translate_errors("INSERT", snapshot.table):
                write.run(run.engine, RunContext(at=snapshot))

        yield write_rows


def literals(statement: InsertRows, run: StatementContext, snapshot: Snapshot, *, evolves: bool) -> pa.Table | None:
    """Return the rows of an INSERT whose literals need no Spark; None for any other."""
    if evolves or statement.is_matched:
        return None
    fields = fields_of(statement, snapshot, with_session_case(snapshot.schema, run.engine))
    return try_first(lambda: plain_rows(statement, fields, snapshot, context_of(snapshot, run.engine)))


def replace_request(
    statement: InsertRows, run: StatementContext, snapshot: Snapshot, *, evolves: bool
) -> ReplaceRequest:
    """Return the request of REPLACE ON or REPLACE USING, with its rows as a DataFrame that has not been read."""
    rows = run.query(statement.query)
    return ReplaceRequest(
        rows if statement.rows_alias is None else rows.alias(statement.rows_alias),
        None if statement.on is None else statement.on.text,
        statement.using,
        statement.table.qualifier[-1],
        statement.rows_alias,
        by_position=not statement.by_name,
        said=", ".join(statement.using),
        to_write=lambda held: rows_to_insert(statement, run, snapshot, evolves=evolves, held=held),
    )


def rows_to_insert(
    statement: InsertRows, run: StatementContext, snapshot: Snapshot, *, evolves: bool, held: DataFrame | None = None
) -> DataFrame:
    """Return the rows of an INSERT with the table's column names and types.

    If the table evolves, new columns keep their names, and columns of a wider type keep that type. ``held`` are the
    rows of its query, if they were computed before.
    """
    fields, rows = _rows(statement, run, snapshot, held)
    adds = evolves and statement.columns is None and not (statement.by_name and statement.partition)
    if statement.by_name:
        return rows if adds else _by_name(rows, snapshot, run)
    columns = Struct(tuple(fields))
    if evolves:
        source_columns = columns_by_position(rows, columns)
        grown = evolve_schema(widen_to_rows(snapshot.metadata, source_columns), source_columns, None)
        columns = Struct(tuple(grown.field(field.name) for field in fields))
    return by_position(rows, columns, snapshot.table, adds=adds)


def _rows(
    statement: InsertRows, run: StatementContext, snapshot: Snapshot, held: DataFrame | None
) -> tuple[list[Field], DataFrame]:
    """Return the table's columns that get values, and the rows, in the same order."""
    session_columns = with_session_case(snapshot.schema, run.engine)
    static = [
        (field_of(name, snapshot, session_columns), text) for name, text in statement.partition if text is not None
    ]
    fields = fields_of(statement, snapshot, session_columns, {field.name for field, _ in static})
    if statement.says_default:
        fields, query = _with_defaults(statement, fields, snapshot, run)
        rows = run.query(query)
    else:
        rows = run.query(statement.query) if held is None else held
    if static:  # first, since columns that the table will get come last
        rows = rows.select(*(expression(text, run.spark).alias(field.name) for field, text in static), "*")
    return [*(field for field, _ in static), *fields], rows


def _by_name(rows: DataFrame, snapshot: Snapshot, run: StatementContext) -> DataFrame:
    """Cast rows with the table's column names to the values that an assignment stores."""
    fields = [field_of(name, snapshot, with_session_case(snapshot.schema, run.engine)) for name in rows.columns]
    return by_name(rows, Struct(tuple(fields)), snapshot.table)


def _with_defaults(
    statement: InsertRows, fields: list[Field], snapshot: Snapshot, run: StatementContext
) -> tuple[list[Field], Query]:
    """Return the columns of VALUES with DEFAULT, without those that are DEFAULT in every row, and a query of them."""
    rows = statement.values
    for row in rows:
        if len(row) != len(fields):
            reason = f"a row of VALUES has {len(row)} values for {len(fields)} columns."
            raise InvalidOption(option="VALUES", value=len(row), reason=reason)
    indices = [i for i in range(len(fields)) if any(row[i] is not None for row in rows)] or [0]
    lines = (", ".join(_cell_sql(row[i], fields[i], snapshot, run) for i in indices) for row in rows)
    return [fields[i] for i in indices], Query("VALUES " + ", ".join(f"({line})" for line in lines))


def _cell_sql(cell: Expression | None, field: Field, snapshot: Snapshot, run: StatementContext) -> str:
    if cell is not None:
        return cell.text
    if _is_computed(field):
        reason = f"the table computes {field.name}: write DEFAULT in every row, or in none."
        raise InvalidOption(option="VALUES", value="DEFAULT", reason=reason)
    return _default_of(field, snapshot, run)


def _overwrite_condition(
    statement: InsertRows, where_text: TokenizedText, snapshot: Snapshot, run: StatementContext
) -> Condition | None:
    """Return the condition of the rows that an overwrite replaces; None: all, or those of the written partitions."""
    context = context_of(snapshot, run.engine)
    if statement.where is not None:
        return resolve_where(statement.where, where_text, statement.table, context)
    static = [(name, text) for name, text in statement.partition if text is not None]
    if not statement.overwrites or not static or _is_dynamic(statement, run):
        return None
    parts = [
        _partition_condition(field_of(name, snapshot, with_session_case(snapshot.schema, run.engine)), text)
        for name, text in static
    ]
    return condition(" AND ".join(parts), context)


def _partition_condition(field: Field, text: str) -> str:
    """Return the condition that a partition has a static value, cast to the column's type."""
    return f"{quote_identifier(field.name)} <=> CAST({text} AS {spark_type(field.type).simpleString()})"


def _is_dynamic(statement: InsertRows, run: StatementContext) -> bool:
    """Whether the session's setting makes an overwrite replace only the partitions that are written."""
    setting = run.spark.conf.get(_OVERWRITES, None) or ""
    chosen = statement.where is not None or statement.is_matched
    return statement.overwrites and not chosen and setting.lower() == "dynamic"
