"""Hidden columns: finds whether a query names ``_metadata``, and the stars that must exclude that column.

Works on tokens. ``*`` would include a column that is added to a table for a query, so each star excludes it. A query
that selects all columns by other means is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from anabranch._expressions.dialect import Token, TokenType, is_name, word

NAME = "_metadata"
_BEFORE_STAR = frozenset({TokenType.COMMA, TokenType.DOT, TokenType.L_PAREN})
_WORDS_BEFORE_STAR = frozenset({"SELECT", "DISTINCT", "ALL"})
_ALL_COLUMNS = frozenset({"NATURAL", "PIVOT", "UNPIVOT", "MATCH_RECOGNIZE", "TRANSFORM"})
"""Words that make a query depend on columns that it does not name."""


def asks(tokens: Sequence[Token]) -> bool:
    """Whether the tokens name the column."""
    return any(token.text.lower() == NAME and is_name(token) for token in tokens)


def stars(tokens: Sequence[Token]) -> tuple[int, ...]:
    """Find the stars that select columns, not those that multiply or count."""
    return tuple(
        i for i, token in enumerate(tokens) if token.token_type == TokenType.STAR and _selects_columns(tokens, i)
    )


def _selects_columns(tokens: Sequence[Token], i: int) -> bool:
    before = tokens[i - 1] if i else None
    if before is None or not (before.token_type in _BEFORE_STAR or word(before) in _WORDS_BEFORE_STAR):
        return False
    counts = before.token_type == TokenType.L_PAREN and i > 1 and word(tokens[i - 2]) == "COUNT"
    return not counts


def refusal_reason(tokens: Sequence[Token], tables: int) -> str | None:
    """Return why a query of this number of Delta tables cannot read the column; None if it can."""
    words = [word(token) for token in tokens]
    reason = next((keyword for keyword in words if keyword in _ALL_COLUMNS), None)
    reason = "|>" if any(token.token_type == TokenType.PIPE_GT for token in tokens) else reason
    selects, select_stars = words.count("SELECT"), stars(tokens)
    if reason is not None or not selects:
        return f"_metadata in a query with {reason or 'no SELECT'}"
    excepts = any(i + 1 < len(words) and words[i + 1] == "EXCEPT" for i in select_stars)
    if select_stars and (selects > 1 or tables > 1 or excepts):
        return "_metadata beside * in a query of several SELECTs or tables, or with EXCEPT"
    return None
