"""A glance: which tables a query could read, for a small part of what it costs to cut it into words.

Knows as much of the language as regular expressions can tell; `anabranch.statements.grammar.tables_read` knows it.
Guarantee: where there is an answer, every table that a full reading finds is among the names. There may be more of
them: a name too many costs a look into the catalog, one too few would be a Delta table that nobody sees as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from anabranch.statements.grammar.tables_read import ENDS_LIST

_LONGEST = 200_000
_QUERY = re.compile(r"[\s(]*(?:select|with|from|values|explain)\b", re.IGNORECASE)
_OPAQUE = re.compile(r"'[^']*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/|`(?:[^`]|``)*`", re.DOTALL)
"""Texts, comments and quoted names, whichever begins first."""
_UNCLEAR = ("'", '"', "`", "\\", ";", "/*", "*/")
"""What is left of a text, a comment or a name that is more than it seems; or of several statements."""
_BLANKS_AT_DOTS = (" .", ". ", "\t.", ".\t", "\n.", ".\n", "\r.", ".\r")
_DOTS = re.compile(r"\s*\.\s*")
_WANTS = re.compile(r"(?<![\w.])(?=[fjutio])(?:from|join|using|table|into|overwrite)(?![\w.])")
_SIGNS = re.compile(
    rf"(?P<wants>{_WANTS.pattern})|(?P<ends>(?<![\w.])(?:{'|'.join(sorted(ENDS_LIST)).lower()})(?![\w.]))|[(),]"
)
_PART = r"(?:\ue000\d+\ue001|(?!(?i:select|values)\b)[^\W\d]\w*\b)"
_NAME = re.compile(rf"[\s(]*({_PART}(?:\.{_PART})*)(?!\s*\()")


@lru_cache(maxsize=512)
def tables_at_a_glance(text: str) -> frozenset[tuple[str, ...]] | None:
    """The names by which a query may read tables, and perhaps more; None where a glance does not tell.

    Example:
        >>> sorted(tables_at_a_glance("SELECT a FROM t, db.u WHERE s = 'FROM x'"))
        [('db', 'u'), ('t',)]
    """
    if len(text) > _LONGEST or "\ue000" in text or _QUERY.match(text) is None:
        return None
    quoted: list[str] = []
    plain = _OPAQUE.sub(lambda found: _blank(found[0], quoted), text).rstrip().removesuffix(";")
    if any(each in plain for each in _BLANKS_AT_DOTS):
        plain = _DOTS.sub(".", plain)
    small = plain.lower()
    if len(small) != len(plain) or any(sign in plain for sign in _UNCLEAR):
        return None
    return frozenset(_parts(name, quoted) for name in _names(plain, small))


def _blank(said: str, quoted: list[str]) -> str:
    """What stands in the place of a text, a comment or a quoted name."""
    if said[0] != "`":
        return " 0 " if said[0] in "'\"" else " "
    quoted.append(said[1:-1].replace("``", "`"))
    return f"\ue000{len(quoted) - 1}\ue001"


def _names(plain: str, small: str) -> Iterator[str]:
    """What stands where a table may; ``small`` is the text in small letters."""
    end = 0
    for word in _WANTS.finditer(small):
        if word.start() >= end:  # else it was seen in the list of the one before
            for end in _places(small, word.start()):
                if (name := _NAME.match(plain, end)) is not None:
                    yield name[1]


def _places(small: str, start: int) -> Iterator[int]:
    """Behind which places a table may be named: behind a word that wants one, and commas, as far as its list goes."""
    lists, wanted = [False], -1  # whether a list goes on, in each pair of parentheses; where another may begin
    for sign in _SIGNS.finditer(small, start):
        said, end = sign[0], sign.end()
        begins = wanted >= 0 and not small[wanted : sign.start()].strip()
        wanted = -1
        if sign.lastgroup == "wants" or (said == "," and lists[-1]):
            lists[-1], wanted = True, end
            yield end
        elif said == "(":
            lists.append(begins)
            wanted = end if begins else -1
        elif said == ")":
            lists.pop()
        elif said != ",":
            lists[-1] = False
        if not lists or not (lists[-1] or len(lists) > 1):
            return


def _parts(name: str, quoted: list[str]) -> tuple[str, ...]:
    return tuple(quoted[int(part[1:-1])] if part[0] == "\ue000" else part for part in name.split("."))
