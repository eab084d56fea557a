"""A cursor over the words of a rule's text, which emits a new spelling of each; and the types in a CAST.

Knows words and types, and no expressions. Pure. Guarantee: a word that is not taken explicitly is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from anabranch.protocol.rules.words import END, NotUnderstood, Word, quoted

MOST_NESTED = 100
"""The maximum nesting of brackets, CASE and signs."""

_TYPES = frozenset(
    """boolean tinyint byte smallint short int integer bigint long float real double date timestamp timestamp_ntz
    timestamp_ltz string binary variant decimal dec numeric char character varchar""".split()  # noqa: SIM905
)
_SIZED = frozenset({"decimal", "dec", "numeric", "char", "character", "varchar"})


def too_deep() -> NotUnderstood:
    """The error for deeper nesting."""
    return NotUnderstood("an expression that is nested too deep", f"it may be nested {MOST_NESTED} deep")


@dataclass
class Cursor:
    """Reads words from left to right; ``out`` has their spellings."""

    words: list[Word]
    i: int = 0
    depth: int = 0
    out: list[str] = field(default_factory=list)

    # -- words ---------------------------------------------------------------------------------------------------------

    def ahead(self, by: int = 0) -> Word:
        return self.words[self.i + by] if self.i + by < len(self.words) else END

    def at_sign(self, *signs: str, by: int = 0) -> bool:
        word = self.ahead(by)
        return word.kind == "sign" and word.text in signs

    def at(self, *words: str, by: int = 0) -> bool:
        return self.ahead(by).folded in words

    def put(self, spelling: str) -> None:
        self.out.append(spelling)
        self.i += 1

    def take_sign(self, *signs: str) -> bool:
        if not self.at_sign(*signs):
            return False
        self.put(self.ahead().text)
        return True

    def take(self, *words: str) -> bool:
        if not self.at(*words):
            return False
        self.put(self.ahead().folded.upper())
        return True

    def expect_sign(self, sign: str) -> None:
        if not self.take_sign(sign):
            self.fail(f"{sign} is expected there")

    def expect(self, word: str) -> None:
        if not self.take(word):
            self.fail(f"{word.upper()} is expected there")

    def expect_end(self) -> None:
        if self.ahead() is not END:
            self.fail("the expression ends before it")

    def fail(self, reason: str) -> None:
        raise NotUnderstood(str(self.ahead()), reason, ends=self.ahead() is END)

    def nested(self, read: Callable[[], None]) -> None:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise too_deep()
        read()
        self.depth -= 1

    def own_name(self) -> None:
        if self.ahead().kind not in ("word", "name") or self.at_sign("(", by=1):
            self.fail("the name of a member is expected there")
        self.put(quoted(self.ahead().text))

    # -- types ---------------------------------------------------------------------------------------------------------

    def type_(self) -> None:
        word = self.ahead().folded
        if word == "array":
            self.put("ARRAY")
            self._within(1)
        elif word == "map":
            self.put("MAP")
            self._within(2)
        elif word == "struct":
            self._struct()
        elif word in _TYPES:
            self.put(word.upper())
            if word in _SIZED and self.take_sign("("):
                self._digits()
        else:
            self.fail("it is no type")

    def _digits(self) -> None:
        for sign in (",", ")"):
            if self.ahead().kind != "number" or not self.ahead().text.isdigit():
                self.fail("a number is expected there")
            self.put(self.ahead().text)
            if not self.take_sign(sign):
                break
        if self.out[-1] != ")":
            self.expect_sign(")")

    def _within(self, count: int) -> None:
        self.expect_sign("<")
        for i in range(count):
            if i:
                self.expect_sign(",")
            self.nested(self.type_)
        self._close()

    def _struct(self) -> None:
        self.put("STRUCT")
        if self.take_sign("<>"):
            return
        self.expect_sign("<")
        while True:
            self.own_name()
            self.take_sign(":")
            self.nested(self.type_)
            if not self.take_sign(","):
                break
        self._close()

    def _close(self) -> None:
        """Take one ``>``, also the first of several in one word."""
        word = self.ahead()
        if not self.at_sign(">", ">>", ">>>"):
            self.fail("> is expected there")
        if word.text != ">":
            self.words[self.i] = Word("sign", word.text[1:], word.text[1:])
            self.out.append(">")
        else:
            self.put(">")
