"""Hidden columns: where a query asks for ``_metadata``, and what of it must not show that column.

Works on tokens. A column that a table is given for a query would be one of those that ``*`` stands for; so each star
leaves it out, and a query in which more than a star means all columns is told so.
"""

from __future__ import annotations

from collections.abc import Sequence

from anabranch._expressions.dialect import Token, TokenType, is_name, word

NAME = "_metadata"
_BEFORE_STAR = frozenset({TokenType.COMMA, TokenType.DOT, TokenType.L_PAREN})
_WORDS_BEFORE_STAR = frozenset({"SELECT", "DISTINCT", "ALL"})
_ALL_COLUMNS = frozenset({"NATURAL", "PIVOT", "UNPIVOT", "MATCH_RECOGNIZE", "TRANSFORM"})
"""Words by which columns matter that a query does not name."""


def asks(tokens: Sequence[Token]) -> bool:
    """Whether some words speak of the column."""
    return any(token.text.lower() == NAME and is_name(token) for token in tokens)


def stars(tokens: Sequence[Token]) -> tuple[int, ...]:
    """The stars that stand for columns; none that multiplies or counts."""
    return tuple(i for i, token in enumerate(tokens) if token.token_type == TokenType.STAR and _is_all(tokens, i))


def _is_all(tokens: Sequence[Token], i: int) -> bool:
    before = tokens[i - 1] if i else None
    if before is None or not (before.token_type in _BEFORE_STAR or word(before) in _WORDS_BEFORE_STAR):
        return False
    counts = before.token_type == TokenType.L_PAREN and i > 1 and word(tokens[i - 2]) == "COUNT"
    return not counts


def refusal_reason(tokens: Sequence[Token], tables: int) -> str | None:
    """Why the column cannot be had in a query that reads so many Delta tables; None where it can."""
    said = [word(token) for token in tokens]
    found = next((each for each in said if each in _ALL_COLUMNS), None)
    found = "|>" if any(token.token_type == TokenType.PIPE_GT for token in tokens) else found
    selects, shown = said.count("SELECT"), stars(tokens)
    if found is not None or not selects:
        return f"_metadata in a query with {found or 'no SELECT'}"
    excepts = any(i + 1 < len(said) and said[i + 1] == "EXCEPT" for i in shown)
    if shown and (selects > 1 or tables > 1 or excepts):
        return "_metadata beside * in a query of several SELECTs or tables, or with EXCEPT"
    return None
