"""``anabranch.retrying``: which errors let a function run again, how often, and with what pauses."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch._transaction.retry import Runtime
from anabranch.errors import (
    AnabranchError,
    CommitOutcomeUnknown,
    ConcurrentDeleteReadException,
    InvalidArgument,
    InvalidCondition,
)
from anabranch.testing import at_phase


@dataclass
class Clock:
    """Time passes only where somebody sleeps; chance is as great as can be."""

    now: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def runtime(self) -> Runtime:
        return Runtime(seconds=lambda: self.now, sleep=self.sleep, random=lambda: 1.0)


def failing(times: int, error: AnabranchError) -> Callable[[], int]:
    """Fails so often, then says how often it ran."""
    runs = [0]

    def work() -> int:
        runs[0] += 1
        if runs[0] <= times:
            raise error
        return runs[0]

    return work


def conflict(**facts: Any) -> ConcurrentDeleteReadException:
    return ConcurrentDeleteReadException(table="t", explanation="both changed the same rows", **facts)


NAN = float("nan")
UNKNOWN = CommitOutcomeUnknown(table="t", version=1, txn_id="x", reason="no reply.")


def test_a_function_runs_again_after_a_conflict_with_growing_pauses() -> None:
    clock = Clock()
    assert anabranch.retrying(failing(4, conflict()), runtime=clock.runtime()) == 5
    assert clock.pauses == [0.1, 0.2, 0.4, 0.8]


def test_the_error_of_the_last_attempt_is_raised() -> None:
    clock, error = Clock(), conflict()
    with pytest.raises(ConcurrentDeleteReadException) as raised:
        anabranch.retrying(failing(9, error), attempts=3, runtime=clock.runtime())
    assert raised.value is error
    assert len(clock.pauses) == 2


def test_no_attempt_begins_after_the_time_is_over() -> None:
    clock = Clock()
    with pytest.raises(ConcurrentDeleteReadException):
        anabranch.retrying(failing(99, conflict()), attempts=99, seconds=1, runtime=clock.runtime())
    assert clock.pauses == [0.1, 0.2, 0.4]


@pytest.mark.parametrize(
    "error",
    [InvalidCondition(condition="x =", reason="no."), conflict(retryable=False), UNKNOWN],
    ids=["an input", "a conflict of rows that were read before", "a commit that may stand"],
)
def test_what_may_not_run_again_is_raised_at_once(error: AnabranchError) -> None:
    clock = Clock()
    with pytest.raises(type(error)):
        anabranch.retrying(failing(1, error), runtime=clock.runtime())
    assert clock.pauses == []


def test_a_commit_that_may_stand_never_runs_again_whatever_it_says_of_itself() -> None:
    class Retryable(CommitOutcomeUnknown):
        retryable = True

    with pytest.raises(CommitOutcomeUnknown):
        anabranch.retrying(failing(1, Retryable(table="t", version=1, txn_id="x", reason="no.")), attempts=5)


def test_an_error_of_others_is_raised_at_once() -> None:
    with pytest.raises(ZeroDivisionError):
        anabranch.retrying(lambda: 1 // 0)


def test_a_decorated_function_keeps_its_name_and_arguments() -> None:
    work = failing(1, conflict())

    @anabranch.retrying(attempts=2, runtime=Clock().runtime())
    def load(day: int, *, hour: int) -> tuple[int, int, int]:
        """Loads."""
        return day, hour, work()

    assert load(3, hour=4) == (3, 4, 2)
    assert (load.__name__, load.__doc__) == ("load", "Loads.")


@pytest.mark.parametrize(
    "arguments",
    [
        {"attempts": 0},
        {"attempts": True},
        {"attempts": 1.5},
        {"seconds": -1},
        {"seconds": "1"},
        {"seconds": float("nan")},
    ],
    ids=str,
)
def test_an_argument_that_is_none_is_refused_by_name(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument) as refused:
        anabranch.retrying(**arguments)
    assert refused.value.facts["option"] == next(iter(arguments))
    with pytest.raises(InvalidArgument):
        anabranch.retrying("work")  # type: ignore[call-overload]


async def _later() -> int:
    return 1


def _rows() -> Iterator[int]:
    yield 1


async def _later_rows() -> AsyncIterator[int]:
    yield 1


class _Later:
    async def __call__(self) -> int:
        return 1


LATER = [
    _later,
    _rows,
    _later_rows,
    _Later(),
    functools.partial(_later),
    functools.partial(_Later()),
    _Later().__call__,
]


@pytest.mark.parametrize("work", LATER, ids=range(len(LATER)))
def test_a_function_that_runs_only_after_its_call_is_refused(work: Any) -> None:
    """Its errors would come when nobody retries any more."""
    for refused in (lambda: anabranch.retrying(work), lambda: anabranch.retrying(attempts=2)(work)):
        with pytest.raises(InvalidArgument, match="after its call"):
            refused()


def test_an_awaitable_that_a_function_returns_is_closed_and_refused() -> None:
    coroutine = _later()
    with pytest.raises(InvalidArgument, match="awaitable"):
        anabranch.retrying(lambda: coroutine)
    with pytest.raises(RuntimeError, match="reuse"):
        coroutine.send(None)


@pytest.mark.parametrize("work", [5, classmethod(lambda cls: 1)], ids=["a number", "a class method"])
def test_the_decorator_refuses_what_cannot_be_called(work: Any) -> None:
    with pytest.raises(InvalidArgument):
        anabranch.retrying(attempts=2)(work)


def test_a_class_is_a_function_that_makes_its_objects() -> None:
    assert isinstance(anabranch.retrying(_Later), _Later)


def test_two_writers_of_one_row_both_count(tmp_path: Path) -> None:
    anabranch.append(tmp_path / "t", [{"id": 1, "n": 0}], properties={"delta.enableDeletionVectors": "true"})
    mine, theirs = anabranch.table(tmp_path / "t"), anabranch.table(tmp_path / "t")
    with at_phase("staged", lambda: theirs.update("id = 1", {"n": "n + 10"})):
        anabranch.retrying(lambda: mine.update("id = 1", {"n": "n + 1"}), runtime=Clock().runtime())
    assert mine.to_arrow()["n"].to_pylist() == [11]
