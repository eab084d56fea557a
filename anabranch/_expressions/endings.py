"""Endings: Spark reads a text as an expression and, if it likes, a name behind it: ``id = 1 AND`` is ``id = 1``, named
``AND``. In a session that has double quotes for names, ``s = 'x' "y"`` is named, too.

So a condition whose second half is missing would select more rows than was meant. Guarantee: a text from here is an
expression with no name behind it, or Spark cannot read it; it means what it meant.
"""

from __future__ import annotations

from anabranch._expressions.dialect import Token, TokenizedText, TokenType
from anabranch.errors import UnreadableExpression

_LITERALS = frozenset({TokenType.STRING, TokenType.RAW_STRING, TokenType.NUMBER})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})
_JOINING = frozenset({"AND", "OR"})
_WANT_MORE = _JOINING | {
    *("NOT", "IS", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "FROM", "DIV", "THEN", "ELSE", "WHEN", "CASE"),
    *("ESCAPE", "COLLATE"),
}
"""Words behind which a word goes on with the expression, unless they are names themselves."""


def prevent_alias(given: TokenizedText, table: str) -> str:
    """The text; in parentheses, in which no name can follow, where its last word might be one.

    Raises:
        UnreadableExpression: it ends by AND or OR.
    """
    if not given.is_readable or not _may_end_by_a_name(given):
        return given.text
    if given.tokens[-1].text.upper() in _JOINING and given.tokens[-1].token_type != TokenType.IDENTIFIER:
        raise UnreadableExpression(expression=given.text, table=table, reason="it has a syntax error at its end.")
    return f"({given.text}\n)" if "--" in given.text else f"({given.text})"


def _may_end_by_a_name(given: TokenizedText) -> bool:
    tokens = given.tokens
    if len(tokens) < 2 or not _may_end(tokens[-2]):
        return False
    return _is_word(tokens[-1]) or given.text[tokens[-1].start] == '"'


def _is_word(token: Token) -> bool:
    return token.token_type == TokenType.IDENTIFIER or (
        token.token_type not in _LITERALS and token.text[:1].isidentifier()
    )


def _may_end(token: Token) -> bool:
    """Whether an expression may end by it."""
    if token.token_type in _LITERALS or token.token_type in _CLOSING or token.token_type == TokenType.IDENTIFIER:
        return True
    return _is_word(token) and token.text.upper() not in _WANT_MORE
