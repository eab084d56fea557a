"""The target of a statement that creates a table: its format and its location.

These follow the table's name, which alone does not decide whether the statement is Delta's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anabranch._expressions.dialect import Token, TokenType, word

_QUERY = frozenset({"AS", "SELECT", "WITH", "FROM", "VALUES"})


@dataclass(frozen=True)
class CreateTarget:
    """The clauses after the name of a table to create.

    Attributes:
        format: the format of USING, in lower case.
        location: the path of LOCATION, or the option ``path``.
        like: the name of LIKE.
        clones: whether the statement has CLONE.
    """

    format: str | None = None
    location: str | None = None
    like: tuple[str, ...] | None = None
    clones: bool = False


def parse_create_target(tokens: Sequence[Token], i: int) -> CreateTarget:
    """Scan the clauses from token ``i`` on, up to a query."""
    format_, location, like, clones, depth = None, None, None, False, 0
    while i < len(tokens):
        keyword, after = word(tokens[i]), tokens[i + 1] if i + 1 < len(tokens) else None
        depth += (tokens[i].token_type == TokenType.L_PAREN) - (tokens[i].token_type == TokenType.R_PAREN)
        travels = keyword == "AS" and word(after) == "OF"
        if depth == 0 and keyword in _QUERY and not travels and not (keyword == "FROM" and clones):
            break
        if depth == 0 and after is not None:
            if keyword == "USING" and format_ is None:
                format_ = after.text.lower()
            elif keyword == "LOCATION" and after.token_type in (TokenType.STRING, TokenType.RAW_STRING):
                location = after.text
            elif keyword == "OPTIONS" and after.token_type == TokenType.L_PAREN and location is None:
                location = _path(tokens, i + 2)
            elif keyword == "LIKE" and like is None:
                like = _name(tokens, i + 1)
            clones = clones or keyword == "CLONE"
        i += 1
    return CreateTarget(format_, location, like, clones)


def _path(tokens: Sequence[Token], i: int) -> str | None:
    """Find the value of the option ``path`` in a list of options."""
    while i + 1 < len(tokens) and tokens[i].token_type != TokenType.R_PAREN:
        value = i + 2 if tokens[i + 1].token_type == TokenType.EQ else i + 1
        if tokens[i].text.lower() == "path" and value < len(tokens):
            return tokens[value].text
        i += 1
    return None


def _name(tokens: Sequence[Token], i: int) -> tuple[str, ...]:
    parts = [tokens[i].text]
    while i + 2 < len(tokens) and tokens[i + 1].token_type == TokenType.DOT:
        i += 2
        parts.append(tokens[i].text)
    return tuple(parts)
