"""Depth: how deep a text is nested, and texts without the parentheses that say nothing.

Spark's parser overflows its stack somewhere between some hundred and a thousand levels, and takes the driver's whole
memory before it says so at ten thousand. Guarantee: a text from here is nested at most `MOST_NESTED` deep, and means
what it meant.
"""

from __future__ import annotations

from anabranch._expressions.dialect import Token, TokenizedText, TokenType
from anabranch.errors import InvalidCondition

MOST_NESTED = 200
"""So deep may parentheses, brackets, nested types and runs of NOT and of ``::`` stand in each other."""

_HARMLESS = 20
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_TYPES = frozenset({"array", "map", "struct"})
_LONGEST_TYPE = 300
"""So many words of a type are passed over in search of the next ``::``."""
_BEFORE_A_GROUP = (TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.L_PAREN)


def shallow(given: TokenizedText, table: str) -> TokenizedText:
    """The text, without parentheses right around parentheses where there are many; it is not read otherwise.

    Raises:
        InvalidCondition: it is nested deeper than Spark could read.
    """
    text = given.text
    few = max(map(text.lower().count, ("(", "[", "not", "::", "<"))) <= _HARMLESS
    if few or not given.is_readable or _depth(given.tokens) <= _HARMLESS:
        return given  # what cannot be read is refused by whoever reads it
    idle = (given.tokens[i] for i in sorted(_idle(given.tokens)))
    found = given.without((token.start, token.end + 1) for token in idle)
    if _depth(found.tokens) > MOST_NESTED:
        raise too_deep(text, table)
    return found


def too_deep(text: str, table: str) -> InvalidCondition:
    """The error that says so."""
    reason = f"it is nested more than {MOST_NESTED} deep. Join conditions side by side by AND, OR or IN."
    return InvalidCondition(expression=text[:200] + "…", table=table, reason=reason)


def _depth(tokens: list[Token]) -> int:
    most = depth = negations = types = casts = 0
    goes_on = -1  # where another ``::`` would be one of what the last one gives
    for i, token in enumerate(tokens):
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        negations = negations + 1 if token.token_type == TokenType.NOT else 0
        types = _types(tokens, i, types)
        if token.token_type == TokenType.DCOLON:
            casts, goes_on = casts + 1 if i == goes_on else 1, _behind_type(tokens, i + 1)
        most = max(most, depth + negations + types + casts * (i <= goes_on))
    return most


def _types(tokens: list[Token], i: int, around: int) -> int:
    """How many types are open behind a token, where so many were before it."""
    if tokens[i].token_type == TokenType.LT and i and tokens[i - 1].text.lower() in _TYPES:
        return around + 1
    closes = len(tokens[i].text) if around and set(tokens[i].text) == {">"} else 0
    return max(around - closes, 0)


def _behind_type(tokens: list[Token], i: int) -> int:
    """The token behind the type that begins at one; its numbers and types stand in brackets."""
    depth, end = 0, min(i + _LONGEST_TYPE, len(tokens))
    for at in range(i + 1, end):
        text = tokens[at].text
        depth += (text in ("(", "<")) - (len(text) if set(text) <= {">", ")"} else 0)
        if depth <= 0 and text not in ("(", "<") and not set(text) <= {">", ")"}:
            return at
    return end


def _idle(tokens: list[Token]) -> set[int]:
    """Parentheses that hold nothing but another pair, and stand where only an expression can stand."""
    partner: dict[int, int] = {}
    opened: list[int] = []
    for i, token in enumerate(tokens):
        if token.token_type == TokenType.L_PAREN:
            opened.append(i)
        elif token.token_type == TokenType.R_PAREN and opened:
            partner[opened.pop()] = i
    idle: set[int] = set()
    for i, end in sorted(partner.items()):
        before = tokens[i - 1].token_type if i else None
        if partner.get(i + 1) == end - 1 and (before is None or before in _BEFORE_A_GROUP) and _groups(tokens, i, idle):
            idle |= {i, end}
    return idle


def _groups(tokens: list[Token], i: int, idle: set[int]) -> bool:
    """Whether a parenthesis opens a group and no list of arguments, as far as the one before it says."""
    return i == 0 or tokens[i - 1].token_type != TokenType.L_PAREN or i - 1 in idle
