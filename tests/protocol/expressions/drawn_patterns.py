"""Patterns of RLIKE over few letters, and texts that they may match, drawn by a seed."""

from __future__ import annotations

import random

_ATOMS = ["a", "b", "c", "é", "-", " ", ".", r"\d", r"\w", r"\D", r"\W", r"\.", "[ab]", "[^a]", "[a-c-]", r"[\d.]"]
_ATOMS += ["[^éb]", "1", "_", r"[^\w]", "e\u0301", "漢"]
_QUANTIFIERS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,3}?", "{2,}", "{0,2}"]
_LETTERS = ["a", "b", "c", "é", "-", " ", ".", "1", "_", "🙂", "\u0301", "e", "漢", "\U0001d7d8", "\u0661"]
_LINE_ENDS = ["\n", "\r", "\u0085", "\u2028", "\r\n", "\u2029", "\v"]


def drawn_pattern(draw: random.Random, depth: int = 3) -> str:
    """A pattern of the signs that are read, most of which is."""
    ways = ["".join(_part(draw, depth) for _ in range(draw.randint(1, 4))) for _ in range(draw.choice([1, 1, 1, 2, 3]))]
    if depth == 3:
        ways[0] = draw.choice(["", "", "^"]) + ways[0]
        ways[-1] += draw.choice(["", "", "$"])
    return "|".join(ways)


def _part(draw: random.Random, depth: int) -> str:
    if depth > 0 and draw.random() < 0.3:
        found = f"({draw.choice(['', '?:'])}{drawn_pattern(draw, depth - 1)})"
    else:
        found = draw.choice(_ATOMS)
    return found + (draw.choice(_QUANTIFIERS) if draw.random() < 0.35 else "")


def drawn_searched(draw: random.Random) -> str:
    """A short text, now and then with ends of lines."""
    letters = _LETTERS if draw.random() < 0.6 else ["a", "b", "c"]
    found = "".join(draw.choice(letters) for _ in range(draw.randint(0, 8)))
    at = draw.randint(0, len(found))
    return found[:at] + draw.choice(_LINE_ENDS) + found[at:] if draw.random() < 0.2 else found
