"""Parses REPLACE WHERE, REPLACE ON and REPLACE USING of an INSERT, and the alias of its table and of its query.

Source: Spark 4.3's grammar of INSERT INTO … REPLACE, and Databricks' documentation of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch._expressions.dialect import TokenType, word
from anabranch._sql.grammar.parts import Expression
from anabranch._sql.grammar.reader import Reader
from anabranch._sql.grammar.tables_read import alias_at

QUERY = ("SELECT", "VALUES", "WITH", "TABLE", "FROM", "MAP", "REDUCE")
"""Words with which a query begins."""
_WANTS_OPERAND = frozenset(
    {
        "AND",
        "OR",
        "NOT",
        "IN",
        "EXISTS",
        "ANY",
        "SOME",
        "ALL",
        "LIKE",
        "ILIKE",
        "RLIKE",
        "REGEXP",
        "BETWEEN",
        "IS",
        "DIV",
    }
)
_ENDS_OPERAND = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.NUMBER, TokenType.STRING})


@dataclass(frozen=True)
class ReplaceClause:
    """Which rows an INSERT replaces: those of ``where``, or those that its own rows match by ``on`` or ``using``."""

    where: Expression | None = None
    on: Expression | None = None
    using: tuple[str, ...] = ()

    @property
    def is_matched(self) -> bool:
        """Whether the statement's own rows say what it replaces."""
        return self.on is not None or bool(self.using)


def begins_query(r: Reader) -> bool:
    """Whether a query comes next, in parentheses or not."""
    return _begins_query_at(r, r.i)


def _begins_query_at(r: Reader, i: int) -> bool:
    while i < len(r.tokens) and r.tokens[i].token_type == TokenType.L_PAREN:
        i += 1
    return i < len(r.tokens) and word(r.tokens[i]) in QUERY


def target_alias(r: Reader) -> str | None:
    """Take the alias of the table of an INSERT, which only a REPLACE clause follows; None if there is none."""
    at = r.i
    alias, r.i = alias_at(r.tokens, r.i)
    after = r.i
    if alias is not None and r.is_type(TokenType.L_PAREN) and not begins_query(r):
        r.parenthesis()
    if alias is not None and (r.at("REPLACE") or r.at("BY", "NAME", "REPLACE")):
        r.i = after
        return alias
    r.i = at
    return None


def replace_clause(r: Reader) -> ReplaceClause:
    """Take a REPLACE clause, up to the query."""
    if not r.take("REPLACE"):
        return ReplaceClause()
    if r.take("USING"):
        return ReplaceClause(using=r.take_list(lambda: r.name("the name of a column")))
    if not (r.at("WHERE") or r.at("ON")):
        r.fail("WHERE, ON or USING is expected here.")
    is_where = r.at("WHERE")
    r.i += 1
    condition = _condition(r)
    return ReplaceClause(where=condition) if is_where else ReplaceClause(on=condition)


def _condition(r: Reader) -> Expression:
    """Take a condition, up to the query, which may stand in parentheses."""
    first = r.i
    r.skip_to(frozenset(QUERY), what="a condition")
    starts = (i for i in range(first + 1, r.i) if _is_query_in_parentheses(r, first, i))
    r.i = next(starts, r.i)
    return r.expression_between(first, r.i)


def _is_query_in_parentheses(r: Reader, first: int, i: int) -> bool:
    """Whether a query in parentheses begins at token ``i``, behind a complete condition."""
    before = r.tokens[i - 1]
    if r.tokens[i].token_type != TokenType.L_PAREN or not _begins_query_at(r, i):
        return False
    is_operand = before.token_type in _ENDS_OPERAND or before.token_type == TokenType.IDENTIFIER
    is_word = word(before).isidentifier() and word(before) not in _WANTS_OPERAND
    depth = sum((t.token_type == TokenType.L_PAREN) - (t.token_type == TokenType.R_PAREN) for t in r.tokens[first:i])
    return depth == 0 and (is_operand or is_word)


def query_alias(r: Reader) -> tuple[str | None, int]:
    """Return the alias of a query in parentheses that ends the statement, and the token after the query."""
    if not r.is_type(TokenType.L_PAREN):
        return None, len(r.tokens)
    at = r.i
    r.parenthesis()
    end, r.i = r.i, at
    alias, after = alias_at(r.tokens, end)
    return (alias, end) if alias is not None and after == len(r.tokens) else (None, len(r.tokens))
