"""Decides cheaply, before a statement is parsed, whether it may touch a Delta table.

Most statements touch none, so this costs a fraction of tokenizing the text. Uses regular expressions only;
`anabranch._sql.grammar.tables_read` does the full analysis. Guarantee: no false negatives. The names that it finds in
a query include every table that `tables_read` finds: a surplus name costs a look-up in the catalog, a missing one would
send a Delta table to Spark.
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
"""Words after which a statement may name a table."""
_READS = re.compile(r"\s*+\(*+\s*+(select|with|from|values|explain)\b", re.IGNORECASE)
_COMMENT = r"--(?:\\\n|[^\r\n])*+"
_TAKES_NAMES = re.compile(rf"(?:\s++|{_COMMENT}|/\*(?s:.*?)\*/)*+(drop|alter)\b", re.IGNORECASE)
_MAX_LENGTH = 200_000
_QUERY = re.compile(r"[\s(]*(?:select|with|from|values)\b", re.IGNORECASE)
_OPAQUE = re.compile(
    r"(?<!\w)[rR](?:'[^']*'|\"[^\"]*\")|'(?:[^'\\]|\\.)*+(?:'|(?P<text>.?\Z))|\"(?:[^\"\\]|\\.)*+(?:\"|(?P<wide>.?\Z))"
    rf"|{_COMMENT}|/\*(?:.*?\*/|(?P<open>.*))|`(?:[^`]|``)*`",
    re.DOTALL,
)
"""String literals, comments and quoted names, whichever begins first; an open one extends to the end."""
_UNCLEAR = ("'", '"', "`", "\\", ";", "/*", "*/")
"""Signs left over if a literal, a comment or a name is not what it seems, or if there are several statements."""
_BEFORE_TABLE = re.compile(r"(?<![\w.])(?=[fjutio])(?:from|join|using|table|into|overwrite)(?![\w.])")
_LIST_ENDS = "|".join(sorted(ENDS_LIST - {"SELECT", "VALUES"})).lower()
"""Words that end a FROM clause unless they are aliases; not VALUES, since the clause goes on after its alias."""
_SIGNS = re.compile(
    rf"(?P<wants>{_BEFORE_TABLE.pattern})|(?P<ends>(?<![\w.])(?:{_LIST_ENDS}|select)(?![\w.]))|[(),]"
    rf"|(?<![\w.])as\s+(?:{_LIST_ENDS})(?![\w.])"
)
_PART = r"(?:\ue000\d+\ue001|(?!(?i:select|values)\b)\w+\b)"
_NAME = re.compile(rf"[\s(]*(?!\d+\b)({_PART}(?:\.{_PART})*)(?!\s*\()")


class TextFacts:
    """What regular expressions find out about a text; each property is computed on first use."""

    def __init__(self, text: str) -> None:
        self.text = text

    @lazy
    def is_ours(self) -> bool:
        """Whether the text alone suggests a Delta statement: a path in backticks after ``delta`` or ``anabranch``, or a
        first word that only Delta's statements have.
        """
        lowered = self.text.lower()
        if "`" in self.text and any(name in lowered for name in _FORMATS):
            return True
        return lowered.lstrip().startswith(_BEGINNINGS) or "table_changes" in lowered

    @lazy
    def is_computed(self) -> bool:
        """Whether it may compute a name or a statement: IDENTIFIER(…), EXECUTE IMMEDIATE."""
        return computed_names.may_be_computed(self.text)

    @lazy
    def reads(self) -> bool:
        """Whether it is a query."""
        return _READS.match(self.text) is not None

    @lazy
    def takes_names(self) -> bool:
        """Whether it may drop or alter a name."""
        return not self.reads and _TAKES_NAMES.match(self.text) is not None

    @lazy
    def may_name(self) -> bool:
        """Whether it has a word after which a table may be named."""
        return _MAY_NAME.search(self.text) is not None

    @lazy
    def tables(self) -> frozenset[tuple[str, ...]] | None:
        """A superset of the names of tables that a query reads; None if regular expressions cannot tell.

        Example:
            >>> sorted(TextFacts("SELECT a FROM t, db.u WHERE s = 'FROM x'").tables)
            [('db', 'u'), ('t',)]
        """
        return _find_tables(self.text) if self.reads else None


text_facts = memo("looks at statements", 512)(TextFacts)
"""Returns the `TextFacts` of a text, memoized by text."""


def may_touch_delta(text: str, names: Names) -> bool:
    """Whether a statement may touch a Delta table, by its path or by a name that ``names`` resolves."""
    look = text_facts(text)
    return look.is_ours or names.may_know(look)


def _find_tables(text: str) -> frozenset[tuple[str, ...]] | None:
    if len(text) > _MAX_LENGTH or "\ue000" in text or _QUERY.match(text) is None:
        return None
    quoted: list[str] = []
    plain = _OPAQUE.sub(lambda match: _placeholder(match, quoted), text).rstrip().removesuffix(";")
    plain = ".".join(part.strip() for part in plain.split("."))
    small = plain.lower()
    if len(small) != len(plain) or "table_changes" in small or any(sign in plain for sign in _UNCLEAR):
        return None  # the name of a change feed's table is a string literal
    names = frozenset(_split_name(name, quoted) for name in _table_names(plain, small))
    numbers = any(part[:1].isdigit() for name in names for part in name[1:])  # `t .1` is a name and a number, perhaps
    return None if numbers else names


def _placeholder(match: re.Match[str], quoted: list[str]) -> str:
    """Return the placeholder of a literal, a comment or a quoted name; one that is not closed stays."""
    matched = match[0]
    if match.lastgroup is not None:
        return matched
    if matched[0] != "`":
        return " " if matched[0] in "-/" else " 0 "
    quoted.append(matched[1:-1].replace("``", "`"))
    return f"\ue000{len(quoted) - 1}\ue001"


def _table_names(plain: str, small: str) -> Iterator[str]:
    """Yield the names at the places of tables; ``small`` is the text in lower case."""
    end = 0
    for word in _BEFORE_TABLE.finditer(small):
        if word.start() >= end:  # else the list of the word before included it
            for end in _table_positions(small, word.start()):
                if (name := _NAME.match(plain, end)) is not None:
                    yield name[1]


def _table_positions(small: str, start: int) -> Iterator[int]:
    """Yield the positions where a table may be named: after the word at ``start``, and after the commas of its list."""
    lists, awaited = [False], -1  # per pair of parentheses, whether a list is open; where another may begin
    for sign in _SIGNS.finditer(small, start):
        matched, end = sign[0], sign.end()
        begins = awaited >= 0 and not small[awaited : sign.start()].strip()
        awaited = -1
        if sign.lastgroup == "wants" or (matched == "," and lists[-1]):
            lists[-1], awaited = True, end
            yield end
        elif matched == "(":
            lists.append(begins)
            awaited = end if begins else -1
        elif matched == ")":
            lists.pop()
        elif sign.lastgroup == "ends":
            lists[-1] = False
        if not lists or not (lists[-1] or len(lists) > 1):
            return


def _split_name(name: str, quoted: list[str]) -> tuple[str, ...]:
    return tuple(quoted[int(part[1:-1])] if part[0] == "\ue000" else part for part in name.split("."))
