"""A cursor over a statement's tokens: takes words, names and literals, and reports what it expected.

Guarantee: a token that the grammar does not allow raises a `SqlSyntaxError` that points at it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import NoReturn, TypeVar

from anabranch._expressions.dialect import Token, TokenType, is_name, word
from anabranch._expressions.error_pointer import excerpt
from anabranch.errors import SqlSyntaxError

Value = TypeVar("Value")
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
_SIGNS = frozenset({TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.DPIPE})
_UNITS = frozenset({"DAY", "HOUR", "MINUTE", "SECOND", "MONTH", "YEAR", "WEEK"})
_ELEMENT = re.compile(r"\[([^]]*)\]|(\S+)")
_TEXTS = frozenset({TokenType.STRING, TokenType.RAW_STRING})


def behind_with(tokens: Sequence[Token], verbs: Collection[str]) -> int | None:
    """Find the token of one of these verbs after the CTEs of a WITH; None if there is none."""
    depth = 0
    for i, token in enumerate(tokens[:-1]):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and word(token) in ("SELECT", "FROM"):  # a verb after it would be a name
            return None
        if depth == 0 and token.token_type == TokenType.R_PAREN and word(tokens[i + 1]) in verbs:
            return i + 1
    return None


class Cursor:
    """A position in a statement, which advances as tokens are taken."""

    def __init__(self, text: str, tokens: Sequence[Token], i: int = 0) -> None:
        self.text, self.tokens, self.i = text, tokens, i

    @property
    def token(self) -> Token | None:
        """The next token; None at the end."""
        return self.tokens[self.i] if self.i < len(self.tokens) else None

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left."""
        return self.i >= len(self.tokens)

    def ahead(self, n: int = 0) -> str:
        """The word n tokens ahead."""
        return word(self.tokens[self.i + n]) if self.i + n < len(self.tokens) else ""

    def is_type(self, kind: TokenType, n: int = 0) -> bool:
        """Whether the token n ahead has this type."""
        return self.i + n < len(self.tokens) and self.tokens[self.i + n].token_type == kind

    def at(self, *words: str) -> bool:
        """Whether these words come next."""
        return all(self.ahead(n) == expected for n, expected in enumerate(words))

    def take(self, *words: str) -> bool:
        """Take these words, if they come next."""
        matches = self.at(*words)
        self.i += len(words) if matches else 0
        return matches

    def has_taken(self, one: str) -> bool:
        """Whether this word was already taken."""
        return any(word(token) == one for token in self.tokens[: self.i])

    def expect(self, *words: str) -> None:
        """Take these words.

        Raises:
            SqlSyntaxError: another word comes next.
        """
        for expected in words:
            if not self.take(expected):
                self.fail(f"{expected} is expected here.")

    def fail(self, reason: str, at: int | None = None) -> NoReturn:
        """Raise a SqlSyntaxError that points at token ``at``, by default the next one."""
        i = self.i if at is None else at
        if i < len(self.tokens):
            token = self.tokens[i]
            start, stop, near = token.start, token.end + 1, f"'{self.text[token.start : token.end + 1]}'"
        else:
            start, stop, near = self.end, self.end + 1, "end of input"
        raise SqlSyntaxError(near=near, reason=reason, excerpt=excerpt(self.text, start, stop))

    def finish(self) -> None:
        """Raise a SqlSyntaxError unless the statement ends here."""
        if not self.is_at_end:
            self.fail("the statement should end here.")

    @property
    def start(self) -> int:
        """The position in the text at which the next token begins."""
        return self.tokens[self.i].start if self.i < len(self.tokens) else self.end

    @property
    def stop(self) -> int:
        """The position after the last token that was taken."""
        return self.tokens[self.i - 1].end + 1 if self.i else 0

    @property
    def end(self) -> int:
        """The position after the last token of the statement."""
        return self.tokens[-1].end + 1 if self.tokens else 0

    # -- names and literals

    def is_name(self, n: int = 0) -> bool:
        """Whether the token n ahead can be a name: in backticks, or any word."""
        return self.i + n < len(self.tokens) and is_name(self.tokens[self.i + n])

    def name(self, what: str = "a name") -> str:
        """Take a name.

        Raises:
            SqlSyntaxError: there is none.
        """
        if not self.is_name():
            self.fail(f"{what} is expected here.")
        self.i += 1
        return self.tokens[self.i - 1].text

    def path(self, what: str = "a name") -> tuple[str, ...]:
        """Take a dotted name."""
        parts = [self.name(what)]
        while self.is_type(TokenType.DOT) and self.is_name(1):
            self.i += 1
            parts.append(self.name(what))
        return tuple(parts)

    def names(self) -> Collection[tuple[str, ...]]:
        """Return each dotted name of the whole statement once."""
        i, result = self.i, dict[tuple[str, ...], None]()
        self.i = 0
        while not self.is_at_end:
            if self.is_name():
                result[self.path()] = None
            else:
                self.i += 1
        self.i = i
        return result

    def is_text(self) -> bool:
        """Whether a string literal comes next."""
        return self.token is not None and self.token.token_type in _TEXTS

    def string(self, what: str = "a text in quotes", *, alone: bool = False) -> str:
        """Take a string literal, and join those that follow it unless ``alone``.

        A literal with a doubled quote comes as two tokens that touch, and is always joined.
        """
        if not self.is_text():
            self.fail(f"{what} is expected here.")
        value = self.tokens[self.i].text
        self.i += 1
        while self.is_text():
            touches = self.tokens[self.i].start == self.tokens[self.i - 1].end + 1
            if alone and not touches:
                break
            value += (self.text[self.tokens[self.i].start] if touches else "") + self.tokens[self.i].text
            self.i += 1
        return value

    def number(self, what: str = "a number") -> str:
        """Take a number, as written."""
        sign = "-" if self.is_type(TokenType.DASH) else ""
        self.i += len(sign)
        if not self.is_type(TokenType.NUMBER):
            self.fail(f"{what} is expected here.")
        self.i += 1
        return sign + self.tokens[self.i - 1].text

    def whole(self, what: str = "a whole number") -> int:
        """Take a whole number."""
        at = self.i
        digits = self.number(what)
        if not digits.removeprefix("-").isdigit():
            self.fail(f"{what} is expected here.", at)
        return int(digits)

    # -- lists and expressions

    def take_list(self, parse: Callable[[], Value]) -> tuple[Value, ...]:
        """Take a list in parentheses, separated by commas."""
        self.punctuation(TokenType.L_PAREN, "(")
        values = [parse()]
        while self.is_type(TokenType.COMMA):
            self.i += 1
            values.append(parse())
        self.punctuation(TokenType.R_PAREN, ")")
        return tuple(values)

    def single(self, parse: Callable[[], Value]) -> Value:
        """Take one element in parentheses."""
        self.punctuation(TokenType.L_PAREN, "(")
        value = parse()
        self.punctuation(TokenType.R_PAREN, ")")
        return value

    def punctuation(self, kind: TokenType, sign: str) -> None:
        """Take one punctuation mark."""
        if not self.is_type(kind):
            self.fail(f"'{sign}' is expected here.")
        self.i += 1

    def skip_to(self, stops: frozenset[str] = frozenset(), *, comma: bool = False, what: str = "an expression") -> None:
        """Skip an expression: up to one of these words, the end of the enclosing parentheses, or a ``comma``.

        Words in parentheses, after a dot, and between CASE and END do not count.

        Raises:
            SqlSyntaxError: the expression is empty, or a parenthesis is not closed.
        """
        first, depth, cases = self.i, 0, 0
        while not self.is_at_end:
            token, keyword = self.tokens[self.i], word(self.tokens[self.i])
            if depth == 0 and self._stops(token, keyword, stops, cases, comma=comma):
                break
            depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
            if not self._is_member():
                cases += (keyword == "CASE") - (keyword == "END" and cases > 0)
            self.i += 1
        if depth:
            self.i = len(self.tokens)
            self.fail("a parenthesis is not closed.")
        if self.i == first:
            self.fail(f"{what} is expected here.")

    def _stops(self, token: Token, keyword: str, stops: frozenset[str], cases: int, *, comma: bool) -> bool:
        if token.token_type in _CLOSING or (comma and token.token_type == TokenType.COMMA):
            return True
        return keyword in stops and cases == 0 and not self._is_member()

    def _is_member(self) -> bool:
        return self.is_type(TokenType.DOT, -1) if self.i else False

    def skip_operands(self, what: str) -> None:
        """Skip a value: operands with operators between them."""
        self._skip_operand(what)
        while self.token is not None and self.token.token_type in _SIGNS:
            self.i += 1
            self._skip_operand(what)

    def _skip_operand(self, what: str) -> None:
        if self.is_type(TokenType.COLON) or self.is_type(TokenType.DASH):
            self.i += 1
        if self.is_type(TokenType.L_PAREN):
            self.parenthesis()
            return
        if self.is_at_end:
            self.fail(f"{what} is expected here.")
        is_word = not (self.is_text() or self.is_type(TokenType.NUMBER))
        is_interval = self.at("INTERVAL")
        self.i += 1
        if is_interval:
            self.i += 1
            self.i += self.ahead().rstrip("S") in _UNITS
        elif is_word and self.is_type(TokenType.L_PAREN):
            self.parenthesis()
        elif is_word and self.is_text():
            self.i += 1

    def parenthesis(self) -> None:
        """Take parentheses around expressions that are separated by commas, or around nothing."""
        self.i += 1
        if not self.is_type(TokenType.R_PAREN):
            self.skip_to()
            while self.is_type(TokenType.COMMA):
                self.i += 1
                self.skip_to()
        self.punctuation(TokenType.R_PAREN, ")")


def takes(r: Cursor, words: str) -> bool:
    """Take words, if they come next: ``[…]`` is optional, ``A|B`` is one of two."""
    at = r.i
    for optional, required in _ELEMENT.findall(words):
        if optional:
            r.take(*optional.split())
        elif not any(r.take(choice) for choice in required.split("|")):
            r.i = at
            return False
    return True
