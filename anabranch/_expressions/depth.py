"""Depth: how deep a text is nested, and texts without redundant parentheses.

Spark's parser overflows its stack somewhere between a hundred and a thousand levels, and at ten thousand exhausts the
driver's memory first. Guarantee: a text from here is nested at most `MOST_NESTED` deep, and keeps its meaning.
"""

from __future__ import annotations

from anabranch._expressions.dialect import Token, TokenizedText, TokenType
from anabranch.errors import InvalidCondition

MOST_NESTED = 200
"""Maximum nesting of parentheses, brackets, nested types and runs of NOT and of ``::``."""

_HARMLESS = 20
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_TYPES = frozenset({"array", "map", "struct"})
_LONGEST_TYPE = 300
"""Maximum number of tokens of a type that are skipped in search of the next ``::``."""
_BEFORE_A_GROUP = (TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.L_PAREN)


def shallow(tokenized: TokenizedText, table: str) -> TokenizedText:
    """The text without parentheses directly around parentheses, where there are many.

    Raises:
        InvalidCondition: it is nested deeper than Spark could read.
    """
    text = tokenized.text
    is_flat = max(map(text.lower().count, ("(", "[", "not", "::", "<"))) <= _HARMLESS
    if is_flat or not tokenized.is_readable or _depth(tokenized.tokens) <= _HARMLESS:
        return tokenized  # the parser refuses a text that cannot be read
    redundant = (tokenized.tokens[i] for i in sorted(_find_redundant(tokenized.tokens)))
    flattened = tokenized.without((token.start, token.end + 1) for token in redundant)
    if _depth(flattened.tokens) > MOST_NESTED:
        raise too_deep(text, table)
    return flattened


def too_deep(text: str, table: str) -> InvalidCondition:
    """The error for a text that is nested too deep."""
    reason = f"it is nested more than {MOST_NESTED} deep. Join conditions side by side by AND, OR or IN."
    return InvalidCondition(expression=text[:200] + "…", table=table, reason=reason)


def _depth(tokens: list[Token]) -> int:
    deepest = depth = negations = types = casts = 0
    chain_end = -1  # where another ``::`` would be one of what the last one gives
    for i, token in enumerate(tokens):
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        negations = negations + 1 if token.token_type == TokenType.NOT else 0
        types = _types(tokens, i, types)
        if token.token_type == TokenType.DCOLON:
            casts, chain_end = casts + 1 if i == chain_end else 1, _after_type(tokens, i + 1)
        deepest = max(deepest, depth + negations + types + casts * (i <= chain_end))
    return deepest


def _types(tokens: list[Token], i: int, around: int) -> int:
    """The number of types that are open after a token, of which ``around`` were open before it."""
    if tokens[i].token_type == TokenType.LT and i and tokens[i - 1].text.lower() in _TYPES:
        return around + 1
    closes = len(tokens[i].text) if around and set(tokens[i].text) == {">"} else 0
    return max(around - closes, 0)


def _after_type(tokens: list[Token], i: int) -> int:
    """The token after the type that begins at one; its numbers and types stand in brackets."""
    depth, end = 0, min(i + _LONGEST_TYPE, len(tokens))
    for at in range(i + 1, end):
        text = tokens[at].text
        depth += (text in ("(", "<")) - (len(text) if set(text) <= {">", ")"} else 0)
        if depth <= 0 and text not in ("(", "<") and not set(text) <= {">", ")"}:
            return at
    return end


def _find_redundant(tokens: list[Token]) -> set[int]:
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
        if (
            partner.get(i + 1) == end - 1
            and (before is None or before in _BEFORE_A_GROUP)
            and _opens_group(tokens, i, idle)
        ):
            idle |= {i, end}
    return idle


def _opens_group(tokens: list[Token], i: int, idle: set[int]) -> bool:
    """Whether a parenthesis opens a group and no list of arguments, by the one before it."""
    return i == 0 or tokens[i - 1].token_type != TokenType.L_PAREN or i - 1 in idle
