"""The dialect: sqlglot's for Databricks, with no word that swallows the rest of a statement unread."""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from anabranch.errors import SqlSyntaxError
from anabranch.expressions.error_pointer import excerpt

__all__ = ["AnabranchSQL", "Token", "TokenType", "tokenized", "word"]


class AnabranchSQL(Databricks):
    """Every statement becomes tokens to its end: SHOW, VACUUM and OPTIMIZE too, of which sqlglot's own makes one."""

    class Tokenizer(Databricks.Tokenizer):
        """Words as Spark's lexer cuts them: GROUP BY is two."""

        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            key: kind for key, kind in Databricks.Tokenizer.KEYWORDS.items() if " " not in key
        }


_DIALECT = AnabranchSQL()


def tokenized(text: str) -> list[Token]:
    """The tokens of a statement, each once; comments are none.

    Raises:
        SqlSyntaxError: a text or a comment does not end.
    """
    try:
        tokens = _DIALECT.tokenize(text)
    except SqlglotError:
        start = max(len(text) - 1, 0)
        reason = "a text, a name in backticks or a comment does not end."
        raise SqlSyntaxError(near="end of input", reason=reason, excerpt=excerpt(text, start, len(text))) from None
    # A number's suffix (10L) comes as three tokens of one place.
    return [token for i, token in enumerate(tokens) if i == 0 or token.start > tokens[i - 1].start]


def word(token: Token | None) -> str:
    """A token as a word of the language, in capitals; nothing for quoted names and texts."""
    if token is None or token.token_type in (TokenType.IDENTIFIER, TokenType.STRING, TokenType.RAW_STRING):
        return ""
    return token.text.upper()
