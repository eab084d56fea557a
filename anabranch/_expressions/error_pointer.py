"""Pointing: the line of a statement at which something is wrong, with carets below the word. Pure."""

from __future__ import annotations

import re

from anabranch.errors.secrets import is_secret

_STRING = r"'(?:[^'\\]|\\.|'')*'?|\"(?:[^\"\\]|\\.|\"\")*\"?"
_STORE_SETTING = r"(?:spark\.hadoop|fs|dfs|hadoop|google\.cloud|option)\.[\w.-]++"
_QUOTED = r"(?<=['\"])[\w.-]++(?=['\"]\s*+=)"
"""A key in quotes, which is not a column's name."""
_SETTING = re.compile(
    rf"(?P<before>['\"`]?(?P<key>{_STORE_SETTING}|password|passwd|secret|token|{_QUOTED})['\"`]?(?:\s*+=\s*+|\s++))(?P<value>{_STRING})"
    rf"|{_STORE_SETTING}",
    re.IGNORECASE,
)
"""A setting and its value, as OPTIONS and properties have them; or a setting alone that contains no other one."""


def excerpt(text: str, start: int, stop: int) -> str:
    """The line of a word with carets below it, in Spark's form.

    Example:
        >>> print(excerpt("SELECT *\\nFORM t", 9, 13))
        == SQL (line 2, position 1) ==
        FORM t
        ^^^^
    """
    start = min(max(start, 0), len(text))
    begin = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    line = _without_secrets(text[begin : len(text) if end < 0 else end].rstrip("\r"))
    width = max(min(stop - start, len(line) - (start - begin)), 1)
    number, position = text.count("\n", 0, begin) + 1, start - begin
    blank = "".join("\t" if character == "\t" else " " for character in line[:position])
    return f"== SQL (line {number}, position {position + 1}) ==\n{line}\n{blank}{'^' * width}"


def _without_secrets(line: str) -> str:
    """The line with a star for each character of a secret, so that everything else keeps its place."""
    return _SETTING.sub(_mask_secret, line)


def _mask_secret(match: re.Match[str]) -> str:
    is_hidden = match["key"] is not None and is_secret(match["key"])
    return match["before"] + "*" * len(match["value"]) if is_hidden else match[0]
