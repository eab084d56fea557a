"""Patterns of RLIKE that Java and RE2 read alike, spelled for RE2.

Pure; knows no rows. Guarantee: what is spelled finds, in a text of valid UTF-8, what ``java.util.regex`` finds there
without flags, in the same places; a pattern of which that is not certain raises `Unfit`. It is read by the scanner
below, and RE2 is given a spelling of its own, in which each letter is a code point. RE2 takes time in line with the
length of the text; the size of a pattern is bounded, since a stranger may have written it.

Refused are flags, references, lookaround, named groups, possessive and stacked quantifiers, ``\\s`` and ``\\b``,
classes within classes and those of Unicode, and letters beyond 16 bits. Of what may be repeated each round has to take
a letter: on rounds that take none the two go different ways. So they might on groups that are repeated within others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from anabranch._protocol.expressions.table import Unfit

LINE_ENDS = "\n\r\u0085\u2028\u2029"
"""What ends a line to Java: ``.`` is none of these, and ``$`` stands before one that ends the text, too."""
_MOST_LETTERS, _MOST_SIZE, _MOST_NESTED = 500, 500, 10
_OF_LETTERS = 8
"""The size of a class, whose letters have several bytes."""
_PLAIN_SIGNS = frozenset(" !\"#%&',-/:;<=>@_`~")
_PLAIN_IN_CLASS = (_PLAIN_SIGNS - {"&", "-"}) | frozenset(".*+?(){}|$")
_CLASSES = {"d": r"\x{30}-\x{39}", "w": r"\x{30}-\x{39}\x{41}-\x{5a}\x{5f}\x{61}-\x{7a}"}
_QUANTIFIER = re.compile(r"(?:[*+?]|\{([0-9]{1,2})(?:(,)([0-9]{1,2})?)?\})\??")
_BEGIN_QUANTIFIERS = frozenset("*+?{")


@dataclass(frozen=True)
class Pattern:
    """A pattern, or a part of one.

    Attributes:
        regular: in RE2's spelling.
        size: of the program that RE2 makes of it, about.
        finds_nothing: whether the empty text may match it.
        has_end: whether it has a ``$``, which is spelled for texts that no line end ends.
        is_bound: whether it has a ``^`` or ``$``.
        repeats: whether it has a group that is repeated.
        is_group: whether it is a group.
    """

    regular: str
    size: int = 1
    finds_nothing: bool = False
    has_end: bool = False
    is_bound: bool = False
    repeats: bool = False
    is_group: bool = False


def pattern_of(text: str) -> Pattern:
    """What a pattern of Java's means. Raises Unfit: that is not certain.

    Example:
        >>> pattern_of("^a+$").regular
        '\\\\A\\\\x{61}+\\\\z'
    """
    if len(text) > _MOST_LETTERS:
        raise _unfit("so long a pattern")
    scanner = _Scanner(text)
    found = scanner.choice(0)
    if scanner.ahead:
        raise _unfit("a pattern with a parenthesis that closes none")
    if found.size > _MOST_SIZE:
        raise _unfit("a pattern that repeats so much")
    return found


def _unfit(what: str) -> Unfit:
    return Unfit(f"{what} is left to Spark")


def _point(letter: str) -> str:
    return f"\\x{{{ord(letter):x}}}"


def _is_plain(letter: str, signs: frozenset[str]) -> bool:
    """Whether a letter stands for itself. A letter of two units is none to Java in some places."""
    return letter in signs or (letter.isalnum() if letter.isascii() else letter.isprintable() and letter <= "\uffff")


_ANY = f"[^{''.join(map(_point, LINE_ENDS))}]"


class _Scanner:
    """Reads a pattern from the left."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    @property
    def ahead(self) -> str:
        """The next letter; empty at the end."""
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        found = self.ahead
        self._at += 1
        return found

    def _take(self, piece: str) -> bool:
        is_there = self._text.startswith(piece, self._at)
        self._at += len(piece) if is_there else 0
        return is_there

    def choice(self, depth: int) -> Pattern:
        """Ways between which ``|`` stands."""
        if depth > _MOST_NESTED:
            raise _unfit("a pattern that is nested so deep")
        ways = [self._row(depth)]
        while self._take("|"):
            ways.append(self._row(depth))
        return replace(_join_parts(ways, "|"), finds_nothing=any(each.finds_nothing for each in ways))

    def _row(self, depth: int) -> Pattern:
        parts = []
        while self.ahead not in ("", "|", ")"):
            parts.append(self._with_quantifier(self._part(depth)))
        if not parts:
            raise _unfit("a pattern with an empty part")
        return replace(_join_parts(parts, ""), finds_nothing=all(each.finds_nothing for each in parts))

    def _part(self, depth: int) -> Pattern:
        letter = self._next()
        match letter:
            case "(":
                return self._group(depth)
            case "[":
                return self._class()
            case ".":
                return Pattern(_ANY, _OF_LETTERS)
            case "^":
                return Pattern(r"\A", finds_nothing=True, is_bound=True)
            case "$":
                return Pattern(r"\z", finds_nothing=True, is_bound=True, has_end=True)
            case "\\":
                return self._escape_sequence()
        if not _is_plain(letter, _PLAIN_SIGNS):
            raise _unfit(f"a pattern with `{letter}` there")
        return Pattern(_point(letter))

    def _group(self, depth: int) -> Pattern:
        if not self._take("?:") and self.ahead == "?":
            raise _unfit("a pattern with `(?`")
        found = self.choice(depth + 1)
        if not self._take(")"):
            raise _unfit("a pattern with a parenthesis that is not closed")
        return replace(found, regular=f"(?:{found.regular})", is_group=True)

    def _escape_sequence(self) -> Pattern:
        letter = self._next()
        if letter.lower() in _CLASSES:
            return Pattern(f"[{'^' if letter.isupper() else ''}{_CLASSES[letter.lower()]}]", _OF_LETTERS)
        return Pattern(self._literal_escape(letter))

    def _literal_escape(self, letter: str) -> str:
        if not letter or letter.isalnum() or not (letter.isascii() and letter.isprintable()):
            raise _unfit("a pattern with such an escape")
        return _point(letter)

    def _class(self) -> Pattern:
        pieces = ["^"] if self._take("^") else [""]
        pieces += [_point("-")] if self._take("-") else []
        while not self._take("]"):
            pieces.append(self._in_class())
        if len(pieces) == 1:
            raise _unfit("a pattern with an empty class")
        return Pattern(f"[{''.join(pieces)}]", _OF_LETTERS + len(pieces))

    def _in_class(self) -> str:
        letter = self._next()
        if letter == "\\":
            letter = self._next()
            return _CLASSES[letter] if letter in _CLASSES else self._literal_escape(letter)
        if letter == "-" and self.ahead == "]":
            return _point("-")
        if not letter or not _is_plain(letter, _PLAIN_IN_CLASS):
            raise _unfit(f"a pattern with `{letter}` in a class")
        if self.ahead == "-" and self._text[self._at + 1 : self._at + 2] != "]":
            return self._range(letter)
        return _point(letter)

    def _range(self, low: str) -> str:
        self._next()
        high = self._next()
        if not (low.isascii() and low.isalnum() and high.isascii() and high.isalnum() and low <= high):
            raise _unfit("a pattern with such a range")
        return f"{_point(low)}-{_point(high)}"

    def _with_quantifier(self, part: Pattern) -> Pattern:
        found = _QUANTIFIER.match(self._text, self._at)
        if found is None and self.ahead not in _BEGIN_QUANTIFIERS:
            return part
        if found is None or self._text[found.end() : found.end() + 1] in _BEGIN_QUANTIFIERS:
            raise _unfit("a pattern with such a quantifier")
        self._at = found.end()
        if part.is_bound or part.finds_nothing or (part.is_group and part.repeats):
            raise _unfit("a pattern that repeats such a part")
        least = int(found[1]) if found[1] else 1 if found[0][0] == "+" else 0
        most = int(found[3]) if found[3] else least + 1 if found[2] or not found[1] else least
        if most < max(least, 1):
            raise _unfit("a pattern with such a quantifier")
        size = (part.size + 1) * most
        return replace(part, regular=part.regular + found[0], size=size, finds_nothing=not least, repeats=part.is_group)


def _join_parts(parts: Sequence[Pattern], between: str) -> Pattern:
    """Parts as one, which says nothing of the empty text."""
    return Pattern(
        between.join(each.regular for each in parts),
        sum(each.size for each in parts) + len(parts) * bool(between),
        has_end=any(each.has_end for each in parts),
        is_bound=any(each.is_bound for each in parts),
        repeats=any(each.repeats for each in parts),
    )
