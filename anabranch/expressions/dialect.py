"""The dialect: sqlglot's for Databricks, with no word that swallows the rest of a statement unread.

Guarantee: a `TokenizedText` runs sqlglot's tokenizer and parser at most once each, however many questions are asked of
it; parts of it, and the text without some of its characters, take their tokens along.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from anabranch.errors import SqlSyntaxError
from anabranch.expressions.error_pointer import excerpt

__all__ = ["AnabranchSQL", "Token", "TokenType", "TokenizedText", "is_name", "misread", "tokenized", "word"]


class AnabranchSQL(Databricks):
    """Every statement becomes tokens to its end: SHOW, VACUUM and OPTIMIZE too, of which sqlglot's own makes one."""

    class Tokenizer(Databricks.Tokenizer):
        """Words as Spark's lexer cuts them: GROUP BY is two."""

        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            key: kind for key, kind in Databricks.Tokenizer.KEYWORDS.items() if " " not in key
        }


_DIALECT = AnabranchSQL()
_TWO_WORDS = {key: kind for key, kind in Databricks.Tokenizer.KEYWORDS.items() if key.count(" ") == 1}
"""Keywords of two words, as the parser wants them in one token."""
_QUOTED = (TokenType.IDENTIFIER, TokenType.STRING, TokenType.RAW_STRING)
_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER})
_BEFORE, _BEHIND = "SELECT 1 WHERE (", ")"


def _placed(token: Token, shift: int) -> Token:
    """The same token that many characters further on."""
    start, end = token.start + shift, token.end + shift
    return Token(token.token_type, token.text, token.line, token.col, start, end, list(token.comments))


_OPENING = [_placed(each, -len(_BEFORE)) for each in _DIALECT.tokenize(_BEFORE)]
_CLOSING = _DIALECT.tokenize(_BEHIND)


class TokenizedText:
    """An SQL text with its tokens, and its tree where it is an expression, each made when it is first asked for."""

    def __init__(self, text: str, cut: Callable[[], Sequence[Token]] | None = None) -> None:
        self.text = text
        self._cut = cut or (lambda: _DIALECT.tokenize(text))
        self._raw: Sequence[Token] | None = None
        self._tokens: list[Token] | None = None
        self._tree: exp.Expr | None = None
        self._is_parsed = False

    @classmethod
    def of(cls, text: str | TokenizedText) -> TokenizedText:
        """A text as it is, or tokenized."""
        return text if isinstance(text, TokenizedText) else cls(text)

    def __repr__(self) -> str:
        return f"TokenizedText({self.text!r})"

    @property
    def raw(self) -> Sequence[Token]:
        """The tokens as the parser takes them: a number's suffix (10L) comes as three of one place.

        Raises:
            SqlglotError: a text or a comment does not end.
        """
        if self._raw is None:
            self._raw = self._cut()
        return self._raw

    @property
    def tokens(self) -> list[Token]:
        """The tokens, each once; comments are none.

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
        """Whether it falls into tokens."""
        try:
            return self.raw is not None
        except SqlglotError:
            return False

    @property
    def tree(self) -> exp.Expr | None:
        """The tree of an expression, read as what stands behind WHERE; None where sqlglot cannot read it so."""
        if not self._is_parsed:
            self._tree = _parsed(self.text, self.raw) if self.is_readable else None
            self._is_parsed = True
        return self._tree

    def part(self, start: int, stop: int) -> TokenizedText:
        """A stretch of the text, which begins and ends between tokens."""

        def inside() -> list[Token]:
            first, after = (bisect_left(self.raw, place, key=lambda each: each.start) for place in (start, stop))
            return [_placed(each, -start) for each in self.raw[first:after]]

        return TokenizedText(self.text[start:stop], inside)

    def without(self, spans: Iterable[tuple[int, int]]) -> TokenizedText:
        """The text without these stretches, each of whole tokens, in order: from a character to before another."""
        gone = list(spans)
        ends = [0, *(stop for _, stop in gone)]
        pieces = [self.text[end:start] for end, (start, _) in zip(ends, gone, strict=False)]
        kept, cut, i = [], 0, 0
        for token in self.raw:
            while i < len(gone) and gone[i][1] <= token.start:
                cut += gone[i][1] - gone[i][0]
                i += 1
            if i == len(gone) or token.start < gone[i][0]:
                kept.append(_placed(token, -cut))
        return TokenizedText("".join([*pieces, self.text[ends[-1] :]]), lambda: kept)

    def renamed(self, places: Iterable[int], name: str) -> TokenizedText:
        """The text for the parser, with the tokens that begin at these characters as one quoted name."""
        named = frozenset(places)
        raw = [
            Token(TokenType.IDENTIFIER, name, each.line, each.col, each.start, each.end, list(each.comments))
            if each.start in named
            else each
            for each in self.raw
        ]
        return TokenizedText(self.text, lambda: raw)


def _parsed(text: str, raw: Sequence[Token]) -> exp.Expr | None:
    try:
        statements = _statements(text, raw)
    except (SqlglotError, RecursionError):
        return None
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        return None
    where = statements[0].args.get("where")
    known = ("expressions", "where", "kind")
    others = [name for name, value in statements[0].args.items() if value and name not in known]
    return where.this.this if where and isinstance(where.this, exp.Paren) and not others else None


def _statements(text: str, raw: Sequence[Token]) -> list[exp.Expr | None]:
    """Raises SqlglotError, RecursionError: the parser cannot read it."""
    within = list(_for_parser(raw))
    if within and text[: within[0].start].strip():
        within[0].comments.clear()  # what stands before the expression is no part of it
    closing = [_placed(each, len(text)) for each in _CLOSING]
    return _DIALECT.parser().parse([*_OPENING, *within, *closing], text)


def misread(text: TokenizedText) -> str:
    """Where the parser stops in an expression that has no tree, to be put behind words; empty where it does not say.

    Example:
        >>> misread(TokenizedText("id = = 1"))
        " at or near '='"
    """
    if not text.is_readable:
        return ": a text, a name in backticks or a comment does not end"
    try:
        _statements(text.text, text.raw)
    except ParseError as error:
        near = next((str(each["highlight"]) for each in error.errors if each.get("highlight")), "")
        return f" at or near {near!r}" if near else " at its end"
    except (SqlglotError, RecursionError):
        pass
    return ""


def _for_parser(raw: Sequence[Token]) -> Iterator[Token]:
    """The tokens with those of two-word keywords joined."""
    i = 0
    while i < len(raw):
        token, after = raw[i], raw[i + 1] if i + 1 < len(raw) else None
        kind = None
        if after is not None and not {token.token_type, after.token_type} & {*_QUOTED}:
            kind = _TWO_WORDS.get(f"{token.text} {after.text}".upper())
        if kind is None or after is None:
            yield token
            i += 1
        else:
            text = f"{token.text} {after.text}"
            yield Token(kind, text, token.line, token.col, token.start, after.end, [*token.comments, *after.comments])
            i += 2


def tokenized(text: str) -> list[Token]:
    """The tokens of a statement, each once; comments are none.

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
