"""Sixteen processes append to one table at once: Anabranch and delta-rs with the same workers, by turns.

Each worker appends small Arrow batches one after the other, and never repeats one that was refused. Every row names its
worker and its number, so that after each round the table itself proves what each acknowledgement was worth; delta-rs
reads it for both.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

import anabranch
from benchmarks.harness import Line, Ratio, Result, Tell, percentile
from benchmarks.race import over
from benchmarks.targets import limits

WORKERS = 16
COMMITS = 25
ROUNDS = 4
BATCH_ROWS = 10

Append = Callable[[str, pa.Table], object]


@dataclass(frozen=True)
class Call:
    """One append of one worker: when it ran (seconds of the machine's clock), and how it ended."""

    worker: int
    number: int
    began: float
    ended: float
    error: str | None

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.ended - self.began


def with_anabranch(path: str, rows: pa.Table) -> object:
    """One append by us, with default settings."""
    return anabranch.append(path, rows)


def with_deltalake(path: str, rows: pa.Table) -> object:
    """One append by delta-rs, with default settings."""
    return write_deltalake(path, rows, mode="append")


CONTENDERS: dict[str, Append] = {"anabranch": with_anabranch, "deltalake": with_deltalake}


def batch(worker: int, number: int) -> pa.Table:
    """The rows of one append."""
    ids = [(worker * 1_000_000 + number) * BATCH_ROWS + i for i in range(BATCH_ROWS)]
    return pa.table({"id": ids, "worker": [worker] * BATCH_ROWS, "number": [number] * BATCH_ROWS, "text": ["x"] * 10})


# -- one round ---------------------------------------------------------------------------------------------------------


def appended(path: str, append: Append, workers: int, commits: int) -> list[Call]:
    """All calls of one round on a fresh table."""
    append(path, batch(-1, 0))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # the imports are done once, and are not what is measured
    barrier = context.Barrier(workers)
    with context.Pool(workers, initializer=_meet, initargs=(barrier,)) as pool:
        tasks = [(path, append, worker, commits) for worker in range(workers)]
        return [call for calls in pool.starmap(_work, tasks, chunksize=1) for call in calls]


_barrier: Barrier


def _meet(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier


def _work(path: str, append: Append, worker: int, commits: int) -> list[Call]:
    append(f"{path}-warm-{worker}", batch(worker, 0))
    _barrier.wait()
    return [_call(path, append, worker, number) for number in range(commits)]


def _call(path: str, append: Append, worker: int, number: int) -> Call:
    rows, began = batch(worker, number), time.monotonic()
    try:
        append(path, rows)
        error = None
    except Exception as refused:  # whatever it is, this append was not acknowledged
        error = type(refused).__name__
    return Call(worker, number, began, time.monotonic(), error)


def prove(path: str, calls: Sequence[Call]) -> Counter[str]:
    """What the table says about each call: acknowledged ones are ``lost``, ``doubled`` or in once, refused ones may
    have ``landed`` all the same.
    """
    found = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT worker, number FROM t WHERE worker >= 0")
    rows = Counter((row["worker"], row["number"]) for row in pa.table(found.read_all()).to_pylist())
    verdicts = Counter(_verdict(call, rows[call.worker, call.number]) for call in calls)
    strangers = set(rows) - {(call.worker, call.number) for call in calls}
    return verdicts + Counter({"unknown": len(strangers)})


def _verdict(call: Call, rows: int) -> str:
    if call.error is None:
        return {BATCH_ROWS: "in once", 0: "lost"}.get(rows, "doubled or torn")
    return "refused" if rows == 0 else "landed though refused"


# -- the comparison ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Round:
    """One contender's round."""

    calls: Sequence[Call]
    verdicts: Counter[str]

    @property
    def commits_per_s(self) -> float:
        """Acknowledged appends over the time from the first call to the last return."""
        done = sum(call.error is None for call in self.calls)
        return done / (max(call.ended for call in self.calls) - min(call.began for call in self.calls))


def run(folder: Path, rows: int, tell: Tell, *, workers: int = WORKERS, commits: int = COMMITS) -> Result:
    """Measure; ``rows`` does not matter here."""
    rounds: dict[str, list[Round]] = {name: [] for name in CONTENDERS}
    for turn in range(ROUNDS):
        for name, append in CONTENDERS.items():
            tell(f"{name}, round {turn + 1} of {ROUNDS}")
            path = str(folder / f"{name}-{turn}")
            calls = appended(path, append, workers, commits)
            rounds[name].append(Round(calls, prove(path, calls)))
    lines = [_line(name, found) for name, found in rounds.items()]
    return Result(
        name="appenders",
        title=f"{workers} processes append to one table",
        setting=f"{commits} appends of {BATCH_ROWS} rows each per process, local folder, {ROUNDS} rounds by turns",
        lines=lines,
        ratios=_ratios(rounds, lines),
        notes=_notes(rounds),
    )


def _line(name: str, rounds: Sequence[Round]) -> Line:
    done = [call.seconds for each in rounds for call in each.calls if call.error is None]
    wrong = ("lost", "doubled or torn", "landed though refused", "unknown")
    figures: dict[str, float | int] = {
        "commits_per_s": statistics.median(each.commits_per_s for each in rounds),
        "appends": sum(len(each.calls) for each in rounds),
        "refused": sum(call.error is not None for each in rounds for call in each.calls),
        "in_once": sum(each.verdicts["in once"] for each in rounds),
        "wrong": sum(each.verdicts[verdict] for each in rounds for verdict in wrong),
        "p50_ms": 1000 * percentile(done, 0.5),
        "p99_ms": 1000 * percentile(done, 0.99),
    }
    return Line(name, figures)


def _ratios(rounds: dict[str, list[Round]], lines: Sequence[Line]) -> list[Ratio]:
    pairs = zip(rounds["anabranch"], rounds["deltalake"], strict=True)
    each = [ours.commits_per_s / theirs.commits_per_s for ours, theirs in pairs]
    name = over("commits/s", "deltalake")
    ours = lines[0].figures
    return [
        Ratio(name, statistics.median(each), **limits("appenders", name), least=min(each), greatest=max(each)),
        Ratio("share of our appends refused", ours["refused"] / ours["appends"], at_most=0.0),
        Ratio("share of our acknowledged appends in exactly once", _proved(ours), at_least=1.0),
    ]


def _proved(figures: object) -> float:
    assert isinstance(figures, dict)
    acknowledged = figures["appends"] - figures["refused"]
    return 0.0 if figures["wrong"] else figures["in_once"] / max(1, acknowledged)


def _notes(rounds: dict[str, list[Round]]) -> list[str]:
    errors = Counter(call.error for each in rounds["deltalake"] for call in each.calls if call.error)
    said = ", ".join(f"{count} x {error}" for error, count in errors.items())
    fsync = "Ours fsyncs each data file, each commit and their folders; delta-rs calls no fsync."
    return [fsync, f"delta-rs refused with {said}."] if said else [fsync]
