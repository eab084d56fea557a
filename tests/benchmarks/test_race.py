"""Contenders are measured by turns, what came of it is compared, and one that did something else is noticed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import anabranch
from benchmarks import crowd, judge, large, one_file, peers, race, scan
from benchmarks.harness import Cost
from benchmarks.race import OURS, Contender, OnCopies, Race, figures, race_on_copies


def quiet(text: str) -> None:
    assert text


@pytest.fixture(autouse=True)
def one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "ROUNDS", 2)
    monkeypatch.setattr(race, "WARM_UPS", 1)


def raced(theirs: object, benchmark: str = "merge") -> Race:
    contenders = [
        Contender(OURS, lambda: Cost(1.0, 1.0), lambda: (3, 6)),
        Contender(peers.DELTALAKE, lambda: Cost(4.0, 1.0), lambda: theirs),
    ]
    return race.race("MERGE 1%", contenders, quiet)


def test_contenders_that_did_the_same_meet_their_target() -> None:
    found = figures("merge", [raced((3, 6))])
    assert (found.ratios[0].value, found.ratios[0].is_met, found.differences) == (0.25, True, [])


def test_a_contender_that_ended_with_other_rows_is_named_and_no_target_is_met() -> None:
    found = figures("merge", [raced((3, 5))])
    [said] = found.differences
    assert "deltalake ended with (3, 5)" in said
    assert (found.ratios[0].value, found.ratios[0].is_met) == (0.25, False)


def test_the_best_peer_is_the_fastest_one() -> None:
    costs = {OURS: [Cost(1.0, 1.0)], peers.DELTA_SPARK: [Cost(4.0, 1.0)], peers.DELTALAKE: [Cost(2.0, 1.0)]}
    ratios = {each.what: each for each in Race("DELETE 1%", costs, dict.fromkeys(costs, 1)).ratios("dml")}
    best = ratios["DELETE 1%, ours over the best peer"]
    assert (best.value, best.at_most) == (0.5, 0.4)


@pytest.mark.slow
def test_each_run_changes_a_copy_of_its_own_and_the_judge_sees_the_last(tmp_path: Path) -> None:
    table = tmp_path / "t"
    anabranch.append(table, pa.table({"id": [1, 2]}))
    more = {OURS: pa.table({"id": [3]}), peers.DELTALAKE: pa.table({"id": [4]})}
    proof = judge.held("count(*)", "sum(id)")
    sides = {
        name: OnCopies(table, lambda path, rows=rows: anabranch.append(path, rows), proof)
        for name, rows in more.items()
    }
    found = race_on_copies("append", sides, quiet)
    assert found.answers == {OURS: (3, 6), peers.DELTALAKE: (3, 7)}
    assert len(found.differences) == 1
    assert len(anabranch.history(table)) == 1
    peers.clear(sides)
    assert list(tmp_path.iterdir()) == [table]


@pytest.mark.slow
def test_the_judges_of_delta_and_of_plain_parquet_agree_and_see_one_changed_value(tmp_path: Path) -> None:
    table = large.make(tmp_path, 800, vectors=False, tell=quiet)
    held = judge.large(table)
    assert held == judge.held_in_parquet(*judge.LARGE)(table)
    one = large.rows_of(pa.array([0]).to_numpy(), large.np.random.default_rng(0), 800)
    anabranch.append(table, one)
    assert judge.large(table) != held


def test_who_is_refused_tries_again_until_it_is_done() -> None:
    tries: list[int] = []

    def work() -> None:
        tries.append(1)
        if len(tries) < 3:
            raise KeyError

    [call] = crowd._together([[work]], lambda error: isinstance(error, KeyError))
    assert (call.refused, len(tries), call.ended >= call.began) == (2, 3, True)
    with pytest.raises(ZeroDivisionError):
        crowd._together([[lambda: 1 / 0]], lambda error: isinstance(error, KeyError))


@pytest.mark.exhaustive(
    "tests/interop/test_readers.py::test_rows_with_vectors_stay_deleted_when_delta_rs_rewrites_their_file"
)
@pytest.mark.spark
@pytest.mark.slow
def test_every_reader_of_a_table_with_marked_rows_answers_the_same(
    tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "session", lambda: anabranch.install(spark))
    monkeypatch.setattr(peers, "delta_spark", lambda: None)
    monkeypatch.setattr(peers, "of", lambda name: peers.processes.this_one)
    monkeypatch.setattr(scan, "ROUNDS", 1)
    result = scan.run(tmp_path, 8000, quiet)
    assert result.differences == []
    assert len(result.lines) == 4 * 3


@pytest.mark.slow
def test_writers_of_one_hot_row_all_get_their_statement_in(tmp_path: Path) -> None:
    tables = one_file.table_of(tmp_path, 100)
    calls = crowd._by_deltalake(str(tables.rewriting), [[one_file.one_more(7)] * 4] * 3)
    assert one_file.PROOF(tables.rewriting) == (100, 12, 144, 84)
    assert len(calls) == 12
