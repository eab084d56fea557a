"""Reading: SQL text as a value that says what is asked, or as none of Delta's business.

Knows no session: which names are Delta tables is asked of the caller. Guarantee: a statement that names no Delta table
is None, whatever it is; of the others each is a value, or refused with the place where it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anabranch._catalog.names import name_to_sql
from anabranch._expressions.dialect import TokenizedText, TokenType, word
from anabranch._expressions.error_pointer import excerpt
from anabranch._sql.grammar import computed_names, row_changes
from anabranch._sql.grammar.alter_table import PARTITIONS
from anabranch._sql.grammar.cursor import behind_with, takes
from anabranch._sql.grammar.ddl_targets import Making, making
from anabranch._sql.grammar.first_words import NAMES, READS
from anabranch._sql.grammar.parts import Query, Statement, View
from anabranch._sql.grammar.reader import Locate, Place, Reader
from anabranch._sql.registry import DELTA_ONLY, beginning_with
from anabranch.errors import NameTaken, NotBuilt, SqlSyntaxError, TransactionStatement, UnsupportedCommand

_BEGINS = (("BEGIN", "TRANSACTION"), ("START", "TRANSACTION"), ("BEGIN", "ATOMIC"))
_NO_DELTA = {
    "ANALYZE": ("ANALYZE TABLE", "Statistics are kept for each file, and are collected as it is written."),
    "MSCK": ("MSCK REPAIR TABLE", PARTITIONS),
    "REPAIR": ("REPAIR TABLE", PARTITIONS),
    "LOAD": (
        "LOAD DATA",
        "INSERT INTO … SELECT takes in the rows of files, CONVERT TO DELTA a folder of Parquet files.",
    ),
}
"""What of these no engine does to a Delta table, by its first word: its name, and what to do instead."""

Makes = Callable[[Making], bool]
"""Whether what a statement makes is a Delta table, or a view of one."""


def statement(
    text: str | TokenizedText,
    args: Any,
    locate: Locate,
    place: Place | None = None,
    kept: Locate | None = None,
    makes: Makes | None = None,
    shown: Locate | None = None,
) -> Statement | None:
    """What a statement asks; None where it names no Delta table, and is Spark's as it stands.

    Args:
        text: one statement; a semicolon may end it.
        args: the values of its parameters, a dict by name or a list, as for ``spark.sql``.
        locate: where the Delta table of a name lies.
        place: where one that is made under a name will lie; by default only what ``locate`` knows.
        kept: as ``locate``, of what the catalog keeps under a name, whichever temporary view hides that.
        makes: whether what is made so would be a Delta table; by default nothing is.
        shown: where the table lies that a temporary view of a name shows as it is; by default there is none.

    Raises:
        SqlSyntaxError: it is not put together as SQL is. UnknownTable: what only Delta has names no Delta table.
        TransactionStatement: it begins or ends a transaction of several statements.
        NotBuilt, InvalidOption: it asks for something that is refused.

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
        found = _by_grammar(r)
    except SqlSyntaxError:
        if r.makes or r.names_delta() or word(r.tokens[0]) in DELTA_ONLY:
            raise
        return None
    if found is not None:
        return found
    r.i = 0
    _refuse_unread(r, makes)
    if not r.reads_delta() or r.at("DROP"):  # which reads nothing: Spark says of a view that it is no table
        return None
    if r.ahead() not in READS and r.reads_views_of_spark():  # SHOW CREATE TABLE and the like: it knows them best
        return None
    return _query_for_spark(r)


def _by_grammar(r: Reader) -> Statement | None:
    if r.at("WITH"):
        return _behind_with(r)
    if r.at("EXPLAIN"):
        return _parse_explain(r)
    entries = beginning_with(r.ahead())
    for entry in entries:
        before, behind = entry.of_table
        if behind and takes(r, before):
            table = r.table(writes=True)
            if table is None:
                return None
            for each in entries:
                if each.of_table[0] == before and takes(r, each.of_table[1]):
                    found = each.grammar(r, table)
                    r.finish()
                    return found
            r.fail("this is no change that ALTER TABLE knows.")
        if not behind and takes(r, entry.words):
            return entry.grammar(r)
    return None


def _behind_with(r: Reader) -> Statement | None:
    """``WITH … INSERT INTO`` and ``WITH … MERGE INTO``: the names that it defines belong to the query.

    Raises:
        NotBuilt: it stands before a DELETE or UPDATE of a Delta table.
    """
    after = behind_with(r.tokens, _BEHIND_WITH)
    if after is None:
        return None
    r.i = after + 1
    return _BEHIND_WITH[word(r.tokens[after])](r, (0, after))


def _parse_explain(r: Reader) -> Statement | None:
    """EXPLAIN of a change of rows; None where it is of a query, or touches no Delta table: Spark explains it then.

    Raises:
        NotBuilt: it is of another statement.
    """
    (entry,) = beginning_with("EXPLAIN")
    r.take("EXPLAIN")
    at = r.i
    found = entry.grammar(r)
    if found is not None:
        return found
    r.i = at
    _ = any(r.take(each) for each in ("EXTENDED", "FORMATTED", "CODEGEN", "COST", "LOGICAL"))
    if _by_grammar(r) is not None:
        what = "EXPLAIN of what is neither a query nor a change of rows"
        raise NotBuilt(what=what, instead="Say it of the query that the statement reads.")
    return None


def _refuse_with(r: Reader, ctes: tuple[int, int]) -> None:
    verb = word(r.tokens[ctes[1]])
    (entry,) = beginning_with(verb)
    if entry.grammar(r) is not None:
        raise NotBuilt(what=f"WITH before {verb}", instead="Say each query where it is used, or make it a view.")


_BEHIND_WITH: dict[str, Callable[[Reader, tuple[int, int]], Statement | None]] = {
    "INSERT": row_changes.insert,
    "MERGE": row_changes.merge,
    "DELETE": _refuse_with,
    "UPDATE": _refuse_with,
}


def _refuse_unread(r: Reader, makes: Makes | None) -> None:
    """Hold that nothing that is not read here, and makes or writes a Delta table or its folder, is handed to Spark.

    Raises:
        NotBuilt: it would.
    """
    if r.at("WITH"):
        _refuse_from_insert(r)
    _refuse_like(r)
    writes_folder = r.at("INSERT", "OVERWRITE") and "DIRECTORY" in (r.ahead(2), r.ahead(3))
    if makes is None or not (r.at("CREATE") or r.at("REPLACE") or writes_folder):
        return
    made = making(r.tokens, 1)
    if made.format is not None and makes(made):
        what = "INSERT OVERWRITE DIRECTORY" if writes_folder else f"this {r.ahead()}"
        instead = "CREATE TABLE of a name, or of a path in backticks, makes a Delta table; a view is made AS a query."
        raise NotBuilt(what=f"{what} USING {made.format}", instead=instead)


def _refuse_like(r: Reader) -> None:
    """Hold that no table of another format is made LIKE a Delta table, which Spark cannot open, or under its name.

    Raises:
        NotBuilt: it is like one. NameTaken: it would have the name of one.
    """
    at = r.i
    makes = takes(r, "CREATE [EXTERNAL] TABLE") and not r.take("IF", "NOT", "EXISTS") and r.is_name()
    name = r.path() if makes or r.is_name() else ()
    if not name or not r.take("LIKE"):
        r.i = at
        return
    there = r.find_location(name) if makes else None
    if there is not None and not isinstance(there, View):
        raise NameTaken(name=name_to_sql(name), table=str(there))
    if r.is_name() and r.find_location(r.path()) is not None:
        instead = "Say CREATE TABLE … USING that format AS SELECT * FROM it LIMIT 0."
        raise NotBuilt(what="CREATE TABLE … LIKE a Delta table USING another format", instead=instead)
    r.i = at


def _refuse_from_insert(r: Reader) -> None:
    """Hold that no ``WITH … FROM … INSERT INTO …``, perhaps of several tables, writes to a Delta table.

    Raises:
        NotBuilt: it does.
    """
    for i, token in enumerate(r.tokens):
        r.i = i
        if word(token) == "INSERT" and (r.take("INSERT", "INTO") or r.take("INSERT", "OVERWRITE")):
            r.take("TABLE")
            if r.is_name() and r.find_location(r.path()) is not None:
                raise NotBuilt(what="FROM before INSERT", instead="Say each as INSERT INTO … SELECT … FROM.")
    r.i = 0


def _query_for_spark(r: Reader) -> Query:
    """What Spark runs itself, with the Delta tables that it reads put into its place.

    Raises:
        NotBuilt: Spark would write or keep something that it cannot. UnsupportedCommand: no engine could.
    """
    first = "(" if r.is_type(TokenType.L_PAREN) else r.ahead()
    if first not in READS | NAMES:
        r.i = 0
        r.fail("no statement begins with this word.")
    if takes(r, "CREATE [OR REPLACE] [TEMPORARY] FUNCTION"):
        first = "CREATE FUNCTION"
    if first in _NO_DELTA:
        statement, instead = _NO_DELTA[first]
        raise UnsupportedCommand(statement=statement, instead=instead)
    if first not in READS:
        raise NotBuilt(what=f"{first} on a Delta table", instead="See the page on SQL in the documentation.")
    return r.everything()


# -- one statement, and no transaction ---------------------------------------------------------------------------------


def _check_single(r: Reader) -> None:
    """Raise an error where there are several statements, and they touch a Delta table.

    Raises:
        SqlSyntaxError: there are. TransactionStatement: a script of them.
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
    """Raise an error where the statement begins or ends a transaction.

    Raises:
        TransactionStatement: it does.
    """
    said = tuple(word(token) for token in r.tokens[:3])
    alone = said[:1] in (("COMMIT",), ("ROLLBACK",)) and said[1:2] in ((), ("WORK",), ("TRANSACTION",))
    begins = said in (("BEGIN",), ("BEGIN", "WORK")) or said[:2] in _BEGINS
    if alone or begins:
        raise TransactionStatement(statement=" ".join(each for each in said[:2] if each), excerpt=_excerpt(r, 0))


def _excerpt(r: Reader, i: int) -> str:
    token = r.tokens[i]
    return excerpt(r.text, token.start, token.end + 1)
