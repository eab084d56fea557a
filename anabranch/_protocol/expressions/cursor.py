"""A cursor over the words of an expression, and the types in a CAST.

Knows words and types, and no expressions. Pure. Guarantee: a word that no rule takes is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn, TypeVar

from anabranch._protocol.expressions.lexer import ParseError, Word, quote_name
from anabranch._protocol.schema.intervals import INTERVALS, canonical_type

_T = TypeVar("_T")

MOST_NESTED = 100
"""The maximum nesting of brackets, CASE and signs."""

_PLAIN_TYPES = frozenset(
    """boolean tinyint byte smallint short int integer bigint long float real double date timestamp timestamp_ntz
    timestamp_ltz string binary variant decimal dec numeric char character varchar""".split()  # noqa: SIM905
)
_INTERVAL_FIELDS = ("year", "month", "day", "hour", "minute", "second")
_SIZED = frozenset({"decimal", "dec", "numeric", "char", "character", "varchar"})


def too_deep() -> ParseError:
    """The error for deeper nesting than `MOST_NESTED`."""
    return ParseError("an expression that is nested too deep", f"it may be nested {MOST_NESTED} deep")


@dataclass
class Cursor:
    """Reads words from left to right."""

    words: list[Word]
    i: int = 0
    depth: int = 0

    # -- words ---------------------------------------------------------------------------------------------------------

    def ahead(self, by: int = 0) -> Word:
        return self.words[min(self.i + by, len(self.words) - 1)]

    def at_sign(self, *signs: str, by: int = 0) -> bool:
        word = self.ahead(by)
        return word.kind == "sign" and word.text in signs

    def at(self, *words: str, by: int = 0) -> bool:
        return self.ahead(by).lower_word in words

    def next(self) -> Word:
        """Take the next word, whatever it is."""
        self.i += 1
        return self.words[self.i - 1]

    def take_sign(self, *signs: str) -> bool:
        is_next = self.at_sign(*signs)
        self.i += is_next
        return is_next

    def take(self, *words: str) -> bool:
        is_next = self.at(*words)
        self.i += is_next
        return is_next

    def expect_sign(self, sign: str) -> None:
        if not self.take_sign(sign):
            self.fail(f"{sign} is expected there")

    def expect(self, word: str) -> None:
        if not self.take(word):
            self.fail(f"{word.upper()} is expected there")

    def expect_end(self) -> None:
        if self.ahead().kind != "end":
            self.fail("the expression ends before it")

    def fail(self, reason: str) -> NoReturn:
        word = self.ahead()
        raise ParseError(str(word), reason, ends=word.kind == "end", at=word.start)

    def read_nested(self, read: Callable[[], _T]) -> _T:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise too_deep()
        node = read()
        self.depth -= 1
        return node

    def with_span(self, node: _T, start: int) -> _T:
        """A node with the span of the words from one on to the last taken word."""
        return replace(node, start=self.words[start].start, stop=self.words[self.i - 1].stop)  # type: ignore[type-var]

    def name_part(self) -> Word:
        if self.ahead().kind not in ("word", "name") or self.at_sign("(", by=1):
            self.fail("the name of a member is expected there")
        return self.next()

    # -- types ---------------------------------------------------------------------------------------------------------

    def type_(self) -> str:
        """Parse a type, and return its spelling."""
        word = self.next().lower_word
        if word == "array":
            return f"ARRAY < {self._within(1)} >"
        if word == "map":
            return f"MAP < {self._within(2)} >"
        if word == "struct":
            return self._struct()
        if word == "interval" and self.at(*_INTERVAL_FIELDS):
            return self._interval_type()
        if word not in _PLAIN_TYPES:
            self.i -= 1
            self.fail("it is no type")
        return word.upper() + (self._digits() if word in _SIZED and self.take_sign("(") else "")

    def _interval_type(self) -> str:
        name = f"interval {self.next().lower_word}"
        if self.take("to"):
            name += f" to {self.next().lower_word}"
        if canonical_type(name) not in INTERVALS:
            self.i -= 1
            self.fail("it is no type")
        return name.upper()

    def _digits(self) -> str:
        numbers: list[str] = []
        while True:
            if self.ahead().kind != "number" or not self.ahead().text.isdigit() or len(numbers) == 2:
                self.fail("a number is expected there")
            numbers.append(self.next().text)
            if not self.take_sign(","):
                break
        self.expect_sign(")")
        return f"({', '.join(numbers)})"

    def _within(self, count: int) -> str:
        self.expect_sign("<")
        types = [self.read_nested(self.type_)]
        for _ in range(count - 1):
            self.expect_sign(",")
            types.append(self.read_nested(self.type_))
        self._close()
        return ", ".join(types)

    def _struct(self) -> str:
        if self.take_sign("<>"):
            return "STRUCT <>"
        self.expect_sign("<")
        members = []
        while True:
            name = quote_name(self.name_part().text)
            self.take_sign(":")
            members.append(f"{name} {self.read_nested(self.type_)}")
            if not self.take_sign(","):
                break
        self._close()
        return f"STRUCT < {', '.join(members)} >"

    def _close(self) -> None:
        """Take one ``>``, also the first of several in one word."""
        word = self.ahead()
        if not self.at_sign(">", ">>", ">>>"):
            self.fail("> is expected there")
        if word.text == ">":
            self.next()
        else:
            self.words[self.i] = replace(word, text=word.text[1:], spelling=word.text[1:], start=word.start + 1)
