"""Parameters: finds the markers in a statement, and writes their values as unambiguous literals.

Guarantee: every session, whatever its settings, reads the text of `literal` as that value; no value can end the literal
early. A value without such a literal is refused.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate, pairwise
from math import isinf, isnan
from typing import Any, Protocol

from anabranch._expressions.dialect import Token, TokenizedText, TokenType
from anabranch._sql.grammar.parts import Arguments
from anabranch.errors import InvalidOption

_INT = 1 << 31
_LONG = 1 << 63


class Stretch(Protocol):
    """A part of a text, from ``start`` to before ``stop``."""

    @property
    def start(self) -> int: ...

    @property
    def stop(self) -> int: ...


@dataclass(frozen=True)
class Marker:
    """A parameter in the text, from ``start`` to before ``stop``, with its name, or number for ``?``, and its value."""

    start: int
    stop: int
    key: str | int
    value: Any


def markers(tokens: Sequence[Token], args: Any) -> tuple[Marker, ...]:
    """Find the parameters that have values.

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
    return tuple(Marker(t.start, t.end + 1, i, args[i]) for i, t in enumerate(_find_places(tokens)) if i < len(args))


def _find_places(tokens: Sequence[Token]) -> list[Token]:
    """The parameters without a name."""
    return [token for token in tokens if token.token_type in (TokenType.PLACEHOLDER, TokenType.DQMARK)]


def _find_named_markers(tokens: Sequence[Token], args: Mapping[str, Any]) -> list[Marker]:
    result = []
    for sign, name in pairwise(tokens):
        touches = sign.token_type == TokenType.COLON and name.start == sign.end + 1
        if touches and name.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) and name.text in args:
            result.append(Marker(sign.start, name.end + 1, name.text, args[name.text]))
    return result


def arguments_by_statement(texts: Sequence[str], args: Any) -> list[Any]:
    """The values for each of several statements in one text: those by name are for all, those by position are counted
    through.
    """
    if args is None or isinstance(args, str | bytes | Mapping) or not isinstance(args, Sequence):
        return [args] * len(texts)
    ends = [0, *accumulate(len(_find_places(TokenizedText(text).tokens)) for text in texts)]
    return [args[start:end] for start, end in pairwise(ends)]


def outside(all_markers: Sequence[Marker], stretches: Sequence[Stretch]) -> list[Marker]:
    """Return the parameters outside of these parts of the text; both are sorted by position."""
    before = (bisect_right(stretches, marker.start, key=lambda stretch: stretch.start) for marker in all_markers)
    return [
        marker
        for marker, n in zip(all_markers, before, strict=True)
        if not (n and marker.start < stretches[n - 1].stop)
    ]


def arguments_for(used_markers: Sequence[Marker], args: Any) -> Arguments:
    """Return the values for a part of the statement that contains only these parameters."""
    if args is None:
        return None
    if isinstance(args, Mapping):
        return {str(marker.key): marker.value for marker in used_markers}
    return tuple(marker.value for marker in used_markers)


def literal(value: Any) -> str:
    """Write a value as an SQL literal.

    Example:
        >>> literal("O'Brien")
        "CAST(X'4F27427269656E' AS STRING)"

    Raises:
        InvalidOption: the value, or its type, has no literal.
    """
    try:
        sql = _literal(value)
    except (OverflowError, UnicodeError, ValueError):
        raise InvalidOption(option="args", value=repr(value), reason="no session can parse such a value.") from None
    if sql is None:
        raise InvalidOption(
            option="args", value=value, reason=f"{type(value).__name__} is not supported as the type of a parameter."
        )
    return sql


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
        case dt.datetime():  # without a zone it is in the machine's, as in Spark
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
    """Write a string; one with quotes or backslashes as bytes, since sessions differ in how they read these."""
    if any(sign in value for sign in "'\"\\") or not value.isprintable():
        return f"CAST(X'{value.encode().hex().upper()}' AS STRING)"
    return f"'{value}'"
