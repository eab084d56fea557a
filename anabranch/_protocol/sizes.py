"""Sizes in bytes, as settings say them.

Knows Spark's spelling. Pure.
"""

from __future__ import annotations

import re

_UNITS = "bkmgtp"
_SIZE = re.compile(rf"(\d{{1,18}})\s*([{_UNITS}]?b?)", re.ASCII)


def size_of(text: str) -> int:
    """The bytes that a text says. Raises ValueError: it is no size, or none above zero.

    Example:
        >>> size_of("100mb"), size_of("64k"), size_of("104857600")
        (104857600, 65536, 104857600)
    """
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None or not int(found[1]) or found[2] == "bb":
        raise ValueError("it takes a number of bytes from 1, such as 104857600 or 100mb")
    return int(found[1]) << 10 * _UNITS.index(found[2][:1] or "b")
