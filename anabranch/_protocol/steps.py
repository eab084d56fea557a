"""Steps of a command, and what does each: Arrow in this process, Spark, or the log alone.

Pure. A plan says what would do them, a commit what did (`TAG` in its ``commitInfo``), in the same words. Guarantee:
what a commit says of them is short, and holds no literal of an expression, which may be the value of a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from anabranch.errors.visible import amount, visible

TAG = "anabranch.steps"
"""The tag of a commit that says what did each of its steps."""

FIND_ROWS, JOIN, READ_SOURCE = "find rows", "join", "read the source"
WRITE_ROWS, WRITE_NEW_ROWS, WRITE_FILES_ANEW = "write rows", "write new rows", "write files anew"
RECORD_CHANGES, INSERT_ROWS = "record changes", "insert rows"
PACK, ORDER = "pack", "order"
OF_A_QUERY = "the rows are of a query"
"""Why Spark reads a source, or writes its rows."""

_MOST_STEPS, _MOST_CHARACTERS = 20, 200
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""")


@dataclass(frozen=True)
class Step:
    """One step of a command.

    Attributes:
        name: what is done.
        reason: why Spark does it; None where it does not.
        log: whether the log alone is enough for it.
        order: of files that are written anew: the columns by which their rows are laid.
        groups: of how many files each group consists that is written anew.
    """

    name: str
    reason: str | None = None
    log: bool = False
    order: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()

    @property
    def does(self) -> str:
        """What is done, and to how much."""
        if not self.groups:
            return self.name
        by = f" by {', '.join(self.order)}" if self.order else ""
        return f"{self.name} {amount(sum(self.groups), 'file')}{by}, in {amount(len(self.groups), 'group')}"

    def __str__(self) -> str:
        by = "the log" if self.log else "Arrow"
        return f"{self.does}: " + (by if self.reason is None else f"Spark, since {self.reason}")


FOUND_BY_LOG = Step(FIND_ROWS, log=True)

Tell = Callable[[Step], None]
"""Hears of each step that was done."""


def untold(step: Step) -> None:
    """Nobody hears of it."""


@dataclass(frozen=True)
class RowPlan:
    """The steps of a command, in their order."""

    steps: tuple[Step, ...] = ()

    @classmethod
    def of(cls, steps: Iterable[Step]) -> RowPlan:
        """Each step once; groups of files of which the same is done together are one step."""
        groups = dict[Step, tuple[int, ...]]()
        for each in steps:
            alike = replace(each, groups=())
            groups[alike] = (*groups.get(alike, ()), *each.groups)
        return cls(tuple(replace(alike, groups=found) for alike, found in groups.items()))

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))

    @property
    def commit_text(self) -> str:
        """The same as a commit says it: without literals, and cut where it is long."""
        lines = [_cut(visible(_QUOTED.sub("'…'", str(each))).replace("\n", " ")) for each in self.steps]
        kept = list(dict.fromkeys(lines))
        left = len(kept) - _MOST_STEPS
        return "\n".join([*kept[:_MOST_STEPS], *([f"and {amount(left, 'more step')}"] if left > 0 else [])])


NO_STEPS = RowPlan()


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
