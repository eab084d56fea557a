"""Changes of a large table without Spark, beside deltalake: time, and memory at its peak.

Each run is a process of its own that works on a copy of its own. Afterwards both tables must hold the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

from benchmarks import alone_work, judge, large, merge, peers
from benchmarks.cold import Cold, in_process
from benchmarks.harness import Ratio, Result, Tell
from benchmarks.race import OURS, ROUNDS, InAnotherProcess, Race, figures, over, race_on_copies
from benchmarks.targets import limits

NAME = "alone"
TASKS = {
    "delete": "DELETE 1%",
    "update": "UPDATE some 1,000 rows",
    "update all": "UPDATE all rows",
    "merge": "MERGE 1%",
}
SMALL = 8_000


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure on a table of this many rows."""
    tables, small = peers.tables(folder / "large", rows, tell), peers.tables(folder / "small", SMALL, tell)
    source = merge.source(folder, rows)
    races = [_raced(task, tables, small, source, tell) for task in TASKS]
    found = figures(NAME, races)
    return Result(
        name=NAME,
        title="Changing a large table without Spark",
        setting=f"{large.described(folder / 'large', rows)}; MERGE of {rows // merge.SHARE:,} rows, half of them new; a"
        f" process and a fresh copy for each run, {ROUNDS} rounds by turns",
        lines=found.lines,
        ratios=[*found.ratios, *(ratio for race in races for ratio in _memory(race))],
        differences=found.differences,
        notes=[
            "The same is done to a small table before the clock starts.",
            "Ours marks rows in deletion vectors; deltalake rewrites files, since it writes no vectors.",
        ],
    )


def _raced(task: str, tables: peers.Tables, small: peers.Tables, source: Path, tell: Tell) -> Race:
    sides = {
        OURS: _side(OURS, task, tables.marking, small.marking, source),
        peers.DELTALAKE: _side(peers.DELTALAKE, task, tables.rewriting, small.rewriting, source),
    }
    found = race_on_copies(TASKS[task], sides, tell, warm_ups=1)
    peers.clear(sides)
    return found


def _side(engine: str, task: str, table: Path, small: Path, source: Path) -> InAnotherProcess:
    def work(path: str) -> Cold:
        warming = large.copy(small, small.parent / uuid4().hex)
        return in_process(alone_work.__name__, engine, task, str(warming), path, str(source))

    return InAnotherProcess(table, work, judge.large)


def _memory(race: Race) -> list[Ratio]:
    peaks: Mapping[str, float] = {name: max(cost.peak_mb for cost in costs) for name, costs in race.costs.items()}
    in_gb = f"{race.what}: memory at its peak, ours, GB"
    return [
        Ratio(over(f"{race.what}: memory at its peak", peers.DELTALAKE), peaks[OURS] / peaks[peers.DELTALAKE]),
        Ratio(in_gb, peaks[OURS] / 1000, **limits(NAME, in_gb)),
    ]
