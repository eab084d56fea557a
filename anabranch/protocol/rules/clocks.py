"""Texts that Spark reads as the current time: ``now``, ``today``, ``yesterday``, ``tomorrow``, and a time without a
day.

Where a constant text becomes a date or timestamp, as in ``DATE'today'``, ``CAST('now' AS TIMESTAMP)`` and ``day >
'yesterday'``, Spark inserts the day or time at which it reads the statement. Pure. ``epoch`` is constant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from anabranch.protocol.rules.words import Word
from anabranch.protocol.schema.types import Array, DataType, Map, Struct

_SPECIAL = re.compile(r"[\s\0-\x20]*(?:now|today|yesterday|tomorrow)(?![a-z])\s*[\w/+:.-]*\s*", re.IGNORECASE)
_OF_TODAY = re.compile(r"\s*T?\d{1,2}:\d.*", re.DOTALL | re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_CONTROLS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_AS_BYTES = re.compile(r"CAST\(X'([0-9a-f]*)' AS STRING\)")
MOMENTS = frozenset({"date", "timestamp", "timestamp_ntz", "timestamp_ltz"})


def is_clock(spellings: Sequence[str]) -> bool:
    """Whether consecutive text literals name a day or time relative to now."""
    return _SPECIAL.fullmatch("".join(map(_value, spellings))) is not None


def is_of_today(spellings: Sequence[str]) -> bool:
    """Whether they are a time without a day, which becomes a timestamp of today."""
    return _OF_TODAY.fullmatch("".join(map(_value, spellings))) is not None


def has_moments(kind: DataType) -> bool:
    """Whether a type is a date or timestamp, or contains one."""
    match kind:
        case Struct():
            return any(has_moments(each.type) for each in kind)
        case Array():
            return has_moments(kind.element)
        case Map():
            return has_moments(kind.key) or has_moments(kind.value)
    return kind in MOMENTS


def texts_alone(words: Sequence[Word]) -> list[str] | None:
    """The texts of an operand that consists only of texts, perhaps in parentheses; else None."""
    while (
        len(words) > 2 and (words[0].text, words[-1].text) == ("(", ")") and words[0].kind == words[-1].kind == "sign"
    ):
        words = words[1:-1]
    return [each.spelling for each in words] if words and all(each.kind == "text" for each in words) else None


def _value(spelling: str) -> str:
    """The value of a text literal, from its spelling (`Word.spelling`)."""
    if (as_bytes := _AS_BYTES.fullmatch(spelling)) is not None:
        return bytes.fromhex(as_bytes[1]).decode(errors="replace")
    if spelling.startswith("r"):
        return spelling[2:-1]
    return _ESCAPE.sub(_unescaped, spelling[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    four, eight, octal, sign = found.groups()
    if sign is not None:
        return _CONTROLS.get(sign, sign)
    code = int(octal, 8) if octal else int(four or eight, 16)
    return chr(code) if code < 0x110000 else ""
