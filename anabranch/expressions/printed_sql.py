"""PySpark Columns as SQL: what a Column prints, such as ``=(id, 3)``, as a text that can be run: ``(id = 3)``.

Pure. The text is for people and for the history; nothing is decided by it. Guarantee: a print of which any part could
mean two things gives no SQL.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

Named = Callable[[str], str | None]
"""A printed name as SQL; None where it may be none."""

_STRING = re.compile(r"'(?:[^'\\]|\\.)*'", re.DOTALL)
_CALL = re.compile(r"(<=>|<=|>=|!=|==|[=<>+*/%&|^!-]|[A-Za-z_]\w*)\(")
_LEAF = re.compile(r"([^\s(),'\"\[\]][^(),'\"\[\]]*?)(?=[],)[]|$| AS [A-Z]| WHEN | THEN | ELSE | END)")
_NUMBER = re.compile(r"-?\d+L?|-?\d+\.\d+(?:E-?\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,6}")
_TYPE = re.compile(r" AS ([A-Z]+(?:\(\d+(?:, ?\d+)?\))?)\)")
_WORDS = {"true": "true", "false": "false", "null": "NULL"}
_NOT_FINITE = {"NaN": "double('NaN')", "Infinity": "double('Infinity')", "-Infinity": "double('-Infinity')"}
_BETWEEN = {"==": "=", "and": "AND", "or": "OR", "like": "LIKE", "ilike": "ILIKE", "rlike": "RLIKE"}
_BEHIND = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}
_MOST_NESTED = 60


class _Unclear(Exception):
    """It may mean two things, or nothing that is known here."""


def sql_of(text: str, named: Named, zone: dt.tzinfo | None = None, *, quotes: bool = True) -> str | None:
    """What a Column prints as SQL; None where that is not certain.

    Args:
        zone: of the session, where known.
        quotes: whether texts are printed in quotes, as on a classic session.

    Example:
        >>> sql_of("and(>(id, 5), =(c, 'x'))", str)
        "((id > 5) AND (c = 'x'))"
    """
    reading = _Reading(text, named, zone, quotes)
    try:
        found, end = reading.expression(0, 0)
    except _Unclear:
        return None
    return found if end == len(text) else None


class _Reading:
    """One print, read from the left; each method gives the SQL of what begins at a place, and where it ends."""

    def __init__(self, text: str, named: Named, zone: dt.tzinfo | None, quotes: bool) -> None:
        self._text, self._named, self._zone, self._quotes = text, named, zone, quotes

    def expression(self, at: int, depth: int) -> tuple[str, int]:
        if depth > _MOST_NESTED:
            raise _Unclear
        found, at = self._first(at, depth)
        while self._text.startswith("[", at):
            key, at = self.expression(at + 1, depth + 1)
            found, at = f"{found}[{key}]", self._behind("]", at)
        return found, at

    def _first(self, at: int, depth: int) -> tuple[str, int]:
        if string := _STRING.match(self._text, at):
            return string[0], string.end()
        if self._text.startswith("CASE WHEN ", at):
            return self._case(at, depth + 1)
        if call := _CALL.match(self._text, at):
            return self._call(call[1], call.end(), depth + 1)
        if leaf := _LEAF.match(self._text, at):
            return self._leaf(leaf[1]), leaf.end()
        raise _Unclear

    def _behind(self, word: str, at: int) -> int:
        if not self._text.startswith(word, at):
            raise _Unclear
        return at + len(word)

    def _case(self, at: int, depth: int) -> tuple[str, int]:
        parts, at = ["CASE"], at + len("CASE")
        while self._text.startswith(" WHEN ", at):
            when, at = self.expression(at + len(" WHEN "), depth)
            then, at = self.expression(self._behind(" THEN ", at), depth)
            parts.append(f"WHEN {when} THEN {then}")
        if self._text.startswith(" ELSE ", at):
            other, at = self.expression(at + len(" ELSE "), depth)
            parts.append(f"ELSE {other}")
        return " ".join([*parts, "END"]), self._behind(" END", at)

    def _call(self, name: str, at: int, depth: int) -> tuple[str, int]:
        if name in ("CAST", "TRY_CAST"):
            value, at = self.expression(at, depth)
            if (kind := _TYPE.match(self._text, at)) is None:
                raise _Unclear
            return f"{name}({value} AS {kind[1]})", kind.end()
        given: list[str] = []
        while not self._text.startswith(")", at):
            each, at = self.expression(self._behind(", ", at) if given else at, depth)
            given.append(each)
        if not self._quotes and sum(map(_is_name, given)) > 1:
            raise _Unclear  # each of them may be a text
        return _spelled(name, given), at + 1

    def _leaf(self, text: str) -> str:
        if _NUMBER.fullmatch(text):
            return text
        known = self._named(text)
        is_moment = _DATE.fullmatch(text) or _MOMENT.fullmatch(text)
        if text.lower() in _WORDS and known is None:
            return _WORDS[text.lower()]
        if text in _NOT_FINITE and known is None:
            return _NOT_FINITE[text]
        if is_moment and known is None and self._quotes:
            return f"DATE '{text}'" if _DATE.fullmatch(text) else f"TIMESTAMP '{self._moment(text)}'"
        if known is None:
            raise _Unclear
        return known

    def _moment(self, text: str) -> str:
        """A moment with its offset: it is printed in the zone of the JVM, which is sure only where all agree."""
        wall = dt.datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f")
        here = wall.astimezone()
        if self._zone is None or wall.replace(tzinfo=self._zone).utcoffset() != here.utcoffset():
            raise _Unclear
        return here.isoformat(" ")


def _is_name(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z_`].*", text) is not None and text.lower() not in _WORDS


def _spelled(name: str, given: list[str]) -> str:
    """A call as SQL writes it."""
    word = name.lower()
    is_operator = not name[0].isalpha() and name[0] != "_"
    match given:
        case [one] if word in ("!", "not"):
            return f"(NOT {one})"
        case [one] if word in _BEHIND:
            return f"({one} {_BEHIND[word]})"
        case [one, other] if is_operator or word in _BETWEEN:
            return f"({one} {_BETWEEN.get(word, name)} {other})"
        case [one, _, *_] if word == "in":
            return f"({one} IN ({', '.join(given[1:])}))"
    if is_operator or word in _BETWEEN or word in ("in", "not"):
        raise _Unclear
    return f"{name}({', '.join(given)})"
