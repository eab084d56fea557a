"""Qualifiers: columns that a statement names by a table's whole name, as in ``delta.`/t`.id`` or ``db.t.id``.

A table is put into a query under the last part of its name; what stands before that in a column's name has to go, and
only where nothing else could be meant. Pure, over tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from anabranch.parsing.statements.dialect import Token, TokenType

Name = tuple[str, ...]


class Edit(NamedTuple):
    """Characters ``start`` to before ``stop`` of a text, and what stands there instead."""

    start: int
    stop: int
    text: str = ""


def edited(text: str, start: int, stop: int, edits: Sequence[Edit]) -> str:
    """A stretch of a text with these edits, which lie in it in order."""
    pieces, end = [], start
    for each in edits:
        pieces += [text[end : each.start], each.text]
        end = each.stop
    return "".join([*pieces, text[end:stop]])


def shifted(place: int, start: int, edits: Sequence[Edit]) -> int:
    """Where a place of a text is in the stretch from ``start`` on with these edits."""
    return place - start + sum(len(each.text) - (each.stop - each.start) for each in edits if each.stop <= place)


def qualifiers(tokens: Sequence[Token], name: Name) -> list[Edit]:
    """What goes before the last part of a table's name, where that qualifies a column.

    Nothing goes where the last part alone could be the name of something else in the statement, such as another
    table's alias: the column would become that one's.

    Example:
        >>> [(each.start, each.stop) for each in qualifiers(tokenized("SELECT db.t.id FROM db.t"), ("db", "t"))]
        [(7, 10)]
    """
    folded, found = [part.lower() for part in name], []
    for i, token in enumerate(tokens):
        if not _is_part(token, folded[-1]):
            continue
        first = _first(tokens, i, folded)
        qualifies = _is_dot(tokens, i + 1)
        if first == i and (not qualifies or _is_dot(tokens, i - 1)):
            return []  # an alias, a column, or another table's name
        if first < i and qualifies:
            found.append(Edit(tokens[first].start, token.start))
    return found


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
    return token.text.lower() == part and token.token_type not in (TokenType.STRING, TokenType.RAW_STRING)


def _is_dot(tokens: Sequence[Token], i: int) -> bool:
    return 0 <= i < len(tokens) and tokens[i].token_type == TokenType.DOT


def without(path: Name, name: Name) -> Name:
    """The path of a column without what stands before the last part of its table's name.

    Example:
        >>> without(("db", "t", "x"), ("db", "t"))
        ('t', 'x')
    """
    folded = tuple(part.lower() for part in path)
    for each in _ends(name):
        if len(path) > len(each) and folded[: len(each)] == each:
            return path[len(each) - 1 :]
    return path


def _ends(name: Name) -> Iterator[Name]:
    """A name and its ends of two parts or more, the longest first."""
    folded = tuple(part.lower() for part in name)
    yield from (folded[i:] for i in range(len(folded) - 1))
