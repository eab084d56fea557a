"""One task at a time, by choice; and what happens to tasks that do not end."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from laboratory import scheduler
from laboratory.plans import Dice, DiceSchedule, Script, ScriptSchedule
from laboratory.scheduler import NoProgress, Scheduler
from tests.support.patience import PATIENCE


def walker(scheduler: list[Scheduler], seen: list[str], name: str, steps: int) -> Callable[[], None]:
    def walk() -> None:
        for number in range(steps):
            seen.append(f"{name}{number}")
            scheduler[0].pause("here")

    return walk


def walked(schedule: DiceSchedule | ScriptSchedule) -> list[str]:
    seen: list[str] = []
    holder: list[Scheduler] = [Scheduler(schedule)]
    holder[0].run([walker(holder, seen, name, 3) for name in "ab"])
    return seen


def test_without_a_choice_one_runs_after_the_other() -> None:
    assert walked(ScriptSchedule(Script())) == ["a0", "a1", "a2", "b0", "b1", "b2"]


def test_a_script_says_when_to_switch() -> None:
    assert walked(ScriptSchedule(Script(((1, 1), (2, 0), (4, 1))))) == ["a0", "b0", "a1", "a2", "b1", "b2"]


def test_the_switches_of_a_run_by_chance_repeat_it() -> None:
    for seed in range(50):
        first = walked(dice := DiceSchedule(Dice(seed, 0.5, 0.5)))
        assert walked(ScriptSchedule(Script(tuple(dice.turns)))) == first


def test_tasks_that_wait_for_each_other_for_ever_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "MOST_STEPS", 100)
    holder: list[Scheduler] = [Scheduler(DiceSchedule(Dice(1, 0.5, 0.5)))]

    def wait() -> None:
        for _ in count():
            holder[0].pause("waiting")

    with pytest.raises(NoProgress, match="no end"):
        holder[0].run([wait, wait])


def test_a_task_that_keeps_the_baton_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    monkeypatch.setattr(scheduler, "LONGEST_SECONDS", 0.05)
    never = threading.Event()
    with pytest.raises(NoProgress, match="nobody has moved"):
        Scheduler(ScriptSchedule(Script())).run([lambda: never.wait(PATIENCE)])
    never.set()


def test_threads_that_are_no_task_pass() -> None:
    Scheduler(ScriptSchedule(Script())).pause("outside")
