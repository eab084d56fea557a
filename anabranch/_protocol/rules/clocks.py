"""Texts that Spark reads as the current time: ``now``, ``today``, ``yesterday``, ``tomorrow``, and a time without a
day.

If a constant text becomes a date or timestamp, as in ``DATE'today'``, ``CAST('now' AS TIMESTAMP)`` and ``day >
'yesterday'``, Spark inserts the day or time at which it reads the statement. Pure. ``epoch`` is constant.
"""

from __future__ import annotations

import re

from anabranch._protocol.schema.types import Array, DataType, Map, Struct

_SPECIAL = re.compile(r"[\s\0-\x20]*(?:now|today|yesterday|tomorrow)(?![a-z])\s*[\w/+:.-]*\s*", re.IGNORECASE)
_OF_TODAY = re.compile(r"\s*T?\d{1,2}:\d.*", re.DOTALL | re.IGNORECASE)
MOMENTS = frozenset({"date", "timestamp", "timestamp_ntz", "timestamp_ltz"})


def is_clock(text: str) -> bool:
    """Whether a text names a day or time relative to now."""
    return _SPECIAL.fullmatch(text) is not None


def is_of_today(text: str) -> bool:
    """Whether a text is a time without a day, which becomes a timestamp of today."""
    return _OF_TODAY.fullmatch(text) is not None


def has_moments(kind: DataType) -> bool:
    """Whether a type is a date or timestamp, or contains one."""
    match kind:
        case Struct():
            return any(has_moments(field.type) for field in kind)
        case Array():
            return has_moments(kind.element)
        case Map():
            return has_moments(kind.key) or has_moments(kind.value)
    return kind in MOMENTS
