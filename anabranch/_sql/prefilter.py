"""The look at a text before it is read: whether it may touch a Delta table.

Most statements touch none, so this costs a small part of what cutting a text into words costs. Knows as much of the
language as regular expressions can tell; `anabranch._sql.grammar.tables_read` knows it. Guarantee: it may say yes
too often, never no where the answer is yes. Where it names the tables of a query, every table that a full reading finds
is among the names: a name too many costs a look into the catalog, one too few would be a Delta table that nobody sees
as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from anabranch._log.lazy import lazy
from anabranch._sql.executor.name_resolver import Names
from anabranch._sql.grammar import computed_names
from anabranch._sql.grammar.tables_read import ENDS_LIST
from anabranch._sql.registry import DELTA_ONLY
from anabranch.errors.process_state import memo

_FORMATS = ("delta", "anabranch")
_OWN = [word.lower() for word in sorted(DELTA_ONLY)]
_BEGINNINGS = ("--", "/*", "begin", "commit", "rollback", "start", *_OWN)
_BEFORE_NAMES = "from join using into overwrite table update describe desc show view column".split()  # noqa: SIM905
_MAY_NAME = re.compile(rf"\b({'|'.join([*_BEFORE_NAMES, *_OWN])})\b", re.IGNORECASE)
"""Words behind which a statement may name a table."""
_READS = re.compile(r"\s*+\(*+\s*+(select|with|from|values|explain)\b", re.IGNORECASE)
_COMMENT = r"--(?:\\\n|[^\r\n])*+"
_TAKES_NAMES = re.compile(rf"(?:\s++|{_COMMENT}|/\*(?s:.*?)\*/)*+(drop|alter)\b", re.IGNORECASE)
_LONGEST = 200_000
_QUERY = re.compile(r"[\s(]*(?:select|with|from|values)\b", re.IGNORECASE)
_OPAQUE = re.compile(
    r"(?<!\w)[rR](?:'[^']*'|\"[^\"]*\")|'(?:[^'\\]|\\.)*+(?:'|(?P<text>.?\Z))|\"(?:[^\"\\]|\\.)*+(?:\"|(?P<wide>.?\Z))"
    rf"|{_COMMENT}|/\*(?:.*?\*/|(?P<open>.*))|`(?:[^`]|``)*`",
    re.DOTALL,
)
"""Texts, comments and quoted names, whichever begins first; what has no end goes to the end."""
_UNCLEAR = ("'", '"', "`", "\\", ";", "/*", "*/")
"""What is left of a text, a comment or a name that is more than it seems; or of several statements."""
_WANTS = re.compile(r"(?<![\w.])(?=[fjutio])(?:from|join|using|table|into|overwrite)(?![\w.])")
_ENDS = "|".join(sorted(ENDS_LIST - {"SELECT", "VALUES"})).lower()
"""What ends a list, unless it is an alias; one goes on behind the alias of VALUES, which a look does not find."""
_SIGNS = re.compile(
    rf"(?P<wants>{_WANTS.pattern})|(?P<ends>(?<![\w.])(?:{_ENDS}|select)(?![\w.]))|[(),]"
    rf"|(?<![\w.])as\s+(?:{_ENDS})(?![\w.])"
)
_PART = r"(?:\ue000\d+\ue001|(?!(?i:select|values)\b)\w+\b)"
_NAME = re.compile(rf"[\s(]*(?!\d+\b)({_PART}(?:\.{_PART})*)(?!\s*\()")


class Glance:
    """What a look at a text tells; each answer is found when it is first asked for."""

    def __init__(self, text: str) -> None:
        self.text = text

    @lazy
    def is_ours(self) -> bool:
        """Whether it could be Delta's by itself: a path stands in backticks behind ``delta`` or ``anabranch``, and what
        only Delta has begins with a word of its own.
        """
        lowered = self.text.lower()
        if "`" in self.text and any(each in lowered for each in _FORMATS):
            return True
        return lowered.lstrip().startswith(_BEGINNINGS) or "table_changes" in lowered

    @lazy
    def is_computed(self) -> bool:
        """Whether it may say a name, or a statement, by an expression: IDENTIFIER(…), EXECUTE IMMEDIATE."""
        return computed_names.may_be_computed(self.text)

    @lazy
    def reads(self) -> bool:
        """Whether it is a query."""
        return _READS.match(self.text) is not None

    @lazy
    def takes_names(self) -> bool:
        """Whether it may take a name away, or change it."""
        return not self.reads and _TAKES_NAMES.match(self.text) is not None

    @lazy
    def may_name(self) -> bool:
        """Whether it has a word behind which a table is named."""
        return _MAY_NAME.search(self.text) is not None

    @lazy
    def tables(self) -> frozenset[tuple[str, ...]] | None:
        """The names by which a query may read tables, and perhaps more; None where a look does not tell.

        Example:
            >>> sorted(Glance("SELECT a FROM t, db.u WHERE s = 'FROM x'").tables)
            [('db', 'u'), ('t',)]
        """
        return _tables(self.text) if self.reads else None


glance = memo("looks at statements", 512)(Glance)
"""`Glance` of a text, kept for the next time that it comes."""


def may_touch_delta(text: str, names: Names) -> bool:
    """Whether a statement may touch a Delta table, by its path or by a name of these."""
    seen = glance(text)
    return seen.is_ours or names.may_know(seen)


def _tables(text: str) -> frozenset[tuple[str, ...]] | None:
    if len(text) > _LONGEST or "\ue000" in text or _QUERY.match(text) is None:
        return None
    quoted: list[str] = []
    plain = _OPAQUE.sub(lambda found: _blank(found, quoted), text).rstrip().removesuffix(";")
    plain = ".".join(part.strip() for part in plain.split("."))
    small = plain.lower()
    if len(small) != len(plain) or "table_changes" in small or any(sign in plain for sign in _UNCLEAR):
        return None  # of a feed, a text says the table's name
    found = frozenset(_parts(name, quoted) for name in _names(plain, small))
    numbers = any(part[:1].isdigit() for name in found for part in name[1:])  # `t .1` is a name and a number, perhaps
    return None if numbers else found


def _blank(found: re.Match[str], quoted: list[str]) -> str:
    """What stands in the place of a text, a comment or a quoted name; what has no end stays."""
    said = found[0]
    if found.lastgroup is not None:
        return said
    if said[0] != "`":
        return " " if said[0] in "-/" else " 0 "
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
        elif sign.lastgroup == "ends":
            lists[-1] = False
        if not lists or not (lists[-1] or len(lists) > 1):
            return


def _parts(name: str, quoted: list[str]) -> tuple[str, ...]:
    return tuple(quoted[int(part[1:-1])] if part[0] == "\ue000" else part for part in name.split("."))
