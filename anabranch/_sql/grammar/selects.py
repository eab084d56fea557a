"""Parses queries of one table that need no Spark: columns and values, or COUNT, MIN and MAX, with WHERE and LIMIT.

Guarantee: a `SelectRows` is equivalent to its query. Any other query is refused, with an error that points at the first
part that needs Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from anabranch._expressions.dialect import TokenizedText, TokenType
from anabranch._expressions.error_pointer import excerpt
from anabranch._expressions.tokens import asks_a_query, has_window
from anabranch._sql.grammar import hidden_columns
from anabranch._sql.grammar.parts import Expression, Path, Query, Statement, Table
from anabranch._sql.grammar.reader import Reader
from anabranch._sql.grammar.tables_read import alias_at
from anabranch.errors import NeedsSpark, SqlSyntaxError

READ_HERE = "without it a query has columns of one table, or count, min and max of them, WHERE and LIMIT"
_AFTER_WHERE = (
    *("GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW", "QUALIFY", "LATERAL"),
    *("UNION", "EXCEPT", "INTERSECT", "MINUS"),
)
_TWO_WORDS = frozenset({"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"})
_AGGREGATES = ("COUNT", "MIN", "MAX")
_EVERY_ROW = ((TokenType.STAR, "*"), (TokenType.NUMBER, "1"))
_MAX_ROWS = (1 << 31) - 1
"""Maximum of LIMIT, an INT."""


@dataclass(frozen=True)
class SelectItem:
    """A column of the result.

    Attributes:
        value: its expression, or the argument of its aggregate; None for ``*``, or for the count of rows.
        name: its alias.
        path: the parts of the expression, if it is a dotted name.
        aggregate: ``count``, ``min`` or ``max``; empty for a value of a single row.
    """

    value: Expression | None = None
    name: str | None = None
    path: Path = ()
    aggregate: str = ""


@dataclass(frozen=True)
class SelectRows(Statement):
    """SELECT; either all selected columns are aggregates, or none is."""

    table: Table
    selected: tuple[SelectItem, ...]
    where: Expression | None = None
    limit: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it gives all rows of the table, with its columns in their order."""
        return self.selected == (SelectItem(),) and self.where is None and self.limit is None


def select(r: Reader) -> SelectRows | None:
    """Parse ``SELECT … FROM t [AS OF …] [AS a] [WHERE …] [LIMIT n]``; None if the table is not specified by a path.

    Raises:
        NeedsSpark: the query has other parts.
    """
    first = r.i
    _refuse_words(r)
    selected = _parse_select_list(r)
    if not r.take("FROM"):
        refuse(r, "a query without FROM" if r.is_at_end else _next_words(r), r.i)
    table = _table(r)
    if table is None:
        return None
    where = r.expression(*_AFTER_WHERE, what="a condition") if r.take("WHERE") else None
    limit = _limit(r) if r.take("LIMIT") else None
    if not r.is_at_end:
        refuse(r, _next_words(r), r.i)
    if len({bool(column.aggregate) for column in selected}) > 1:
        refuse(r, "an aggregate beside values of single rows", first)
    return SelectRows(table, selected, where, limit)


def rows_of_one_table(query: Query) -> SelectRows | None:
    """The query, if it selects columns and values of the rows of one table, or of those that WHERE selects, and does
    nothing else; None for any other.
    """
    found = select_from_one_table(query)
    return None if found is None or any(item.aggregate for item in found.selected) else found


def select_from_one_table(query: Query) -> SelectRows | None:
    """The query, if it selects values or aggregates of the rows of one table, or of those that WHERE selects, and does
    nothing else; None for any other. It may stand in parentheses after ``SELECT * FROM``.
    """
    read = query.references[0] if len(query.references) == 1 and not query.arguments else None
    if read is None or read.view or read.changes or read.asks_metadata:
        return None
    before, behind = (_reader(text) for text in (query.text[: read.start], query.text[read.stop :]))
    try:
        is_inner = _takes_all_of_query(before)
        selected = _parse_select(before)
        where = _parse_where(behind)
        if is_inner:
            behind.punctuation(TokenType.R_PAREN, ")")
            _, behind.i = alias_at(behind.tokens, behind.i)
    except (NeedsSpark, SqlSyntaxError):
        return None
    return SelectRows(read.table, selected, where) if before.is_at_end and behind.is_at_end else None


def _reader(text: str) -> Reader:
    """A reader of a text that names no table."""
    return Reader(TokenizedText(text), None, lambda name: None)


def _takes_all_of_query(r: Reader) -> bool:
    """Take ``SELECT * FROM (``, if it comes next."""
    is_there = r.at("SELECT") and r.is_type(TokenType.STAR, 1) and r.ahead(2) == "FROM"
    is_there = is_there and r.is_type(TokenType.L_PAREN, 3)
    r.i += 4 if is_there else 0
    return is_there


def _parse_select(r: Reader) -> tuple[SelectItem, ...]:
    """Take ``SELECT … FROM``. Raises NeedsSpark, SqlSyntaxError: it is more."""
    r.expect("SELECT")
    _refuse_words(r)
    selected = _parse_select_list(r)
    r.expect("FROM")
    return selected


def _parse_where(r: Reader) -> Expression | None:
    """Take an alias and a condition, both if they are there. Raises NeedsSpark, SqlSyntaxError: they are more."""
    _, r.i = alias_at(r.tokens, r.i)
    _refuse_words(r)
    return r.expression(*_AFTER_WHERE, what="a condition") if r.take("WHERE") else None


def refuse(r: Reader, what: str, at: int) -> NoReturn:
    """Raise NeedsSpark, pointing at token ``at``; SqlSyntaxError if Spark cannot parse the statement either."""
    if r.is_type(TokenType.R_PAREN, at - r.i):
        r.fail("no parenthesis is open here.", at)
    token = r.tokens[min(at, len(r.tokens) - 1)]
    excerpt_text = excerpt(r.text, token.start, token.end + 1)
    raise NeedsSpark(what=what, table=None, reason=READ_HERE, excerpt=excerpt_text)


def _refuse_words(r: Reader) -> None:
    """Raise NeedsSpark if DISTINCT, a subquery, a window or ``_metadata`` is anywhere in the query."""
    remaining = list(r.tokens[r.i :])
    if r.at("DISTINCT") or r.at("ALL"):
        refuse(r, f"SELECT {r.ahead()}", r.i)
    for what, is_there in (
        ("a subquery", asks_a_query(remaining)),
        ("a window", has_window(remaining)),
        (f"the column {hidden_columns.NAME}", hidden_columns.asks(remaining)),
    ):
        if is_there:
            refuse(r, what, _first(r, "SELECT", "VALUES", "OVER", hidden_columns.NAME.upper()))


def _first(r: Reader, *words: str) -> int:
    """Return the first token that is one of these words, or else the next one."""
    return next((i for i in range(r.i, len(r.tokens)) if r.tokens[i].text.upper() in words), r.i)


def _next_words(r: Reader) -> str:
    """Return the next words, for a message."""
    first = r.ahead()
    if first in _TWO_WORDS:
        return f"{first} {r.ahead(1)}"
    return first if first.isidentifier() else f"'{r.text[r.start : r.tokens[r.i].end + 1]}'"


def _parse_select_list(r: Reader) -> tuple[SelectItem, ...]:
    columns = [_item(r)]
    while r.is_type(TokenType.COMMA):
        r.i += 1
        columns.append(_item(r))
    return tuple(columns)


def _aggregate(r: Reader) -> SelectItem:
    """Take ``count(…)``, ``min(…)`` or ``max(…)``, and its alias."""
    function, first = r.ahead().lower(), r.i + 2
    is_of_rows = (r.tokens[first].token_type, r.tokens[first].text) in _EVERY_ROW and r.is_type(TokenType.R_PAREN, 3)
    if function == "count" and is_of_rows:
        r.i += 4
        return SelectItem(None, _alias(r), (), function)
    r.i = first
    path = r.path() if r.is_name() else ()
    if not (path and r.is_type(TokenType.R_PAREN)):
        r.i, path = first, ()
        r.skip_to(comma=True, what="a value")
    value = r.expression_between(first, r.i)
    if r.is_type(TokenType.COMMA):
        refuse(r, f"{function} of several values", r.i)
    r.punctuation(TokenType.R_PAREN, ")")
    return SelectItem(value, _alias(r), path, function)


def _item(r: Reader) -> SelectItem:
    at = r.i
    if r.is_type(TokenType.STAR):
        r.i += 1
        return SelectItem()
    if r.ahead() in _AGGREGATES and r.is_type(TokenType.L_PAREN, 1) and r.i + 2 < len(r.tokens):
        aggregate = _aggregate(r)
        if _ends_item(r):
            return aggregate
        r.i = at
    if r.is_name() and r.ahead() not in ("FROM", "NOT"):
        path = r.path()
        after, name = r.i, _alias(r)
        if _ends_item(r):
            return SelectItem(r.expression_between(at, after), name, path)
    r.i = at
    r.skip_to(frozenset({"FROM", "AS"}), comma=True, what="a column")
    r.i -= _has_bare_alias(r, at)
    value, name = r.expression_between(at, r.i), _alias(r)
    if not _ends_item(r):
        refuse(r, _next_words(r), r.i)
    return SelectItem(value, name)


def _has_bare_alias(r: Reader, first: int) -> bool:
    """Whether an alias without AS follows a call, or another expression that ends with a parenthesis."""
    is_behind = r.i - 1 > first and r.is_type(TokenType.R_PAREN, -2)
    return is_behind and r.is_name(-1) and r.ahead(-1) != "END"


def _alias(r: Reader) -> str | None:
    name, r.i = alias_at(r.tokens, r.i)
    return name


def _ends_item(r: Reader) -> bool:
    return r.is_at_end or r.at("FROM") or r.is_type(TokenType.COMMA)


def _table(r: Reader) -> Table | None:
    """Take the table; None if it is not specified by a path."""
    if not (r.is_at_end or r.is_name()):
        refuse(r, "what is no table", r.i)
    at = r.i
    table = r.table(alias=True, travels=True)
    if table is None:
        r.path()
        if r.is_type(TokenType.L_PAREN):
            refuse(r, "a function in FROM", at)
        r.i = at
    return table


def _limit(r: Reader) -> int:
    at = r.i
    if not (r.is_at_end or r.is_type(TokenType.NUMBER)):
        refuse(r, "LIMIT of what is no whole number", at)
    rows = r.whole()
    if rows > _MAX_ROWS:
        r.fail(f"a whole number up to {_MAX_ROWS} is expected here.", at)
    return rows
