"""Patterns of RLIKE that Java and RE2 read alike, translated to RE2.

Pure; knows no rows. Guarantee: in a text of valid UTF-8, a translated pattern finds what ``java.util.regex`` finds
without flags, at the same positions; a pattern for which that is uncertain raises `ArgumentsNotSupported`. The scanner
below reads the pattern and writes each letter as a code point for RE2. RE2 takes time linear in the length of the text;
the size of a pattern is bounded, since a stranger may have written it.

Refused are flags, references, lookaround, named groups, possessive and stacked quantifiers, ``\\s`` and ``\\b``, nested
classes, Unicode classes, and letters beyond 16 bits. Each round of a repeated part must take a letter, because the
engines differ on empty rounds. For the same reason a repeated group must not be repeated again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from anabranch._protocol.expressions.table import ArgumentsNotSupported

LINE_ENDS = "\n\r\u0085\u2028\u2029"
"""The line ends of Java: ``.`` matches none of them, and ``$`` also matches before one at the end of the text."""
_MOST_LETTERS, _MOST_SIZE, _MOST_NESTED = 500, 500, 10
_CLASS_SIZE = 8
"""The size of a class, whose letters take several bytes."""
_PLAIN_SIGNS = frozenset(" !\"#%&',-/:;<=>@_`~")
_PLAIN_IN_CLASS = (_PLAIN_SIGNS - {"&", "-"}) | frozenset(".*+?(){}|$")
_CLASSES = {"d": r"\x{30}-\x{39}", "w": r"\x{30}-\x{39}\x{41}-\x{5a}\x{5f}\x{61}-\x{7a}"}
_QUANTIFIER = re.compile(r"(?:[*+?]|\{([0-9]{1,2})(?:(,)([0-9]{1,2})?)?\})\??")
_BEGIN_QUANTIFIERS = frozenset("*+?{")


@dataclass(frozen=True)
class Pattern:
    """A pattern, or a part of one.

    Attributes:
        regular: its spelling for RE2.
        size: the approximate size of RE2's program.
        finds_nothing: whether it may match the empty text.
        has_end: whether it has a ``$``, which is spelled for texts that do not end with a line end.
        is_bound: whether it has a ``^`` or ``$``.
        repeats: whether it has a repeated group.
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
    """Translate a Java pattern. Raises ArgumentsNotSupported: its meaning in RE2 is uncertain.

    Example:
        >>> pattern_of("^a+$").regular
        '\\\\A\\\\x{61}+\\\\z'
    """
    if len(text) > _MOST_LETTERS:
        raise _unfit("a pattern of this length")
    scanner = _Scanner(text)
    pattern = scanner.choice(0)
    if scanner.ahead:
        raise _unfit("a pattern with an unmatched closing parenthesis")
    if pattern.size > _MOST_SIZE:
        raise _unfit("a pattern with this many repetitions")
    return pattern


def _unfit(what: str) -> ArgumentsNotSupported:
    return ArgumentsNotSupported(f"{what} is left to Spark")


def _point(letter: str) -> str:
    return f"\\x{{{ord(letter):x}}}"


def _is_plain(letter: str, signs: frozenset[str]) -> bool:
    """Whether a letter matches itself. In some places Java does not take two UTF-16 units as one letter."""
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
        letter = self.ahead
        self._at += 1
        return letter

    def _take(self, piece: str) -> bool:
        is_next = self._text.startswith(piece, self._at)
        self._at += len(piece) if is_next else 0
        return is_next

    def choice(self, depth: int) -> Pattern:
        """Alternatives separated by ``|``."""
        if depth > _MOST_NESTED:
            raise _unfit("a pattern with this depth of nesting")
        alternatives = [self._row(depth)]
        while self._take("|"):
            alternatives.append(self._row(depth))
        return replace(_join_parts(alternatives, "|"), finds_nothing=any(way.finds_nothing for way in alternatives))

    def _row(self, depth: int) -> Pattern:
        parts = []
        while self.ahead not in ("", "|", ")"):
            parts.append(self._with_quantifier(self._part(depth)))
        if not parts:
            raise _unfit("a pattern with an empty part")
        return replace(_join_parts(parts, ""), finds_nothing=all(part.finds_nothing for part in parts))

    def _part(self, depth: int) -> Pattern:
        letter = self._next()
        match letter:
            case "(":
                return self._group(depth)
            case "[":
                return self._class()
            case ".":
                return Pattern(_ANY, _CLASS_SIZE)
            case "^":
                return Pattern(r"\A", finds_nothing=True, is_bound=True)
            case "$":
                return Pattern(r"\z", finds_nothing=True, is_bound=True, has_end=True)
            case "\\":
                return self._escape_sequence()
        if not _is_plain(letter, _PLAIN_SIGNS):
            raise _unfit(f"a pattern with `{letter}` at this position")
        return Pattern(_point(letter))

    def _group(self, depth: int) -> Pattern:
        if not self._take("?:") and self.ahead == "?":
            raise _unfit("a pattern with `(?`")
        inner = self.choice(depth + 1)
        if not self._take(")"):
            raise _unfit("a pattern with an unclosed parenthesis")
        return replace(inner, regular=f"(?:{inner.regular})", is_group=True)

    def _escape_sequence(self) -> Pattern:
        letter = self._next()
        if letter.lower() in _CLASSES:
            return Pattern(f"[{'^' if letter.isupper() else ''}{_CLASSES[letter.lower()]}]", _CLASS_SIZE)
        return Pattern(self._literal_escape(letter))

    def _literal_escape(self, letter: str) -> str:
        if not letter or letter.isalnum() or not (letter.isascii() and letter.isprintable()):
            raise _unfit("a pattern with this escape")
        return _point(letter)

    def _class(self) -> Pattern:
        pieces = ["^"] if self._take("^") else [""]
        pieces += [_point("-")] if self._take("-") else []
        while not self._take("]"):
            pieces.append(self._in_class())
        if len(pieces) == 1:
            raise _unfit("a pattern with an empty class")
        return Pattern(f"[{''.join(pieces)}]", _CLASS_SIZE + len(pieces))

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
            raise _unfit("a pattern with this range")
        return f"{_point(low)}-{_point(high)}"

    def _with_quantifier(self, part: Pattern) -> Pattern:
        match = _QUANTIFIER.match(self._text, self._at)
        if match is None and self.ahead not in _BEGIN_QUANTIFIERS:
            return part
        if match is None or self._text[match.end() : match.end() + 1] in _BEGIN_QUANTIFIERS:
            raise _unfit("a pattern with this quantifier")
        self._at = match.end()
        if part.is_bound or part.finds_nothing or (part.is_group and part.repeats):
            raise _unfit("a pattern that repeats this kind of part")
        least = int(match[1]) if match[1] else 1 if match[0][0] == "+" else 0
        most = int(match[3]) if match[3] else least + 1 if match[2] or not match[1] else least
        if most < max(least, 1):
            raise _unfit("a pattern with this quantifier")
        size = (part.size + 1) * most
        return replace(part, regular=part.regular + match[0], size=size, finds_nothing=not least, repeats=part.is_group)


def _join_parts(parts: Sequence[Pattern], between: str) -> Pattern:
    """Join parts into one, with ``finds_nothing`` left at its default."""
    return Pattern(
        between.join(part.regular for part in parts),
        sum(part.size for part in parts) + len(parts) * bool(between),
        has_end=any(part.has_end for part in parts),
        is_bound=any(part.is_bound for part in parts),
        repeats=any(part.repeats for part in parts),
    )
