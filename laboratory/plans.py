"""Plans: which table, which statements, who moves when, and what fails.

Pure data and dice. A plan is made from one integer and says everything: running it twice gives one history.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from anabranch._transaction.phases import PHASES
from laboratory.statements import Rows, Statement

START = "start"
"""Before the first writer begins."""


@dataclass(frozen=True)
class Setup:
    """The table that a history starts from: each of ``files`` comes in by one append, then ``before`` is run. It may
    have a change data feed, or row ids.
    """

    isolation: str = "WriteSerializable"
    resolution: str = "row"
    vectors: bool = True
    partitioned: bool = False
    checkpoints: int = 10
    files: tuple[Rows, ...] = ()
    before: tuple[Statement, ...] = ()
    feed: bool = False
    row_ids: bool = False

    def __str__(self) -> str:
        kind = f"{self.isolation}, {self.resolution}, vectors {'on' if self.vectors else 'off'}"
        more = {", partitioned by p": self.partitioned, ", with a feed": self.feed, ", with row ids": self.row_ids}
        return "".join([kind, *(words for words, holds in more.items() if holds)])

    @property
    def rows(self) -> Rows:
        """Its rows."""
        rows = tuple(row for file in self.files for row in file)
        for statement in self.before:
            rows, _ = statement.apply(rows)
        return rows


@dataclass(frozen=True)
class Failure:
    """The ``call``-th call of writer ``who``'s store fails: ``how`` is a name of `laboratory.runs.WAYS`."""

    who: int
    call: int
    how: str


@dataclass(frozen=True)
class Dice:
    """A schedule by chance: at each phase of a transaction, and now and then at a call of the store, somebody else may
    go on.

    Args:
        at_phase, at_call: how likely the baton is given away there.
    """

    seed: int
    at_phase: float = 0.5
    at_call: float = 0.05


@dataclass(frozen=True)
class Script:
    """A schedule by hand: at each step named here that writer goes on (if it has not ended); at all others the one who
    runs goes on, and after its end the first who is left.
    """

    turns: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Moments:
    """A schedule by the phases of the first writer: each of the others runs from its beginning to its end when the
    first comes to its phase in ``at``, ``start`` being before all of them; several at one phase in their order.
    """

    at: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """Everything that decides a history; ``programs`` has the program of each statement, where there are any."""

    setup: Setup
    statements: tuple[Statement, ...]
    schedule: Dice | Script | Moments = Script()
    failures: tuple[Failure, ...] = ()
    seed: int | None = None
    programs: tuple[int, ...] = ()

    def program(self, who: int) -> int:
        """Of which program a statement is; the statements of one run one after the other."""
        return self.programs[who] if self.programs else who


class DiceSchedule:
    """Plays `Dice`; ``turns`` are the switches it made, by which a `Script` repeats it."""

    def __init__(self, dice: Dice) -> None:
        self._dice, self._random = dice, random.Random(dice.seed)
        self.turns: list[tuple[int, int]] = []

    def choose(self, step: int, ready: Sequence[int], current: int | None, moment: str) -> int:
        """Stay or switch."""
        if current is not None and self._random.random() >= self._runtime(moment):
            return current
        chosen = ready[int(self._random.random() * len(ready))]
        if chosen != current:
            self.turns.append((step, chosen))
        return chosen

    def _runtime(self, moment: str) -> float:
        return self._dice.at_call if " " in moment else self._dice.at_phase


class ScriptSchedule:
    """Plays a `Script`."""

    def __init__(self, script: Script) -> None:
        self._turns = dict(script.turns)
        self.turns = list(script.turns)

    def choose(self, step: int, ready: Sequence[int], current: int | None, moment: str) -> int:
        """As the script says."""
        wanted = self._turns.get(step)
        if wanted is not None and wanted in ready:
            return wanted
        return ready[0] if current is None else current


class MomentsSchedule:
    """Plays `Moments`; ``turns`` are the switches it made, by which a `Script` repeats it."""

    def __init__(self, moments: Moments) -> None:
        self._at = moments.at
        self._passed = {START}
        self.turns: list[tuple[int, int]] = []

    def choose(self, step: int, ready: Sequence[int], current: int | None, moment: str) -> int:
        """Who is due; else who runs already, else the first."""
        if current == 0 and moment in PHASES:
            self._passed.add(moment)
        if current is not None and current != 0:
            return current
        due = next((who for who in ready if who and self._at[who - 1] in self._passed), None)
        chosen = ready[0] if due is None else due
        if chosen != current:
            self.turns.append((step, chosen))
        return chosen


def schedule_of(plan: Plan) -> DiceSchedule | ScriptSchedule | MomentsSchedule:
    """The plan's schedule, ready to be played once."""
    if isinstance(plan.schedule, Moments):
        return MomentsSchedule(plan.schedule)
    return DiceSchedule(plan.schedule) if isinstance(plan.schedule, Dice) else ScriptSchedule(plan.schedule)


__all__ = [
    "START",
    "Dice",
    "DiceSchedule",
    "Failure",
    "Moments",
    "MomentsSchedule",
    "Plan",
    "Script",
    "ScriptSchedule",
    "Setup",
    "schedule_of",
]
