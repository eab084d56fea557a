"""What the larger benchmarks are made of: shapes, queries, many files, writers, slopes; and a run's exit code."""

from __future__ import annotations

import argparse
import sys
from decimal import Decimal
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import anabranch
from benchmarks import __main__, contention, curves, judge, many_files, merge_shapes, one_file
from benchmarks.harness import Result


def quiet(text: str) -> None:
    assert text


# -- shapes of MERGE ---------------------------------------------------------------------------------------------------


def test_there_are_sixteen_shapes_with_sixteen_names() -> None:
    assert len({shape.what for shape in merge_shapes.SHAPES}) == len(merge_shapes.SHAPES) == 16


@pytest.mark.slow
def test_both_targets_hold_the_same_rows_under_keys_that_are_unique(tmp_path: Path) -> None:
    tables = merge_shapes.made(tmp_path, 2000, quiet)
    assert merge_shapes.PROOF(tables.marking) == merge_shapes.PROOF(tables.rewriting)
    assert len(set(_keys(tables.marking))) == 2000
    assert len(anabranch.files(tables.marking)) == merge_shapes.FILES


@pytest.mark.slow
@pytest.mark.parametrize("shape", merge_shapes.SHAPES, ids=lambda shape: shape.what)
def test_a_source_matches_the_share_that_its_shape_names(tmp_path: Path, shape: merge_shapes.Shape) -> None:
    rows = 4000
    tables = merge_shapes.made(tmp_path, rows, quiet)
    there, given = set(_keys(tables.marking)), _keys(merge_shapes.source(tmp_path, shape, rows))
    chosen = shape.files * rows
    assert len(set(given)) == len(given) == round(shape.matched * chosen) + round(shape.fresh * chosen)
    assert len(there & set(given)) == round(shape.matched * chosen)


def _keys(path: Path) -> list[tuple[int, int]]:
    rows = ds.dataset(path, exclude_invalid_files=True).to_table(columns=["wr_order_number", "wr_item_sk"])
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


# -- TPC-H -------------------------------------------------------------------------------------------------------------


def test_plain_parquet_has_the_rows_of_the_tables_and_lacks_those_that_will_be_marked(tmp_path: Path) -> None:
    pytest.importorskip("duckdb_extension_tpch", reason="`make bench` installs it")
    from benchmarks import tpch

    queries = tpch.generated(tmp_path, 0.001)
    assert [number for number, _ in queries] == list(range(1, 23))
    for table, key in tpch.KEYS.items():
        whole, marked = (tpch.delta(tmp_path, kind, table) for kind in (tpch.WHOLE, tpch.MARKED))
        count, left = (_count(tpch.plain(tmp_path, kind, table)) for kind in (tpch.WHOLE, tpch.MARKED))
        assert judge.held("count(*)")(whole) == judge.held("count(*)")(marked) == (count,)
        hit = judge.held(f"sum(CASE WHEN {key} % 100 = 17 THEN 1 ELSE 0 END)")(marked)[0]
        assert left == count - hit
        assert hit > 0 or table == "supplier"  # which has ten rows


def _count(folder: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in folder.glob("*.parquet"))


def test_answers_are_alike_whatever_their_order_and_their_type_of_number() -> None:
    pytest.importorskip("duckdb_extension_tpch", reason="`make bench` installs it")
    from benchmarks import tpch

    one = pa.table({"a": ["x", "y"], "n": pa.array([Decimal("1.50"), Decimal("2.00")])})
    other = pa.table({"a": ["y", "x "], "n": [2.0, 1.5]})
    assert tpch.spelled(one) == tpch.spelled(other)
    assert tpch.spelled(one) != tpch.spelled(one.slice(0, 1))


# -- many files, many writers ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_look_up_in_the_table_of_many_files_leaves_one_file_to_every_engine(tmp_path: Path) -> None:
    table = many_files.make(tmp_path / "t", 30, quiet)
    where = f"id = {17 * many_files.ROWS_PER_FILE + 3}"
    assert anabranch.files(table, where)["path"].to_pylist() == ["part-000017.parquet"]
    assert len(DeltaTable(str(table)).file_uris(file_pruning_predicate=where)) == 1
    count = 30 * many_files.ROWS_PER_FILE
    assert judge.held(*many_files.SUMS)(table)[:2] == (count, count * (count - 1) // 2)
    assert anabranch.check(table, deep=True).is_clean


@pytest.mark.parametrize("writers", contention.WRITERS)
def test_writers_of_any_number_do_the_same_statements(writers: int) -> None:
    lists = contention.dealt(one_file.one_more, writers)
    texts = [each.text for statements in lists for each in statements]
    assert len(lists) == writers
    assert sorted(texts) == sorted(each.text for [each] in contention.dealt(one_file.one_more, contention.STATEMENTS))


# -- curves ------------------------------------------------------------------------------------------------------------


def test_a_slope_tells_what_follows_the_table_from_what_does_not() -> None:
    sizes = [1000, 10_000, 100_000]
    assert curves.slope(sizes, [0.1, 1.0, 10.0]) == pytest.approx(1.0)
    assert curves.slope(sizes, [0.3, 0.3, 0.3]) == pytest.approx(0.0)
    assert curves.line_of("open", "ours", sizes[:1], [0.1]).figures == {"at_1000_s": 0.1}


@pytest.mark.slow
def test_the_table_of_a_curve_has_the_one_file_that_changes_and_the_change_is_seen(tmp_path: Path) -> None:
    table = curves.table_of(tmp_path, 50, quiet)
    before = curves.held(table)
    assert before[:2] == (50_000, 1000)
    DeltaTable(str(table)).delete(f"id = {curves.KEYS[7]}")
    assert curves.held(table)[:2] == (49_999, 999)
    source = curves._source(tmp_path)
    curves._merge(source, table)
    assert curves.held(table)[2] == before[2] - curves.KEYS[7] + 999 * 5  # each amount that is left has grown by 0.5
    assert pc.min(pq.read_table(source)["id"]).as_py() == curves.KEYS.start


# -- a run -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("differences", "code"), [((), 0), (("they lost a row",), 1)])
def test_a_run_fails_where_contenders_did_not_end_with_the_same_rows(
    differences: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = ModuleType("benchmarks.made_up")
    made.run = lambda folder, rows, tell: Result("made_up", "T", "s", [], [], [], differences)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "benchmarks.made_up", made)
    assert __main__._run("made_up", argparse.Namespace(rows=10, quick=False)) == code
    assert ("NOT THE SAME ROWS" in capsys.readouterr().out) is bool(code)
