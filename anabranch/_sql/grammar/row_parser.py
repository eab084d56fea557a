"""Parses statements that change rows: DELETE, UPDATE, MERGE, INSERT.

A function begins after the first word of its statement, and returns None if the target is no Delta table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from anabranch._expressions.dialect import TokenType, word
from anabranch._sql.grammar.parts import Expression, Path, Query, Table
from anabranch._sql.grammar.qualifiers import MOST_PARTS, full_name_alias, without
from anabranch._sql.grammar.reader import Reader
from anabranch._sql.grammar.replace_clause import (
    ReplaceClause,
    begins_query,
    query_alias,
    replace_clause,
    target_alias,
)
from anabranch._sql.grammar.row_values import (
    DeleteRows,
    InsertRows,
    MergeClause,
    MergeRows,
    MultiInsert,
    TruncateTable,
    UpdateRows,
)
from anabranch._sql.grammar.tables_read import alias_at
from anabranch.errors import NotBuilt

_When = Literal["matched", "not matched", "not matched by source"]
_SELECTS = frozenset({"SELECT", "MAP", "REDUCE"})
_VALUE_STOPS = ("WHERE",)
_CLAUSE_STOPS = ("WHEN",)
Values = tuple[tuple[Path, Expression | None], ...]


def delete(r: Reader) -> DeleteRows | None:
    """Parse ``DELETE FROM t [AS a] [WHERE …]``."""
    r.expect("FROM")
    table = r.target(alias=True, views=True)
    if table is None:
        return None
    return DeleteRows(table, _where(r))


def truncate(r: Reader) -> TruncateTable | None:
    """Parse ``TRUNCATE TABLE t``."""
    table = r.target()
    if table is None:
        return None
    if r.at("PARTITION"):
        instead = "TRUNCATE TABLE on Delta tables does not support partition predicates; use DELETE FROM … WHERE."
        raise NotBuilt(what="TRUNCATE TABLE of a partition", instead=instead)
    r.finish()
    return TruncateTable(table)


def update(r: Reader) -> UpdateRows | None:
    """Parse ``UPDATE t [AS a] SET c = …, … [WHERE …]``."""
    table = r.target(alias=True, views=True)
    if table is None:
        return None
    r.expect("SET")
    values = _assignments(r, table, *_VALUE_STOPS)
    return UpdateRows(table, values, _where(r))


def _where(r: Reader) -> Expression | None:
    """Take WHERE, which ends the statement."""
    where = r.expression(what="a condition") if r.take("WHERE") else None
    r.finish()
    return where


def _assignments(r: Reader, table: Table, *stops: str) -> Values:
    assignments = [_assignment(r, table, *stops)]
    while r.is_type(TokenType.COMMA):
        r.i += 1
        assignments.append(_assignment(r, table, *stops))
    return tuple(assignments)


def _assignment(r: Reader, table: Table, *stops: str) -> tuple[Path, Expression | None]:
    path = _column(r, table)
    if not r.is_type(TokenType.EQ):
        r.fail("'=' is expected here.")
    r.i += 1
    return path, _value(r, *stops)


def _column(r: Reader, table: Table) -> Path:
    """Take a column of the table, which the table's full name may qualify."""
    path = r.path("the name of a column")
    if table.alias is not None and table.alias != full_name_alias(table.name):
        return path
    short = without(_shorten_qualifier(r, path, table), table.name)
    return short if table.alias is None or short == path else (table.alias, *short[1:])


def _shorten_qualifier(r: Reader, path: Path, table: Table) -> Path:
    """Remove the parts of a column's qualifier that the table's name in the statement does not have."""
    own = len(table.name)
    for n in range(min(len(path) - 1, MOST_PARTS), own, -1):
        ends_so = [part.lower() for part in path[n - own : n]] == [part.lower() for part in table.name]
        if ends_so and r.is_named(path[:n], table.location):
            return path[n - own :]
    return path


def _value(r: Reader, *stops: str) -> Expression | None:
    """Take a value; None for DEFAULT alone."""
    at = r.i
    value = r.expression(*stops, comma=True, what="a value")
    return None if r.i == at + 1 and value.text.upper() == "DEFAULT" else value


# -- MERGE -------------------------------------------------------------------------------------------------------------


def merge(r: Reader, ctes: tuple[int, int] | None = None) -> MergeRows | None:
    """Parse ``MERGE [WITH SCHEMA EVOLUTION] INTO t USING s ON … WHEN …``; ``ctes``: the tokens of a WITH before it."""
    evolves = r.take("WITH", "SCHEMA", "EVOLUTION")
    r.expect("INTO")
    table = r.target(alias=True, views=True)
    if table is None:
        return None
    r.expect("USING")
    source, alias = _source(r)
    source = source if ctes is None else r.join_queries(r.query_between(*ctes), source)
    r.expect("ON")
    on = r.expression(*_CLAUSE_STOPS, what="a condition")
    clauses = []
    while r.take("WHEN"):
        clauses.append(_clause(r, table))
    r.finish()
    if not clauses:
        r.fail("There must be at least one WHEN clause in a MERGE statement.")
    return MergeRows(table, source, alias, on, tuple(clauses), evolves)


def _source(r: Reader) -> tuple[Query, str | None]:
    """Take the source of a MERGE, as a query of all its columns, and the name that qualifies them."""
    first, called_so = r.i, None
    if r.is_type(TokenType.L_PAREN):
        r.parenthesis()
    elif r.at("VALUES"):
        r.i += 1
        _rows_of_values(r)
    else:
        name = r.path("the source")
        if r.is_type(TokenType.PARAMETER):
            r.i += 2
        is_call = r.is_type(TokenType.L_PAREN)
        if is_call:
            r.parenthesis()
        r.as_of()
        called_so = name[-1] if is_call or alias_at(r.tokens, r.i)[0] else r.source(name)
    alias, r.i = alias_at(r.tokens, r.i)
    if alias is not None and r.is_type(TokenType.L_PAREN):
        r.take_list(lambda: r.name("the name of a column"))
    return r.query_between(first, r.i, "SELECT * FROM "), alias or called_so


def _rows_of_values(r: Reader) -> None:
    r.skip_to(frozenset({"AS", "ON"}), comma=True)
    while r.is_type(TokenType.COMMA):
        r.i += 1
        r.skip_to(frozenset({"AS", "ON"}), comma=True)


def _clause(r: Reader, table: Table) -> MergeClause:
    when = _when(r)
    condition = r.expression("THEN", what="a condition") if r.take("AND") else None
    r.expect("THEN")
    if r.take("DELETE"):
        if when == "not matched":
            r.fail("a source row without a match has no row to delete: only INSERT is possible.", r.i - 1)
        return MergeClause(when, "delete", condition, ())
    if r.take("UPDATE"):
        if when == "not matched":
            r.fail("a source row without a match has no row to update: only INSERT is possible.", r.i - 1)
        r.expect("SET")
        return MergeClause(when, "update", condition, _star_or_assignments(r, table, when))
    if r.take("INSERT"):
        if when != "not matched":
            r.fail("INSERT is only possible in WHEN NOT MATCHED.", r.i - 1)
        return MergeClause(when, "insert", condition, _parse_insert_values(r, table))
    r.fail("UPDATE, DELETE or INSERT is expected here.")


def _when(r: Reader) -> _When:
    if r.take("MATCHED"):
        return "matched"
    r.expect("NOT", "MATCHED")
    if r.take("BY", "SOURCE"):
        return "not matched by source"
    if r.take("BY"):
        r.expect("TARGET")
    return "not matched"


def _star_or_assignments(r: Reader, table: Table, when: _When) -> Values | None:
    if not r.is_type(TokenType.STAR):
        return _assignments(r, table, *_CLAUSE_STOPS)
    if when != "matched":
        r.fail("UPDATE SET * needs a source row: name the columns.")
    r.i += 1
    return None


def _parse_insert_values(r: Reader, table: Table) -> Values | None:
    if r.is_type(TokenType.STAR):
        r.i += 1
        return None
    columns = r.take_list(lambda: _column(r, table))
    r.expect("VALUES")
    at = r.i
    values = r.take_list(lambda: _value(r))
    if len(columns) != len(values):
        r.fail(f"there are {len(columns)} columns, and {len(values)} values for them.", at)
    return tuple(zip(columns, values, strict=True))


# -- INSERT ------------------------------------------------------------------------------------------------------------


def insert(r: Reader, ctes: tuple[int, int] | None = None) -> InsertRows | None:
    """Parse ``INSERT {INTO | OVERWRITE} [TABLE] t [AS a] [PARTITION (…)] [(…) | BY NAME] [REPLACE …] query [AS b]``.

    ``ctes`` are the tokens of a WITH before it.
    """
    evolves = r.take("WITH", "SCHEMA", "EVOLUTION")
    overwrites = r.take("OVERWRITE")
    if not overwrites:
        r.expect("INTO")
    r.take("TABLE")
    table = r.target(views=True)
    if table is None:
        return None
    table = replace(table, alias=target_alias(r) or table.alias)
    partitions = r.take_list(lambda: partition(r)) if r.take("PARTITION") else ()
    if r.at("IF", "NOT", "EXISTS"):
        r.fail("a Delta table has the partitions of its rows: IF NOT EXISTS does not apply.")
    by_name = r.take("BY", "NAME")
    columns = None if by_name or begins_query(r) or r.at("REPLACE") else _columns(r)
    at = r.i
    replaced = replace_clause(r)
    if r.i > at:
        _check_replaced(r, replaced, at, others=overwrites or bool(partitions), columns=columns)
    by_name = by_name or r.take("BY", "NAME")
    alias, end = query_alias(r) if replaced.is_matched else (None, len(r.tokens))
    query, values = _rows(r, ctes, end)
    if replaced.is_matched and not query.text:
        r.fail("DEFAULT has no place in the rows of REPLACE ON and REPLACE USING: write the value.", at)
    return InsertRows(
        table,
        query,
        overwrites or replaced != ReplaceClause(),
        columns,
        by_name,
        partitions,
        replaced.where,
        evolves,
        values,
        replaced.on,
        replaced.using,
        alias,
    )


def _check_replaced(
    r: Reader, replaced: ReplaceClause, at: int, *, others: bool, columns: tuple[str, ...] | None
) -> None:
    """Raises SqlSyntaxError if a REPLACE clause stands where the grammar has none."""
    if others:
        r.fail("REPLACE belongs to INSERT INTO a table; INSERT OVERWRITE replaces all rows, PARTITION a partition.", at)
    if replaced.using and columns is not None:
        r.fail("a list of columns and REPLACE USING exclude each other: order the query's columns.", at)


def _rows(r: Reader, ctes: tuple[int, int] | None, end: int) -> tuple[Query, tuple[tuple[Expression | None, ...], ...]]:
    """Take the rows of an INSERT, up to token ``end``: a query, which is empty where VALUES has DEFAULT, and VALUES."""
    before, values = r.i, _values(r)
    query = Query("", span=(r.start, r.end))
    if not any(cell is None for row in values for cell in row):
        r.i, values = before, values if ctes is None else ()
        query = _query(r, ctes, end)
    return query, values


def inserts(r: Reader) -> MultiInsert | None:
    """Parse ``[WITH …] FROM … INSERT … SELECT … [INSERT …]``, after FROM, as INSERTs with a query of that FROM each.

    Raises:
        NotBuilt: only some of the tables are Delta tables.
    """
    starts = [i for i in range(r.i, len(r.tokens)) if _begins_insert(r, i)]
    if not starts:
        return None
    head, ends = (0, starts[0]), [*starts[1:], len(r.tokens)]
    insert_statements = [_insert_from(r, head, start, end) for start, end in zip(starts, ends, strict=True)]
    if not any(insert_statements):
        return None
    if not all(insert_statements):
        raise NotBuilt(
            what="FROM … INSERT into tables of several formats", instead="Run each INSERT as a statement of its own."
        )
    return MultiInsert(tuple(statement for statement in insert_statements if statement is not None))


def _begins_insert(r: Reader, i: int) -> bool:
    return i + 1 < len(r.tokens) and word(r.tokens[i]) == "INSERT" and word(r.tokens[i + 1]) in ("INTO", "OVERWRITE")


def _insert_from(r: Reader, head: tuple[int, int], start: int, end: int) -> InsertRows | None:
    r.i = start
    r.skip_to(_SELECTS, comma=True, what="INSERT")
    if not start < r.i < end:
        r.fail("SELECT is expected here.")
    alone = r.rearrange((start, r.i), head, (r.i, end))
    alone.i = 1
    return insert(alone)


def _query(r: Reader, ctes: tuple[int, int] | None, end: int) -> Query:
    if r.is_at_end:
        r.fail("a query is expected here.")
    query = r.query_between(r.i, end)
    r.i = len(r.tokens)
    return query if ctes is None else r.join_queries(r.query_between(*ctes), query)


def partition(r: Reader) -> tuple[str, str | None]:
    """Take a column of a PARTITION clause, with its value if it has one."""
    name = r.name("the name of a column")
    if not r.is_type(TokenType.EQ):
        return name, None
    r.i += 1
    return name, r.expression(comma=True, what="a value").text


def _columns(r: Reader) -> tuple[str, ...]:
    return r.take_list(lambda: r.name("the name of a column"))


def _values(r: Reader) -> tuple[tuple[Expression | None, ...], ...]:
    """Take the rows of VALUES if they end the statement; none for any other query."""
    if not r.take("VALUES"):
        return ()
    rows = [_row(r)]
    while r.is_type(TokenType.COMMA):
        r.i += 1
        rows.append(_row(r))
    return tuple(rows) if r.is_at_end else ()


def _row(r: Reader) -> tuple[Expression | None, ...]:
    return r.take_list(lambda: _value(r)) if r.is_type(TokenType.L_PAREN) else (_value(r),)
