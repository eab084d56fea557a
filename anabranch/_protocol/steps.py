"""Steps of a command, and where each runs: Arrow in this process, Spark, or the log alone.

Pure. A plan lists the expected steps, a commit the actual ones (`TAG` in its ``commitInfo``), in the same words.
Guarantee: the text in a commit is short, and has no literal of an expression, which may be the value of a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from anabranch.errors.visible import amount, visible

TAG = "anabranch.steps"
"""The tag of a commit with the text of its steps."""

FIND_ROWS, JOIN, READ_SOURCE = "find rows", "join", "read the source"
WRITE_ROWS, WRITE_NEW_ROWS, WRITE_FILES_ANEW = "write rows", "write new rows", "write files anew"
RECORD_CHANGES, INSERT_ROWS = "record changes", "insert rows"
PACK, ORDER = "pack", "order"
OF_A_QUERY = "the rows are of a query"
"""The reason that Spark reads a source, or writes its rows."""

_MOST_STEPS, _MOST_CHARACTERS = 20, 200
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""")


@dataclass(frozen=True)
class Step:
    """One step of a command.

    Attributes:
        name: what is done.
        reason: why Spark does it; None if it does not.
        log: whether the log alone is enough for it.
        order: the columns by which rows are ordered in rewritten files.
        groups: the number of files in each rewritten group.
    """

    name: str
    reason: str | None = None
    log: bool = False
    order: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()

    @property
    def does(self) -> str:
        """The action and its extent."""
        if not self.groups:
            return self.name
        by = f" by {', '.join(self.order)}" if self.order else ""
        return f"{self.name} {amount(sum(self.groups), 'file')}{by}, in {amount(len(self.groups), 'group')}"

    def __str__(self) -> str:
        by = "the log" if self.log else "Arrow"
        return f"{self.does}: " + (by if self.reason is None else f"Spark, since {self.reason}")


FOUND_BY_LOG = Step(FIND_ROWS, log=True)

StepListener = Callable[[Step], None]
"""Receives each step that was done."""


def ignore_step(step: Step) -> None:
    """Ignores the step."""


@dataclass(frozen=True)
class RowPlan:
    """The steps of a command, in their order."""

    steps: tuple[Step, ...] = ()

    @classmethod
    def of(cls, steps: Iterable[Step]) -> RowPlan:
        """Merge equal steps; groups of files with the same step become one step."""
        groups = dict[Step, tuple[int, ...]]()
        for step in steps:
            alike = replace(step, groups=())
            groups[alike] = (*groups.get(alike, ()), *step.groups)
        return cls(tuple(replace(alike, groups=counts) for alike, counts in groups.items()))

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))

    @property
    def commit_text(self) -> str:
        """The text for a commit: without literals, and truncated if it is long."""
        lines = [_truncate(visible(_QUOTED.sub("'…'", str(step))).replace("\n", " ")) for step in self.steps]
        unique_lines = list(dict.fromkeys(lines))
        hidden = len(unique_lines) - _MOST_STEPS
        return "\n".join([*unique_lines[:_MOST_STEPS], *([f"and {amount(hidden, 'more step')}"] if hidden > 0 else [])])


NO_STEPS = RowPlan()


def _truncate(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
