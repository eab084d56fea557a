"""Conditions and new values: what a statement says of rows.

Written apart from the product: own predicates, own three-valued logic, own arithmetic. Pure.

A row is a tuple in the order of `COLUMNS`: ``k`` tells rows apart where they came in, ``p`` may partition, ``x`` may
be NULL.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Union

COLUMNS = ("k", "p", "x")
Value = int | None
Row = tuple[Value, ...]
Rows = tuple[Row, ...]

_OPERATORS: Mapping[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


# -- conditions --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Test:
    """``column op value``; unknown where the column is NULL."""

    __test__ = False  # pytest would collect a class of this name

    column: str
    op: str
    value: int

    def __str__(self) -> str:
        return f"{self.column} {self.op} {self.value}"

    def truth(self, row: Row) -> bool | None:
        """TRUE, FALSE or unknown (None)."""
        found = row[COLUMNS.index(self.column)]
        return None if found is None else _OPERATORS[self.op](found, self.value)


@dataclass(frozen=True)
class Missing:
    """``column IS NULL``; never unknown."""

    column: str

    def __str__(self) -> str:
        return f"{self.column} IS NULL"

    def truth(self, row: Row) -> bool | None:
        """TRUE or FALSE."""
        return row[COLUMNS.index(self.column)] is None


@dataclass(frozen=True)
class Not:
    """``NOT (part)``; unknown stays unknown."""

    part: Where

    def __str__(self) -> str:
        return f"NOT ({self.part})"

    def truth(self, row: Row) -> bool | None:
        """TRUE, FALSE or unknown."""
        found = self.part.truth(row)
        return None if found is None else not found


@dataclass(frozen=True)
class All:
    """``a AND b …``; TRUE of nothing at all."""

    parts: tuple[Where, ...] = ()

    def __str__(self) -> str:
        return " AND ".join(f"({part})" for part in self.parts) or "true"

    def truth(self, row: Row) -> bool | None:
        """FALSE if any part is, else unknown if any part is."""
        found = [part.truth(row) for part in self.parts]
        return False if False in found else None if None in found else True


@dataclass(frozen=True)
class Any:
    """``a OR b …``."""

    parts: tuple[Where, ...]

    def __str__(self) -> str:
        return " OR ".join(f"({part})" for part in self.parts)

    def truth(self, row: Row) -> bool | None:
        """TRUE if any part is, else unknown if any part is."""
        found = [part.truth(row) for part in self.parts]
        return True if True in found else None if None in found else False


Where = Union[Test, Missing, Not, All, Any]  # noqa: UP007 (names that stand further down)
EVERYWHERE = All()


# -- new values --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Put:
    """``column = value``."""

    column: str
    value: Value

    def __str__(self) -> str:
        return f"{self.column} = {'NULL' if self.value is None else self.value}"

    def of(self, row: Row) -> Value:
        """The new value."""
        return self.value


@dataclass(frozen=True)
class Plus:
    """``column = column + step``; NULL stays NULL."""

    column: str
    step: int = 1

    def __str__(self) -> str:
        return f"{self.column} = {self.column} + {self.step}"

    def of(self, row: Row) -> Value:
        """The new value."""
        found = row[COLUMNS.index(self.column)]
        return None if found is None else found + self.step


Assignment = Put | Plus


def assigned(row: Row, sets: Iterable[Assignment]) -> Row:
    """The new image of a row; all assignments see the old one."""
    new = list(row)
    for each in sets:
        new[COLUMNS.index(each.column)] = each.of(row)
    return tuple(new)
