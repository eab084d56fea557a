"""Pointing: the line of a statement at which something is wrong, with carets below the word. Pure."""

from __future__ import annotations


def excerpt(text: str, start: int, stop: int) -> str:
    """The place of a word, in Spark's manner.

    Example:
        >>> print(excerpt("SELECT *\\nFORM t", 9, 13))
        == SQL (line 2, position 1) ==
        FORM t
        ^^^^
    """
    start = min(max(start, 0), len(text))
    begin = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    line = text[begin : len(text) if end < 0 else end].rstrip("\r")
    width = max(min(stop - start, len(line) - (start - begin)), 1)
    number, position = text.count("\n", 0, begin) + 1, start - begin
    blank = "".join("\t" if each == "\t" else " " for each in line[:position])
    return f"== SQL (line {number}, position {position + 1}) ==\n{line}\n{blank}{'^' * width}"
