"""Transactions of several statements at their edges: threads, forks, failures, and what else learns of rows."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import anabranch
from anabranch import Table, errors
from anabranch._log.log import forget
from anabranch._transaction.open_transaction import open_transaction
from anabranch.commands.opening import open_log
from anabranch.testing import at_phase

ROWS = [{"id": number, "n": 0} for number in range(4)]
Make = Callable[..., Table]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes the table, with these properties; underscores stand for dots."""

    def made(**properties: str) -> Table:
        chosen = {name.replace("_", "."): value for name, value in properties.items()}
        anabranch.append(tmp_path / "t", ROWS, properties=chosen)
        return anabranch.table(tmp_path / "t")

    return made


def path_of(table: Table) -> str:
    location: str = table.detail()["location"]
    return location.removeprefix("file://")


def block(table: Table, **dials: str) -> Any:
    return anabranch.transaction(path_of(table), **dials)


def numbers(table: Table) -> list[tuple[int, int]]:
    return sorted((row["id"], row["n"]) for row in table.to_arrow().to_pylist())


def add(table: Table, amount: int, where: str = "id = 1") -> Any:
    return table.update(where, {"n": f"n + {amount}"})


def on_thread(work: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


# -- one thread of one process -----------------------------------------------------------------------------------------


def test_a_thread_that_got_a_copy_of_the_context_is_outside(make: Make) -> None:
    table = make()

    async def work() -> None:
        with block(table):
            add(table, 1)
            seen = await asyncio.to_thread(numbers, table)
            assert seen[1] == (1, 0)
            await asyncio.to_thread(add, table, 10, "id = 2")

    on_thread(lambda: asyncio.run(work()))  # this thread may have a loop, of a browser
    assert numbers(table) == [(0, 0), (1, 1), (2, 10), (3, 0)]
    assert anabranch.check(path_of(table), deep=True).is_clean


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_is_outside_and_ends_nothing(make: Make) -> None:
    table = make()
    with block(table):
        add(table, 1)
        child = os.fork()
        if not child:
            try:
                table.append([{"id": 9, "n": 9}])
                open_transaction()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        add(table, 1, "id = 2")
    assert numbers(table) == [(0, 0), (1, 1), (2, 1), (3, 0), (9, 9)]


def test_a_block_that_ends_on_another_thread_is_given_up(make: Make) -> None:
    table, left = make(), block(make_again(make))
    left.__enter__()
    add(table, 1)

    def end() -> None:
        with pytest.raises(errors.NotInTransaction, match="another thread"):
            left.__exit__(None, None, None)

    on_thread(end)
    assert open_transaction() is None
    assert table.append([{"id": 9, "n": 9}]) == 1
    assert on_thread(lambda: numbers(table)) == [(0, 0), (1, 0), (2, 0), (3, 0), (9, 9)]


def make_again(make: Make) -> Table:
    """The table that was made already."""
    return anabranch.table(make.__closure__[0].cell_contents / "t")  # type: ignore[index, attr-defined]


def test_a_generator_that_is_dropped_elsewhere_leaves_nothing(make: Make) -> None:
    table = make()

    def rows() -> Iterator[int]:
        with block(table):
            add(table, 1)
            yield 1

    generator = rows()
    next(generator)
    on_thread(generator.close)
    assert open_transaction() is None
    assert numbers(table) == [(0, 0), (1, 0), (2, 0), (3, 0)]


def test_two_threads_have_two_transactions(make: Make) -> None:
    table, barrier = make(), threading.Barrier(2)

    def work(number: int) -> None:
        with block(table):
            add(table, 1, f"id = {number}")
            barrier.wait()
            add(table, 1, f"id = {number}")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, (1, 2)))
    assert numbers(table) == [(0, 0), (1, 2), (2, 2), (3, 0)]


# -- what was read -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dial", ["row", "redo"])
def test_a_statement_that_failed_has_read_all_the_same(make: Make, dial: str) -> None:
    table = make(anabranch_conflictResolution=dial)

    def work() -> None:
        with block(table):
            with pytest.raises(errors.NeedsSpark):
                table.update("id = 1", {"n": "soundex(n)"})
            try:
                table.merge(
                    [{"id": 1, "n": 1}, {"id": 1, "n": 2}], "source.id = target.id"
                ).when_matched_update_all().execute()
            except errors.AmbiguousMerge:
                add(table, 1, "id = 2")

    with pytest.raises(errors.DeltaConcurrentModificationException):  # without row 1 the MERGE does not fail
        with_winner(lambda: table.delete("id = 1"), work)


def with_winner(winner: Callable[[], Any], work: Callable[[], Any]) -> None:
    with at_phase("staged", winner):
        work()


LOOKS: dict[str, Callable[[Table], Any]] = {
    "the feed": lambda table: table.changes(0),
    "the history": lambda table: table.history(),
    "the details": lambda table: table.detail(),
    "a check": lambda table: table.check(deep=True),
    "the files": lambda table: anabranch.files(path_of(table)),
    "a count": lambda table: table.count(),
    "a stream of rows": lambda table: table.to_batches().read_all(),
}


@pytest.mark.parametrize("look", LOOKS)
def test_whatever_tells_of_rows_is_a_query(make: Make, look: str) -> None:
    table = make(delta_enableChangeDataFeed="true", anabranch_conflictResolution="redo")

    def work() -> None:
        with block(table):
            LOOKS[look](table)
            add(table, 1)

    with pytest.raises(errors.DeltaConcurrentModificationException):
        with_winner(lambda: add(table, 10, "id = 3"), work)


# -- kinds of tables ---------------------------------------------------------------------------------------------------


def test_a_check_inside_finds_nothing_wrong_with_rows_that_have_no_ids_yet(make: Make) -> None:
    table = make(delta_enableRowTracking="true")
    with block(table):
        table.append([{"id": 9, "n": 9}])
        add(table, 1)
        assert table.check(deep=True).is_clean
    assert table.check(deep=True).is_clean


@pytest.mark.parametrize("feed", ["true", "false"])
@pytest.mark.parametrize("moment", ["inside", "staged"])
def test_a_vacuum_spares_what_an_open_transaction_has_written(make: Make, feed: str, moment: str) -> None:
    table = make(delta_enableChangeDataFeed=feed, delta_deletedFileRetentionDuration="interval 0 hours")
    vacuum = lambda: on_thread(lambda: anabranch.vacuum(path_of(table), 0, check_retention=False))  # noqa: E731

    def work() -> None:
        with block(table):
            table.append([{"id": 9, "n": 9}])
            add(table, 1, "id = 9")
            if moment == "inside":
                vacuum()
            add(table, 1, "id = 9")

    if moment == "staged":
        with_winner(vacuum, work)
    else:
        work()
    assert numbers(table) == [(0, 0), (1, 0), (2, 0), (3, 0), (9, 11)]
    assert table.check(deep=True).is_clean


def test_a_rollback_leaves_no_folder(make: Make) -> None:
    table = make(delta_enableChangeDataFeed="true")
    before = sorted([Path(path_of(table)) / "_change_data", *Path(path_of(table)).rglob("*")])
    with block(table) as transaction:
        add(table, 1)
        table.append([{"id": 9, "n": 9}])
        add(table, 1, "id = 9")
        transaction.roll_back()
    assert sorted(Path(path_of(table)).rglob("*")) == before


def test_rows_of_arrow_are_appended_into_partitions(tmp_path: Path) -> None:
    rows = pa.table({"p": ["a", "b", None], "n": [1, 2, 3]})
    anabranch.append(tmp_path / "t", rows, partition_by="p")
    table = anabranch.table(tmp_path / "t")
    with block(table):
        table.append(rows)
        table.update("p = 'a'", {"n": "n + 1"})
    assert table.count("p IS NULL") == 2
    assert table.count("n = 2 AND p = 'a'") == 2
    assert table.check(deep=True).is_clean


def test_outside_of_a_transaction_the_history_reads_no_list_of_files(make: Make) -> None:
    path = path_of(make())
    forget()
    assert len(anabranch.history(path)) == 1
    assert not open_log(path).snapshot().files_are_loaded


# -- what runs again ---------------------------------------------------------------------------------------------------


def test_rows_are_appended_again_as_they_were(make: Make) -> None:
    """The program may use the same row for the next statement."""
    table, row, cells = make(), {"id": 0, "n": 0}, np.array([0])
    with block(table, conflict_resolution="redo"):
        add(table, 1)
        for number in (10, 11):
            row["id"] = number
            table.append([row])
            cells[0] = number + 10
            table.append(pa.table({"id": pa.array(cells), "n": pa.array([0])}))
        on_thread(lambda: add(table, 5))
    assert numbers(table)[4:] == [(10, 0), (11, 0), (20, 0), (21, 0)]
    assert numbers(table)[1] == (1, 6)


def test_a_statement_that_fails_only_in_its_second_run_leaves_the_conflict(make: Make) -> None:
    """The program could not catch its error any more, but it can run again."""
    table = make(delta_constraints_small="n < 100")

    def program() -> None:
        with block(table, conflict_resolution="redo"):
            add(table, 1)
            add(table, 60, "n > 40")
            on_thread(lambda: add(table, 50))

    with pytest.raises(errors.DeltaConcurrentModificationException) as conflict:
        program()
    assert conflict.value.retryable
    assert numbers(table)[1] == (1, 50)


def test_a_query_that_cannot_be_computed_on_the_rows_of_a_winner_is_a_conflict(make: Make) -> None:
    table = make()

    def program() -> None:
        with block(table):
            assert table.to_arrow(where="10 / (n + 1) > 20").num_rows == 0
            table.append([{"id": 9, "n": 0}])
            on_thread(lambda: table.update("id = 1", {"n": "-1"}))

    with pytest.raises(errors.ConcurrentWriteException) as conflict:
        program()
    assert conflict.value.retryable


@pytest.mark.parametrize("level", [None, "Serializable"])
def test_a_table_object_that_asks_for_a_stronger_level_does_so_for_the_transaction(
    make: Make, level: str | None
) -> None:
    strict = anabranch.table(path_of(make()), isolation_level=level)
    outcome = nullcontext() if level is None else pytest.raises(errors.ConcurrentAppendException)
    with outcome, block(strict):
        add(strict, 1, "n = 0")
        on_thread(lambda: anabranch.append(path_of(strict), [{"id": 9, "n": 0}]))
