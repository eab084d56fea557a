"""Appends of many callers in one process share commits, and each caller is told of its own rows."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch._log.log import Log
from anabranch._storage.open import open_store
from anabranch.commands.dml import appender as module
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.appender import Appender
from anabranch.errors import InvalidArgument, InvalidOption, SchemaMismatch, StoreError
from tests.support.patience import PATIENCE, happens
from tests.support.tiers import examples
from tests.support.worlds import World


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@contextmanager
def busy(gathering: Appender, monkeypatch: pytest.MonkeyPatch, then: Any = Append.run) -> Iterator[None]:
    """An appender in the middle of a commit, which ends when this ends; ``then`` makes those behind it."""
    begun, may_end, first, run = Event(), Event(), iter([True]), Append.run

    def held(self: Append, *arguments: Any) -> Any:
        if not next(first, False):
            return then(self, *arguments)
        begun.set()
        happens(may_end)
        return run(self, *arguments)

    monkeypatch.setattr(Append, "run", held)
    gathering.submit([{"id": -1}])
    happens(begun)
    try:
        yield
    finally:
        may_end.set()


def ids(path: str) -> list[int]:
    return sorted(row["id"] for row in World(path).rows())


def rows_of_version(path: str, version: int) -> int:
    """How many rows a version added."""
    return int(
        next(each for each in anabranch.history(path) if each["version"] == version)["operationMetrics"][
            "numOutputRows"
        ]
    )


def test_what_comes_during_a_commit_shares_the_next_one(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with anabranch.appender(path) as gathering:
        with busy(gathering, monkeypatch):
            told = [gathering.submit([{"id": i}]) for i in range(20)]
        assert {each.result(PATIENCE) for each in told} == {1}
    assert ids(path) == list(range(-1, 20))
    assert rows_of_version(path, 1) == 20
    assert anabranch.files(path).num_rows == 2


def test_a_caller_alone_waits_for_nobody(path: str) -> None:
    with anabranch.appender(path) as gathering:
        assert [gathering.append({"id": [i]}) for i in range(3)] == [0, 1, 2]


@pytest.mark.slow
def test_every_row_of_many_threads_is_there_once_and_at_the_version_that_was_told(path: str) -> None:
    with anabranch.appender(path, properties={"delta.checkpointInterval": "7"}) as gathering:

        def written(writer: int) -> list[tuple[int, int]]:
            rows = ((writer * 1000 + n) for n in range(examples(25, 8)))
            return [(gathering.append([{"id": row}]), row) for row in rows]

        with ThreadPoolExecutor(12) as pool:
            told = [each for some in pool.map(written, range(12)) for each in some]
    assert ids(path) == sorted(row for _, row in told)
    by_version = Counter(version for version, _ in told)
    assert all(rows_of_version(path, version) == count for version, count in by_version.items())
    assert anabranch.check(path, deep=True).is_clean


def test_rows_that_the_table_refuses_are_refused_to_their_caller_alone(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    anabranch.append(path, pa.table({"id": pa.array([0], pa.int32())}))
    with anabranch.appender(path) as gathering:
        with busy(gathering, monkeypatch):
            told = [gathering.submit([{"id": value}]) for value in (1, 2, 2**40, 3, 4)]
        with pytest.raises(SchemaMismatch):
            told.pop(2).result(PATIENCE)
        assert len({each.result(PATIENCE) for each in told}) <= 3
    assert ids(path) == [-1, 0, 1, 2, 3, 4]


def test_rows_with_other_columns_have_a_commit_of_their_own(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    anabranch.append(path, [{"id": 0, "x": "a"}])
    with anabranch.appender(path) as gathering:
        with busy(gathering, monkeypatch):
            told = [gathering.submit(rows) for rows in ([{"id": 1}], [{"id": 2, "x": "b"}], [{"id": 3}])]
        first, second, third = (each.result(PATIENCE) for each in told)
        assert first == third != second
    assert ids(path) == [-1, 0, 1, 2, 3]


def test_a_commit_takes_no_more_once_it_is_large(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 16)
    with anabranch.appender(path) as gathering:
        with busy(gathering, monkeypatch):
            told = [gathering.submit([{"id": i}]) for i in range(5)]
        assert [each.result(PATIENCE) for each in told] == [1, 1, 2, 2, 3]


def test_an_error_that_is_due_to_no_rows_is_told_to_every_caller_and_not_tried_again(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = list[int]()

    def refused(self: Append) -> None:
        tried.append(len(self.rows))
        raise StoreError(name="x", root=path, reason="it is full.")

    with anabranch.appender(path) as gathering:
        with busy(gathering, monkeypatch, then=refused):
            told = [gathering.submit([{"id": i}]) for i in range(3)]
        for each in told:
            with pytest.raises(StoreError, match="full"):
                each.result(PATIENCE)
    assert tried == [3]


def test_nobody_waits_for_rows_that_cannot_be_put_together(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with anabranch.appender(path) as gathering:
        with busy(gathering, monkeypatch):
            told = [gathering.submit([{"id": i}]) for i in range(2)]
            monkeypatch.setattr("pyarrow.concat_tables", lambda tables: (_ for _ in ()).throw(MemoryError()))
        for each in told:
            with pytest.raises(MemoryError):
                each.result(PATIENCE)


def test_what_are_no_rows_is_refused_before_anybody_waits(path: str) -> None:
    with anabranch.appender(path) as gathering, pytest.raises(InvalidOption):
        gathering.submit(7)
    assert not Log(open_store(path)).exists()


def test_a_call_that_was_cancelled_writes_nothing(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with anabranch.appender(path) as gathering, busy(gathering, monkeypatch):
        told: Future[int] = gathering.submit([{"id": 5}])
        assert told.cancel()
    with pytest.raises(CancelledError):
        told.result(PATIENCE)
    assert ids(path) == [-1]


def test_closing_commits_what_waits_and_takes_no_more(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gathering = anabranch.appender(path)
    with busy(gathering, monkeypatch):
        told = gathering.submit([{"id": 5}])
    gathering.close()
    assert told.done()
    assert ids(path) == [-1, 5]
    with pytest.raises(InvalidArgument, match="closed"):
        gathering.append([{"id": 6}])


@contextmanager
def handing_over(gathering: Appender, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another thread is in the middle of a call, in which it keeps all others out, until this ends."""
    begun, may_end, submit = Event(), Event(), ThreadPoolExecutor.submit

    def slowly(pool: ThreadPoolExecutor, *call: Any) -> Any:
        begun.set()
        happens(may_end)
        return submit(pool, *call)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", slowly)
    caller = Thread(target=gathering.append, args=([{"id": 3}],))
    caller.start()
    happens(begun)
    try:
        yield
    finally:
        may_end.set()
        caller.join(PATIENCE)


def test_a_forked_process_is_told_that_it_needs_its_own(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with anabranch.appender(path) as gathering:
        gathering.append([{"id": 1}])

        def refused() -> None:
            with pytest.raises(InvalidArgument, match="forked"):
                gathering.append([{"id": 2}])

        child = multiprocessing.get_context("fork").Process(target=refused)
        with handing_over(gathering, monkeypatch):
            child.start()
        child.join(PATIENCE)
        assert child.exitcode == 0
    assert ids(path) == [1, 3]
