"""Qualifiers: columns that a statement qualifies by a table's full name, as in ``delta.`/t`.id`` or ``db.t.id``.

A query reads a table under the last part of its name, so this module removes the parts before it from a column's
name, unless the result would be ambiguous. Where names end alike (``a.t`` and ``b.t``), a table gets its full name as
an alias, and its columns are qualified by that alias. Pure, over tokens. Guarantee: a name that could be another
table's stays unchanged, and Spark refuses it.
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
"""The positions of the tokens that spell each word, by the word in lower case; string literals are no words."""
MOST_PARTS = 3  # a catalog's, a schema's and a table's name
MOST_SAID = 32
"""Maximum number of parts in a source's name; if a statement has a longer one, no qualifier is changed."""
_MAX_ALIKE = 200
"""Maximum number of tables for which `apart` computes aliases."""


def places_of(tokens: Sequence[Token]) -> Places:
    """Index the tokens by word, so that finding a name needs no scan."""
    positions: dict[str, list[int]] = {}
    for i, token in enumerate(tokens):
        if token.token_type not in _TEXTS:
            positions.setdefault(token.text.lower(), []).append(i)
    return positions


class Edit(NamedTuple):
    """Replaces the characters from ``start`` to before ``stop`` by ``text``."""

    start: int
    stop: int
    text: str = ""


class Placed(Protocol):
    """Anything that begins at a character of a text."""

    @property
    def start(self) -> int: ...


_Part = TypeVar("_Part", bound=Placed)


def between(parts: Sequence[_Part], start: int, stop: int) -> Sequence[_Part]:
    """Select the parts, sorted by position, that begin at ``start`` or later and before ``stop``."""
    first, after = (bisect_left(parts, place, key=lambda part: part.start) for place in (start, stop))
    return parts[first:after]


def apply_edits(text: str, start: int, stop: int, edits: Sequence[Edit]) -> str:
    """Return the text from ``start`` to before ``stop`` with these edits, which are sorted by position."""
    pieces, end = [], start
    for edit in edits:
        pieces += [text[end : edit.start], edit.text]
        end = edit.stop
    return "".join([*pieces, text[end:stop]])


def shifting(start: int, edits: Sequence[Edit]) -> Callable[[int], int]:
    """Return a function that maps a position in a text to the one in the result of `apply_edits`."""
    stops = [edit.stop for edit in edits]
    longer_by = [0, *accumulate(len(edit.text) - (edit.stop - edit.start) for edit in edits)]
    return lambda place: place - start + longer_by[bisect_right(stops, place)]


def qualifiers(tokens: Sequence[Token], name: Name, places: Places | None = None) -> list[Edit]:
    """Return edits that remove all but the last part of a table's name where it qualifies a column.

    Returns none if the last part alone could name something else in the statement, such as another table's alias: the
    column would become that table's.

    Example:
        >>> [(edit.start, edit.stop) for edit in qualifiers(tokenize("SELECT db.t.id FROM db.t"), ("db", "t"))]
        [(7, 10)]
    """
    folded, edits = _fold_case(name), []
    for i in (places_of(tokens) if places is None else places).get(folded[-1], ()):
        first = _first_token(tokens, i, folded)
        qualifies = _is_dot(tokens, i + 1)
        if first == i and (not qualifies or _is_dot(tokens, i - 1)):
            return []  # an alias, a column, or another table's name
        if first < i and qualifies:
            edits.append(Edit(tokens[first].start, tokens[i].start))
    return edits


def apart(
    tokens: Sequence[Token],
    name: Name,
    tables: Mapping[Name, Any],
    starts: Collection[int],
    places: Places | None = None,
) -> list[Edit]:
    """Return edits that replace a table's full name by its alias (`full_name_alias`) where it qualifies a column.

    Used if another table's name has the same last part. Returns none if the name might mean something else.

    Args:
        tables: the location of each table that the statement names, this one included; None if it is not known.
        starts: the characters at which the names of tables begin where they are read as tables.

    Example:
        >>> tokens = tokenize("SELECT a.t.id FROM a.t JOIN b.t")
        >>> apart(tokens, ("a", "t"), {("a", "t"): "/a", ("b", "t"): "/b"}, {19, 28})
        [Edit(start=7, stop=10, text='`a.t`')]
    """
    if len(tables) > _MAX_ALIKE:
        return []
    alias, place, places = full_name_alias(name), tables[name], places_of(tokens) if places is None else places
    mentions = [words for words in _find_mentions(tokens, name, starts, places) if tokens[words[0]].start not in starts]
    spellings = {tuple(tokens[i].text.lower() for i in words[::2]) for words in mentions}
    other_tables = {
        other: location
        for other, location in tables.items()
        if (_fold_case(other), location) != (_fold_case(name), place)
    }
    if any(
        _is_shared(other, name, spellings, place is not None and location == place)
        for other, location in other_tables.items()
    ):
        return []
    names = {i for table in tables for words in _find_mentions(tokens, table, starts, places) for i in words}
    heads = {part[0] for part in spellings}
    unrelated = (
        i
        for candidate in {alias.lower(), name[-1].lower(), *heads}
        for i in places.get(candidate, ())
        if i not in names
    )
    if any(_is_ambiguous(tokens, i, name[-1].lower(), alias.lower(), heads) for i in unrelated):
        return []
    quoted_alias = f"`{alias.replace('`', '``')}`"
    return [Edit(tokens[words[0]].start, tokens[words[-1]].end + 1, quoted_alias) for words in mentions]


def longer(
    tokens: Sequence[Token],
    name: Name,
    starts: Collection[int],
    places: Places | None = None,
) -> Iterator[tuple[Name, Edit]]:
    """Find columns whose qualifier is longer than the name by which the statement reads the table.

    Yields the full qualifier and the edit that removes its first parts. Yields nothing if the name, of one part, might
    name something else too, or if the qualifier is longer than any table's name.

    Args:
        starts: the characters at which the names of tables begin where they are read as tables.

    Example:
        >>> longer_names = longer(tokenize("DELETE FROM t WHERE db.t.id = 1"), ("t",), {12})
        >>> [(full_name, edit.start, edit.stop) for full_name, edit in longer_names]
        [(('db', 't'), 20, 23)]
    """
    folded = _fold_case(name)
    places = places_of(tokens) if places is None else places
    if _is_used_elsewhere(tokens, folded, starts, places):
        return
    for i in places.get(folded[-1], ()):
        own = i - 2 * (len(folded) - 1)
        if not (_is_dot(tokens, i + 1) and own >= 0):
            continue
        first = own
        while _is_dot(tokens, first - 1) and first >= 2 and is_name(tokens[first - 2]) and i - first <= 2 * MOST_PARTS:
            first -= 2
        if first < own and all(_is_part(tokens[own + 2 * n], part) for n, part in enumerate(folded)):
            full_name = tuple(tokens[n].text for n in range(first, i + 1, 2))
            yield full_name, Edit(tokens[first].start, tokens[own].start)


def _is_used_elsewhere(tokens: Sequence[Token], name: Name, starts: Collection[int], places: Places) -> bool:
    """Whether a name of one part occurs on its own outside of table names, as an alias does."""
    alone = (
        tokens[i].start for i in places.get(name[-1], ()) if not _is_dot(tokens, i - 1) and not _is_dot(tokens, i + 1)
    )
    return any(start not in starts for start in alone)


def _find_mentions(tokens: Sequence[Token], name: Name, starts: Collection[int], places: Places) -> list[range]:
    """Find the token ranges where two parts or more of a table's name name the table or qualify a column."""
    folded = _fold_case(name)
    ranges = [range(_first_token(tokens, i, folded), i + 1) for i in places.get(folded[-1], ())]
    return [
        mention
        for mention in ranges
        if len(mention) > 1 and (tokens[mention[0]].start in starts or _is_dot(tokens, mention[-1] + 1))
    ]


def full_name_alias(name: Name) -> str:
    """Return the alias of a table whose last name part is ambiguous."""
    return ".".join(name)


def _is_shared(other: Name, name: Name, spellings: Collection[Name], is_same: bool) -> bool:
    """Whether one of a table's spellings may mean the table ``other``.

    It does if the other's name ends with it or it contains the other's last part as an alias would, or if both names
    are the same table's and end alike.
    """
    folded = _fold_case(other)
    is_said = any(folded[-len(part) :] == part or folded[-1] in part[:-1] for part in spellings)
    return is_said or (is_same and folded[-1] == name[-1].lower())


def _is_ambiguous(tokens: Sequence[Token], i: int, last: str, alias: str, heads: Collection[str]) -> bool:
    """Whether a token makes a table's name ambiguous.

    It does if it is the alias that the table would get, the name's last part at the start of a dotted name, or the
    name's first part on its own, where it may be an alias.
    """
    spelling, is_first, is_last = tokens[i].text.lower(), not _is_dot(tokens, i - 1), not _is_dot(tokens, i + 1)
    return spelling == alias or (is_first and (spelling in heads if is_last else spelling == last))


def _fold_case(name: Name) -> Name:
    return tuple(part.lower() for part in name)


def _first_token(tokens: Sequence[Token], i: int, name: Sequence[str]) -> int:
    """Return the first token of the table's name that ends at token ``i``, which may be shortened.

    Returns ``i`` if no part of the name, or a part of another name, precedes it.
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
    """Remove the parts before the last part of its table's name from a column's path.

    Example:
        >>> without(("db", "t", "x"), ("db", "t"))
        ('t', 'x')
    """
    folded = _fold_case(path)
    for ending in _suffixes(name):
        if len(path) > len(ending) and folded[: len(ending)] == ending:
            return path[len(ending) - 1 :]
    return path


def _suffixes(name: Name) -> Iterator[Name]:
    """Yield the name and its suffixes of two parts or more, the longest first."""
    folded = _fold_case(name)
    yield from (folded[i:] for i in range(len(folded) - 1))
