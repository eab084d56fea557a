"""The table of functions: one entry for each function or operator that is computed in Arrow.

An entry declares which types it takes and gives, its Arrow kernel, and how a bound on its value bounds its argument.
Guarantee: a value that an entry computes is Spark's, whatever the session's settings; where Spark's settings decide (an
overflow, a division by zero), or Arrow differs from Spark (letters beyond those that both fold alike), it raises
`Unsupported`.

To add a function: write its kernel in the file of its kind, under `function` (see `texts.py` for short ones); a kernel
gets arrays. Then list it in `docs/concepts/expressions.md`, draw it in `tests/protocol/expressions/typed_texts.py`,
which compares it with Spark, and break it once in `test_broken_entries.py`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from anabranch._protocol.expressions.monotonic import Inverse
from anabranch._protocol.schema.types import DataType

Datum: TypeAlias = Any
"""An Arrow array, or a scalar where the value is the same for each row."""


class ArgumentsNotSupported(Exception):
    """An entry does not take arguments of these types; the message has the reason."""


@dataclass(frozen=True)
class Site:
    """What a value depends on besides its arguments.

    Attributes:
        zone: the session's time zone, if its offset never changes; None for any other.
        count: the number of rows.
    """

    zone: dt.tzinfo | None = None
    count: int = 0


@dataclass(frozen=True)
class Argument:
    """An argument before any row is read: its type, and the value of a constant in a tuple of one."""

    type: DataType | None
    constant: tuple[Any] | None = None


@dataclass(frozen=True)
class Fit:
    """How an entry fits its arguments: the types that it takes and gives, and the options for its kernel."""

    gives: DataType
    takes: tuple[DataType, ...]
    options: tuple[Any, ...] = ()


Kernel: TypeAlias = Callable[..., Datum]
FitRule: TypeAlias = Callable[[Sequence[Argument]], Fit]


@dataclass(frozen=True)
class Function:
    """One entry.

    Attributes:
        name: in lower case, or the operator's sign.
        fit: checks the arguments. Raises ArgumentsNotSupported: it does not take them.
        kernel: computes the value from the arguments (cast to the types of ``fit``), its type, the options and the
            site.
        is_lazy: whether the kernel gets functions that compute the arguments for some rows, in place of values.
        inverse: how it is monotonic in one argument; None if in no argument.
    """

    name: str
    fit: FitRule
    kernel: Kernel = field(compare=False, repr=False)
    is_lazy: bool = False
    inverse: Inverse | None = field(default=None, compare=False, repr=False)


TABLE: dict[str, Function] = {}
"""All entries by name; an entry may have several names."""


def add(names: str, fit: FitRule, kernel: Kernel, *, is_lazy: bool = False, inverse: Inverse | None = None) -> None:
    """Add an entry to the table under each of these names, which are separated by commas."""
    first, *others = names.split(", ")
    entry = Function(first, fit, kernel, is_lazy, inverse)
    for name in (first, *others):
        assert name not in TABLE, name
        TABLE[name] = entry


def of_values(compute: Callable[..., Datum]) -> Kernel:
    """A kernel that needs only its arguments and its options."""

    def kernel(arguments: Sequence[Datum], gives: DataType, options: tuple[Any, ...], site: Site) -> Datum:
        return compute(*arguments, *options)

    return kernel


def function(names: str, takes: str, gives: DataType) -> Callable[[Callable[..., Datum]], Callable[..., Datum]]:
    """Decorate a function that computes values, as an entry of the table.

    Args:
        names: its names in SQL, separated by commas.
        takes: the types of its arguments, one word each: ``?`` marks an optional argument, ``=`` an argument that must
            be constant and not NULL, which the function gets as a plain value behind the others.
        gives: the type of its value.

    Example:
        >>> @function("left", "string =integer", gives="string")
        ... def left(values, count): ...
    """

    def add_entry(compute: Callable[..., Datum]) -> Callable[..., Datum]:
        add(names, _fitting(takes.split(), gives), of_values(compute))
        return compute

    return add_entry


def _fitting(words: Sequence[str], gives: DataType) -> FitRule:
    least = sum("?" not in kind for kind in words)

    def fit(arguments: Sequence[Argument]) -> Fit:
        if not least <= len(arguments) <= len(words):
            raise ArgumentsNotSupported(f"it is not computed here with {len(arguments)} arguments")
        takes, options = [], []
        for word, argument in zip(words, arguments, strict=False):
            kind = word.lstrip("?=")
            if "=" not in word:
                check_type(argument, kind)
                takes.append(kind)
            else:
                options.append(constant_of(argument, kind))
        return Fit(gives, tuple(takes), tuple(options))

    return fit


def check_type(argument: Argument, kind: DataType) -> None:
    """Raises ArgumentsNotSupported unless an argument has this type, or is NULL."""
    if argument.type not in (kind, "void"):
        raise ArgumentsNotSupported(f"it is computed here for {kind}, and not for {argument.type}")


def as_array(value: Datum, count: int) -> pa.Array:
    """A value as an array of this length: a scalar is the same for each row."""
    return pa.repeat(value, count) if isinstance(value, pa.Scalar) else value


def as_arrays(*values: Datum) -> list[pa.Array]:
    """Values as arrays of one length: that of those which are arrays, or 1."""
    count = max((len(value) for value in values if not isinstance(value, pa.Scalar)), default=1)
    return [as_array(value, count) for value in values]


def constant_of(argument: Argument, kind: DataType) -> Any:
    """The value of an argument. Raises ArgumentsNotSupported unless it is a constant of this type, and not NULL."""
    if argument.constant is None or argument.constant[0] is None or argument.type != kind:
        raise ArgumentsNotSupported(f"only with a constant {kind} is it computed here")
    return argument.constant[0]
