"""The tree: an expression with resolved columns, functions and types. Pure data.

Parts that are unknown, or that only Spark computes, are `SparkOnly` nodes with the reason. Guarantee: a part without a
reason means the same in every session, and `arrow` computes its value or raises `Unsupported`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from anabranch._protocol.predicates import Name
from anabranch._protocol.schema.types import DataType

if TYPE_CHECKING:
    from anabranch._protocol.expressions.table import Function


@dataclass(frozen=True)
class Constant:
    """A literal. A value of a ``timestamp`` is aware, of a ``timestamp_ntz`` naive; None is NULL, of type ``void``
    unless it was cast.
    """

    value: Any
    type: str


@dataclass(frozen=True)
class Column:
    """A column of the row, or a member of one by its path."""

    name: Name
    type: DataType


@dataclass(frozen=True)
class Apply:
    """A function or operator with its arguments, which have the types that it takes.

    Attributes:
        options: constants that are not computed, such as the type of a cast.
        called: the name for which a session may have another function; empty if the node calls no named function.
    """

    function: Function
    arguments: tuple[Expression, ...]
    type: DataType
    options: tuple[Any, ...] = ()
    called: str = ""


@dataclass(frozen=True)
class SparkOnly:
    """A part that only Spark computes.

    Attributes:
        reason: why, for people.
        called: the called function, in lower case; empty for other kinds of parts.
        parts: the known arguments.
        type: the type of its value, if known.
        function: the table's entry that it calls with unsupported arguments, or another name from `resolving`; empty if
            only Spark knows it.
    """

    reason: str
    called: str = ""
    parts: tuple[Expression, ...] = ()
    type: DataType | None = None
    function: str = ""


Expression: TypeAlias = Constant | Column | Apply | SparkOnly


def arguments_of(node: Expression) -> tuple[Expression, ...]:
    """The child nodes of a node."""
    match node:
        case Apply():
            return node.arguments
        case SparkOnly():
            return node.parts
    return ()


def nodes(root: Expression) -> Iterator[Expression]:
    """Yield a node and everything below it, from left to right."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending += reversed(arguments_of(node))


def with_columns(root: Expression, change: Callable[[Column], Column]) -> Expression:
    """The tree with its columns replaced."""
    match root:
        case Column():
            return change(root)
        case Apply():
            return replace(root, arguments=tuple(with_columns(argument, change) for argument in root.arguments))
        case SparkOnly():
            return replace(root, parts=tuple(with_columns(part, change) for part in root.parts))
    return root


def first_foreign(root: Expression) -> SparkOnly | None:
    """The first part that only Spark computes; None if there is none."""
    return next((node for node in nodes(root) if isinstance(node, SparkOnly)), None)


def names_of(root: Expression) -> frozenset[Name]:
    """The columns, and members of columns, in a tree."""
    return frozenset(node.name for node in nodes(root) if isinstance(node, Column))


def functions_of(root: Expression) -> frozenset[str]:
    """The functions of a tree whose names a session can redefine."""
    return frozenset(node.called for node in nodes(root) if isinstance(node, Apply | SparkOnly) and node.called)
