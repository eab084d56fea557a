"""Syntax: what an expression's text is, before anybody knows which columns there are. Pure data.

Each node knows where it stands in its text; two nodes are equal if they say the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class _Placed:
    """Something that stands in a text, from one character to before another."""

    start: int = field(default=0, compare=False, repr=False, kw_only=True)
    stop: int = field(default=0, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Literal(_Placed):
    """``1``, ``'a'``, ``X'00'``, ``NULL``, ``TRUE``.

    Attributes:
        kind: ``number``, ``text``, ``bytes``, ``null`` or ``boolean``.
        text: what it holds; of a number its digits and suffix, with a minus in front if that is a part of it.
        spelling: its form for Spark.
        is_certain: whether it is the same in all sessions.
    """

    kind: str
    text: str
    spelling: str
    is_certain: bool = True


@dataclass(frozen=True)
class Typed(_Placed):
    """``DATE '2020-01-01'``: a text as a constant of a ``kind``, in lower case."""

    kind: str
    text: Literal


@dataclass(frozen=True)
class Interval(_Placed):
    """``INTERVAL 1 DAY``: pieces in their spelling, signs and expressions among them."""

    pieces: tuple[Syntax | str, ...]


@dataclass(frozen=True)
class Name(_Placed):
    """``a`` or ``a.b.c``: a column, a member of one, or an argument of a lambda around it.

    Attributes:
        parts: what stands between the dots.
        quoted: which of them stand in backticks.
    """

    parts: tuple[str, ...]
    quoted: tuple[bool, ...]


@dataclass(frozen=True)
class Operation(_Placed):
    """An operator: ``+``, ``and``, ``in``, ``is null``, ``like`` …, in lower case, with its operands.

    ``row`` is several values in parentheses.

    ``and`` and ``or`` have two operands or more, ``in``, ``like any`` and ``not like all`` the searched value first.
    """

    operator: str
    operands: tuple[Syntax, ...]


@dataclass(frozen=True)
class Call(_Placed):
    """``f(x, y)``.

    Attributes:
        function: its name, as it is written, in backticks where it stands in such.
        words: what stands before each argument and behind the last one, where that is not a comma, as the keywords of
            ``trim(BOTH x FROM y)``; empty where all is commas.
    """

    function: str
    arguments: tuple[Syntax, ...]
    words: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """In lower case, without backticks."""
        return self.function.strip("`").lower()


@dataclass(frozen=True)
class Cast(_Placed):
    """``CAST(x AS type)`` and ``x::type``; ``how`` is ``cast`` or ``try_cast``, the type is in its spelling."""

    operand: Syntax
    type: str
    how: str


@dataclass(frozen=True)
class Case(_Placed):
    """``CASE operand WHEN … THEN … ELSE … END``."""

    operand: Syntax | None
    branches: tuple[tuple[Syntax, Syntax], ...]
    otherwise: Syntax | None


@dataclass(frozen=True)
class Member(_Placed):
    """``(x).name``, of anything but a name."""

    operand: Syntax
    name: str


@dataclass(frozen=True)
class Subscript(_Placed):
    """``x[index]``."""

    operand: Syntax
    index: Syntax


@dataclass(frozen=True)
class Lambda(_Placed):
    """``x -> body`` and ``(x, y) -> body``."""

    arguments: tuple[str, ...]
    body: Syntax


@dataclass(frozen=True)
class Columns(_Placed):
    """A text that states columns, as ``'a INT'`` does for ``from_json``."""

    text: Literal


Syntax: TypeAlias = (
    Literal | Typed | Interval | Name | Operation | Call | Cast | Case | Member | Subscript | Lambda | Columns
)


def parts_of(node: Syntax) -> Iterator[Syntax]:
    """What a node is made of, from left to right."""
    match node:
        case Operation(operands=parts) | Call(arguments=parts):
            yield from parts
        case Case():
            yield from () if node.operand is None else (node.operand,)
            for condition, value in node.branches:
                yield condition
                yield value
            yield from () if node.otherwise is None else (node.otherwise,)
        case Interval():
            yield from (each for each in node.pieces if not isinstance(each, str))
        case Cast() | Member():
            yield node.operand
        case Subscript():
            yield node.operand
            yield node.index
        case Lambda():
            yield node.body
        case Typed() | Columns():
            yield node.text


def all_parts(node: Syntax) -> Iterator[Syntax]:
    """A node and everything below it, however deep."""
    left = [node]
    while left:
        each = left.pop()
        yield each
        left += parts_of(each)
