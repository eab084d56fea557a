"""A source of rows that selects values of the rows of one table, as files and computations.

Knows the forms of simple queries, and how texts are resolved. Guarantee: the rows are those of the query, whether Arrow
reads them or Spark; a query that could mean anything else is Spark's.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame

from anabranch._expressions import Context, assignment, condition
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.expressions.computation import Computation, column_of
from anabranch._protocol.expressions.tree import SparkOnly
from anabranch._protocol.store_assignment import is_plain_column
from anabranch._spark.merging.merge_source import TableRows
from anabranch._spark.sessions.cached_rows import is_cached
from anabranch._sql.conditions import context_of
from anabranch._sql.executor.running import StatementContext
from anabranch._sql.grammar.parts import Path, Query
from anabranch._sql.grammar.selects import SelectItem, SelectRows, rows_of_one_table
from anabranch.commands.opening import file_set
from anabranch.commands.queries.read import files_to_read, is_computable
from anabranch.errors import AnabranchError


def table_rows(query: Query, frame: DataFrame, run: StatementContext) -> TableRows | None:
    """The rows of a query, whose DataFrame is given, as rows of one table; None if Spark has to compute them."""
    selected = rows_of_one_table(query)
    if selected is None:
        return None
    snapshot = run.snapshot(selected.table)
    if is_cached(run.spark, snapshot.table):
        return None
    if selected.is_whole:
        return TableRows(frame, file_set(snapshot))
    if any(snapshot.schema.find(part) for part in selected.table.qualifier):  # t.x may be a member of a column t
        return None
    return _computed_rows(selected, frame, snapshot, context_of(snapshot, run.engine))


def _computed_rows(selected: SelectRows, frame: DataFrame, snapshot: Snapshot, context: Context) -> TableRows | None:
    names, where = selected.table.qualifier, selected.where
    try:
        values = tuple(value for item in selected.selected for value in _values(item, names, context))
        found = None if where is None else condition(where.source, context, names=names)
    except AnabranchError:  # Spark's words say what is wrong
        return None
    if any(value.reason is not None for value in values) or not (found is None or is_computable(found)):
        return None
    files = files_to_read(snapshot, None if found is None else found.predicate, found)
    return TableRows(frame, file_set(snapshot, files), values, found)


def _values(item: SelectItem, names: Path, context: Context) -> Iterator[Computation]:
    """The values of an item of the list; those of all columns for a star."""
    if item.value is not None:
        yield assignment(item.value.source, context, names).computation
        return
    for field in context.schema:
        column = column_of((field.name,), context.schema) if is_plain_column(field) else None
        yield Computation(SparkOnly("it is read by Spark") if column is None else column)
