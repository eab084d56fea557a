"""A table of a million files: opening it, following it, looking one row up and appending one, beside delta-rs.

The table is all log (`benchmarks.synthetic`); cold work is done in a process of its own for each run. Each contender
has a copy of the log for itself, since each commits to it.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import cast

from deltalake import DeltaTable, write_deltalake

import anabranch
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.predicates import Compare
from anabranch._protocol.stats.skipping import FileFacts
from anabranch.commands.opening import open_log
from benchmarks import large, synthetic
from benchmarks.cold import ROW, Cold, measured
from benchmarks.harness import Cost, Line, Ratio, Result, Tell, by_turns, compared, cost, spread
from benchmarks.race import over
from benchmarks.targets import limits

ROWS_PER_ADD = 20
ROUNDS = 5
"""Of what is warm; what is cold runs `COLD_ROUNDS` times."""
COLD_ROUNDS = 3
WARM_S = 0.1
"""What planning may take, and what the million files may add to an append."""
ENGINES = ("anabranch", "deltalake")

Works = Mapping[str, Callable[[], object]]
Found = Mapping[str, Sequence[Cost]]
"""What each engine cost, round by round."""


@dataclass(frozen=True)
class Part:
    """The lines and ratios of some of the tasks."""

    lines: Sequence[Line]
    ratios: Sequence[Ratio]


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure on a table of one add for every `ROWS_PER_ADD` of ``rows``: a million at the full size."""
    adds = rows // ROWS_PER_ADD
    tell(f"making the log of a table of {adds:,} files")
    checkpoint, commit = synthetic.with_checkpoint(folder, adds), synthetic.with_json(folder, adds)
    tables = {engine: large.copy(checkpoint, folder / engine) for engine in ENGINES}
    small = {engine: synthetic.with_checkpoint(folder / "small" / engine, 1) for engine in ENGINES}
    parts = [
        _opened(checkpoint, "a checkpoint", adds, tell),
        _opened(commit, "one JSON commit", adds, tell),
        _appended_cold(tables, tell),
        *_warm(tables, small, adds, tell),
    ]
    return Result(
        name="opening",
        title=f"A table of {adds:,} files",
        setting=f"a log without data files, statistics of 3 columns, one partition column;"
        f" checkpoint {_megabytes(checkpoint)} MB, JSON commit {_megabytes(commit)} MB; local folder;"
        f" cold: a process each, {COLD_ROUNDS} rounds by turns; warm: {ROUNDS} rounds by turns",
        lines=[line for part in parts for line in part.lines],
        ratios=[ratio for part in parts for ratio in part.ratios],
        notes=[
            "Cold: libraries are imported and one tiny table was opened before the clock starts.",
            "A refresh is: one more commit of one add stands in the log; refresh, and know all live files.",
            "Planning is: which files may hold this id; delta-rs answers by `file_uris(file_pruning_predicate=...)`.",
            f"Load of the machine at the end: {os.getloadavg()[1]:.1f} over five minutes, on {os.cpu_count()} cores.",
        ],
    )


# -- cold --------------------------------------------------------------------------------------------------------------


def _opened(table: Path, where: str, adds: int, tell: Tell) -> Part:
    what = f"open from {where}, cold"
    found = _cold(what, "open", dict.fromkeys(ENGINES, table), tell)
    assert all(each.answer == adds for costs in found.values() for each in costs)
    ours, theirs = (max(each.peak_mb for each in found[engine]) for engine in ENGINES)
    memory = [
        Ratio(over(f"{what}, memory at its peak", "deltalake"), ours / theirs),
        Ratio(in_gb := f"{what}, memory at its peak, ours, GB", ours / 1000, **limits("opening", in_gb)),
    ]
    return Part(_lines(what, found), [*_beside(what, found), *memory])


def _appended_cold(tables: Mapping[str, Path], tell: Tell) -> Part:
    what = "append one row, cold"
    found = _cold(what, "append", tables, tell)
    known = max(each.answer for each in found["anabranch"])
    read = Ratio(f"{what}: adds that we read", known, at_most=0.0)
    return Part(_lines(what, found), [*_beside(what, found), read])


def _cold(what: str, task: str, tables: Mapping[str, Path], tell: Tell) -> dict[str, list[Cold]]:
    works = {engine: partial(measured, engine, task, table) for engine, table in tables.items()}
    return cast(dict[str, list[Cold]], by_turns(works, COLD_ROUNDS, lambda text: tell(f"{what}: {text}")))


# -- warm --------------------------------------------------------------------------------------------------------------


def _warm(tables: Mapping[str, Path], small: Mapping[str, Path], adds: int, tell: Tell) -> list[Part]:
    ours, theirs = tables["anabranch"], DeltaTable(str(tables["deltalake"]))
    _ = open_log(ours).snapshot().files
    numbers = count(adds // 2 * synthetic.IDS_PER_FILE)
    return [
        _planned(ours, theirs, numbers, tell),
        _refreshed(ours, theirs, tables["deltalake"], tell),
        _remembered(ours, numbers, tell),
        _appended(ours, theirs, small["anabranch"], DeltaTable(str(small["deltalake"])), tell),
    ]


def _planned(ours: Path, theirs: DeltaTable, numbers: Iterator[int], tell: Tell) -> Part:
    """The first question about a column reads its statistics, so it can be asked only once."""
    works: Works = {
        "anabranch": lambda: _one(len(anabranch.files(ours, f"id = {next(numbers)}"))),
        "deltalake": lambda: _one(len(theirs.file_uris(file_pruning_predicate=f"id = {next(numbers)}"))),
    }
    first, later = "plan a look-up, first", "plan a look-up, later"
    once, often = _turns(first, works, 1, tell), _turns(later, works, ROUNDS, tell)
    seconds = Ratio(f"{later}: ours, s", _median(often["anabranch"]), at_most=WARM_S)
    return Part([*_lines(first, once), *_lines(later, often)], [*_beside(first, once), *_beside(later, often), seconds])


def _refreshed(ours: Path, theirs: DeltaTable, their_path: Path, tell: Tell) -> Part:
    """Each time one more add was committed, and the live files are to be known."""
    what = "refresh after one commit"

    def refresh() -> Cost:
        before = _committed(ours)
        found = cost(lambda: open_log(ours).snapshot().files)
        _one(open_log(ours).snapshot().files.num_rows - before.files.num_rows)
        return found

    def theirs_refreshed() -> Cost:
        before = theirs.version()
        synthetic.commit_of_one(their_path, before + 1)
        found = cost(theirs.update_incremental)
        _one(theirs.version() - before)
        return found

    works = {"anabranch": refresh, "deltalake": theirs_refreshed}
    found = by_turns(works, ROUNDS, lambda text: tell(f"{what}: {text}"), warm_ups=1)
    return Part(_lines(what, found), _beside(what, found))


def _remembered(ours: Path, numbers: Iterator[int], tell: Tell) -> Part:
    """What it gives that facts are kept over a commit: ours beside facts that are read anew from the same files."""
    what = "plan a look-up after one commit"

    def planned(facts_of: Callable[[Snapshot], FileFacts]) -> Cost:
        _committed(ours)
        snapshot, wanted = open_log(ours).snapshot(), Compare("id", "=", next(numbers))
        _ = snapshot.files
        found = cost(lambda: _one(facts_of(snapshot).could_match(wanted).true_count))
        _ = snapshot.facts.could_match(wanted)  # for the next round, whoever it is
        return found

    works = {
        "facts remembered": lambda: planned(lambda snapshot: snapshot.facts),
        "facts read anew": lambda: planned(lambda s: FileFacts(s.files, s.schema, s.partition_columns)),
    }
    found = by_turns(works, ROUNDS, lambda text: tell(f"{what}: {text}"))
    return Part(_lines(what, found), compared(f"{what}: facts remembered over read anew", *found.values()))


def _appended(ours: Path, theirs: DeltaTable, our_small: Path, their_small: DeltaTable, tell: Tell) -> Part:
    """By path with us, by a handle with delta-rs, which reads a path anew each time; and the same on one file."""
    what, beside = "append one row, warm", "append one row, table of one file"
    works: Works = {
        "anabranch": lambda: anabranch.append(ours, ROW),
        "deltalake": lambda: write_deltalake(theirs, ROW, mode="append"),
    }
    small: Works = {
        "anabranch": lambda: anabranch.append(our_small, ROW),
        "deltalake": lambda: write_deltalake(their_small, ROW, mode="append"),
    }
    alone = _turns(beside, small, ROUNDS, tell, warm_ups=1)
    found = _turns(what, works, ROUNDS, tell, warm_ups=1)
    beyond = max(0.0, _median(found["anabranch"]) - _median(alone["anabranch"]))
    seconds = Ratio(f"{what}: ours, s beyond the same on a table of one file", beyond, at_most=WARM_S)
    return Part([*_lines(what, found), *_lines(beside, alone)], [*_beside(what, found), seconds])


# -- shared ------------------------------------------------------------------------------------------------------------


def _turns(what: str, works: Works, rounds: int, tell: Tell, *, warm_ups: int = 0) -> Found:
    costing = {engine: partial(cost, work) for engine, work in works.items()}
    return by_turns(costing, rounds, lambda text: tell(f"{what}: {text}"), warm_ups=warm_ups)


def _beside(what: str, found: Found) -> list[Ratio]:
    name = over(what, "deltalake")
    return compared(name, found["anabranch"], found["deltalake"], limits("opening", name).get("at_most"))


def _lines(what: str, found: Found) -> list[Line]:
    return [Line(f"{what}, {name}", {**spread(costs), **_memory(costs)}) for name, costs in found.items()]


def _memory(costs: Sequence[Cost]) -> dict[str, float]:
    before = [each.before_mb for each in costs if isinstance(each, Cold)]
    return {"before_mb": max(before)} if before else {}


def _committed(table: Path) -> Snapshot:
    """The newest snapshot; behind it then stands one more commit."""
    before = open_log(table).snapshot()
    synthetic.commit_of_one(table, before.version + 1)
    return before


def _one(count: int) -> None:
    assert count == 1, count


def _median(costs: Sequence[Cost]) -> float:
    return statistics.median(each.wall_s for each in costs)


def _megabytes(table: Path) -> int:
    return sum(os.path.getsize(path) for path in (table / "_delta_log").iterdir()) // 1_000_000
