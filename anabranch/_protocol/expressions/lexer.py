"""Splits a text into words as Spark's lexer does, each with a spelling that every session reads alike.

Pure. Guarantee: a text is split as Spark splits it, or refused: comments, hints, parameters and every sign not listed
here are refused. No spelling contains ``${``, which Spark would substitute; a name may.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["word", "name", "text", "bytes", "number", "sign", "end"]


class ParseError(Exception):
    """A text contains something that this package does not read.

    Attributes:
        found: what it is, for a message.
        reason: why it is refused.
        ends: whether the text ends too early.
        unknown: the name, if no column or member has it.
        at: the position in the text where it begins; -1 if it is unknown.
    """

    def __init__(
        self, found: str, reason: str, *, ends: bool = False, unknown: str | None = None, at: int = -1
    ) -> None:
        super().__init__(found, reason)
        self.found, self.reason, self.ends, self.unknown, self.at = found, reason, ends, unknown, at


@dataclass(frozen=True, slots=True)
class Word:
    """One word: a ``word`` without quotes, a ``name`` in backticks, a ``text`` or ``bytes`` literal, a ``number``, a
    ``sign``, or the ``end``.

    Attributes:
        text: its content; of a text literal its meaning with default settings.
        spelling: its form for Spark; empty for a word or name, where it depends on their meaning.
        start, stop: its position in the text.
        is_certain: whether the content is the same in all sessions.
    """

    kind: Kind
    text: str
    spelling: str = ""
    start: int = -1
    stop: int = -1
    is_certain: bool = True

    @property
    def lower_word(self) -> str:
        """An unquoted word of plain letters in lower case; empty for anything else."""
        return self.text.lower() if self.kind == "word" and self.text.isascii() else ""

    def __str__(self) -> str:
        return {"text": "a text", "end": "the end"}.get(self.kind, self.text)


_PIECE = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<refused>--|/\*|=>|\|>|:=|!<|!>)
    |(?P<bytes>[xX]'[0-9a-fA-F]*')
    |(?P<raw>[rR](?:'[^']*'|"[^"]*"))
    |(?P<single>'(?:[^'\\]|\\.|'')*')
    |(?P<double>"(?:[^"\\]|\\.|"")*")
    |(?P<name>`(?:[^`]|``)+`)
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[lLsSyYdDfF])?(?!\w))
    |(?P<word>\w+)
    |(?P<sign><=>|>>>|<>|<=|>=|!=|==|\|\||->|::|<<|>>|[=<>!+\-*/%&|^~()\[\],.:])""",
    re.VERBOSE | re.DOTALL,
)
_FILLED = "${"
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_CONTROLS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def words_of(text: str) -> list[Word]:
    """Split a text into words, followed by the end. Raises ParseError: it contains something that is not allowed."""
    return [*_words(text), Word("end", "", "", len(text), len(text))]


_LITERAL_OR_COMMENT = re.compile(
    r"""[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.|'')*(?:'|\\?\Z)|"(?:[^"\\]|\\.|"")*(?:"|\\?\Z)|`(?:[^`]|``)*`
    |(?P<line>--(?:\\\n|[^\r\n])*)|(?P<opens>/\*(?!\+))""",
    re.VERBOSE | re.DOTALL,
)
"""An unterminated text matches up to the end, so that no text is searched within it."""
_INSIDE = re.compile(r"/\*\+?|\*/")


def without_comments(text: str) -> str:
    """The text with its comments replaced by blanks, except unterminated comments, and hints.

    Example:
        >>> without_comments("a /* b */ = 1 -- c")
        'a         = 1     '
    """
    pieces, end, begin = [], 0, 0
    while (match := _LITERAL_OR_COMMENT.search(text, begin)) is not None:
        begin = match.end()
        if match.lastgroup is None:
            continue
        stop = begin if match.lastgroup == "line" else _end_of_comment(text, begin)
        if stop is None:
            break
        pieces += [text[end : match.start()], " " * (stop - match.start())]
        begin = end = stop
    return "".join([*pieces, text[end:]])


def _end_of_comment(text: str, begin: int) -> int | None:
    """The end of a comment that may contain nested comments."""
    depth = 1
    for match in _INSIDE.finditer(text, begin):
        if match[0] == "/*+":
            return None
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return None


def quote_name(name: str) -> str:
    """A name in backticks; the caller ensures that Spark does not substitute ``${…}`` in it."""
    return "`" + name.replace("`", "``") + "`"


def _words(text: str) -> Iterator[Word]:
    end = 0
    while end < len(text):
        match = _PIECE.match(text, end)
        if match is None or match.lastgroup == "refused":
            sign = text[end] if match is None else match[0]
            reason = "comments, parameters and signs without a meaning here are refused"
            raise ParseError(f"the sign {sign}", reason, at=end)
        start, end = end, match.end()
        if match.lastgroup != "space":
            yield _word(str(match.lastgroup), match[0], start)


def _word(kind: str, piece: str, start: int) -> Word:
    stop = start + len(piece)
    match kind:
        case "word":
            return Word("word", piece, "", start, stop)
        case "name":
            return Word("name", piece[1:-1].replace("``", "`"), "", start, stop)
        case "bytes" | "number" | "sign":
            return Word(kind, piece, piece, start, stop)
    content, is_certain = _content(kind, piece)
    return Word("text", content, _literal(kind, piece), start, stop, is_certain)


def _content(kind: str, piece: str) -> tuple[str, bool]:
    """The content of a text literal, and whether it is the same under all settings, which may affect backslashes and
    quotes.
    """
    body = piece[2:-1] if kind == "raw" else piece[1:-1]
    if kind == "raw":
        return body, _FILLED not in body
    quote = piece[0]
    is_certain = kind == "single" and not (_FILLED in body or "\\" in body or "''" in body)
    return _ESCAPE.sub(_unescape, body.replace(quote * 2, quote)), is_certain


def _unescape(match: re.Match[str]) -> str:
    four, eight, octal, sign = match.groups()
    if sign is not None:
        return _CONTROLS.get(sign, sign)
    code = int(octal, 8) if octal else int(four or eight, 16)
    return chr(code) if code < 0x110000 else "\ud800"  # no text has half a character: only Spark reads it


def _literal(kind: str, piece: str) -> str:
    """A text literal in single quotes, or as bytes if no spelling in quotes is unambiguous."""
    body = piece[2:-1] if kind == "raw" else piece[1:-1]
    if _FILLED not in body:
        if kind == "single":
            return piece
        if "'" not in body and (kind == "raw" or '""' not in body):
            return f"r'{body}'" if kind == "raw" else f"'{body}'"
    if kind != "raw" and ("\\" in body or (kind == "single" and "''" in body)):
        raise ParseError(f"the text {piece}", "its quotes, backslashes or ${ are ambiguous")
    value = body.replace('""', '"') if kind == "double" else body
    return f"CAST(X'{value.encode(errors='surrogatepass').hex()}' AS STRING)"
