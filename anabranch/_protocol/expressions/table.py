"""The table of functions: one entry for each function or operator that is computed here.

An entry says which types it takes and gives, how Arrow computes it, and what a bound of its value says of an argument.
Guarantee: where an entry computes a value, it is Spark's, whatever the session's settings; where Spark's settings
decide (an overflow, a division by zero), or Arrow does otherwise than Spark (letters beyond those that both fold
alike), it raises `Unsupported` and nothing is said.

To add a function: write its kernel in the file of its kind, under `function` (see `texts.py` for short ones); a kernel
gets arrays. Then name it in `docs/concepts/expressions.md`, draw it in `tests/protocol/expressions/typed_texts.py`, by
which it is tried beside Spark, and break it once in `test_broken_entries.py`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from anabranch._protocol.schema.types import DataType

Datum: TypeAlias = Any
"""An Arrow array, or a scalar where the value is the same for each row."""


class Unfit(Exception):
    """An entry does not take arguments of these types, for the reason that is said."""


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
class Given:
    """An argument as an entry sees it before any row: its type, and a constant's value in a tuple of one."""

    type: DataType | None
    constant: tuple[Any] | None = None


@dataclass(frozen=True)
class Fit:
    """What an entry makes of its arguments: the types that it takes and gives, and what its kernel is told."""

    gives: DataType
    takes: tuple[DataType, ...]
    options: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Varying:
    """A call of which one argument varies, and the others are constants.

    Attributes:
        kind: the type of the argument that varies.
        gives: that of the value.
        constants: the arguments, with None in the place of that one.
        options: what the kernel is told.
        zone: the session's time zone, whose clocks may change; None for one that is not known here.
    """

    kind: DataType
    gives: DataType
    constants: tuple[Any, ...] = (None,)
    options: tuple[Any, ...] = ()
    zone: dt.tzinfo | None = None


@dataclass(frozen=True)
class Bound:
    """From which argument on a value is at least, or is more than, another one.

    Attributes:
        early, late: before the one it certainly is not, behind the other it certainly is; mostly they are the same.
        is_strict: at the bound itself it is not.
        is_vague: at the bound itself that is not certain.
        falls: it is so up to the bound, and not from there on.
    """

    early: Any
    late: Any
    is_strict: bool = False
    is_vague: bool = False
    falls: bool = False


def exactly(value: Any, *, is_strict: bool = False, falls: bool = False) -> Bound:
    """The bound that is one value."""
    return Bound(value, value, is_strict=is_strict, falls=falls)


def _always(kind: DataType, gives: DataType) -> bool:
    return True


@dataclass(frozen=True)
class Inverse:
    """What a bound of a value says of the argument that varies. The value never falls, or never rises, where that one
    rises, and is NULL exactly where that one is.

    Attributes:
        bound: from which argument on the value is at least another one, or is more (``is_strict``). Raises
            OverflowError, ValueError, TypeError: that cannot be said.
        fits: whether all this holds for an argument and a value of these types.
        safe: the first and the last argument for which it holds; beyond them integers wrap, by a setting. None: for
            all.
    """

    bound: Callable[[Varying, Any, bool], Bound]
    fits: Callable[[DataType, DataType], bool] = _always
    safe: Callable[[Varying], tuple[Any, Any]] | None = None


Kernel: TypeAlias = Callable[..., Datum]
Fitting: TypeAlias = Callable[[Sequence[Given]], Fit]


@dataclass(frozen=True)
class Function:
    """One entry.

    Attributes:
        name: in lower case, or the operator's sign.
        fit: which arguments it takes. Raises Unfit: not these.
        kernel: its value: of the arguments, which are as ``fit`` says, the type that it gives, its options, the site.
        is_lazy: the kernel is given functions that compute the arguments for some rows, in place of values.
        inverse: what file skipping can say of an argument; None for nothing.
    """

    name: str
    fit: Fitting
    kernel: Kernel = field(compare=False, repr=False)
    is_lazy: bool = False
    inverse: Inverse | None = field(default=None, compare=False, repr=False)


TABLE: dict[str, Function] = {}
"""Every entry by each of its names."""


def add(names: str, fit: Fitting, kernel: Kernel, *, is_lazy: bool = False, inverse: Inverse | None = None) -> None:
    """Put an entry into the table, under each of these names, which have commas between them."""
    first, *others = names.split(", ")
    entry = Function(first, fit, kernel, is_lazy, inverse)
    for name in (first, *others):
        assert name not in TABLE, name
        TABLE[name] = entry


def of_values(compute: Callable[..., Datum]) -> Kernel:
    """A kernel that needs its arguments and its options only."""

    def kernel(arguments: Sequence[Datum], gives: DataType, options: tuple[Any, ...], site: Site) -> Datum:
        return compute(*arguments, *options)

    return kernel


def function(names: str, takes: str, gives: DataType) -> Callable[[Callable[..., Datum]], Callable[..., Datum]]:
    """What computes values as an entry of the table.

    Args:
        names: its names in SQL, with commas between them.
        takes: the types of its arguments, one word each; behind a ``?`` one that may be left out, with a ``=`` in front
            one that has to be constant and not NULL, which it gets as a plain value behind the others.
        gives: the type of its value.

    Example:
        >>> @function("left", "string =integer", gives="string")
        ... def left(values, count): ...
    """

    def add_entry(compute: Callable[..., Datum]) -> Callable[..., Datum]:
        add(names, _fitting(takes.split(), gives), of_values(compute))
        return compute

    return add_entry


def _fitting(words: Sequence[str], gives: DataType) -> Fitting:
    least = sum("?" not in each for each in words)

    def fit(given: Sequence[Given]) -> Fit:
        if not least <= len(given) <= len(words):
            raise Unfit(f"it is not computed here with {len(given)} arguments")
        takes, options = [], []
        for word, each in zip(words, given, strict=False):
            kind = word.lstrip("?=")
            if "=" not in word:
                check_type(each, kind)
                takes.append(kind)
            else:
                options.append(constant_of(each, kind))
        return Fit(gives, tuple(takes), tuple(options))

    return fit


def check_type(given: Given, kind: DataType) -> None:
    """Raises Unfit unless an argument has a type, or is NULL."""
    if given.type not in (kind, "void"):
        raise Unfit(f"it is computed here for {kind}, and not for {given.type}")


def constant_of(given: Given, kind: DataType) -> Any:
    """The value of an argument. Raises Unfit unless it is a constant of a type, and not NULL."""
    if given.constant is None or given.constant[0] is None or given.type != kind:
        raise Unfit(f"only with a constant {kind} is it computed here")
    return given.constant[0]
