"""Finding: exactly the live rows for which a condition is TRUE, and what is said when it cannot be evaluated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap64
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anabranch._spark.reading.row_addresses import find
from anabranch._spark.reading.scan import scan
from anabranch.errors import ExecutionFailed, InvalidCondition
from tests.spark.tables import condition, file_row, file_set, log_path, numbered, one_file

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Any:
    names = {"a.parquet": 300, "b c%.parquet": 300, "none.parquet": 10}
    return numbered(tmp_path_factory.mktemp("find"), names, {"a.parquet": [0, 3, 64]})


def test_rows_for_which_it_is_true_are_found_once_and_deleted_ones_never(spark: SparkSession, files: Any) -> None:
    found = find(spark, files, condition("id % 3 = 0 and id < 600"))
    assert found == {
        "a.parquet": BitMap64(set(range(0, 300, 3)) - {0, 3}),
        log_path("b c%.parquet"): BitMap64(range(0, 300, 3)),
    }


@pytest.mark.parametrize("text", ["cast(null as boolean)", "id = null", "s is null", "id < 0", "false"])
def test_null_and_false_select_nothing(spark: SparkSession, files: Any, text: str) -> None:
    assert find(spark, files, condition(text)) == {}


def test_true_selects_every_live_row(spark: SparkSession, files: Any) -> None:
    found = find(spark, files, condition("true"))
    assert {path: len(rows) for path, rows in found.items()} == {
        "a.parquet": 297,
        log_path("b c%.parquet"): 300,
        "none.parquet": 10,
    }


def test_a_column_may_be_the_condition(spark: SparkSession, files: Any) -> None:
    assert find(spark, files, condition(F.col("id") == 301)) == {log_path("b c%.parquet"): BitMap64([1])}


def test_no_files_need_no_spark_job(spark: SparkSession, files: Any) -> None:
    """None that would fail as soon as it reads a row; but a condition that does not fit is none, whoever is asked."""
    nobody = files.restrict_to(set())
    assert find(spark, nobody, condition("id = raise_error('read')")) == {}
    with pytest.raises(InvalidCondition):
        find(spark, nobody, condition("nonsense = 1"))


def test_a_random_condition_selects_what_it_selected(spark: SparkSession, files: Any) -> None:
    found = find(spark, files, condition("rand() < 0.5"))
    assert 0 < sum(map(len, found.values())) < 607
    assert not found["a.parquet"] & BitMap64([0, 3, 64])


def test_only_the_conditions_columns_are_read(
    spark: SparkSession, files: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def explained(rows: Any) -> Any:
        capsys.readouterr()
        rows.explain()
        seen.append(capsys.readouterr().out)
        raise InterruptedError

    monkeypatch.setattr(type(scan(spark, files)), "toArrow", explained)
    with pytest.raises(InterruptedError):
        find(spark, files, condition("id = 3"))
    assert seen[0].count("ReadSchema: struct<id:bigint") == 2
    assert "s:string" not in seen[0]
    assert "Python" not in seen[0]


def test_positions_are_those_of_the_file_in_every_row_group(spark: SparkSession, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    table = pa.table({"id": pa.array(range(5000), pa.int64())})
    given = one_file(tmp_path, table)
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100)
    assert find(spark, given, condition("id in (99, 100, 4321)")) == {"a.parquet": BitMap64([99, 100, 4321])}


def test_partition_columns_may_be_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    one = pa.table({"id": pa.array([1, 2], pa.int64())})
    rows = [file_row(tmp_path, f"p={p}/a.parquet", one, {"p": p}) for p in "12"]
    given = file_set(tmp_path, rows, pa.schema({"id": pa.int64(), "p": pa.int32()}), ("p",))
    assert find(spark, given, condition("p = 2 and id = 2")) == {"p=2/a.parquet": BitMap64([1])}


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("nope = 1", "`nope` cannot be resolved"),
        ("id +", "Syntax error"),
        ("id", "is not a boolean"),
        ("sum(id) > 3", "invalid expressions"),
        ("id = array(1)", "DATATYPE_MISMATCH"),
        (lambda: F.col("nope") > 1, "`nope` cannot be resolved"),
    ],
)
def test_a_condition_that_does_not_fit_is_refused_in_sparks_words(
    spark: SparkSession, files: Any, expression: Any, words: str
) -> None:
    given = condition(expression() if callable(expression) else expression)
    with pytest.raises(InvalidCondition, match=words) as caught:
        find(spark, files, given)
    assert caught.value.facts["expression"] == given.text
    assert "__anabranch" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "org.apache" not in str(caught.value)


def broken(value: int) -> bool:
    raise ValueError(f"no {value}")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("1 / (id - 7) > 0", "DIVIDE_BY_ZERO"),
        ("cast(concat(s, 'x') as int) = 1", "CAST_INVALID_INPUT"),
        (lambda: F.udf(broken, "boolean")(F.col("id")), "ValueError: no"),
    ],
)
def test_a_condition_that_fails_on_a_row_says_why_without_java(
    spark: SparkSession, files: Any, expression: Any, words: str
) -> None:
    given = condition(expression() if callable(expression) else expression)
    with pytest.raises(ExecutionFailed, match=words) as caught:
        find(spark, files, given)
    assert "\n" not in str(caught.value)
    assert "org.apache" not in str(caught.value)


def test_settings_of_the_session_decide_what_a_condition_means(spark: SparkSession, files: Any) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert find(spark, files, condition("1 / (id - 7) > 1000")) == {}
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_files_whose_names_share_a_checksum_keep_apart(spark: SparkSession, tmp_path: Path) -> None:
    given = numbered(tmp_path, {"plumless": 2, "buckeroo": 2})
    assert find(spark, given, condition("id in (0, 3)")) == {"plumless": BitMap64([0]), "buckeroo": BitMap64([1])}
    marked = replace(given, vectors={"plumless": BitMap64([0]), "buckeroo": BitMap64([0])})
    assert find(spark, marked, condition("true")) == {"plumless": BitMap64([1]), "buckeroo": BitMap64([1])}
