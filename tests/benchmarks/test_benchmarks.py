"""The benchmarks without Spark, in miniature: they run to their end, and what they prove can also fail."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import anabranch
from anabranch._log.log import forget
from benchmarks import (
    appenders,
    checksums,
    feeds,
    large,
    merge,
    one_file,
    opening,
    optimize,
    small_appends,
    synthetic,
    vacuum,
)
from benchmarks.appenders import Call, batch, prove
from benchmarks.cold import TASKS, Cold, measured
from benchmarks.harness import Cost, Ratio, by_turns, compared


def quiet(text: str) -> None:
    assert text


@pytest.mark.slow
def test_appenders_run_and_prove_every_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appenders, "ROUNDS", 1)
    result = appenders.run(tmp_path, 0, quiet, workers=2, commits=3)
    ours, theirs = result.lines
    assert ours.figures["in_once"] == ours.figures["appends"] == 6
    assert ours.figures["refused"] == ours.figures["wrong"] == theirs.figures["wrong"] == 0
    assert [ratio.is_met for ratio in result.ratios[1:]] == [True, True]


@pytest.mark.slow
def test_small_appends_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_appends, "ROUNDS", 1)
    found = small_appends.of_arrow(tmp_path, quiet, appends=2)
    assert [line.figures["median_s"] > 0 for line in found.lines] == [True, True]
    assert found.differences == []
    assert found.answers["anabranch"][0] == 3 * appenders.BATCH_ROWS


@pytest.mark.slow
def test_appends_with_and_without_checksum_files_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksums, "ROUNDS", 1)
    result = checksums.run(tmp_path, 0, quiet, appends=2)
    assert [line.figures["median_s"] > 0 for line in result.lines] == [True, True]


@pytest.mark.slow
def test_vacuum_runs_and_finds_what_others_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vacuum, "ROUNDS", 1)
    result = vacuum.run(tmp_path, 0, quiet, files=50, beside_spark=False)
    assert [line.what for line in result.lines] == ["anabranch", "deltalake"]
    assert [line.figures["median_s"] > 0 for line in result.lines] == [True, True]


def at_once(engine: str, task: str, table: Path) -> Cold:
    """What a task answers in this process, which has forgotten the table."""
    forget()
    return Cold(1.0, 1.0, peak_mb=1.0, answer=TASKS[engine, task](str(table)))


@pytest.mark.exhaustive(
    "tests/benchmarks/test_benchmarks.py::test_opening_runs_and_a_cold_append_reads_no_add",
    "tests/benchmarks/test_benchmarks.py::test_an_open_in_a_process_of_its_own_tells_its_answer_and_its_memory",
)
@pytest.mark.slow
def test_opening_runs_with_a_process_for_each_cold_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_opening_runs(tmp_path, monkeypatch)


@pytest.mark.slow
def test_opening_runs_and_a_cold_append_reads_no_add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "measured", at_once)
    assert_opening_runs(tmp_path, monkeypatch)


def assert_opening_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "ROUNDS", 1)
    monkeypatch.setattr(opening, "COLD_ROUNDS", 1)
    result = opening.run(tmp_path, 2000 * opening.ROWS_PER_ADD, quiet)
    seen = {ratio.what: ratio for ratio in result.ratios}
    assert seen["append one row, cold: adds that we read"].is_met
    assert seen["open from a checkpoint, cold, memory at its peak, ours, GB"].value > 0
    assert sum("cold" in line.what and "peak_mb" in line.figures for line in result.lines) == 6


@pytest.mark.slow
def test_the_synthetic_log_is_the_same_table_in_both_forms_and_to_both_engines(tmp_path: Path) -> None:
    checkpoint, commit = synthetic.with_checkpoint(tmp_path, 400), synthetic.with_json(tmp_path, 400)
    one, two = (anabranch.files(table).to_pylist() for table in (checkpoint, commit))
    assert one == two
    assert len({row["path"] for row in one}) == 400
    for table in (checkpoint, commit):
        (found,) = anabranch.files(table, "id = 7500").to_pylist()
        (theirs,) = DeltaTable(str(table)).file_uris(file_pruning_predicate="id = 7500")
        assert theirs.endswith(found["path"])


def test_each_row_of_the_synthetic_checkpoint_holds_one_action(tmp_path: Path) -> None:
    """delta-spark takes one action of each row and drops the others."""
    [file] = (synthetic.with_checkpoint(tmp_path, 20) / "_delta_log").glob("*.checkpoint.parquet")
    rows = pq.read_table(file).to_pylist()
    assert len(rows) == 22
    assert all(sum(action is not None for action in row.values()) == 1 for row in rows)


@pytest.mark.slow
def test_an_open_in_a_process_of_its_own_tells_its_answer_and_its_memory(tmp_path: Path) -> None:
    found = measured("anabranch", "open", synthetic.with_json(tmp_path, 300))
    assert found.answer == 300
    assert found.peak_mb >= found.before_mb > 10


def test_the_proof_finds_appends_that_are_lost_doubled_or_landed_though_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for worker, number in [(0, 0), (0, 1), (0, 1), (1, 0), (7, 7)]:
        anabranch.append(path, batch(worker, number))
    calls = [
        Call(0, 0, 0.0, 1.0, None),
        Call(0, 1, 0.0, 1.0, None),
        Call(0, 2, 0.0, 1.0, None),
        Call(1, 0, 0.0, 1.0, "Refused"),
        Call(1, 1, 0.0, 1.0, "Refused"),
    ]
    verdicts = ["in once", "doubled or torn", "lost", "landed though refused", "refused", "unknown"]
    assert prove(path, calls) == Counter(dict.fromkeys(verdicts, 1))


def test_contenders_take_turns_in_both_orders_and_warm_up_uncounted() -> None:
    seen: list[str] = []

    def contender(name: str) -> Cost:
        seen.append(name)
        return Cost(len(seen), 0.0)

    found = by_turns({name: lambda name=name: contender(name) for name in "ab"}, 2, quiet, warm_ups=1)
    assert "".join(seen) == "ba" + "ab" + "ba"
    assert [cost.wall_s for cost in found["a"]] == [3, 6]


def test_a_ratio_knows_its_target() -> None:
    slow, fast = [Cost(4.0, 1.0)], [Cost(2.0, 2.0)]
    time, processor = compared("ours over theirs", slow, fast, at_most=1.5)
    assert (time.value, time.is_met) == (2.0, False)
    assert (processor.value, processor.is_met) == (0.5, None)
    assert Ratio("x", 1.0, at_least=1.0).is_met
    assert "MISSED" in str(time)


@pytest.mark.slow
def test_the_large_table_is_made_the_same_each_time_and_copied_without_space(tmp_path: Path) -> None:
    one, two = (large.make(tmp_path, 8000, vectors=vectors, tell=quiet) for vectors in (True, False))
    assert sorted(map(_rows_of, large.data_files(one))) == sorted(map(_rows_of, large.data_files(two)))
    twin = large.copy(one, tmp_path / "twin")
    anabranch.append(twin, pa.table({"id": [-1]}))
    assert len(anabranch.history(one)) == large.FILES
    assert len(anabranch.history(twin)) == large.FILES + 1
    assert Path(large.data_files(one)[0]).samefile(twin / Path(large.data_files(one)[0]).name)
    assert anabranch.check(twin, deep=True).is_clean


def test_changes_are_measured_at_a_tenth_too_where_that_is_much() -> None:
    assert large.sizes(20_000_000) == {"": 20_000_000, ", a tenth of the rows": 2_000_000}
    assert large.sizes(2_000_000) == {"": 2_000_000}


@pytest.mark.slow
def test_the_tables_to_optimize_have_the_same_live_rows_in_14_files(tmp_path: Path) -> None:
    marked, plain = (optimize.make(tmp_path, 2800, vectors=vectors, tell=quiet) for vectors in (True, False))
    files = [pa.concat_tables(map(pq.read_table, large.data_files(each))) for each in (marked, plain)]
    assert [len(large.data_files(each)) for each in (marked, plain)] == [optimize.FILES] * 2
    left = [sorted(each.filter(pc.not_equal(each["percent"], 17))["id"].to_pylist()) for each in files]
    assert left[0] == left[1] == sorted(files[1]["id"].to_pylist())
    assert 0 < len(left[0]) < len(files[0]) == 2800


def test_a_look_up_that_skips_is_seen_to_read_fewer_files_and_rows(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for start in (0, 10, 20, 30):
        anabranch.append(path, pa.table({"few": list(range(start, start + 10))}))
    assert optimize.touched(path, "few = 7") == (1, 4, 0.25)
    assert optimize.touched(path, "few >= 0") == (4, 4, 1.0)


def test_half_of_what_is_merged_is_in_the_table_and_half_is_new(tmp_path: Path) -> None:
    ids = pq.read_table(merge.source(tmp_path, 8000))["id"].to_pylist()
    assert (len(ids), len(set(ids)), sum(i < 8000 for i in ids)) == (80, 80, 40)


def test_a_feed_is_measured_by_the_same_command_without_it() -> None:
    sides = [f"{engine}, {feed}" for engine in ("anabranch", "delta-spark") for feed in ("without", "with feed")]
    walls = dict(zip(sides, (2.0, 3.0, 5.0, 6.0), strict=True))
    ratios = feeds.ratios_of("UPDATE 1%", {name: [Cost(wall, 1.0)] for name, wall in walls.items()})
    assert [(ratio.value, ratio.is_met) for ratio in ratios[::2]] == [(1.5, False), (1.2, None), (0.5, None)]


def test_the_proof_tells_updates_that_are_lost_doubled_or_of_another_row(tmp_path: Path) -> None:
    def proof(name: str, changed: list[int]) -> object:
        anabranch.append(tmp_path / name, pa.table({"id": [1, 2, 3], "x": changed}))
        return one_file.PROOF(tmp_path / name)

    right = proof("right", [0, 1, 1])
    assert proof("same", [0, 1, 1]) == right
    assert all(
        proof(name, x) != right for name, x in {"lost": [0, 1, 0], "doubled": [0, 2, 0], "other": [1, 0, 1]}.items()
    )


def _rows_of(path: str) -> bytes:
    return Path(path).read_bytes()
