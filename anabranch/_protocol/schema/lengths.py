"""Lengths of texts: how Spark records char and varchar, also inside structs, lists and maps.

Knows schemas. Knows nothing of rows. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from anabranch._protocol.schema.types import DEEPEST, Field

LENGTH = "__CHAR_VARCHAR_TYPE_STRING"

_LENGTH = re.compile(r"(char|character|varchar)\s*\(\s*([0-9]{1,10})\s*\)", re.IGNORECASE)
_NESTED = re.compile(r"(array|map|struct)\s*<(.*)>", re.IGNORECASE | re.DOTALL)
_PIECE = re.compile(r"`(?:[^`]|``)*`|[<>(),:]|[^`<>(),:]+")


class Inside(Enum):
    """A step of a path that is not a member's name."""

    ELEMENTS = "element"
    KEYS = "key"
    VALUES = "value"


Step: TypeAlias = str | Inside
"""A member of a struct, or all elements, keys or values."""


@dataclass(frozen=True)
class Length:
    """``varchar(n)``, or ``char(n)``, which is padded with blanks; n counts characters."""

    length: int
    padded: bool = False

    def __str__(self) -> str:
        return f"{'char' if self.padded else 'varchar'}({self.length})"


Limits: TypeAlias = Length | Mapping[Step, "Limits"]
"""The maximum length of a text, or of the texts inside a nested value."""


def limits_of(column: Field) -> Limits | None:
    """The lengths in a column's char and varchar types; None if it has none, or its metadata is malformed.

    Example:
        >>> limits_of(Field("c", "string", metadata={LENGTH: "varchar(3)"}))
        Length(length=3, padded=False)
    """
    text = column.metadata.get(LENGTH)
    return _limits(text) if isinstance(text, str) else None


def _limits(text: str, level: int = 1) -> Limits | None:
    text = text.strip()
    if match := _LENGTH.fullmatch(text):
        return Length(int(match[2]), padded=match[1].lower() != "varchar")
    nested = _NESTED.fullmatch(text) if level <= DEEPEST else None
    if nested is None:
        return None
    inner = {
        step: limits for step, part in _parts(nested[1].lower(), nested[2]) if (limits := _limits(part, level + 1))
    }
    return inner or None


def _parts(kind: str, text: str) -> Iterator[tuple[Step, str]]:
    parts = list(_split(text, ","))
    if kind == "struct":
        for part in parts:
            name, *rest = _split(part, ":")
            yield _plain(name.strip()), ":".join(rest)
    else:
        steps = [Inside.ELEMENTS] if kind == "array" else [Inside.KEYS, Inside.VALUES]
        yield from zip(steps, parts, strict=False)


def _split(text: str, separator: str) -> Iterator[str]:
    """Split a text at separators outside brackets and quoted names."""
    depth, part = 0, ""
    for piece in _PIECE.findall(text):
        depth += (piece in "<(") - (piece in ">)")
        if piece == separator and depth == 0:
            yield part
            part = ""
        else:
            part += piece
    if part:
        yield part


def _plain(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def pads(column: Field) -> bool:
    """Whether a column is a char, or contains one, which is padded with blanks, also on reads.

    Example:
        >>> pads(Field("c", "string", metadata={LENGTH: "varchar(3)"}))
        False
    """
    return _pads(limits_of(column))


def _pads(limits: Limits | None) -> bool:
    if limits is None or isinstance(limits, Length):
        return limits is not None and limits.padded
    return any(map(_pads, limits.values()))


def char_length(path: Sequence[Field]) -> int | None:
    """The length to which a char is padded with blanks, also on reads; None for other types. ``path`` is a column, or a
    member with its enclosing structs.

    Example:
        >>> char_length([Field("c", "string", metadata={LENGTH: "char(3)"})])
        3
    """
    column, *members = path
    limits = limits_of(column) if path[-1].type == "string" else None
    for member in members:
        limits = limits.get(member.name) if isinstance(limits, Mapping) else None
    return limits.length if isinstance(limits, Length) and limits.padded else None
