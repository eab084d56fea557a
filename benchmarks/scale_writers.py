"""Many writers of one table on a simulated bucket: what each commit costs, and that each one is in once.

The commands, the log and the commit are the real ones; the bucket's answers and the clock are simulated
(`benchmarks.simulated_bucket`, `benchmarks.virtual_time`). Every writer is a process with a machine of its own.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import pyarrow as pa

from anabranch._log.file_names import commit_name, commit_version
from anabranch._log.log import forget
from anabranch._storage.open import mounted
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import RunContext
from anabranch.commands.dml.append import Append
from anabranch.errors import AnabranchError
from benchmarks.harness import percentile
from benchmarks.simulated_bucket import Bucket, Seat, Service
from benchmarks.virtual_time import VirtualTime

Write = Callable[[str, RunContext, int, int], CommitResult]
"""One commit at a location, of a writer's number and how many it made before."""


@dataclass(frozen=True)
class Load:
    """Who writes how much.

    Attributes:
        writers: each a process of its own.
        per_hour: commits of all of them together that begin, at random moments; 0: all begin at once, once.
        seconds: how long they begin new ones.
        properties: of the table.
        service: the bucket.
    """

    writers: int
    per_hour: float
    seconds: float = 3600.0
    properties: Mapping[str, str] = field(default_factory=dict)
    service: Service = field(default_factory=Service)
    seed: int = 0


@dataclass(frozen=True)
class Call:
    """One commit of one writer: when it began and ended, its version or its error, and its requests."""

    began: float
    ended: float
    version: int | None
    error: str | None
    tries: int
    requests: int

    @property
    def seconds(self) -> float:
        """From the call to the acknowledgement."""
        return self.ended - self.began


@dataclass(frozen=True)
class Seen:
    """What a load made of the table."""

    load: Load
    calls: Sequence[Call]
    requests: Counter[str]
    slowed: int
    seconds: float
    in_once: int
    wrong: int

    @property
    def done(self) -> list[Call]:
        """The acknowledged ones."""
        return [call for call in self.calls if call.error is None]

    def figures(self) -> dict[str, float | int]:
        """The figures of a line."""
        waits = [call.seconds for call in self.done]
        count = max(1, len(self.done))
        return {
            "commits": len(self.calls),
            "refused": len(self.calls) - len(self.done),
            "in_once": self.in_once,
            "wrong": self.wrong,
            "commits_per_s": count / max(self.seconds, 1e-9),
            "p50_s": percentile(waits, 0.5),
            "p95_s": percentile(waits, 0.95),
            "longest_s": max(waits, default=0.0),
            "tries_per_commit": sum(call.tries for call in self.done) / count,
            "requests_per_commit": sum(self.requests.values()) / count,
            "lists_per_commit": self.requests["list"] / count,
            "slow_down_per_commit": self.slowed / count,
        }


def append_rows(location: str, context: RunContext, writer: int, number: int) -> CommitResult:
    """A blind append of ten rows, which say whose they are."""
    rows = pa.table({"writer": [writer] * 10, "number": [number] * 10})
    return Append(location, rows).run(context=context)


def seen(load: Load, write: Write = append_rows, *, counts_processor: bool = True) -> Seen:
    """Play a load on a fresh table to its end; without the processor's time, it ends in the same way each time."""
    clock = VirtualTime(counts_processor=counts_processor)
    bucket = Bucket(clock, Service(get=(0, 0), head=(0, 0), list=(0, 0), put=(0, 0)), load.seed)
    with ExitStack() as stack:
        stack.callback(forget)
        seats = [bucket.seat(number) for number in range(load.writers)]
        for seat in seats:
            stack.enter_context(mounted(seat))
        Append(seats[0].url, pa.table({"writer": [-1], "number": [0]}), properties=load.properties).run()
        bucket.serve_as(load.service)
        seats[0].requests.clear()
        play = _Play(load, clock, write)
        clock.run(play.task(seat, number) for number, seat in enumerate(seats))
    requests = sum((seat.requests for seat in seats), Counter[str]())
    in_once, wrong = _proved(bucket, play.calls)
    ended = max((call.ended for call in play.calls), default=0.0)
    return Seen(load, play.calls, requests, bucket.slowed, ended, in_once, wrong)


class _Play:
    def __init__(self, load: Load, clock: VirtualTime, write: Write) -> None:
        self._load, self._clock, self._write = load, clock, write
        self.calls: list[Call] = []

    def task(self, seat: Seat, number: int) -> tuple[float, Callable[[], None]]:
        dice = random.Random(f"{self._load.seed} {number}")
        moments = self._moments(dice)
        return 0.0, lambda: self._live(seat, number, dice, moments)

    def _moments(self, dice: random.Random) -> Iterator[float]:
        if not self._load.per_hour:
            yield 0.0
            return
        at, mean = 0.0, 3600.0 * self._load.writers / self._load.per_hour
        while (at := at + dice.expovariate(1 / mean)) < self._load.seconds:
            yield at

    def _live(self, seat: Seat, number: int, dice: random.Random, moments: Iterator[float]) -> None:
        clock = self._clock
        runtime = Runtime(
            now_ms=lambda: int(clock.now * 1000) + 1_800_000_000_000,
            seconds=lambda: clock.now,
            sleep=clock.sleep,
            random=dice.random,
            user=lambda: f"writer {number}",
        )
        for count, at in enumerate(moments):
            clock.sleep(max(0.0, at - clock.now))
            self.calls.append(self._call(seat, RunContext(runtime=runtime), number, count))

    def _call(self, seat: Seat, context: RunContext, number: int, count: int) -> Call:
        began, before = self._clock.now, sum(seat.requests.values())
        version, error, tries = None, None, 0
        try:
            done = self._write(seat.url, context, number, count)
            version, tries = done.version, done.attempts
        except AnabranchError as refused:
            error = type(refused).__name__
        self._clock.sleep(0.0)
        return Call(began, self._clock.now, version, error, tries, sum(seat.requests.values()) - before)


def _proved(bucket: Bucket, calls: Sequence[Call]) -> tuple[int, int]:
    """How many acknowledged commits have a version of their own in the log, and how many have none, or share one; and
    versions that nobody was told of count as wrong too.
    """
    there = {v for name in bucket.inner.kept if (v := commit_version(name)) is not None} - {0}
    told = Counter(call.version for call in calls if call.error is None)
    ids = Counter(_txn_id(bucket.inner.get(commit_name(version))) for version in there)
    once = sum(1 for version, times in told.items() if times == 1 and version in there)
    doubled = sum(times - 1 for times in ids.values())
    return once, sum(told.values()) - once + len(there - set(told)) + doubled


def _txn_id(data: bytes) -> str:
    infos = (json.loads(line).get("commitInfo") for line in data.splitlines())
    return next(info["txnId"] for info in infos if info)
