"""Runs statements of the command line without Spark, on `anabranch.Table`.

Knows no session, and so no names of a catalog: tables are given by their paths. A timestamp without a zone is in UTC.
Guarantee: `NeedsSpark` refuses what needs Spark before the statement writes anything; the output is what a session
would print.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa

from anabranch._api.table_merge import TableClause, TableMerge
from anabranch._arrow.backend import without_spark
from anabranch._catalog.table_names import name_to_sql, path_in
from anabranch._cli.arrow_queries import rows_of, select
from anabranch._cli.arrow_rows import ArrowRows
from anabranch._cli.path_tables import PathTable, plain, plain_value, version_and_moment
from anabranch._expressions.dialect import TokenizedText
from anabranch._expressions.error_pointer import excerpt
from anabranch._protocol.schema.types import DataType, Struct, arrow_type
from anabranch._sql.grammar import maintenance_parser, row_parser, selects
from anabranch._sql.grammar import row_values as rv
from anabranch._sql.grammar import statement_values as v
from anabranch._sql.grammar.column_definitions import data_type
from anabranch._sql.grammar.cursor import takes
from anabranch._sql.grammar.first_words import KNOWN
from anabranch._sql.grammar.parts import Statement
from anabranch._sql.grammar.reader import Reader
from anabranch._sql.plain_rows import fields_of, plain_rows
from anabranch.commands.context import RunContext
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.maintenance.optimize import Optimize
from anabranch.commands.maintenance.optimize_result import RESULT as OPTIMIZED
from anabranch.commands.maintenance.optimize_result import WORKERS, result_row
from anabranch.commands.maintenance.restore import RESULT as RESTORED
from anabranch.commands.maintenance.restore import Restore
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.commands.queries.describe import DETAIL, SHOWN_HISTORY, as_table, detail, history
from anabranch.errors import AnabranchError, NeedsSpark, UnknownTable
from anabranch.errors.rows import statement as one_statement

Run: TypeAlias = Callable[[], ArrowRows]
"""Runs a parsed statement."""


def parse_statement(text: str) -> Statement:
    """Parses a statement.

    Raises:
        SqlSyntaxError, NotBuilt, InvalidOption: it is not valid SQL, or uses an unsupported option.
        NeedsSpark: it is another statement, or names a table of a catalog.
    """
    if "${" in text:
        raise NeedsSpark(what="${…}", table=None, reason="it stands for a setting of the session")
    r = Reader(TokenizedText(text), None, path_in)
    form = next((candidate for candidate in FORMS if takes(r, candidate.words)), None)
    if form is None:
        raise _other(r)
    try:
        statement = form.grammar(r)
    except UnknownTable as error:
        raise _name_needs_spark(error.facts["name"], error.facts.get("excerpt")) from None
    if statement is None:
        start, name = r.start, r.path("the name of a table")
        raise _name_needs_spark(name_to_sql(name), excerpt(r.text, start, r.stop))
    return statement


def check(statements: Sequence[Statement]) -> None:
    """Checks that none of several statements needs Spark, before the first one runs. Other errors are raised when a
    statement's turn comes, since earlier statements may change the outcome.

    Raises:
        NeedsSpark: a statement needs Spark.
    """
    for statement in statements if len(statements) > 1 else ():
        try:
            _prepare(statement)
        except NeedsSpark:
            raise
        except AnabranchError:
            continue


def run(statement: Statement) -> ArrowRows:
    """Runs a statement; returns what a session would."""
    with one_statement():
        return _prepare(statement)()


def _prepare(statement: Statement) -> Run:
    """Checks a statement against the newest version of its table and returns what runs it."""
    return next(form for form in FORMS if isinstance(statement, form.value)).prepare(statement)


def _name_needs_spark(name: str, shown: str | None) -> NeedsSpark:
    reason = "its catalog knows what a name means; a path is given as delta.`/path/to/table`"
    return NeedsSpark(what=f"the name {name}", table=None, reason=reason, excerpt=shown)


def _other(r: Reader) -> NeedsSpark:
    """The error for an unsupported statement. Raises SqlSyntaxError: no statement begins so."""
    first, second = r.ahead(), r.ahead(1)
    supported = ", ".join(form.words.replace("DESCRIBE|DESC", "DESCRIBE") for form in FORMS)
    if first not in KNOWN:
        r.fail(f"no statement begins with this word. Without Spark there are {supported}.")
    what = f"{first} {second}" if first in _OF_TWO_WORDS and second else first
    shown = excerpt(r.text, r.start, r.tokens[0].end + 1)
    return NeedsSpark(what=what, table=None, reason=f"without it there are {supported}", excerpt=shown)


# -- rows --------------------------------------------------------------------------------------------------------------


def _delete(statement: rv.DeleteRows) -> Run:
    target = PathTable(statement.table).newest()
    where = None if statement.where is None else target.text(statement.where)
    target.check(where, {})
    return lambda: _affected_rows(target.table.delete(where).rows)


def _update(statement: rv.UpdateRows) -> Run:
    target = PathTable(statement.table).newest()
    values = target.assignment_texts(statement.values)
    where = None if statement.where is None else target.text(statement.where)
    target.check(where, values)
    return lambda: _affected_rows(target.table.update(where, values).rows)


def _affected_rows(rows: int) -> ArrowRows:
    return ArrowRows(["num_affected_rows"], [(rows,)])


def _insert(statement: rv.InsertRows) -> Run:
    target = PathTable(statement.table).newest()
    ways = {"REPLACE WHERE": statement.where, "REPLACE ON": statement.on, "REPLACE USING": statement.using}
    overwrites = next((way for way, given in ways.items() if given), "INSERT OVERWRITE")
    for what, is_present in ((overwrites, statement.overwrites), ("WITH SCHEMA EVOLUTION", statement.evolves)):
        if is_present:
            raise target.needs_spark(what, "without it INSERT INTO appends rows, and changes no column")
    snapshot = target.snapshot
    fields = fields_of(statement, snapshot, snapshot.schema)
    with without_spark("the values of this INSERT", snapshot.table):
        rows = plain_rows(statement, fields, snapshot, target.texts.context, most=None)
    if rows is None:
        reason = (
            "without it the rows are VALUES, one plain literal of the column's type for each column, of a table whose "
            "columns are neither nested, binary, CHAR nor VARCHAR, and have no values of the table's own"
        )
        raise target.needs_spark("this INSERT", reason)
    return lambda: _nothing(target.table.append(rows))


def _nothing(_: Any) -> ArrowRows:
    return ArrowRows()


def _merge(statement: rv.MergeRows) -> Run:
    selected = _source(statement)
    target, source = PathTable(statement.table).newest(), PathTable(selected.table)
    if source.snapshot.metadata.id == target.snapshot.metadata.id:  # at each path that leads to it
        raise target.needs_spark(
            "a MERGE whose source is its own table", "it says which version the source was read at"
        )
    rows = rows_of(selected, source)
    empty = rows.schema.empty_table()
    _, matching, _ = target.texts.merge(_build_merge(statement, target, empty))
    target.backend.check_merge(target.no_files, matching, empty)

    def run() -> ArrowRows:
        counts = _build_merge(statement, target, rows.read_all()).execute().counts
        return ArrowRows([*counts], [tuple(counts.values())])

    return run


def _source(statement: rv.MergeRows) -> selects.SelectRows:
    """The source of a MERGE. Raises NeedsSpark: it is no query of one table's rows, or columns may be added."""
    source = selects.rows_of_one_table(statement.source)
    if source is None or statement.evolves:
        what = "the source of this MERGE" if source is None else "WITH SCHEMA EVOLUTION"
        reason = "without it a MERGE takes columns and values of the rows of one table at a path, and changes no column"
        raise NeedsSpark(what=what, table=None, reason=reason)
    return source


def _build_merge(statement: rv.MergeRows, target: PathTable, source: pa.Table) -> TableMerge:
    aliases = {"source_alias": statement.source_alias, "target_alias": statement.table.qualifier[-1]}
    merge = target.table.merge(source, plain(statement.on).text, **aliases)
    return replace(merge, clauses=tuple(map(_clause, statement.clauses)))


def _clause(clause: rv.MergeClause) -> TableClause:
    where = None if clause.condition is None else plain(clause.condition).text
    values = (
        None
        if clause.values is None
        else {key: plain_value(value).text for key, value in rv.assignments_by_key(clause.values)}
    )
    return TableClause(clause.when, clause.action, where, values)


# -- the table ---------------------------------------------------------------------------------------------------------


def _describe_history(statement: v.DescribeHistory) -> Run:
    location, limit = statement.table.location, statement.limit
    return lambda: ArrowRows.whole(as_table(history(location, limit), SHOWN_HISTORY))


def _describe_detail(statement: v.DescribeDetail) -> Run:
    return lambda: ArrowRows.whole(as_table([detail(statement.table.location)], DETAIL))


def _optimize(statement: v.OptimizeTable) -> Run:
    target = PathTable(statement.table).newest()
    where = EVERY_ROW if statement.where is None else target.texts.condition(target.text(statement.where))
    command = Optimize(statement.table.location, where, statement.zorder, statement.full, workers=WORKERS)

    def run() -> ArrowRows:
        result = command.run(target.backend, RunContext(at=target.snapshot))
        columns = data_type(Reader(TokenizedText(f"STRUCT<{OPTIMIZED}>"), None, path_in)).type
        row = result_row(result, target.snapshot.table, statement.zorder)
        return ArrowRows.whole(pa.Table.from_pylist([row], _schema(columns)))

    return run


def _schema(columns: DataType) -> pa.Schema:
    assert isinstance(columns, Struct), "it is read as one"
    return pa.schema([(field.name, arrow_type(field.type)) for field in columns])


def _vacuum(statement: v.VacuumTable) -> Run:
    command = Vacuum(statement.table.location, statement.hours, statement.dry_run, bool(statement.lite))

    def run() -> ArrowRows:
        result = command.run()
        paths = [f"{result.table}/{file.name}" for file in result.files] if statement.dry_run else [result.table]
        return ArrowRows(["path"], [(path,) for path in paths])

    return run


def _restore(statement: v.RestoreTable) -> Run:
    command = Restore(statement.table.location, *version_and_moment(statement.table))
    return lambda: ArrowRows.whole(pa.Table.from_pylist([command.run().row], RESTORED))


@dataclass(frozen=True)
class Form:
    """A statement that runs here: its first words, the parser of the rest, the parsed type, and the function that
    checks it against the table and returns what runs it.
    """

    words: str
    grammar: Callable[[Reader], Statement | None]
    value: type[Statement]
    prepare: Callable[[Any], Run]


FORMS = (
    Form("SELECT", selects.select, selects.SelectRows, select),
    Form("DELETE", row_parser.delete, rv.DeleteRows, _delete),
    Form("UPDATE", row_parser.update, rv.UpdateRows, _update),
    Form("MERGE", row_parser.merge, rv.MergeRows, _merge),
    Form("INSERT", row_parser.insert, rv.InsertRows, _insert),
    Form("DESCRIBE|DESC HISTORY", maintenance_parser.describe_history, v.DescribeHistory, _describe_history),
    Form("DESCRIBE|DESC DETAIL", maintenance_parser.describe_detail, v.DescribeDetail, _describe_detail),
    Form("OPTIMIZE", maintenance_parser.optimize, v.OptimizeTable, _optimize),
    Form("VACUUM", maintenance_parser.vacuum, v.VacuumTable, _vacuum),
    Form("RESTORE", maintenance_parser.restore, v.RestoreTable, _restore),
)
"""The statements that take no Spark."""

_OF_TWO_WORDS = frozenset(
    {"ALTER", "CACHE", "COMMENT", "CREATE", "DROP", "REFRESH", "REORG", "REPLACE", "SHOW", "TRUNCATE"}
)
