"""Scripts: several statements in one text. Pure; knows where a statement ends, and not what it says."""

from __future__ import annotations

from anabranch._expressions.dialect import TokenizedText, TokenType


def split(text: str) -> list[str]:
    """The statements of a script, one after the other, as they were written; a semicolon in a text ends none.

    Raises:
        SqlSyntaxError: a text or a comment does not end.
    """
    found, start, last = [], 0, 0
    for token in TokenizedText(text).tokens:
        if token.token_type == TokenType.SEMICOLON:
            found.append((text[start : token.start], last > start))
            start = token.end + 1
        last = token.end + 1
    found.append((text[start:], last > start))
    return [each.strip() for each, has_words in found if has_words]
