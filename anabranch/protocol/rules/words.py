"""Splits a rule's text into words as Spark does, each respelled so that every session reads it alike.

Knows how Spark's lexer works. Pure. Guarantee: a text is split as Spark splits it, or refused: comments, hints,
parameters and every sign not listed here are refused. No respelled text holds ``${``, which Spark would substitute; a
name may.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["word", "name", "text", "bytes", "number", "sign", "end"]


class NotUnderstood(Exception):
    """A rule's text holds something that is not allowed.

    Attributes:
        found: what it is, for a message.
        reason: why it is refused.
        ends: whether the text ends too early.
        unknown: the name, where it is that of no column or member.
    """

    def __init__(self, found: str, reason: str, *, ends: bool = False, unknown: str | None = None) -> None:
        super().__init__(found, reason)
        self.found, self.reason, self.ends, self.unknown = found, reason, ends, unknown


@dataclass(frozen=True)
class Word:
    """One word: a ``word`` without quotes, a ``name`` in backticks, a ``text`` or ``bytes`` literal, a ``number``, a
    ``sign``, or the ``end``.

    Attributes:
        text: its content; empty for a text literal.
        spelling: its form for Spark; empty for a word or name, where it depends on what they mean.
    """

    kind: Kind
    text: str
    spelling: str = ""

    @property
    def folded(self) -> str:
        """An unquoted word of plain letters in lower case; empty for anything else."""
        return self.text.lower() if self.kind == "word" and self.text.isascii() else ""

    def __str__(self) -> str:
        return {"text": "a text", "end": "the end"}.get(self.kind, self.text)


END = Word("end", "")

_PIECE = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<refused>--|/\*|=>|\|>|:=|!<|!>)
    |(?P<bytes>[xX]'[0-9a-fA-F]*')
    |(?P<raw>[rR](?:'[^']*'|"[^"]*"))
    |(?P<single>'(?:[^'\\]|\\.|'')*')
    |(?P<double>"(?:[^"\\]|\\.|"")*")
    |(?P<name>`(?:[^`]|``)+`)
    |(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[lLsSyYdDfF])?(?!\w))
    |(?P<word>\w+)
    |(?P<sign><=>|>>>|<>|<=|>=|!=|==|\|\||->|::|<<|>>|[=<>!+\-*/%&|^~()\[\],.:])""",
    re.VERBOSE | re.DOTALL,
)
_FILLED = "${"


def words_of(text: str) -> list[Word]:
    """The words of a text, followed by the end. Raises NotUnderstood: it holds something that is not allowed."""
    return [*_words(text), END]


def quoted(name: str) -> str:
    """A name in backticks; the caller makes sure that Spark does not substitute ``${…}`` in it."""
    return "`" + name.replace("`", "``") + "`"


def _words(text: str) -> Iterator[Word]:
    end = 0
    while end < len(text):
        match = _PIECE.match(text, end)
        if match is None or match.lastgroup == "refused":
            sign = text[end] if match is None else match[0]
            raise NotUnderstood(f"the sign {sign}", "comments, parameters and signs without a meaning here are refused")
        end = match.end()
        if match.lastgroup != "space":
            yield _word(str(match.lastgroup), match[0])


def _word(kind: str, piece: str) -> Word:
    match kind:
        case "word":
            return Word("word", piece)
        case "name":
            return Word("name", piece[1:-1].replace("``", "`"))
        case "bytes":
            return Word("bytes", piece, piece)
        case "number":
            return Word("number", piece, piece)
        case "sign":
            return Word("sign", piece, piece)
    return Word("text", "", _literal(kind, piece))


def _literal(kind: str, piece: str) -> str:
    """A text literal in single quotes, or as bytes where no such spelling is unambiguous."""
    body = piece[2:-1] if kind == "raw" else piece[1:-1]
    if _FILLED not in body:
        if kind == "single":
            return piece
        if "'" not in body and (kind == "raw" or '""' not in body):
            return f"r'{body}'" if kind == "raw" else f"'{body}'"
    if kind != "raw" and ("\\" in body or (kind == "single" and "''" in body)):
        raise NotUnderstood(f"the text {piece}", "its quotes, backslashes or ${ are not read in one way")
    value = body.replace('""', '"') if kind == "double" else body
    return f"CAST(X'{value.encode(errors='surrogatepass').hex()}' AS STRING)"
