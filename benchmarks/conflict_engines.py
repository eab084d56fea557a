"""The contenders of the contest of conflicts: how each does an operation, tries it again, and runs its writers.

Knows the public functions of each engine, and nothing of how refusals are judged. Ours and deltalake write from a
process for each writer; delta-spark from a thread for each writer, in one session of its own.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

import anabranch
from anabranch.errors import AnabranchError
from benchmarks import peers
from benchmarks.conflict_loop import IsConflict, Retried, until_done, write
from benchmarks.conflict_work import BY_NAME, Operation, Row, Workload, initial, operations

FILE, ROW, REDO = (f"anabranch, {by}" for by in ("file", "row", "redo"))
WARM_UPS = 3
MEETING_S = 300.0
"""Longer than any writer takes to be ready; one that broke is waited for no longer."""
MOST_A_SECOND = 50
"""More statements than a thread of delta-spark does in a second."""

Do = Callable[[str, Operation], Any]
Calls = list[dict[str, Any]]


def rows_of(rows: Sequence[Row], number: int) -> pa.Table:
    """These rows in Arrow, as brought by the operation of this number."""
    columns = {name: [getattr(row, name) for row in rows] for name in Row._fields}
    return pa.table({**columns, "op": [number] * len(rows)})


def make(path: str, workload: Workload, properties: Mapping[str, str]) -> None:
    """The table with which a workload begins, in as many files as it wants."""
    rows = initial()
    for part in range(workload.files):
        anabranch.append(path, rows_of(rows[part :: workload.files], 0), properties=None if part else properties)


# -- ours --------------------------------------------------------------------------------------------------------------


def _by_us(path: str, each: Operation) -> Any:
    return _OURS[each.verb](path, each)


def _update_by_us(path: str, each: Operation) -> Any:
    return anabranch.table(path).update(each.where, {"n": "n + 1", "op": str(each.number)})


def _insert_by_us(path: str, each: Operation) -> Any:
    return anabranch.append(path, rows_of(each.rows, each.number))


def _merge_by_us(path: str, each: Operation) -> Any:
    merge = anabranch.table(path).merge(rows_of(each.rows, each.number), "source.id = target.id")
    merge = merge.when_matched_update({"n": "target.n + source.n", "op": "source.op"})
    return merge.when_not_matched_insert_all().execute()


def _transfer_by_us(path: str, each: Operation) -> Any:
    """Two UPDATEs and an INSERT, as one transaction."""
    table, (*sides, entry) = anabranch.table(path), each.rows
    with anabranch.transaction(path):
        for side in sides:
            table.update(f"id = {side.id}", {"n": f"n + ({side.n})", "op": str(each.number)})
        table.append(rows_of([entry], each.number))


_OURS: dict[str, Do] = {
    "update": _update_by_us,
    "insert": _insert_by_us,
    "merge": _merge_by_us,
    "transfer": _transfer_by_us,
    "optimize": lambda path, each: anabranch.table(path).optimize().compact(),
}


def _is_ours(error: Exception) -> bool:
    return isinstance(error, AnabranchError) and error.retryable


def _retried_by_us(work: Callable[[], Any], seconds: float) -> Any:
    return anabranch.retrying(work, attempts=1_000_000, seconds=seconds)


# -- deltalake ---------------------------------------------------------------------------------------------------------


def _by_deltalake(path: str, each: Operation) -> Any:
    return _DELTALAKE[each.verb](path, each)


def _update_by_deltalake(path: str, each: Operation) -> Any:
    return DeltaTable(path).update(predicate=each.where, updates={"n": "n + 1", "op": str(each.number)})


def _insert_by_deltalake(path: str, each: Operation) -> Any:
    return write_deltalake(path, rows_of(each.rows, each.number), mode="append")


def _merge_by_deltalake(path: str, each: Operation) -> Any:
    rows = rows_of(each.rows, each.number)
    merge = DeltaTable(path).merge(rows, predicate="s.id = t.id", source_alias="s", target_alias="t")
    merge = merge.when_matched_update({"n": "t.n + s.n", "op": "s.op"})
    return merge.when_not_matched_insert_all().execute()


_DELTALAKE: dict[str, Do] = {
    "update": _update_by_deltalake,
    "insert": _insert_by_deltalake,
    "merge": _merge_by_deltalake,
    "transfer": _merge_by_deltalake,
    "optimize": lambda path, each: DeltaTable(path).optimize.compact(),
}


def _is_deltalakes(error: Exception) -> bool:
    return isinstance(error, CommitFailedError) or (isinstance(error, DeltaError) and "onflict" in str(error))


# -- writers in processes ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Engine:
    """One that writes from processes: how it does an operation and tries it again, and what its tables are."""

    do: Do
    retried: Retried
    is_conflict: IsConflict
    properties: Mapping[str, str] = field(default_factory=dict)


def _ours(resolution: str) -> Engine:
    return Engine(_by_us, _retried_by_us, _is_ours, {"anabranch.conflictResolution": resolution})


ENGINES = {
    **{name: _ours(resolution) for name, resolution in ((FILE, "file"), (ROW, "row"), (REDO, "redo"))},
    peers.DELTALAKE: Engine(
        _by_deltalake,
        partial(until_done, is_conflict=_is_deltalakes),
        _is_deltalakes,
        {"delta.enableDeletionVectors": "false"},
    ),
}


class Crew:
    """Processes for so many writers at most; they stay from run to run, as a program's do. Leave it by ``with``."""

    def __init__(self, writers: Sequence[int]) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])  # the imports are done once, and are not what is measured
        barriers = {count: context.Barrier(count) for count in writers}
        self._pool = context.Pool(max(writers), initializer=_meet, initargs=(barriers,))

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.terminate()

    def run(self, name: str, path: Path, workload: Workload, writers: int, seconds: float) -> Calls:
        """What one contender's writers do in so many seconds on a fresh table; where that is tells no other run."""
        if name == peers.DELTA_SPARK:
            return in_threads(str(path), workload, writers, seconds)
        make(str(path), workload, ENGINES[name].properties)
        tasks = [(name, str(path), workload.name, writers, writer, seconds) for writer in range(writers)]
        return [call for calls in self._pool.starmap(_write, tasks, chunksize=1) for call in calls]


_barriers: Mapping[int, Barrier] = {}
_warm: set[tuple[str, str]] = set()
"""What a process has done before, by contender and workload."""


def _meet(barriers: Mapping[int, Barrier]) -> None:
    global _barriers
    _barriers = barriers


def _write(name: str, path: str, workload: str, writers: int, writer: int, seconds: float) -> Calls:
    engine, work = ENGINES[name], BY_NAME[workload]
    if (name, workload) not in _warm:
        _warm_up(engine, f"{path}-warm-{writer}", work, writers, writer)
        _warm.add((name, workload))
    works = ((each.number, partial(engine.do, path, each)) for each in operations(work, writers, writer))
    _barriers[writers].wait(MEETING_S)
    return write(path, works, seconds, engine.retried, engine.is_conflict)


def _warm_up(engine: Engine, path: str, workload: Workload, writers: int, writer: int) -> None:
    """A few operations on a table of one's own."""
    make(path, replace(workload, files=1), engine.properties)
    for _, each in zip(range(WARM_UPS), operations(workload, writers, writer), strict=False):
        engine.do(path, each)


# -- delta-spark -------------------------------------------------------------------------------------------------------


def in_threads(path: str, workload: Workload, writers: int, seconds: float) -> Calls:
    """The calls of so many threads of delta-spark's session on a fresh table."""
    theirs = peers.delta_spark()
    assert theirs is not None
    make(path, workload, {})
    count = range(max(1, int(MOST_A_SECOND * seconds)))
    by_writer = [zip(count, operations(workload, writers, writer), strict=False) for writer in range(writers)]
    texts = [[(each.number, text_of(each, path)) for _, each in statements] for statements in by_writer]
    return theirs.contest(path, texts, seconds)


def text_of(each: Operation, path: str) -> str:
    """The statement as delta-spark takes it."""
    table = f"delta.`{path}`"
    if each.verb == "optimize":
        return f"OPTIMIZE {table}"
    if each.verb == "update":
        return f"UPDATE {table} SET n = n + 1, op = {each.number} WHERE {each.where}"
    values = ", ".join(f"({row.id}, '{row.kind}', {row.g}, {row.n}, {each.number})" for row in each.rows)
    if each.verb == "insert":
        return f"INSERT INTO {table} VALUES {values}"
    return (
        f"MERGE INTO {table} t USING (SELECT * FROM VALUES {values} AS s(id, kind, g, n, op)) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET n = t.n + s.n, op = s.op WHEN NOT MATCHED THEN INSERT *"
    )


def contenders() -> list[str]:
    """Who takes part; delta-spark where it is installed."""
    return [*ENGINES, *([peers.DELTA_SPARK] if peers.delta_spark() else [])]
