"""Parameters: which words of a statement stand for values, and each value as a literal that means nothing else.

Guarantee: `literal` gives a text that every session reads as that one value, whatever its settings; no value can end it
early. What has no such text is refused.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from math import isinf, isnan
from typing import Any, Protocol

from anabranch._expressions.dialect import Token, TokenType
from anabranch._sql.grammar.parts import Arguments
from anabranch.errors import InvalidOption

_INT = 1 << 31
_LONG = 1 << 63


class Stretch(Protocol):
    """From a character of a text to before another."""

    @property
    def start(self) -> int: ...

    @property
    def stop(self) -> int: ...


@dataclass(frozen=True)
class Marker:
    """A parameter in the text, from ``start`` to before ``stop``: a name, or a number for ``?``, and its value."""

    start: int
    stop: int
    key: str | int
    value: Any


def markers(tokens: Sequence[Token], args: Any) -> tuple[Marker, ...]:
    """The parameters for which there are values.

    Raises:
        InvalidOption: the values are neither a dict by name nor a list.
    """
    if args is None:
        return ()
    if isinstance(args, Mapping):
        return tuple(_find_named_markers(tokens, args))
    if isinstance(args, str | bytes) or not isinstance(args, Sequence):
        raise InvalidOption(
            option="args", value=args, reason="it takes a dict of names to values, or a list of values."
        )
    places = [token for token in tokens if token.token_type in (TokenType.PLACEHOLDER, TokenType.DQMARK)]
    return tuple(Marker(t.start, t.end + 1, i, args[i]) for i, t in enumerate(places) if i < len(args))


def _find_named_markers(tokens: Sequence[Token], args: Mapping[str, Any]) -> list[Marker]:
    found = []
    for sign, name in pairwise(tokens):
        touches = sign.token_type == TokenType.COLON and name.start == sign.end + 1
        if touches and name.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) and name.text in args:
            found.append(Marker(sign.start, name.end + 1, name.text, args[name.text]))
    return found


def outside(known: Sequence[Marker], stretches: Sequence[Stretch]) -> list[Marker]:
    """The parameters that stand in none of some stretches of the text; both lie in it in order."""
    before = (bisect_right(stretches, each.start, key=lambda stretch: stretch.start) for each in known)
    return [each for each, n in zip(known, before, strict=True) if not (n and each.start < stretches[n - 1].stop)]


def arguments_for(used: Sequence[Marker], args: Any) -> Arguments:
    """The values for a part of the statement that holds only these parameters."""
    if args is None:
        return None
    if isinstance(args, Mapping):
        return {str(marker.key): marker.value for marker in used}
    return tuple(marker.value for marker in used)


def literal(value: Any) -> str:
    """A value as SQL.

    Example:
        >>> literal("O'Brien")
        "CAST(X'4F27427269656E' AS STRING)"

    Raises:
        InvalidOption: a value of this type has no literal, or this one none.
    """
    try:
        found = _literal(value)
    except (OverflowError, UnicodeError, ValueError):
        raise InvalidOption(option="args", value=repr(value), reason="no session can read such a value.") from None
    if found is None:
        raise InvalidOption(
            option="args", value=value, reason=f"{type(value).__name__} is no type of a parameter here."
        )
    return found


def _literal(value: Any) -> str | None:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() if -_LONG <= value < _LONG:
            return _whole(value)
        case float():
            return _double(value)
        case Decimal() if value.is_finite():
            return f"{value:f}BD" if value >= 0 else f"(-{-value:f}BD)"
        case str():
            return _text(value)
        case bytes() | bytearray():
            return f"X'{bytes(value).hex().upper()}'"
        case dt.datetime():  # without a zone it is of this machine's, as for Spark
            utc = value.astimezone(dt.UTC).replace(tzinfo=None)
            return f"TIMESTAMP'{utc.isoformat(sep=' ', timespec='microseconds')} UTC'"
        case dt.date():
            return f"DATE'{value.isoformat()}'"
    return None


def _whole(value: int) -> str:
    if value == -_LONG:
        return "(-9223372036854775807L - 1L)"
    suffix = "" if -_INT <= value < _INT else "L"
    return f"{value}{suffix}" if value >= 0 else f"(-{-value}{suffix or ('L' if value == -_INT else '')})"


def _double(value: float) -> str:
    if isnan(value) or isinf(value):
        name = "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"CAST('{name}' AS DOUBLE)"
    return f"{value!r}D" if value >= 0 and not repr(value).startswith("-") else f"(-{-value!r}D)"


def _text(value: str) -> str:
    """Quotes and backslashes mean one thing in one session and another in the next, so they go in as bytes."""
    if any(each in value for each in "'\"\\") or not value.isprintable():
        return f"CAST(X'{value.encode().hex().upper()}' AS STRING)"
    return f"'{value}'"
