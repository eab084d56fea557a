"""Endings: Spark accepts an alias after an expression: ``id = 1 AND`` is ``id = 1``, named ``AND``. In a session that
has double quotes for names, ``s = 'x' "y"`` is named, too.

So a condition whose second half is missing would select more rows than intended. Guarantee: a text from here is an
expression without an alias, or Spark cannot read it; it keeps its meaning.
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
"""Words after which a word continues the expression, unless they are names themselves."""


def prevent_alias(tokenized: TokenizedText, table: str) -> str:
    """The text; in parentheses, after which no alias can follow, where its last word might be one.

    Raises:
        UnreadableExpression: it ends with AND or OR.
    """
    if not tokenized.is_readable or not _may_end_by_a_name(tokenized):
        return tokenized.text
    if tokenized.tokens[-1].text.upper() in _JOINING and tokenized.tokens[-1].token_type != TokenType.IDENTIFIER:
        raise UnreadableExpression(expression=tokenized.text, table=table, reason="it has a syntax error at its end.")
    return f"({tokenized.text}\n)" if "--" in tokenized.text else f"({tokenized.text})"


def _may_end_by_a_name(tokenized: TokenizedText) -> bool:
    tokens = tokenized.tokens
    if len(tokens) < 2 or not _may_end(tokens[-2]):
        return False
    return _is_word(tokens[-1]) or tokenized.text[tokens[-1].start] == '"'


def _is_word(token: Token) -> bool:
    return token.token_type == TokenType.IDENTIFIER or (
        token.token_type not in _LITERALS and token.text[:1].isidentifier()
    )


def _may_end(token: Token) -> bool:
    """Whether an expression may end with a token."""
    if token.token_type in _LITERALS or token.token_type in _CLOSING or token.token_type == TokenType.IDENTIFIER:
        return True
    return _is_word(token) and token.text.upper() not in _WANT_MORE
