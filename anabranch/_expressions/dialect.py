"""The dialect: sqlglot's for Databricks, with no word that swallows the rest of a statement unread.

Guarantee: a `TokenizedText` runs sqlglot's tokenizer at most once, however often it is used; parts of it, and the text
without some of its characters, reuse its tokens.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from anabranch._expressions.error_pointer import excerpt
from anabranch.errors import SqlSyntaxError

__all__ = ["AnabranchSQL", "Token", "TokenType", "TokenizedText", "is_name", "tokenize", "word"]


class AnabranchSQL(Databricks):
    """Tokenizes every statement to its end: SHOW, VACUUM and OPTIMIZE too, which sqlglot's own keeps as one token."""

    class Tokenizer(Databricks.Tokenizer):
        """Splits words as Spark's lexer does: GROUP BY is two."""

        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            key: kind for key, kind in Databricks.Tokenizer.KEYWORDS.items() if " " not in key
        }


_DIALECT = AnabranchSQL()
_QUOTED = (TokenType.IDENTIFIER, TokenType.STRING, TokenType.RAW_STRING)
_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER})


def _shift_token(token: Token, shift: int) -> Token:
    """The token, moved by a number of characters."""
    start, end = token.start + shift, token.end + shift
    return Token(token.token_type, token.text, token.line, token.col, start, end, list(token.comments))


class TokenizedText:
    """An SQL text with its tokens, which are made on first use."""

    def __init__(self, text: str, cut: Callable[[], Sequence[Token]] | None = None) -> None:
        self.text = text
        self._make_tokens = cut or (lambda: _DIALECT.tokenize(text))
        self._raw: Sequence[Token] | None = None
        self._tokens: list[Token] | None = None

    @classmethod
    def of(cls, text: str | TokenizedText) -> TokenizedText:
        """A text as it is, or tokenized."""
        return text if isinstance(text, TokenizedText) else cls(text)

    def __repr__(self) -> str:
        return f"TokenizedText({self.text!r})"

    @property
    def raw(self) -> Sequence[Token]:
        """The tokens of sqlglot: a number with a suffix (10L) comes as three tokens at one place.

        Raises:
            SqlglotError: a text or a comment does not end.
        """
        if self._raw is None:
            self._raw = self._make_tokens()
        return self._raw

    @property
    def tokens(self) -> list[Token]:
        """The tokens, each once, without comments.

        Raises:
            SqlSyntaxError: a text or a comment does not end.
        """
        if self._tokens is None:
            try:
                raw = self.raw
            except SqlglotError:
                start = max(len(self.text) - 1, 0)
                reason = "a text, a name in backticks or a comment does not end."
                shown = excerpt(self.text, start, len(self.text))
                raise SqlSyntaxError(near="end of input", reason=reason, excerpt=shown) from None
            self._tokens = [token for i, token in enumerate(raw) if i == 0 or token.start > raw[i - 1].start]
        return self._tokens

    @property
    def is_readable(self) -> bool:
        """Whether the text can be tokenized."""
        try:
            return self.raw is not None
        except SqlglotError:
            return False

    def part(self, start: int, stop: int) -> TokenizedText:
        """A part of the text that begins and ends between tokens."""

        def inside() -> list[Token]:
            first, after = (bisect_left(self.raw, place, key=lambda token: token.start) for place in (start, stop))
            return [_shift_token(token, -start) for token in self.raw[first:after]]

        return TokenizedText(self.text[start:stop], inside)

    def without(self, spans: Iterable[tuple[int, int]]) -> TokenizedText:
        """The text without these spans, each of whole tokens, in order: from a character to before another."""
        removed = list(spans)
        ends = [0, *(stop for _, stop in removed)]
        pieces = [self.text[end:start] for end, (start, _) in zip(ends, removed, strict=False)]
        tokens, cut, i = [], 0, 0
        for token in self.raw:
            while i < len(removed) and removed[i][1] <= token.start:
                cut += removed[i][1] - removed[i][0]
                i += 1
            if i == len(removed) or token.start < removed[i][0]:
                tokens.append(_shift_token(token, -cut))
        return TokenizedText("".join([*pieces, self.text[ends[-1] :]]), lambda: tokens)


def tokenize(text: str) -> list[Token]:
    """The tokens of a statement, each once, without comments.

    Raises:
        SqlSyntaxError: a text or a comment does not end.
    """
    return TokenizedText(text).tokens


def is_name(token: Token) -> bool:
    """Whether a token may be a name: in backticks, or any word. As in Spark a word may begin with digits."""
    return token.token_type in _NAMES or word(token).isidentifier()


def word(token: Token | None) -> str:
    """A token as a word of the language, in capitals; nothing for quoted names and texts."""
    return "" if token is None or token.token_type in _QUOTED else token.text.upper()
