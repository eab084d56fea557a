"""Foreign texts in a form that a terminal can show.

Pure; knows which characters a terminal executes instead of showing them. Guarantee: a text from here moves no cursor,
sets no colour and no title, and does not change the direction in which the rest of the line is read.

It is in the lowest package because the message of every error uses it.
"""

from __future__ import annotations

import re

_CONTROL = re.compile(
    "\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters except tabs and line ends, direction marks, line separators, and lone surrogates."""


def visible(text: str) -> str:
    r"""A text with control characters spelled out; tabs and line ends stay.

    Example:
        >>> visible("\x1b[31mred")
        '\\x1b[31mred'
    """
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def visible_json(text: str) -> str:
    r"""JSON with control characters escaped, which has the same meaning.

    Example:
        >>> visible_json('"\x9b31mred"')
        '"\\u009b31mred"'
    """
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def amount(number: int, noun: str) -> str:
    """A number of things, for people.

    Example:
        >>> amount(1, "file"), amount(2, "file")
        ('1 file', '2 files')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
