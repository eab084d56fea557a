"""What work costs against the size of the table: opening it, planning a look-up, appending, deleting one row, merging a
thousand keys, on tables of a thousand to a million files.

The tables are all log (`benchmarks.synthetic`) but for the one file that DELETE and MERGE change. A cost that follows
the change, and not the table, has a slope of 0: the slope is the exponent of the number of files that fits the
seconds best.
"""

from __future__ import annotations

import json
import shutil
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable as Theirs
from deltalake import write_deltalake

import anabranch
from benchmarks import cold, large, peers, synthetic
from benchmarks.harness import Cost, Line, Result, Tell, cost
from benchmarks.race import OURS, ROUNDS, Contender, race

FILES = 1_000_000
LEAST = 1_000
KEYS = range(5 * synthetic.IDS_PER_FILE, 6 * synthetic.IDS_PER_FILE)
"""The ids of the one file that is there."""
WITHIN = f"id >= {KEYS.start} AND id < {KEYS.stop}"

Work = Callable[[Path], Any]


@dataclass(frozen=True)
class Task:
    """One kind of work, as each engine does it; on a copy of the table where it changes that."""

    what: str
    works: Mapping[str, Work]
    changes: bool = True
    answer: Callable[[Any], object] = lambda found: found
    """What is to be the same for all engines, of what `held` or the work returns."""


def run(folder: Path, rows: int, tell: Tell, *, files: int = FILES) -> Result:
    """Measure on tables of 1,000 files, 10,000 and so on up to ``files``; ``rows`` does not matter here."""
    sizes = [LEAST * 10**step for step in range(7) if LEAST * 10**step <= files]
    source = _source(folder)
    seconds: dict[tuple[str, str], list[float]] = {}
    differences: list[str] = []
    for size in sizes:
        table = table_of(folder / str(size), size, tell)
        for task in tasks(source):
            contenders = [_contender(task, name, work, table) for name, work in task.works.items()]
            found = race(f"{task.what}, {size:,} files", contenders, tell)
            differences += found.differences
            for name, costs in found.costs.items():
                seconds.setdefault((task.what, name), []).append(statistics.median(each.wall_s for each in costs))
    return Result(
        name="curves",
        title="Time against the number of files",
        setting=f"tables of {', '.join(f'{size:,}' for size in sizes)} files, with a checkpoint; {peers.SETTING};"
        f" opening in a process of its own, the rest warm; medians of {ROUNDS}",
        lines=[line_of(what, name, sizes, found) for (what, name), found in seconds.items()],
        ratios=[],
        differences=differences,
        notes=[
            "slope: the exponent of the number of files that fits the seconds best; 0 where the table's size is no"
            " matter, 1 where twice the files take twice as long.",
            "MERGE and DELETE name the range of ids, so that every engine may skip the other files.",
        ],
    )


def line_of(what: str, engine: str, sizes: Sequence[int], seconds: Sequence[float]) -> Line:
    """The seconds at each size, and the slope."""
    figures = {f"at_{size}_s": found for size, found in zip(sizes, seconds, strict=True)}
    return Line(f"{what}, {engine}", {**figures, **({"slope": slope(sizes, seconds)} if len(sizes) > 1 else {})})


def slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The exponent b of the best fit of seconds = a * size ** b."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(seconds, 1e-9)), 1)[0])


# -- tables ------------------------------------------------------------------------------------------------------------


def table_of(folder: Path, files: int, tell: Tell) -> Path:
    """A table of so many adds, of which one has its file; a second commit names that with its real size."""
    tell(f"making the log of a table of {files:,} files")
    table = synthetic.with_checkpoint(folder, files)
    [path] = anabranch.files(table, WITHIN)["path"].to_pylist()
    (table / path).parent.mkdir(parents=True)
    real = path.replace("/part-", "/real-")
    pq.write_table(_rows(KEYS), table / real)
    actions = [{"remove": {"path": path, "deletionTimestamp": 0, "dataChange": True}}, _added(table, real)]
    text = "".join(f"{json.dumps(action)}\n" for action in actions)
    (table / "_delta_log" / f"{2:020d}.json").write_text(text, encoding="utf-8")
    return table


def _added(table: Path, path: str) -> dict[str, Any]:
    columns = ("id", "amount", "word")
    low, high = ({name: choose(_rows(KEYS)[name]).as_py() for name in columns} for choose in (pc.min, pc.max))
    stats = {"numRecords": len(KEYS), "minValues": low, "maxValues": high, "nullCount": dict.fromkeys(columns, 0)}
    day = path.partition("/")[0].removeprefix("day=")
    facts = {"path": path, "size": (table / path).stat().st_size, "partitionValues": {"day": day}}
    return {"add": {**facts, "modificationTime": 0, "dataChange": True, "stats": json.dumps(stats)}}


def _rows(ids: Sequence[int]) -> pa.Table:
    """Without the partition column, which stands in the log."""
    words = [f"word{number % 50}" for number in ids]
    return pa.table({"id": list(ids), "amount": [number / 10 for number in ids], "word": words})


def _source(folder: Path) -> Path:
    """The same ids with other amounts."""
    path = folder / "source.parquet"
    rows = _rows(KEYS)
    pq.write_table(rows.set_column(1, "amount", pc.add(rows["amount"], 0.5)), path)
    return path


# -- tasks -------------------------------------------------------------------------------------------------------------


def tasks(source: Path) -> list[Task]:
    """What is measured."""
    values = "VALUES (-1, 1.5, 'word', DATE'2024-02-29')"
    delete = f"id = {KEYS[7]}"
    merge = f"MERGE INTO {{}} t USING parquet.`{source}` s ON t.id = s.id AND t.{WITHIN.replace('AND ', 'AND t.')}"
    lookup = f"id = {KEYS[3]}"
    return [
        Task(
            "open",
            {name: partial(cold.measured, name, "open") for name in (OURS, peers.DELTALAKE)},
            changes=False,
            answer=lambda found: found.answer,
        ),
        Task(
            "plan a look-up",
            {
                OURS: lambda table: anabranch.files(table, lookup),
                peers.DELTALAKE: lambda table: _handle(table).file_uris(file_pruning_predicate=lookup),
            },
            changes=False,
            answer=len,
        ),
        Task("append one row", {**_sql(f"INSERT INTO {{}} {values}"), **_appends()}),
        Task("DELETE one row", {**_sql(f"DELETE FROM {{}} WHERE {delete}"), peers.DELTALAKE: partial(_delete, delete)}),
        Task(
            f"MERGE {len(KEYS):,} keys",
            {
                **_sql(f"{merge} WHEN MATCHED THEN UPDATE SET amount = s.amount"),
                peers.DELTALAKE: partial(_merge, source),
            },
        ),
    ]


def _sql(text: str) -> dict[str, Work]:
    def on(sql: Callable[[str], Any]) -> Work:
        return lambda table: sql(text.format(f"delta.`{table}`"))

    return {name: on(sql) for name, sql in peers.sparks().items()}


def _appends() -> dict[str, Work]:
    """Ours without Spark, beside the INSERT of both Sparks."""
    return {
        f"{OURS}, Arrow": lambda table: anabranch.append(table, cold.ROW),
        peers.DELTALAKE: lambda table: write_deltalake(_handle(table), cold.ROW, mode="append"),
    }


_HANDLES: dict[Path, Theirs] = {}


def _handle(table: Path) -> Theirs:
    """deltalake opens a path anew each time; so it gets what keeps it warm."""
    if table not in _HANDLES:
        _HANDLES.clear()
        _HANDLES[table] = Theirs(str(table))
    return _HANDLES[table]


def _delete(where: str, table: Path) -> Any:
    return _handle(table).delete(where)


def _merge(source: Path, table: Path) -> Any:
    on = f"t.id = s.id AND t.{WITHIN.replace('AND ', 'AND t.')}"
    merging = _handle(table).merge(pq.read_table(source), predicate=on, source_alias="s", target_alias="t")
    return merging.when_matched_update({"amount": "s.amount"}).execute()


# -- one task on one table ---------------------------------------------------------------------------------------------


def _contender(task: Task, name: str, work: Work, table: Path) -> Contender:
    """Work that changes the table gets a fresh copy, opened before the clock starts; what ran cold brings its cost."""
    answers: list[object] = []
    processes = peers.of(name)

    def asked() -> Cost:
        measured = cost(lambda: answers.append(work(table)), processes)
        return answers[-1] if isinstance(answers[-1], Cost) else measured

    def changed() -> Cost:
        fresh = large.copy(table, table.parent / uuid4().hex)
        _opened(name, fresh)
        measured = cost(lambda: work(fresh), processes)
        answers.append(held(fresh))
        shutil.rmtree(fresh)
        return measured

    return Contender(name, changed if task.changes else asked, lambda: task.answer(answers[-1]))


def held(table: Path) -> tuple[int, int, int]:
    """How many rows the table has by its statistics, and how many the file that is there, with the sum of a column."""
    everything, there = anabranch.files(table), anabranch.files(table, WITHIN)
    rows = pa.concat_tables([pq.read_table(table / path, columns=["amount"]) for path in there["path"].to_pylist()])
    return pc.sum(everything["rows"]).as_py(), rows.num_rows, round(10 * pc.sum(rows["amount"]).as_py())


def _opened(name: str, table: Path) -> None:
    if name == peers.DELTALAKE:
        _handle(table)
    elif name == peers.DELTA_SPARK and (theirs := peers.delta_spark()):
        theirs.query(f"DESCRIBE DETAIL delta.`{table}`")
    else:
        _ = anabranch.files(table, f"id = {KEYS[0]}")
