"""Queries of one table that take no Spark: columns and values, or counts and extremes, perhaps with WHERE and LIMIT.

Guarantee: what a `SelectRows` says is all that its query asks; of any other query the first part that Spark has to read
is refused, and its place shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from anabranch._expressions.dialect import TokenType
from anabranch._expressions.error_pointer import excerpt
from anabranch._expressions.tokens import asks_a_query, has_window
from anabranch._sql.grammar import hidden_columns
from anabranch._sql.grammar.parts import Expression, Path, Statement, Table
from anabranch._sql.grammar.reader import Reader
from anabranch._sql.grammar.tables_read import alias_at
from anabranch.errors import NeedsSpark

READ_HERE = "without it a query has columns of one table, or count, min and max of them, WHERE and LIMIT"
_BEHIND_WHERE = (
    *("GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW", "QUALIFY", "LATERAL"),
    *("UNION", "EXCEPT", "INTERSECT", "MINUS"),
)
_TWO_WORDS = frozenset({"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"})
_AGGREGATES = ("COUNT", "MIN", "MAX")
_EVERY_ROW = ((TokenType.STAR, "*"), (TokenType.NUMBER, "1"))
_MOST_ROWS = (1 << 31) - 1
"""What LIMIT may say, an INT."""


@dataclass(frozen=True)
class Selected:
    """A column of the result.

    Attributes:
        value: its text, or that of what is aggregated; None for all columns, or rows.
        name: what stands behind AS.
        path: the dotted name that the text is, if it may be a column's.
        aggregate: ``count``, ``min`` or ``max``; empty where each row has a value of its own.
    """

    value: Expression | None = None
    name: str | None = None
    path: Path = ()
    aggregate: str = ""


@dataclass(frozen=True)
class SelectRows(Statement):
    """SELECT; what is selected are aggregates, or none is one."""

    table: Table
    selected: tuple[Selected, ...]
    where: Expression | None = None
    limit: int | None = None


def select(r: Reader) -> SelectRows | None:
    """``SELECT … FROM t [AS OF …] [AS a] [WHERE …] [LIMIT n]``; None where the table is given by a name.

    Raises:
        NeedsSpark: it asks for more.
    """
    first = r.i
    _refuse_words(r)
    selected = _parse_select_list(r)
    if not r.take("FROM"):
        refuse(r, "a query without FROM" if r.is_at_end else _next_words(r), r.i)
    table = _table(r)
    if table is None:
        return None
    where = r.expression(*_BEHIND_WHERE, what="a condition") if r.take("WHERE") else None
    limit = _limit(r) if r.take("LIMIT") else None
    if not r.is_at_end:
        refuse(r, _next_words(r), r.i)
    if len({bool(each.aggregate) for each in selected}) > 1:
        refuse(r, "an aggregate beside values of single rows", first)
    return SelectRows(table, selected, where, limit)


def refuse(r: Reader, what: str, at: int) -> NoReturn:
    """Refuse the statement, and point at a token. Raises NeedsSpark, or SqlSyntaxError: Spark cannot read it either."""
    if r.is_type(TokenType.R_PAREN, at - r.i):
        r.fail("no parenthesis is open here.", at)
    token = r.tokens[min(at, len(r.tokens) - 1)]
    shown = excerpt(r.text, token.start, token.end + 1)
    raise NeedsSpark(what=what, table=None, reason=READ_HERE, excerpt=shown)


def _refuse_words(r: Reader) -> None:
    """Raises NeedsSpark: what matters for the whole query stands anywhere in it."""
    behind = list(r.tokens[r.i :])
    if r.at("DISTINCT") or r.at("ALL"):
        refuse(r, f"SELECT {r.ahead()}", r.i)
    for what, is_there in (
        ("a subquery", asks_a_query(behind)),
        ("a window", has_window(behind)),
        (f"the column {hidden_columns.NAME}", hidden_columns.asks(behind)),
    ):
        if is_there:
            refuse(r, what, _first(r, "SELECT", "VALUES", "OVER", hidden_columns.NAME.upper()))


def _first(r: Reader, *words: str) -> int:
    """At which token one of these words stands, or else the next one."""
    return next((i for i in range(r.i, len(r.tokens)) if r.tokens[i].text.upper() in words), r.i)


def _next_words(r: Reader) -> str:
    """The next words, for a message."""
    first = r.ahead()
    if first in _TWO_WORDS:
        return f"{first} {r.ahead(1)}"
    return first if first.isidentifier() else f"'{r.text[r.start : r.tokens[r.i].end + 1]}'"


def _parse_select_list(r: Reader) -> tuple[Selected, ...]:
    found = [_item(r)]
    while r.is_type(TokenType.COMMA):
        r.i += 1
        found.append(_item(r))
    return tuple(found)


def _aggregate(r: Reader) -> Selected:
    """Take ``count(…)``, ``min(…)`` or ``max(…)``, and what it is called."""
    function, first = r.ahead().lower(), r.i + 2
    is_of_rows = (r.tokens[first].token_type, r.tokens[first].text) in _EVERY_ROW and r.is_type(TokenType.R_PAREN, 3)
    if function == "count" and is_of_rows:
        r.i += 4
        return Selected(None, _alias(r), (), function)
    r.i = first
    path = r.path() if r.is_name() else ()
    if not (path and r.is_type(TokenType.R_PAREN)):
        r.i, path = first, ()
        r.skip_to(comma=True, what="a value")
    value = r.expression_between(first, r.i)
    if r.is_type(TokenType.COMMA):
        refuse(r, f"{function} of several values", r.i)
    r.punctuation(TokenType.R_PAREN, ")")
    return Selected(value, _alias(r), path, function)


def _item(r: Reader) -> Selected:
    at = r.i
    if r.is_type(TokenType.STAR):
        r.i += 1
        return Selected()
    if r.ahead() in _AGGREGATES and r.is_type(TokenType.L_PAREN, 1) and r.i + 2 < len(r.tokens):
        found = _aggregate(r)
        if _ends(r):
            return found
        r.i = at
    if r.is_name() and r.ahead() not in ("FROM", "NOT"):
        path = r.path()
        after, name = r.i, _alias(r)
        if _ends(r):
            return Selected(r.expression_between(at, after), name, path)
    r.i = at
    r.skip_to(frozenset({"FROM", "AS"}), comma=True, what="a column")
    r.i -= _has_bare_alias(r, at)
    value, name = r.expression_between(at, r.i), _alias(r)
    if not _ends(r):
        refuse(r, _next_words(r), r.i)
    return Selected(value, name)


def _has_bare_alias(r: Reader, first: int) -> bool:
    """Whether a name without AS stands behind a call, or what else ends by a parenthesis."""
    is_behind = r.i - 1 > first and r.is_type(TokenType.R_PAREN, -2)
    return is_behind and r.is_name(-1) and r.ahead(-1) != "END"


def _alias(r: Reader) -> str | None:
    name, r.i = alias_at(r.tokens, r.i)
    return name


def _ends(r: Reader) -> bool:
    return r.is_at_end or r.at("FROM") or r.is_type(TokenType.COMMA)


def _table(r: Reader) -> Table | None:
    """Take the table; None where it is no path."""
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
    found = r.whole()
    if found > _MOST_ROWS:
        r.fail(f"a whole number up to {_MOST_ROWS} is expected here.", at)
    return found
