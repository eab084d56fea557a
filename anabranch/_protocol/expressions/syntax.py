"""Syntax: the structure of an expression's text, before its columns are resolved. Pure data.

Each node has its position in the text; two nodes are equal if they have the same content.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class _Placed:
    """A node with its position in a text, from one character to before another."""

    start: int = field(default=0, compare=False, repr=False, kw_only=True)
    stop: int = field(default=0, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Literal(_Placed):
    """``1``, ``'a'``, ``X'00'``, ``NULL``, ``TRUE``.

    Attributes:
        kind: ``number``, ``text``, ``bytes``, ``null`` or ``boolean``.
        text: its content; of a number its digits and suffix, with a leading minus that belongs to it.
        spelling: its form for Spark.
        is_certain: whether it is the same in all sessions.
        is_printed: whether a Column printed it, which does not escape a text as SQL does.
    """

    kind: str
    text: str
    spelling: str
    is_certain: bool = True
    is_printed: bool = False


@dataclass(frozen=True)
class TypedLiteral(_Placed):
    """``DATE '2020-01-01'``: a text as a constant of a ``kind``, in lower case."""

    kind: str
    text: Literal


@dataclass(frozen=True)
class Interval(_Placed):
    """``INTERVAL 1 DAY``: pieces in their spelling, signs and expressions among them."""

    pieces: tuple[Syntax | str, ...]


@dataclass(frozen=True)
class Name(_Placed):
    """``a`` or ``a.b.c``: a column, a member of one, or an argument of an enclosing lambda.

    Attributes:
        parts: the parts between the dots.
        quoted: whether each part is in backticks.
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
        function: its name as written, including backticks.
        words: the words before each argument and behind the last one, if they are not just commas, as the keywords of
            ``trim(BOTH x FROM y)``; else empty.
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
    """A text that is a schema, such as ``'a INT'`` for ``from_json``."""

    text: Literal


Syntax: TypeAlias = (
    Literal | TypedLiteral | Interval | Name | Operation | Call | Cast | Case | Member | Subscript | Lambda | Columns
)


def parts_of(node: Syntax) -> Iterator[Syntax]:
    """Yield the child nodes of a node, from left to right."""
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
            yield from (piece for piece in node.pieces if not isinstance(piece, str))
        case Cast() | Member():
            yield node.operand
        case Subscript():
            yield node.operand
            yield node.index
        case Lambda():
            yield node.body
        case TypedLiteral() | Columns():
            yield node.text


def all_parts(node: Syntax) -> Iterator[Syntax]:
    """Yield a node and everything below it, however deep."""
    pending = [node]
    while pending:
        part = pending.pop()
        yield part
        pending += parts_of(part)
