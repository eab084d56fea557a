"""The shapes of statements: each is said to both Sparks and to deltalake, on tables that hold the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from benchmarks import large, peers, race, shape_list, shapes
from benchmarks.harness import Cost, Ratio
from benchmarks.race import OURS, Race
from benchmarks.statements import Delete, Merge, Of, Shape, Update, delete, insert, update, update_others

ROWS = 20_000
"""With fewer, some shapes would find no row."""
SOURCE = Path("/source")


def quiet(text: str) -> None:
    assert text


def test_each_shape_has_a_name_of_its_own_and_an_origin_and_eleven_have_targets() -> None:
    assert len({shape.what for shape in shape_list.SHAPES}) == len(shape_list.SHAPES) >= 51
    assert len(shape_list.HELD) == 11
    assert all(shape.origin and shape.origin != shape_list.OURS for shape in shape_list.OTHERS)


def test_a_statement_is_said_in_sql_with_a_place_for_the_table() -> None:
    assert Delete("p = 7").text(SOURCE) == "DELETE FROM {0} AS t WHERE p = 7"
    assert Update("p = 7", {"a": "a + 1", "b": "'x'"}).text(SOURCE) == (
        "UPDATE {0} AS t SET a = a + 1, b = 'x' WHERE p = 7"
    )
    clauses = (delete("s.gone"), update(), insert("s.a > 0", a="s.a", b="NULL"), update_others("t.a > 1", a="0"))
    assert Merge("t.id = s.id", clauses, "SELECT 1 FROM {table}, {source}").text(SOURCE) == (
        "MERGE INTO {0} AS t USING (SELECT 1 FROM {0}, delta.`/source`) AS s ON t.id = s.id"
        " WHEN MATCHED AND s.gone THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED AND s.a > 0 THEN INSERT (a, b) VALUES (s.a, NULL)"
        " WHEN NOT MATCHED BY SOURCE AND t.a > 1 THEN UPDATE SET a = 0"
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Of, Path]:
    folder = tmp_path_factory.mktemp("shapes")
    return {of: shapes.made_of(folder, ROWS, of, vectors=False, tell=quiet) for of in Of}


@pytest.mark.slow
def test_both_forms_of_a_table_hold_the_same_rows_but_those_that_will_be_marked(
    plain: Mapping[Of, Path], tmp_path: Path
) -> None:
    for of, table in plain.items():
        twin = shapes.made_of(tmp_path, ROWS, of, vectors=True, tell=quiet)
        if of is Of.MARKED:
            DeltaTable(str(twin)).delete(shapes.MARKED)
        assert shapes.PROOF(twin) == shapes.PROOF(table)


@pytest.mark.slow
def test_half_of_the_source_is_in_the_table_and_a_third_of_each_kind_of_change(tmp_path: Path) -> None:
    rows = DeltaTable(str(shapes.source(tmp_path, ROWS))).to_pyarrow_table()
    assert rows.num_rows == pc.count_distinct(rows["id"]).as_py() == ROWS // shapes.SOURCE_SHARE
    assert pc.sum(pc.less(rows["id"], ROWS).cast(pa.int64())).as_py() == rows.num_rows // 2
    assert pc.count_distinct(rows["op"]).as_py() == 3


@pytest.mark.exhaustive("tests/benchmarks/test_shapes.py::test_deltalake_runs_its_own_spelling_of_a_shape")
@pytest.mark.slow
@pytest.mark.parametrize("shape", shape_list.SHAPES, ids=lambda shape: shape.what)
def test_deltalake_runs_each_shape_but_those_that_say_why_not(
    shape: Shape, plain: Mapping[Of, Path], tmp_path: Path
) -> None:
    assert_runs(shape, plain, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape", [each for each in shape_list.SHAPES if each.rust or each.why_not], ids=lambda shape: shape.what
)
def test_deltalake_runs_its_own_spelling_of_a_shape(shape: Shape, plain: Mapping[Of, Path], tmp_path: Path) -> None:
    assert_runs(shape, plain, tmp_path)


def assert_runs(shape: Shape, plain: Mapping[Of, Path], folder: Path) -> None:
    twin, source = large.copy(plain[shape.of], folder / "twin"), shapes.source(folder, ROWS)
    said = shape.rust or shape.statement
    if shape.why_not:
        with pytest.raises(BaseException):  # noqa: B017, PT011  (a panic of Rust is no Exception)
            said.by_deltalake(str(twin), source)
    else:
        said.by_deltalake(str(twin), source)
    assert (shapes.PROOF(twin) == shapes.PROOF(plain[shape.of])) is bool(shape.why_not)


def raced(what: str, ours: float, *, differs: bool = False) -> Race:
    costs = {OURS: [Cost(ours, 1.0)], peers.DELTALAKE: [Cost(1.0, 1.0)]}
    return Race(what, costs, {OURS: 1, peers.DELTALAKE: 2 if differs else 1})


def test_one_ratio_stands_for_several_races_and_is_not_valid_where_one_of_them_is_not() -> None:
    good, bad = raced("a", 0.2), raced("b", 0.4, differs=True)
    what = "the slowest of the shapes with a target"
    [ratio] = race.of_all("shapes", what, [good, raced("b", 0.4)], peers.DELTALAKE, max)
    assert (ratio.value, ratio.least, ratio.greatest, ratio.is_met) == (0.4, 0.2, 0.4, True)
    [ratio] = race.of_all("shapes", what, [good, bad], peers.DELTALAKE, max)
    assert ratio.is_met is False
    assert race.of_all("shapes", what, [good], peers.DELTA_SPARK, max) == []


def test_a_bound_is_for_one_peer() -> None:
    one, other = (Ratio(race.over("a", peer), 0.5) for peer in (peers.DELTALAKE, peers.DELTA_SPARK))
    assert race.bounded(one, {peers.DELTALAKE: 0.6}).is_met
    assert race.bounded(other, {peers.DELTALAKE: 0.6}).is_met is None
