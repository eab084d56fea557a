"""The simulation of scale, in miniature: its clock, its bucket, what it proves, and that its page shows its figures."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from anabranch._transaction.commit import CommitResult
from anabranch.commands.context import RunContext
from anabranch.errors import AlreadyExists, PutOutcomeUnknown
from benchmarks import scale
from benchmarks.harness import RESULTS
from benchmarks.scale_page import DOCUMENT, filled
from benchmarks.scale_writers import Load, append_rows, seen
from benchmarks.simulated_bucket import Bucket, Service
from benchmarks.virtual_time import VirtualTime
from tests.support.patience import PATIENCE


def test_an_hour_passes_at_once_and_whoever_wakes_first_goes_first() -> None:
    clock, order = VirtualTime(counts_processor=False), list[tuple[str, float]]()

    def sleeper(name: str, seconds: float) -> None:
        for _ in range(2):
            clock.sleep(seconds)
            order.append((name, clock.now))

    clock.run([(0.0, lambda: sleeper("slow", 3600.0)), (1.0, lambda: sleeper("quick", 10.0))])
    assert order == [("quick", 11.0), ("quick", 21.0), ("slow", 3600.0), ("slow", 7200.0)]


def test_a_task_waits_for_the_longest_of_its_threads() -> None:
    clock = VirtualTime(counts_processor=False)

    def work() -> None:
        with ThreadPoolExecutor(3) as pool:
            together = threading.Barrier(3, timeout=PATIENCE)
            list(pool.map(lambda seconds: (together.wait(), clock.sleep(seconds)), (1.0, 3.0, 2.0)))
        clock.sleep(0.0)

    clock.run([(0.0, work)])
    assert clock.now == 3.0


def test_a_failure_of_a_task_is_the_failure_of_the_run() -> None:
    def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        VirtualTime().run([(0.0, broken)])


def test_a_bucket_takes_its_time_has_one_winner_and_says_slow_down() -> None:
    clock = VirtualTime(counts_processor=False)
    bucket = Bucket(clock, replace(Service(), writes_per_s=3.0))
    told: list[str] = []

    def put(number: int) -> None:
        try:
            bucket.seat(number).put_if_absent("a/b", b"x")
            told.append("created")
        except (AlreadyExists, PutOutcomeUnknown) as error:
            told.append(type(error).__name__)

    clock.run([(0.0, lambda number=number: put(number)) for number in range(5)])
    assert sorted(told) == ["AlreadyExists"] * 2 + ["PutOutcomeUnknown"] * 2 + ["created"]
    assert 0.05 <= clock.now <= 0.2
    assert bucket.slowed == 2


@pytest.mark.slow
def test_writers_race_and_each_commit_is_in_once() -> None:
    found = seen(Load(writers=6, per_hour=0), counts_processor=False)
    assert (found.in_once, found.wrong, found.figures()["refused"]) == (6, 0, 0)
    assert found.figures()["tries_per_commit"] > 1
    busy = seen(Load(writers=5, per_hour=3600, seconds=20.0), counts_processor=False)
    assert busy.in_once == len(busy.calls) > 5


def test_the_proof_finds_what_is_told_and_not_there() -> None:
    def boasting(location: str, context: RunContext, writer: int, number: int) -> CommitResult:
        done = append_rows(location, context, writer, number)
        return replace(done, version=done.version + (writer == 0) * 100)

    found = seen(Load(writers=3, per_hour=0), boasting, counts_processor=False)
    assert found.in_once == 2
    assert found.wrong >= 1


@pytest.mark.slow
def test_a_bucket_that_is_too_busy_loses_nothing() -> None:
    service = replace(Service(), reads_per_s=10.0, writes_per_s=5.0)
    found = seen(Load(writers=8, per_hour=0, service=service), counts_processor=False)
    assert found.slowed > 0
    assert (found.in_once + found.figures()["refused"], found.wrong) == (8, 0)
    assert found.in_once >= 4


@pytest.mark.slow
def test_every_part_runs_small() -> None:
    for run in (scale.rates, scale.bursts, scale.intervals, scale.checkpoints):
        result = run(0.005)
        assert result.lines
        assert all(line.figures.get("wrong", 0) == 0 for line in result.lines)


def test_the_page_shows_the_figures_that_are_kept() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert filled(text, RESULTS) == text
    assert all(f"figures: {name} -->\n| " in text for name in scale.NAMES)
