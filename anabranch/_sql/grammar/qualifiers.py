"""Qualifiers: columns that a statement names by a table's whole name, as in ``delta.`/t`.id`` or ``db.t.id``.

A table is put into a query under the last part of its name; what stands before that in a column's name has to go, and
only where nothing else could be meant. Where names end alike (``a.t`` and ``b.t``), a table is put there under its
whole name as one word, and so are its columns named. Pure, over tokens. Guarantee: a name that could be another
table's is left as it is, and then Spark refuses it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Protocol, TypeVar

from anabranch._expressions.dialect import Token, TokenType, is_name

_TEXTS = (TokenType.STRING, TokenType.RAW_STRING)
Name = tuple[str, ...]
Places = Mapping[str, Sequence[int]]
"""By each word, in small letters, at which tokens it stands; texts are no words."""
MOST_PARTS = 3  # a catalog's, a schema's and a table's name
MOST_SAID = 32
"""How many parts the name of a source may have; with more in a statement, what qualifies a column stays as it is."""
_MOST_ALIKE = 200
"""How many tables whose names end alike are told apart; of more, each name is left as it is."""


def places_of(tokens: Sequence[Token]) -> Places:
    """Where each word stands, so that a name is found without a look at all others."""
    found: dict[str, list[int]] = {}
    for i, token in enumerate(tokens):
        if token.token_type not in _TEXTS:
            found.setdefault(token.text.lower(), []).append(i)
    return found


class Edit(NamedTuple):
    """Characters ``start`` to before ``stop`` of a text, and what stands there instead."""

    start: int
    stop: int
    text: str = ""


class Placed(Protocol):
    """What begins at a character of a text."""

    @property
    def start(self) -> int: ...


_Part = TypeVar("_Part", bound=Placed)


def between(parts: Sequence[_Part], start: int, stop: int) -> Sequence[_Part]:
    """Those of some parts of a text, which lie in it in order, that begin in a stretch of it."""
    first, after = (bisect_left(parts, place, key=lambda each: each.start) for place in (start, stop))
    return parts[first:after]


def apply_edits(text: str, start: int, stop: int, edits: Sequence[Edit]) -> str:
    """A stretch of a text with these edits, which lie in it in order."""
    pieces, end = [], start
    for each in edits:
        pieces += [text[end : each.start], each.text]
        end = each.stop
    return "".join([*pieces, text[end:stop]])


def shifting(start: int, edits: Sequence[Edit]) -> Callable[[int], int]:
    """Where a place of a text is in the stretch from ``start`` on with these edits, which lie in it in order."""
    stops = [each.stop for each in edits]
    longer_by = [0, *accumulate(len(each.text) - (each.stop - each.start) for each in edits)]
    return lambda place: place - start + longer_by[bisect_right(stops, place)]


def qualifiers(tokens: Sequence[Token], name: Name, places: Places | None = None) -> list[Edit]:
    """What goes before the last part of a table's name, where that qualifies a column.

    Nothing goes where the last part alone could be the name of something else in the statement, such as another
    table's alias: the column would become that one's.

    Example:
        >>> [(each.start, each.stop) for each in qualifiers(tokenized("SELECT db.t.id FROM db.t"), ("db", "t"))]
        [(7, 10)]
    """
    folded, found = _fold_case(name), []
    for i in (places_of(tokens) if places is None else places).get(folded[-1], ()):
        first = _first(tokens, i, folded)
        qualifies = _is_dot(tokens, i + 1)
        if first == i and (not qualifies or _is_dot(tokens, i - 1)):
            return []  # an alias, a column, or another table's name
        if first < i and qualifies:
            found.append(Edit(tokens[first].start, tokens[i].start))
    return found


def apart(
    tokens: Sequence[Token],
    name: Name,
    tables: Mapping[Name, Any],
    starts: Collection[int],
    places: Places | None = None,
) -> list[Edit]:
    """What stands for a table's whole name where that qualifies a column, and its last part is not its own: an alias
    that says all of it (`full_name_alias`). Nothing, where the name might mean something else.

    Args:
        tables: where each table lies that the statement names so, this one among them; None where that is not known.
        starts: the characters at which their names stand as tables.

    Example:
        >>> tokens = tokenized("SELECT a.t.id FROM a.t JOIN b.t")
        >>> apart(tokens, ("a", "t"), {("a", "t"): "/a", ("b", "t"): "/b"}, {19, 28})
        [Edit(start=7, stop=12, text='`a.t`')]
    """
    if len(tables) > _MOST_ALIKE:
        return []
    alias, place, places = full_name_alias(name), tables[name], places_of(tokens) if places is None else places
    found = [words for words in _find_mentions(tokens, name, starts, places) if tokens[words[0]].start not in starts]
    said = {tuple(tokens[i].text.lower() for i in words[::2]) for words in found}
    others = {each: there for each, there in tables.items() if (_fold_case(each), there) != (_fold_case(name), place)}
    if any(_is_shared(each, name, said, place is not None and there == place) for each, there in others.items()):
        return []
    names = {i for each in tables for words in _find_mentions(tokens, each, starts, places) for i in words}
    heads = {part[0] for part in said}
    rest = (i for each in {alias.lower(), name[-1].lower(), *heads} for i in places.get(each, ()) if i not in names)
    if any(_is_elses(tokens, i, name[-1].lower(), alias.lower(), heads) for i in rest):
        return []
    spelled = f"`{alias.replace('`', '``')}`"
    return [Edit(tokens[words[0]].start, tokens[words[-1]].end + 1, spelled) for words in found]


def longer(
    tokens: Sequence[Token],
    name: Name,
    starts: Collection[int],
    places: Places | None = None,
) -> Iterator[tuple[Name, Edit]]:
    """Where more than the name by which a statement names a table stands before a column: all of it, and what has to go
    there. Nothing where that name, one part, might be something else's, too, or where it is more than any table's.

    Args:
        starts: the characters at which the names of tables stand as tables.

    Example:
        >>> found = longer(tokenized("DELETE FROM t WHERE db.t.id = 1"), ("t",), {12})
        >>> [(whole, each.start, each.stop) for whole, each in found]
        [(('db', 't'), 20, 23)]
    """
    folded = _fold_case(name)
    places = places_of(tokens) if places is None else places
    if _is_elsewhere(tokens, folded, starts, places):
        return
    for i in places.get(folded[-1], ()):
        own = i - 2 * (len(folded) - 1)
        if not (_is_dot(tokens, i + 1) and own >= 0):
            continue
        first = own
        while _is_dot(tokens, first - 1) and first >= 2 and is_name(tokens[first - 2]) and i - first <= 2 * MOST_PARTS:
            first -= 2
        if first < own and all(_is_part(tokens[own + 2 * n], part) for n, part in enumerate(folded)):
            whole = tuple(tokens[n].text for n in range(first, i + 1, 2))
            yield whole, Edit(tokens[first].start, tokens[own].start)


def _is_elsewhere(tokens: Sequence[Token], name: Name, starts: Collection[int], places: Places) -> bool:
    """Whether a name of one part stands alone where no table is named, as an alias does."""
    alone = (
        tokens[i].start for i in places.get(name[-1], ()) if not _is_dot(tokens, i - 1) and not _is_dot(tokens, i + 1)
    )
    return any(start not in starts for start in alone)


def _find_mentions(tokens: Sequence[Token], name: Name, starts: Collection[int], places: Places) -> list[range]:
    """Where two parts or more of a table's name stand as a table, or before a column."""
    folded = _fold_case(name)
    found = [range(_first(tokens, i, folded), i + 1) for i in places.get(folded[-1], ())]
    return [
        each for each in found if len(each) > 1 and (tokens[each[0]].start in starts or _is_dot(tokens, each[-1] + 1))
    ]


def full_name_alias(name: Name) -> str:
    """The alias of a table whose name's last part is not enough."""
    return ".".join(name)


def _is_shared(other: Name, name: Name, said: Collection[Name], is_same: bool) -> bool:
    """Whether what is said of a table may mean another one: it ends the other's name, too, or has it before a column as
    an alias stands there; or both are one table.
    """
    folded = _fold_case(other)
    is_said = any(folded[-len(part) :] == part or folded[-1] in part[:-1] for part in said)
    return is_said or (is_same and folded[-1] == name[-1].lower())


def _is_elses(tokens: Sequence[Token], i: int, last: str, alias: str, heads: Collection[str]) -> bool:
    """Whether a word leaves open what a table's name means: the last part before a dot, with nothing before it; what a
    name begins with, where it may be an alias; or the alias that the table would get.
    """
    said, is_first, is_last = tokens[i].text.lower(), not _is_dot(tokens, i - 1), not _is_dot(tokens, i + 1)
    return said == alias or (is_first and (said in heads if is_last else said == last))


def _fold_case(name: Name) -> Name:
    return tuple(part.lower() for part in name)


def _first(tokens: Sequence[Token], i: int, name: Sequence[str]) -> int:
    """The first token of the name that ends at a token, as much of it as is said; the token itself where another name
    stands before it, or none.
    """
    first = i
    for part in reversed(name[:-1]):
        if not (_is_dot(tokens, first - 1) and first >= 2 and _is_part(tokens[first - 2], part)):
            break
        first -= 2
    return i if _is_dot(tokens, first - 1) else first


def _is_part(token: Token, part: str) -> bool:
    return token.text.lower() == part and token.token_type not in _TEXTS


def _is_dot(tokens: Sequence[Token], i: int) -> bool:
    return 0 <= i < len(tokens) and tokens[i].token_type == TokenType.DOT


def without(path: Name, name: Name) -> Name:
    """The path of a column without what stands before the last part of its table's name.

    Example:
        >>> without(("db", "t", "x"), ("db", "t"))
        ('t', 'x')
    """
    folded = _fold_case(path)
    for each in _ends(name):
        if len(path) > len(each) and folded[: len(each)] == each:
            return path[len(each) - 1 :]
    return path


def _ends(name: Name) -> Iterator[Name]:
    """A name and its ends of two parts or more, the longest first."""
    folded = _fold_case(name)
    yield from (folded[i:] for i in range(len(folded) - 1))
