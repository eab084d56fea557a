"""Splits scripts, several statements in one text. Pure; finds the ends of statements, and does not parse them."""

from __future__ import annotations

from anabranch._expressions.dialect import TokenizedText, TokenType


def split(text: str) -> list[str]:
    """Return the statements of a script in order, as written; a semicolon in a string literal ends none.

    Raises:
        SqlSyntaxError: a string literal or a comment is not closed.
    """
    statements, start, last = [], 0, 0
    for token in TokenizedText(text).tokens:
        if token.token_type == TokenType.SEMICOLON:
            statements.append((text[start : token.start], last > start))
            start = token.end + 1
        last = token.end + 1
    statements.append((text[start:], last > start))
    return [statement.strip() for statement, has_words in statements if has_words]
