"""The tree: an expression whose columns, functions and types are known, part by part. Pure data.

What is not known, or is Spark's alone, stands in the tree as such, with the reason. Guarantee: a part without a reason
means the same in every session, and the computation of `arrow` gives its value or says that it cannot.
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
    unless it was brought to another.
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
        options: what is no argument to be computed, as the type of a cast.
        called: the name by which a session may have another function; empty for what is no call to Spark.
    """

    function: Function
    arguments: tuple[Expression, ...]
    type: DataType
    options: tuple[Any, ...] = ()
    called: str = ""


@dataclass(frozen=True)
class Foreign:
    """What only Spark computes.

    Attributes:
        reason: why, for people.
        called: the function that is called, in lower case; empty where it is another kind of part.
        parts: what is known of its arguments.
        type: of its value, where that is known.
        function: the entry of the table that it is, with arguments that it does not take here, or another name that
            `resolving` gives; empty where only Spark knows.
    """

    reason: str
    called: str = ""
    parts: tuple[Expression, ...] = ()
    type: DataType | None = None
    function: str = ""


Expression: TypeAlias = Constant | Column | Apply | Foreign


def arguments_of(node: Expression) -> tuple[Expression, ...]:
    """The parts that a node is made of."""
    match node:
        case Apply():
            return node.arguments
        case Foreign():
            return node.parts
    return ()


def nodes(root: Expression) -> Iterator[Expression]:
    """A node and everything below it, from left to right."""
    left = [root]
    while left:
        node = left.pop()
        yield node
        left += reversed(arguments_of(node))


def with_columns(root: Expression, change: Callable[[Column], Column]) -> Expression:
    """A tree with other columns in the place of its own."""
    match root:
        case Column():
            return change(root)
        case Apply():
            return replace(root, arguments=tuple(with_columns(each, change) for each in root.arguments))
        case Foreign():
            return replace(root, parts=tuple(with_columns(each, change) for each in root.parts))
    return root


def first_foreign(root: Expression) -> Foreign | None:
    """The first part that only Spark computes; None where there is none."""
    return next((each for each in nodes(root) if isinstance(each, Foreign)), None)


def names_of(root: Expression) -> frozenset[Name]:
    """The columns, and members of columns, that a tree names."""
    return frozenset(each.name for each in nodes(root) if isinstance(each, Column))


def functions_of(root: Expression) -> frozenset[str]:
    """The functions that are called by a name that a session can give another meaning."""
    return frozenset(each.called for each in nodes(root) if isinstance(each, Apply | Foreign) and each.called)
