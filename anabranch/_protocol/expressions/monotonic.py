"""Monotonic functions: how a bound on a value becomes a bound on the argument.

Statistics bound a column, a condition bounds a function of it. If the function is monotonic, the arguments whose value
is within a lower bound, which are the bound's *preimage*, are all on one side of a bound too::

    a bound on a value        its preimage
    year(day) >= 2023         day >= 2023-01-01         the function rises: a lower bound
    id + 1 > 5                id > 4
    -id >= 5                  id <= -5                  it falls: an upper bound
    year(at) >= 2023          between two lower bounds  ``at`` is a timestamp, and the session's time zone is unknown

The last preimage is known from the outside (``possible``) and from the inside (``certain``)::

                      2022-12-31T06:00Z       2023-01-01T18:00Z
    at  --------------[=======================(=====================>
          FALSE       possible: unknown       certain: TRUE

A lower bound suffices for each operator: ``year(day) = 2023`` is ``year(day) >= 2023 AND NOT year(day) > 2023``, and so
``day >= 2023-01-01 AND NOT day >= 2024-01-01``. `inverting` builds such predicates, and takes one preimage after the
other where calls are nested. Pure; knows no function.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from anabranch._protocol.schema.types import DataType


@dataclass(frozen=True)
class LowerBound:
    """All values from one on; without that value itself if the bound is open."""

    value: Any
    is_open: bool = False


@dataclass(frozen=True)
class UpperBound:
    """All values up to one; without that value itself if the bound is open."""

    value: Any
    is_open: bool = False

    @property
    def complement(self) -> LowerBound:
        """All other values."""
        return LowerBound(self.value, not self.is_open)


Bound: TypeAlias = LowerBound | UpperBound


@dataclass(frozen=True)
class Preimage:
    """The arguments whose value is within a lower bound.

    Attributes:
        possible: holds all of them.
        certain: holds no others. The two are equal if the preimage is known exactly.
    """

    possible: Bound
    certain: Bound

    @property
    def is_exact(self) -> bool:
        """Whether it is known exactly."""
        return self.possible == self.certain

    def open(self) -> Preimage:
        """The preimage of the open bound, if this is the closed bound's under a function that is one to one."""
        return exactly(replace(self.certain, is_open=True)) if self.is_exact else self


def exactly(bound: Bound) -> Preimage:
    """A preimage that is known exactly."""
    return Preimage(bound, bound)


def roughly(early: Any, late: Any) -> Preimage:
    """A preimage of which no more is known than that it begins at one of two values, or between them."""
    return Preimage(LowerBound(early), LowerBound(late, is_open=True))


def between(early: Any, late: Any, *, is_open: bool = False) -> Preimage:
    """A preimage that begins between two values; if they are equal, exactly there, and ``is_open`` tells how."""
    return exactly(LowerBound(early, is_open)) if early == late else roughly(early, late)


@dataclass(frozen=True)
class UnaryCall:
    """A call with one varying argument; all others are constants.

    Attributes:
        kind: the type of the varying argument.
        gives: the type of the value.
        constants: the arguments, with None in the place of the varying one.
        options: the options for the kernel.
        zone: the session's time zone, even if its offset changes; None if it is unknown.
    """

    kind: DataType
    gives: DataType
    constants: tuple[Any, ...] = (None,)
    options: tuple[Any, ...] = ()
    zone: dt.tzinfo | None = None


def _always(kind: DataType, gives: DataType) -> bool:
    return True


@dataclass(frozen=True)
class Inverse:
    """What makes a function monotonic in its varying argument; its value is NULL exactly where the argument is NULL.

    Attributes:
        preimage: returns the preimage of a bound on the value. Raises OverflowError, ValueError, TypeError: it is
            unknown.
        fits: whether the function is monotonic for an argument and a value of these types.
        domain: returns the first and the last argument between which it is monotonic; beyond them integers wrap, by a
            setting. None: everywhere.
    """

    preimage: Callable[[UnaryCall, LowerBound], Preimage]
    fits: Callable[[DataType, DataType], bool] = _always
    domain: Callable[[UnaryCall], tuple[Any, Any]] | None = None
