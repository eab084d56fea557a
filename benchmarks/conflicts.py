"""A contest of conflicts: two, four and eight writers of one table, by six workloads that differ in who meets whom.

Ours in each of its three ways to judge conflicts, deltalake and delta-spark do the same seeded operations for the same
time, and each tries again what was refused, with the same pauses. Counted are refusals that reached the program, those
among them that were needless (`benchmarks.conflict_judge` says what that is), rows that acknowledged operations do not
explain, and the time of each acknowledged operation from its first attempt to its last.
"""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from benchmarks import peers
from benchmarks.conflict_engines import REDO, ROW, Calls, Crew, contenders
from benchmarks.conflict_judge import (
    Done,
    Owners,
    compared,
    held,
    is_needless,
    owners,
    replayed,
    versions,
    winners_between,
)
from benchmarks.conflict_work import ROWS, WORKLOADS, Operation, Workload, initial, operation, writer_of
from benchmarks.harness import Line, Ratio, Result, Tell, percentile
from benchmarks.race import OURS, over

NAME = "conflicts"
WRITERS, QUICK_WRITERS = (2, 4, 8), (4,)
SECONDS, QUICK_SECONDS, WARM_SECONDS = 8.0, 2.0, 2.0
LONGER = 3
"""delta-spark gets so many times as long as the others, or it would have done next to nothing; not in a quick run."""
FULL_ROWS = 20_000_000
"""The rows of the other benchmarks at their full size: with fewer, this one is a quick one."""


@dataclass(frozen=True)
class Cell:
    """One contender's writers at one workload."""

    workload: Workload
    writers: int
    name: str

    @property
    def what(self) -> str:
        """As a line of the result names it."""
        return f"{self.workload.name}, {self.writers} writers, {self.name}"


def run(folder: Path, rows: int, tell: Tell, *, seconds: float | None = None) -> Result:
    """Measure for so many seconds a line; of ``rows`` it matters only whether it is the full size."""
    is_full = rows >= FULL_ROWS
    time = seconds or (SECONDS if is_full else QUICK_SECONDS)
    counts = WRITERS if is_full else QUICK_WRITERS
    lines: list[Line] = []
    failures: Counter[str] = Counter()
    with Crew(counts) as crew:
        for cell in _cells(counts):
            if cell.name == peers.DELTA_SPARK and cell.writers == min(counts) and is_full:
                _warm_up(cell, crew, folder, tell)
            tell(cell.what)
            longer = LONGER if cell.name == peers.DELTA_SPARK and is_full else 1
            calls, line = measured(cell, crew, folder, time * longer)
            failures.update(f"{cell.name}, {call['failed']}" for call in calls if call["failed"])
            lines.append(line)
    return _result(lines, time, counts, failures)


def _cells(counts: Sequence[int]) -> Iterator[Cell]:
    for workload in WORKLOADS:
        for count in counts:
            yield from (Cell(workload, count, name) for name in contenders())


def _warm_up(cell: Cell, crew: Crew, folder: Path, tell: Tell) -> None:
    """Spark compiles what it runs often: before each workload its session does it for a while uncounted."""
    tell(f"{cell.workload.name}, warming up {cell.name}")
    measured(cell, crew, folder, WARM_SECONDS)


def measured(cell: Cell, crew: Crew, folder: Path, seconds: float) -> tuple[Calls, Line]:
    """The calls of a cell on a fresh table, and its figures; nothing is left on the disk."""
    path = folder / uuid4().hex
    try:
        calls = crew.run(cell.name, path, cell.workload, cell.writers, seconds)
        return calls, Line(cell.what, figures(calls, cell, owners(path), held(path)))
    finally:
        for left in folder.glob(f"{path.name}*"):
            shutil.rmtree(left)


# -- figures -----------------------------------------------------------------------------------------------------------


def figures(calls: Calls, cell: Cell, by_version: Owners, found: Sequence[tuple[int, int]]) -> dict[str, float | int]:
    """What these calls say, and the table that they left."""
    done = [call for call in calls if call["done"]]
    seconds = [call["ended"] - call["began"] for call in done]
    span = max(1e-9, max(call["ended"] for call in calls) - min(call["began"] for call in calls))
    wrong, reordered = compared(found, replayed(initial(), _done(done, cell, versions(by_version))))
    return {
        "seconds": span,
        "acknowledged": len(done),
        "fewest": fewest(done, cell.writers),
        "refused": sum(len(call["refusals"]) for call in calls),
        "needless": needless(calls, cell, by_version),
        "failed": sum(bool(call["failed"]) for call in calls),
        "wrong": wrong,
        "reordered": reordered,
        "commits_per_s": len(done) / span,
        "p50_ms": 1000 * percentile(seconds, 0.5),
        "p99_ms": 1000 * percentile(seconds, 0.99),
    }


def _done(calls: Calls, cell: Cell, of: Mapping[int, int]) -> Iterator[Done]:
    for call in calls:
        yield Done(_operation(cell, call["number"]), call["before"], of.get(call["number"], math.inf))


def fewest(done: Calls, writers: int) -> int:
    """How many operations of the writer with the fewest were acknowledged."""
    counted = Counter(writer_of(call["number"]) for call in done)
    return min(counted[writer] for writer in range(writers))


def needless(calls: Calls, cell: Cell, by_version: Owners) -> int:
    """How many of the refusals were needless."""
    return sum(
        is_needless(
            _operation(cell, call["number"]),
            [_operation(cell, number) for number in winners_between(by_version, *between)],
        )
        for call in calls
        for between in call["refusals"]
    )


def _operation(cell: Cell, number: int) -> Operation:
    return operation(cell.workload, cell.writers, number)


def _result(lines: Sequence[Line], seconds: float, writers: Sequence[int], failures: Counter[str]) -> Result:
    counted = ", ".join(map(str, writers))
    longer = f", and {seconds * LONGER:g} s for those of delta-spark" if writers == WRITERS else ""
    return Result(
        name=NAME,
        title="Conflicts of writers of one table",
        setting=f"{counted} writers, {seconds:g} s for each line{longer}; a fresh table of {ROWS:,} rows;"
        f" processes for ours and deltalake, threads of one session ({peers.SETTING}) for delta-spark",
        lines=lines,
        ratios=list(_ratios(lines, max(writers))),
        notes=_notes(failures),
        differences=[f"{line.what}: {line.figures['wrong']} rows" for line in lines if line.figures["wrong"]],
    )


def _notes(failures: Counter[str]) -> list[str]:
    notes = [
        "Who is refused tries again after a random pause, whose bound doubles from 0.1 s; the time of an operation is"
        " that of all its attempts. What is refused at the end of the time is given up.",
        peers.BESIDE,
    ]
    return [*notes, *(f"Failed for another reason: {count} x {what}." for what, count in sorted(failures.items()))]


def _ratios(lines: Sequence[Line], writers: int) -> Iterator[Ratio]:
    """Ours over each peer, by commits per second with the most writers."""
    rates = {line.what: float(line.figures["commits_per_s"]) for line in lines}
    for workload in WORKLOADS:
        for ours in (ROW, REDO):
            for peer in (peers.DELTALAKE, peers.DELTA_SPARK):
                mine, other = (rates.get(Cell(workload, writers, name).what) for name in (ours, peer))
                if mine is not None and other:
                    task = f"{workload.name}, {writers} writers, commits/s, {ours.removeprefix(f'{OURS}, ')}"
                    yield Ratio(over(task, peer), mine / other)
