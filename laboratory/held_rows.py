"""Held rows: what a sequential program reads once, as a DataFrame, and writes later.

Pure. `Hold` reads the table; `Bring` writes what the program holds; once it has run it is `Brought`: constants, and the
version from which they were read. Knows nothing of commits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from laboratory.conditions import COLUMNS, Rows
from laboratory.statements import Append, Copy, Merge, Overwrite, Take, When

_KEY = COLUMNS.index("k")
_UPSERT = (When("matched", sets=(Take("p"), Take("x"))), When("not matched"))


@dataclass(frozen=True)
class Hold:
    """frame = table.toDF(): later statements of the program may write its rows."""

    def __str__(self) -> str:
        return "frame = SELECT * FROM t"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """As `Append.apply`: it changes nothing."""
        return rows, 0


@dataclass(frozen=True)
class Bring(Copy):
    """Write SELECT … FROM frame WHERE; ``mode`` says how."""

    mode: Literal["append", "overwrite", "merge"] = "append"

    def __str__(self) -> str:
        return f"{self.mode.upper()} SELECT {', '.join(map(str, self.sets))} FROM frame WHERE {self.where}"

    def brought(self, held: Rows) -> Append | Overwrite | Merge:
        """The same, of the rows that the frame holds."""
        rows = self.chosen(held)
        if self.mode == "merge":
            return Merge(tuple({row[_KEY]: row for row in rows}.values()), ("k",), _UPSERT)
        return Append(rows) if self.mode == "append" else Overwrite(rows)


@dataclass(frozen=True)
class Brought:
    """What a `Bring` did, with rows of version ``read``."""

    inner: Append | Overwrite | Merge
    read: int

    def __str__(self) -> str:
        return f"{self.inner} (held since version {self.read})"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """As the statement's that it is."""
        return self.inner.apply(rows)


__all__ = ["Bring", "Brought", "Hold"]
