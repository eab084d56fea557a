"""Parses sizes in bytes, as settings spell them.

Knows Spark's spelling. Pure.
"""

from __future__ import annotations

import re

_UNITS = "bkmgtp"
_SIZE = re.compile(rf"(\d{{1,18}})\s*([{_UNITS}]?b?)", re.ASCII)


def size_of(text: str) -> int:
    """Parse a size to bytes. Raises ValueError: the text is no size, or the size is zero.

    Example:
        >>> size_of("100mb"), size_of("64k"), size_of("104857600")
        (104857600, 65536, 104857600)
    """
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or not int(match[1]) or match[2] == "bb":
        raise ValueError("it takes a number of bytes from 1, such as 104857600 or 100mb")
    return int(match[1]) << 10 * _UNITS.index(match[2][:1] or "b")
