"""Parses SQL text into a statement, or decides that the text is Spark's.

Knows no session: the caller resolves names to Delta tables. Guarantee: a text that names no Delta table gives None;
any other gives a statement, or an error that points at the wrong place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anabranch._catalog.table_names import name_to_sql
from anabranch._expressions.dialect import TokenizedText, TokenType, word
from anabranch._expressions.error_pointer import excerpt
from anabranch._sql.grammar import computed_names, row_parser
from anabranch._sql.grammar.alter_table import PARTITIONS
from anabranch._sql.grammar.cursor import behind_with, takes
from anabranch._sql.grammar.ddl_targets import CreateTarget, parse_create_target
from anabranch._sql.grammar.first_words import NAMES, READS
from anabranch._sql.grammar.parts import Query, Statement, View
from anabranch._sql.grammar.reader import Locate, Place, Reader
from anabranch._sql.grammar.with_clauses import move_with_into_subqueries
from anabranch._sql.registry import DELTA_ONLY, beginning_with
from anabranch.errors import NameTaken, NotBuilt, SqlSyntaxError, TransactionStatement, UnsupportedCommand

_BEGINS = (("BEGIN", "TRANSACTION"), ("START", "TRANSACTION"), ("BEGIN", "ATOMIC"))
_UNSUPPORTED = {
    "ANALYZE": ("ANALYZE TABLE", "Statistics are kept for each file, and are collected as it is written."),
    "MSCK": ("MSCK REPAIR TABLE", PARTITIONS),
    "REPAIR": ("REPAIR TABLE", PARTITIONS),
    "LOAD": (
        "LOAD DATA",
        "INSERT INTO … SELECT takes in the rows of files, CONVERT TO DELTA a folder of Parquet files.",
    ),
}
"""Statements that no engine runs on a Delta table, by their first word: the name, and what to do instead."""

Makes = Callable[[CreateTarget], bool]
"""Whether a statement creates a Delta table, or a view of one."""


def statement(
    text: str | TokenizedText,
    args: Any,
    locate: Locate,
    place: Place | None = None,
    kept: Locate | None = None,
    makes: Makes | None = None,
    shown: Locate | None = None,
) -> Statement | None:
    """Parse a statement; None if it names no Delta table and is Spark's.

    Args:
        text: one statement; a semicolon may end it.
        args: the values of its parameters, a dict by name or a list, as for ``spark.sql``.
        locate: resolves a name to a Delta table's location or a view.
        place: resolves the name of a table to create to its location; by default ``locate``.
        kept: as ``locate``, for the catalog's entry of a name, even if a temporary view hides it.
        makes: whether the statement's target would be a Delta table; by default it never is.
        shown: resolves the name of a temporary view to the table that it shows unchanged; by default there is none.

    Raises:
        SqlSyntaxError: it is no valid SQL. UnknownTable: a statement that only Delta has names no Delta table.
        TransactionStatement: it begins or ends a transaction of several statements.
        NotBuilt, InvalidOption: it contains something that is refused.

    Example:
        >>> statement("DELETE FROM delta.`/t` WHERE id = :id", {"id": 3}, locate).where.text
        'id = 3'
    """
    r = Reader(TokenizedText.of(text), args, locate, place, kept, shown)
    if r.is_at_end:
        return None
    _refuse_transactions(r)
    _check_single(r)
    try:
        parsed = _parse(r)
    except SqlSyntaxError:
        if r.makes or r.names_delta() or word(r.tokens[0]) in DELTA_ONLY:
            raise
        return None
    if parsed is not None:
        return parsed
    r.i = 0
    _refuse_unparsed(r, makes)
    if not r.reads_delta() or r.at("DROP"):  # DROP reads nothing, and Spark reports that a view is no table
        return None
    if r.ahead() not in READS and r.reads_views_of_spark():  # for example SHOW CREATE TABLE
        return None
    return _query_for_spark(r)


def _parse(r: Reader) -> Statement | None:
    if r.at("WITH"):
        return _parse_with(r)
    if r.at("EXPLAIN"):
        return _parse_explain(r)
    entries = beginning_with(r.ahead())
    for entry in entries:
        before, after = entry.of_table
        if after and takes(r, before):
            table = r.table(writes=True)
            if table is None:
                return None
            for candidate in entries:
                if candidate.of_table[0] == before and takes(r, candidate.of_table[1]):
                    parsed = candidate.grammar(r, table)
                    r.finish()
                    return parsed
            r.fail("ALTER TABLE has no such change.")
        if not after and takes(r, entry.words):
            return entry.grammar(r)
    return None


def _parse_with(r: Reader) -> Statement | None:
    """Parse ``WITH …`` before INSERT or MERGE, whose query it belongs to, and before DELETE or UPDATE."""
    after = behind_with(r.tokens, _WITH_GRAMMARS)
    if after is None:
        return None
    r.i = after + 1
    return _WITH_GRAMMARS[word(r.tokens[after])](r, (0, after))


def _parse_explain(r: Reader) -> Statement | None:
    """Parse EXPLAIN of a change of rows; None for Spark's EXPLAIN, of a query or of no Delta table.

    Raises:
        NotBuilt: it explains another statement.
    """
    (entry,) = beginning_with("EXPLAIN")
    r.take("EXPLAIN")
    at = r.i
    parsed = entry.grammar(r)
    if parsed is not None:
        return parsed
    r.i = at
    _ = any(r.take(mode) for mode in ("EXTENDED", "FORMATTED", "CODEGEN", "COST", "LOGICAL"))
    if _parse(r) is not None:
        what = "EXPLAIN of what is neither a query nor a change of rows"
        raise NotBuilt(what=what, instead="Explain the query that the statement reads.")
    return None


def _with_in_subqueries(r: Reader, ctes: tuple[int, int]) -> Statement | None:
    """Parse a DELETE or UPDATE behind WITH, whose tables its subqueries see."""
    (entry,) = beginning_with(word(r.tokens[ctes[1]]))
    moved = move_with_into_subqueries(r, ctes)
    moved.i = 1
    return entry.grammar(moved)


def _inserts_behind_with(r: Reader, ctes: tuple[int, int]) -> Statement | None:
    """Parse ``FROM … INSERT …`` behind WITH; the INSERTs take the WITH with their FROM."""
    return row_parser.inserts(r)


_WITH_GRAMMARS: dict[str, Callable[[Reader, tuple[int, int]], Statement | None]] = {
    "FROM": _inserts_behind_with,
    "INSERT": row_parser.insert,
    "MERGE": row_parser.merge,
    "DELETE": _with_in_subqueries,
    "UPDATE": _with_in_subqueries,
}


def _refuse_unparsed(r: Reader, makes: Makes | None) -> None:
    """Check that Spark does not get an unparsed statement that creates or writes a Delta table or its folder.

    Raises:
        NotBuilt: the statement is one.
    """
    if r.at("WITH"):
        _refuse_from_insert(r)
    _refuse_like(r)
    writes_folder = r.at("INSERT", "OVERWRITE") and "DIRECTORY" in (r.ahead(2), r.ahead(3))
    if makes is None or not (r.at("CREATE") or r.at("REPLACE") or writes_folder):
        return
    target = parse_create_target(r.tokens, 1)
    if target.format is not None and makes(target):
        what = "INSERT OVERWRITE DIRECTORY" if writes_folder else f"this {r.ahead()}"
        instead = "CREATE TABLE of a name, or of a path in backticks, makes a Delta table; a view is made AS a query."
        raise NotBuilt(what=f"{what} USING {target.format}", instead=instead)


def _refuse_like(r: Reader) -> None:
    """Check that no table of another format is created LIKE a Delta table, or under the name of one.

    Raises:
        NotBuilt: it is LIKE a Delta table, which Spark cannot open. NameTaken: a Delta table has its name.
    """
    at = r.i
    makes = takes(r, "CREATE [EXTERNAL] TABLE") and not r.take("IF", "NOT", "EXISTS") and r.is_name()
    name = r.path() if makes or r.is_name() else ()
    if not name or not r.take("LIKE"):
        r.i = at
        return
    existing = r.find_location(name) if makes else None
    if existing is not None and not isinstance(existing, View):
        raise NameTaken(name=name_to_sql(name), table=str(existing))
    if r.is_name() and r.find_location(r.path()) is not None:
        instead = "Use CREATE TABLE … USING that format AS SELECT * FROM it LIMIT 0."
        raise NotBuilt(what="CREATE TABLE … LIKE a Delta table USING another format", instead=instead)
    r.i = at


def _refuse_from_insert(r: Reader) -> None:
    """Check that no ``WITH … FROM … INSERT INTO …``, into one table or several, writes to a Delta table.

    Raises:
        NotBuilt: it does.
    """
    for i, token in enumerate(r.tokens):
        r.i = i
        if word(token) == "INSERT" and (r.take("INSERT", "INTO") or r.take("INSERT", "OVERWRITE")):
            r.take("TABLE")
            if r.is_name() and r.find_location(r.path()) is not None:
                raise NotBuilt(what="FROM before INSERT", instead="Write each as INSERT INTO … SELECT … FROM.")
    r.i = 0


def _query_for_spark(r: Reader) -> Query:
    """Return a statement that Spark runs itself, with references to the Delta tables that it reads.

    Raises:
        NotBuilt: Spark would write or store something that it cannot. UnsupportedCommand: no engine runs it.
    """
    first = "(" if r.is_type(TokenType.L_PAREN) else r.ahead()
    if first not in READS | NAMES:
        r.i = 0
        r.fail("no statement begins with this word.")
    if takes(r, "CREATE [OR REPLACE] [TEMPORARY] FUNCTION"):
        first = "CREATE FUNCTION"
    if first in _UNSUPPORTED:
        statement, instead = _UNSUPPORTED[first]
        raise UnsupportedCommand(statement=statement, instead=instead)
    if first not in READS:
        raise NotBuilt(what=f"{first} on a Delta table", instead="See the page on SQL in the documentation.")
    return r.everything()


# -- one statement, and no transaction ---------------------------------------------------------------------------------


def _check_single(r: Reader) -> None:
    """Check that a text that touches a Delta table is one statement.

    Raises:
        SqlSyntaxError: there are several statements. TransactionStatement: they form a script.
    """
    end = next((i for i, token in enumerate(r.tokens) if token.token_type == TokenType.SEMICOLON), None)
    if end is None:
        return
    is_script = computed_names.is_script(r.tokens)
    within = computed_names.schemas_used(r.text, r.tokens) if is_script else [()]
    hidden = is_script and computed_names.changes_any_name(r.tokens)  # it may drop the view first, and then the table
    names = within is None or r.names_delta(within, hidden=hidden)
    if not names and r.ahead() not in DELTA_ONLY:
        return
    if is_script:
        raise TransactionStatement(statement="BEGIN … END", excerpt=_excerpt(r, 0))
    raise SqlSyntaxError(
        near="';'", reason="there are several statements; run them one after the other.", excerpt=_excerpt(r, end)
    )


def _refuse_transactions(r: Reader) -> None:
    """Check that the statement does not begin or end a transaction.

    Raises:
        TransactionStatement: it does.
    """
    words = tuple(word(token) for token in r.tokens[:3])
    alone = words[:1] in (("COMMIT",), ("ROLLBACK",)) and words[1:2] in ((), ("WORK",), ("TRANSACTION",))
    begins = words in (("BEGIN",), ("BEGIN", "WORK")) or words[:2] in _BEGINS
    if alone or begins:
        raise TransactionStatement(
            statement=" ".join(keyword for keyword in words[:2] if keyword), excerpt=_excerpt(r, 0)
        )


def _excerpt(r: Reader, i: int) -> str:
    token = r.tokens[i]
    return excerpt(r.text, token.start, token.end + 1)
