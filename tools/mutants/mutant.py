"""What a mutant is: a place in a file of the package, and the operator that changes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Mutant:
    """One change: the so-manieth that the operator can make in the file, and where it begins."""

    path: str
    line: int
    column: int
    operator: str
    occurrence: int

    @property
    def room(self) -> str:
        """The folder of the package that has the file."""
        return self.path.split("/")[1].lstrip("_")

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column} {self.operator} {self.occurrence}"
