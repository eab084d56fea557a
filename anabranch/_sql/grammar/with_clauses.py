"""WITH before a statement that is no query: each of its subqueries gets the WITH, which Spark then reads there.

Guarantee: the statement means the same, since a subquery sees the tables of a WITH before it as those of its own.
"""

from __future__ import annotations

from anabranch._expressions.dialect import TokenType, word
from anabranch._sql.grammar.reader import Reader

_SUBQUERY = frozenset({"SELECT", "VALUES", "WITH", "TABLE", "FROM"})


def move_with_into_subqueries(r: Reader, ctes: tuple[int, int]) -> Reader:
    """Return a reader of the statement behind the WITH in tokens ``ctes``, whose outermost subqueries begin with it.

    ``WITH x AS (…) DELETE FROM t WHERE id IN (SELECT id FROM x)`` becomes
    ``DELETE FROM t WHERE id IN (WITH x AS (…) (SELECT id FROM x))``.
    """
    pieces, first = list[tuple[int, int]](), ctes[1]
    i = first
    while i < len(r.tokens):
        end = _close(r, i) if _begins_subquery(r, i) else None
        if end is not None:
            pieces += [(first, i + 1), ctes, (i, i + 1), (i + 1, end), (end, end + 1)]
            first = i = end
        i += 1
    return r.rearrange(*pieces, (first, len(r.tokens)))


def _begins_subquery(r: Reader, i: int) -> bool:
    after = r.tokens[i + 1] if i + 1 < len(r.tokens) else None
    return r.tokens[i].token_type == TokenType.L_PAREN and after is not None and word(after) in _SUBQUERY


def _close(r: Reader, i: int) -> int | None:
    """Return the token that closes the parenthesis at token ``i``; None if none does."""
    depth = 0
    for place in range(i, len(r.tokens)):
        kind = r.tokens[place].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if depth == 0:
            return place
    return None
