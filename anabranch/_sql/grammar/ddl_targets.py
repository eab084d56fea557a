"""What a statement makes under a new name.

Knows where a statement that makes a table says of what kind it will be, and where: behind the name, which alone does
not tell whether the statement is Delta's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anabranch._expressions.dialect import Token, TokenType, word

_QUERY = frozenset({"AS", "SELECT", "WITH", "FROM", "VALUES"})


@dataclass(frozen=True)
class Making:
    """What stands behind the name of a table that is made.

    Attributes:
        format: behind USING, in small letters.
        location: behind LOCATION.
        like: the name behind LIKE.
        clones: CLONE.
    """

    format: str | None = None
    location: str | None = None
    like: tuple[str, ...] | None = None
    clones: bool = False


def making(tokens: Sequence[Token], i: int) -> Making:
    """What the tokens from ``i`` on say, up to a query."""
    format_, location, like, clones, depth = None, None, None, False, 0
    while i < len(tokens):
        said, after = word(tokens[i]), tokens[i + 1] if i + 1 < len(tokens) else None
        depth += (tokens[i].token_type == TokenType.L_PAREN) - (tokens[i].token_type == TokenType.R_PAREN)
        travels = said == "AS" and word(after) == "OF"
        if depth == 0 and said in _QUERY and not travels and not (said == "FROM" and clones):
            break
        if depth == 0 and after is not None:
            if said == "USING" and format_ is None:
                format_ = after.text.lower()
            elif said == "LOCATION" and after.token_type in (TokenType.STRING, TokenType.RAW_STRING):
                location = after.text
            elif said == "OPTIONS" and after.token_type == TokenType.L_PAREN and location is None:
                location = _path(tokens, i + 2)
            elif said == "LIKE" and like is None:
                like = _name(tokens, i + 1)
            clones = clones or said == "CLONE"
        i += 1
    return Making(format_, location, like, clones)


def _path(tokens: Sequence[Token], i: int) -> str | None:
    """The value of the option ``path`` in a list of options."""
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
