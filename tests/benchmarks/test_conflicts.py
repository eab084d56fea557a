"""The contest of conflicts: its judge, its loop, its operations, and that its page shows the figures that are kept."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from benchmarks import conflict_engines, conflict_loop, conflicts, conflicts_page, conflicts_plot, peers
from benchmarks.conflict_judge import Done, compared, held, is_needless, owners, replayed, versions, winners_between
from benchmarks.conflict_work import (
    BY_NAME,
    GROUPS,
    ROWS,
    WORKLOADS,
    Operation,
    Row,
    add_one,
    add_to_group,
    insert,
    operation,
    operations,
    optimize,
    upsert,
)
from benchmarks.conflicts import Cell, figures
from benchmarks.harness import Line, Result, save
from tests.support import delta_spark_worker


class Refused(Exception):
    """A conflict of an engine that is none."""


def is_refused(error: Exception) -> bool:
    return isinstance(error, Refused)


def merge(number: int, *keys: int) -> Operation:
    return upsert(number, "merge", tuple(Row(key, "account", key % GROUPS, 1) for key in keys))


# -- the judge ---------------------------------------------------------------------------------------------------------


def test_a_refusal_is_needless_unless_a_winner_changed_or_added_what_the_refused_operation_selects() -> None:
    assert is_needless(add_one(1, 7), [add_one(2, 8), insert(3, 7), optimize(4)])
    assert not is_needless(add_one(1, 7), [add_one(2, 8), add_one(3, 7)])
    assert not is_needless(add_to_group(1, 3), [insert(2, 3)])
    assert is_needless(add_to_group(1, 3), [insert(2, 4), add_to_group(3, 5)])
    assert not is_needless(merge(1, 5, 6), [merge(2, 6, 7)])
    assert is_needless(merge(1, 5, 6), [merge(2, 7)])


def test_a_refusal_of_what_selects_no_row_is_always_needless() -> None:
    for refused in (insert(1, 3), optimize(1)):
        assert is_needless(refused, [add_to_group(2, 3), insert(3, 3), optimize(4)])
    assert is_needless(add_one(1, 7), [])


def test_winners_are_what_was_committed_after_the_first_version_and_up_to_the_second() -> None:
    by_version = {number: frozenset({number * 10}) for number in range(1, 6)} | {3: frozenset()}
    assert winners_between(by_version, 1, 4) == [20, 40]
    assert winners_between(by_version, 5, 9) == winners_between(by_version, 2, 2) == []


def test_rows_are_wrong_where_effects_are_lost_doubled_or_nobodys() -> None:
    start = [Row(key, "account", 0, 0) for key in (0, 1)]
    expected = replayed(start, [Done(add_one(1, 0), 0, 1), Done(merge(2, 1, 9), 1, 2)])
    assert compared([(0, 1), (1, 1), (9, 1)], expected) == (0, 0)
    for found in (
        [(0, 0), (1, 1), (9, 1)],
        [(0, 2), (1, 1), (9, 1)],
        [(0, 1), (1, 1)],
        [(0, 1), (1, 1), (9, 1), (9, 1)],
        [(0, 1), (1, 1), (9, 1), (5, 1)],
    ):
        assert compared(found, expected) == (1, 0)


def test_an_acknowledged_operation_that_no_version_holds_is_lost() -> None:
    expected = replayed([Row(0, "account", 0, 0)], [Done(add_one(1, 0), 0, float("inf"))])
    assert compared([(0, 0)], expected) == (1, 0)


def test_a_new_row_may_lack_the_increment_of_an_update_that_began_before_it_was_there() -> None:
    new, start = ROWS + 1, [Row(key, "account", key % GROUPS, 0) for key in range(ROWS)]
    beside, after = (Done(add_to_group(2, 3), before, 5) for before in (3, 4))
    group = dict.fromkeys(range(3, ROWS, GROUPS), 1)
    rows = [(key, group.get(key, 0)) for key in range(ROWS)]
    for update, counter, verdict in ((beside, 1, (0, 1)), (beside, 2, (0, 0)), (after, 2, (0, 0)), (after, 1, (1, 0))):
        expected = replayed(start, [update, Done(insert(1, 3), 0, 4)])
        assert compared([*rows, (new, counter)], expected) == verdict


@pytest.mark.slow
def test_the_table_tells_whose_each_version_is(tmp_path: Path) -> None:
    path, work = tmp_path / "t", BY_NAME["optimize"]
    conflict_engines.make(str(path), work, {"delta.enableDeletionVectors": "true"})
    for each in (add_one(7, 3), optimize(8), insert(9, 2), add_one(6, 3)):
        conflict_engines.ENGINES[conflict_engines.ROW].do(str(path), each)
    start = work.files - 1
    found = owners(path)
    assert [found[version] for version in sorted(found)][start:] == [set(), {7}, set(), {9}, {6}]
    assert versions(found) == {7: start + 1, 9: start + 3, 6: start + 4}
    assert sorted(held(path))[3] == (3, 2)


# -- the loop ----------------------------------------------------------------------------------------------------------


def refusing(times: int, then: Exception | None = None) -> Any:
    """Work that is refused so many times, and then done, or fails."""
    counted = itertools.count()

    def work() -> None:
        if next(counted) < times:
            raise Refused
        if then:
            raise then

    return work


def called(path: Path, works: Iterable[Any], seconds: float = 60.0) -> list[dict[str, Any]]:
    return conflict_loop.write(
        str(path),
        enumerate(works),
        seconds,
        lambda work, left: conflict_loop.until_done(work, left, is_refused),
        is_refused,
    )


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of the loop, which are not waited for; each is as long as it can be."""
    found: list[float] = []
    monkeypatch.setattr(conflict_loop.random, "random", lambda: 1.0)
    monkeypatch.setattr(conflict_loop.time, "sleep", found.append)
    return found


def test_what_is_refused_is_tried_again_after_pauses_that_double(tmp_path: Path, pauses: list[float]) -> None:
    [call] = called(tmp_path, [refusing(4)])
    assert (call["done"], call["failed"], len(call["refusals"])) == (True, "", 4)
    assert pauses == [0.1, 0.2, 0.4, 0.8]


def test_what_is_refused_at_the_end_of_the_time_is_given_up(tmp_path: Path, pauses: list[float]) -> None:
    [call] = called(tmp_path, [refusing(100)], seconds=0.05)
    assert (call["done"], call["failed"], len(call["refusals"]), pauses) == (False, "", 1, [])
    assert called(tmp_path, [refusing(0)], seconds=0.0) == []


def test_an_error_that_is_no_conflict_is_told_and_the_next_operation_follows(tmp_path: Path) -> None:
    broken, fine = called(tmp_path, [refusing(0, then=ZeroDivisionError()), refusing(0)])
    assert (broken["done"], broken["failed"], broken["refusals"]) == (False, "ZeroDivisionError", [])
    assert (fine["done"], fine["number"]) == (True, 1)


def test_a_refusal_is_kept_with_the_versions_between_which_its_winners_are(tmp_path: Path, pauses: list[float]) -> None:
    log, tries = tmp_path / "_delta_log", itertools.count(2)
    log.mkdir()
    for version in (0, 1):
        (log / f"{version:020d}.json").touch()

    def work() -> None:
        if (version := next(tries)) < 4:
            (log / f"{version:020d}.json").touch()
            raise Refused

    [call] = called(tmp_path, [work])
    assert (call["refusals"], call["before"]) == ([(1, 2), (2, 3)], 3)


def test_delta_sparks_threads_tell_their_calls(tmp_path: Path, pauses: list[float]) -> None:
    class ConcurrentAppendException(Exception):
        pass

    class Session:
        def __init__(self) -> None:
            self.sparkContext, self.refused = self, set[str]()

        def setLogLevel(self, level: str) -> None:
            assert level in ("OFF", "ERROR")

        def sql(self, text: str) -> None:
            if text not in self.refused:
                self.refused.add(text)
                raise ConcurrentAppendException

    request = {"contest": [[(1, "a"), (2, "b")], [(3, "c")]], "path": str(tmp_path), "seconds": 60.0, "root": "."}
    calls = delta_spark_worker.replied(Session(), request)["calls"]
    assert [(call["number"], call["done"], len(call["refusals"])) for call in calls] == [
        (number, True, 1) for number in (1, 2, 3)
    ]


# -- operations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.name)
def test_an_operation_is_drawn_again_from_its_number(workload: conflicts.Workload) -> None:
    for writer in range(2):
        drawn = list(itertools.islice(operations(workload, 2, writer), 20))
        assert drawn == [operation(workload, 2, each.number) for each in drawn]
        assert len({each.number for each in drawn}) == 20


def test_writers_of_own_rows_never_meet() -> None:
    drawn = [list(itertools.islice(operations(BY_NAME["own rows"], 4, writer), 200)) for writer in range(4)]
    for one, other in itertools.combinations(drawn, 2):
        assert not {key for each in one for key in each.ids} & {key for each in other for key in each.ids}


def test_a_transfer_takes_as_much_as_it_gives() -> None:
    for each in itertools.islice(operations(BY_NAME["transfers"], 2, 0), 50):
        giver, taker, entry = each.rows
        assert (giver.n + taker.n, entry.n, entry.kind) == (0, taker.n, "journal")
        assert giver.id != taker.id


def rows_in(path: Path) -> list[dict[str, Any]]:
    asked = QueryBuilder().register("t", DeltaTable(str(path))).execute("SELECT * FROM t ORDER BY id")
    return pa.table(asked.read_all()).to_pylist()


@pytest.mark.slow
def test_ours_and_deltalake_do_the_same(tmp_path: Path) -> None:
    work = BY_NAME["merges"]
    sides_of_it = Row(5, "account", 5, -2), Row(6, "account", 6, 2), Row(ROWS + 9, "journal", 5, 2)
    transfer = upsert(6, "transfer", sides_of_it)
    done = [add_one(1, 5), insert(2, 3), merge(3, 5, ROWS + 77), add_to_group(4, 3), optimize(5), transfer]
    sides = []
    for name, engine in conflict_engines.ENGINES.items():
        path = tmp_path / name
        conflict_engines.make(str(path), work, engine.properties)
        for each in done:
            engine.do(str(path), each)
        sides.append(rows_in(path))
        plan = [Done(each, version, version) for version, each in enumerate(done)]
        assert compared(held(path), replayed(conflict_engines.initial(), plan)) == (0, 0)
    assert all(side == sides[0] for side in sides)


def test_delta_spark_is_given_the_same_as_a_statement() -> None:
    assert conflict_engines.text_of(add_one(9, 5), "/t") == "UPDATE delta.`/t` SET n = n + 1, op = 9 WHERE id = 5"
    assert conflict_engines.text_of(optimize(9), "/t") == "OPTIMIZE delta.`/t`"
    inserted = conflict_engines.text_of(insert(9, 5), "/t")
    assert inserted == f"INSERT INTO delta.`/t` VALUES ({ROWS + 9}, 'account', 5, 1, 9)"
    merged = conflict_engines.text_of(merge(9, 5), "/t")
    assert "VALUES (5, 'account', 5, 1, 9) AS s(id, kind, g, n, op)" in merged


# -- figures -----------------------------------------------------------------------------------------------------------


def call_of(number: int, began: float, ended: float, *refusals: tuple[int, int], done: bool = True) -> dict[str, Any]:
    facts = {"number": number, "began": began, "ended": ended, "done": done, "failed": "", "before": 0}
    return {**facts, "refusals": list(refusals)}


def test_the_figures_are_of_acknowledged_operations_and_of_all_refusals() -> None:
    cell = Cell(BY_NAME["own rows"], 2, "deltalake")
    mine, theirs = (operation(cell.workload, 2, number).ids[0] for number in (1, 1_000_001))
    calls = [call_of(1, 10.0, 10.5), call_of(1_000_001, 10.0, 12.0, (0, 1)), call_of(2, 10.5, 14.0, (1, 2), done=False)]
    found = [(key, int(key in (mine, theirs))) for key in range(ROWS)]
    seen = figures(calls, cell, {1: frozenset({1}), 2: frozenset({1_000_001})}, found)
    assert seen == {
        "seconds": 4.0,
        "acknowledged": 2,
        "fewest": 1,
        "refused": 2,
        "needless": 2,
        "failed": 0,
        "wrong": 0,
        "reordered": 0,
        "commits_per_s": 0.5,
        "p50_ms": 2000.0,
        "p99_ms": 2000.0,
    }


@pytest.mark.slow
def test_a_contest_runs_in_miniature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "delta_spark", lambda: None)
    monkeypatch.setattr(conflicts, "WORKLOADS", (BY_NAME["hot rows"],))
    monkeypatch.setattr(conflicts, "QUICK_WRITERS", (2,))
    result = conflicts.run(tmp_path, 0, lambda text: None, seconds=0.5)
    assert [line.what for line in result.lines] == [f"hot rows, 2 writers, {name}" for name in conflict_engines.ENGINES]
    assert all(line.figures["acknowledged"] > 0 for line in result.lines)
    assert result.differences == []
    assert list(tmp_path.iterdir()) == []


# -- the page ----------------------------------------------------------------------------------------------------------


def result_of() -> Result:
    lines = [
        Line(Cell(workload, writers, name).what, _figures(place + writers))
        for workload in WORKLOADS
        for writers in (2, 8)
        for place, name in enumerate([*conflict_engines.ENGINES, peers.DELTA_SPARK])
    ]
    return Result("conflicts", "Conflicts", "a setting", lines, [], ["a note"])


def _figures(count: int) -> dict[str, float | int]:
    whole = {
        "seconds": 8,
        "acknowledged": count,
        "fewest": 1,
        "refused": 2,
        "needless": 1,
        "failed": 0,
        "wrong": 0,
        "reordered": 0,
    }
    return {**whole, "commits_per_s": count / 8, "p50_ms": 12.5, "p99_ms": 1234.5}


def test_the_contests_page_has_a_table_for_each_workload_and_its_figures(tmp_path: Path) -> None:
    save(result_of(), tmp_path)
    text = conflicts_page.filled(conflicts_page.DOCUMENT.read_text(encoding="utf-8"), tmp_path)
    assert "Not measured" not in text
    assert text.count("| 8 writers, anabranch, redo | 8 | 10 | 1 | 2 | 1 | 0 | 1.25 | 12.5 ms | 1234 ms |") == len(
        WORKLOADS
    )
    assert all(part in text for part in ("a setting", "- a note", f"({conflicts_page.PLOT})"))


def test_the_contests_page_shows_the_figures_that_are_kept() -> None:
    text = conflicts_page.DOCUMENT.read_text(encoding="utf-8")
    assert conflicts_page.filled(text) == text


def test_the_contests_plot_has_two_dots_for_each_contender_at_each_workload() -> None:
    lines = [{"what": line.what, "figures": line.figures} for line in result_of().lines]
    drawing = ET.fromstring(conflicts_plot.drawn(lines))
    dots = list(drawing.iter("{http://www.w3.org/2000/svg}circle"))
    names = len(conflict_engines.ENGINES) + 1
    assert len(dots) == names + 2 * names * len(WORKLOADS)
    assert "8 writers" in [each.text for each in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert conflicts_plot.needless_share({"acknowledged": 3, "refused": 5, "needless": 4}) == 0.5
