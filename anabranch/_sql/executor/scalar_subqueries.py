"""Subqueries in the values of an UPDATE, computed once, before it.

Knows texts and one-row queries. Guarantee: all rows get the value that the subquery has at the versions which the
statement reads; if it reads the table that is changed, the statement counts as a reader of all of it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from anabranch._expressions.dialect import Token, TokenType, word
from anabranch._log.snapshot import Snapshot
from anabranch._sql.executor.running import StatementContext
from anabranch._sql.grammar.parameters import literal
from anabranch._sql.grammar.parts import Expression, Query
from anabranch.errors import ExecutionFailed, InvalidCondition, NotBuilt, SqlAnalysisError

_BEGINS = frozenset({"SELECT", "VALUES", "WITH", "TABLE", "FROM"})
_TESTS = frozenset({"IN", "EXISTS", "ANY", "SOME", "ALL"})
"""Words before a subquery that is a test of rows, and no value."""
_PLAIN = (T.NumericType, T.StringType, T.BinaryType, T.BooleanType, T.DateType, T.TimestampType, T.TimestampNTZType)


def evaluate_subqueries(value: Expression, snapshot: Snapshot, run: StatementContext) -> tuple[Expression, bool]:
    """Return the value with a literal in place of each subquery, and whether one reads the table that is changed.

    Raises:
        NotBuilt: a subquery reads columns of the row, is a test, or has a nested type.
        InvalidCondition: it has several columns. ExecutionFailed: it has several rows, or cannot be computed.
        SqlSyntaxError, SqlAnalysisError: Spark cannot parse or analyse it.
    """
    pieces, end, reads_table = list[str](), 0, False
    for first, after in _subqueries(value.source.tokens):
        query = _query(value, first, after)
        rows = _rows_of(query, value, snapshot, run)
        reads_table |= run.engine.source_versions(rows, snapshot.table, snapshot.metadata.id) is not None
        pieces += [value.text[end:first], _value_of(rows, query, snapshot)]
        end = after
    if not pieces:
        return value, False
    return Expression("".join([*pieces, value.text[end:]]), span=value.span), reads_table


def _subqueries(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the position of each outermost subquery that is a value, with its parentheses."""
    i = 0
    while i + 1 < len(tokens):
        close = None
        if tokens[i].token_type == TokenType.L_PAREN and word(tokens[i + 1]) in _BEGINS:
            close = _closing(tokens, i)
        if close is not None and not (i and word(tokens[i - 1]) in _TESTS):
            yield tokens[i].start, tokens[close].end + 1
        i = i + 1 if close is None else close + 1


def _closing(tokens: Sequence[Token], i: int) -> int | None:
    depth = 0
    for place in range(i, len(tokens)):
        depth += (tokens[place].token_type == TokenType.L_PAREN) - (tokens[place].token_type == TokenType.R_PAREN)
        if depth == 0:
            return place
    return None


def _query(value: Expression, first: int, after: int) -> Query:
    """The query between the parentheses at these positions of a value."""
    inside = [ref for ref in value.references if first < ref.start and ref.stop < after]
    moved = tuple(replace(ref, start=ref.start - first - 1, stop=ref.stop - first - 1) for ref in inside)
    return Query(value.text[first + 1 : after - 1], moved, span=value.span)


def _rows_of(query: Query, value: Expression, snapshot: Snapshot, run: StatementContext) -> DataFrame:
    try:
        rows = run.query(query)
        columns = rows.schema
    except SqlAnalysisError as error:
        if not error.getCondition().startswith("UNRESOLVED_COLUMN"):
            raise
        instead = "In a value it is computed once, before the UPDATE. MERGE takes values that depend on the row."
        what = f"a subquery that reads columns of the row, in {value.text},"
        raise NotBuilt(what=what, instead=instead) from None
    if len(columns) != 1:
        reason = f"a subquery in a value has one column; this one has {len(columns)}."
        facts = {"delta_condition": "INVALID_SUBQUERY_EXPRESSION.SCALAR_SUBQUERY_RETURN_MORE_THAN_ONE_OUTPUT_COLUMN"}
        raise InvalidCondition(expression=value.text, table=snapshot.table, reason=reason, **facts)
    if not isinstance(columns[0].dataType, _PLAIN) and not isinstance(columns[0].dataType, T.NullType):
        what = f"a subquery of type {columns[0].dataType.simpleString()} in a value"
        raise NotBuilt(what=what, instead="MERGE takes such values.")
    return rows


def _value_of(rows: DataFrame, query: Query, snapshot: Snapshot) -> str:
    """The result of a subquery as an SQL literal; NULL if it has no row."""
    found = rows.limit(2).collect()
    if len(found) > 1:
        reason = "[SCALAR_SUBQUERY_TOO_MANY_ROWS] More than one row returned by a subquery used as an expression."
        raise ExecutionFailed(what=f"({query.text})", reason=reason, table=snapshot.table)
    [field] = rows.schema.fields
    kind = "STRING" if isinstance(field.dataType, T.NullType) else field.dataType.simpleString()
    return f"CAST({_literal(found[0][0] if found else None, field.dataType)} AS {kind})"


def _literal(value: Any, kind: T.DataType) -> str:
    if isinstance(kind, T.TimestampNTZType) and isinstance(value, dt.datetime):
        return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ', timespec='microseconds')}'"
    return literal(value)
