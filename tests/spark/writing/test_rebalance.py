"""Evening out: a write leaves few files where that is wished for, and always the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable
from anabranch._arrow import writing as arrow_writing
from anabranch._protocol.actions import Metadata
from anabranch._protocol.rules.table_rules import Rules, rules_of
from anabranch._protocol.schema.types import Struct, schema_json
from anabranch._protocol.settings import OPTIMIZES_WRITES
from anabranch._spark.writing import few_rows
from anabranch._spark.writing import write as writing
from anabranch._spark.writing.rebalance import is_requested, parts
from anabranch.errors import InvalidOption
from tests.support.readers import deltalake_rows, same_rows

WISH = "delta.autoOptimize.optimizeWrite"
PARTS = 8


@pytest.mark.parametrize(
    ("asked", "session", "table", "wished"),
    [
        (None, None, False, False),
        (None, None, True, True),
        (None, False, True, False),
        (None, True, False, True),
        (False, True, True, False),
        (True, False, False, True),
    ],
)
def test_the_command_counts_more_than_the_session_and_that_more_than_the_table(
    asked: bool | None, session: bool | None, table: bool, wished: bool
) -> None:
    assert is_requested(Rules(optimized=table, optimized_asked=asked), session) is wished


@pytest.mark.parametrize(("said", "wished"), [("true", True), (" TRUE ", True), ("false", False), (None, False)])
def test_a_table_wishes_it_by_its_property(said: str | None, wished: bool) -> None:
    metadata = Metadata("t", schema_json(Struct(())), configuration={} if said is None else {WISH: said})
    assert rules_of(metadata).optimized is wished


def test_rows_of_partitions_are_parted_finely_and_others_are_not() -> None:
    assert parts([]) == 2
    assert parts(["day"]) > 200


@pytest.fixture
def session(spark: SparkSession, adaptive: str) -> Iterator[SparkSession]:
    yield anabranch.install(spark)
    spark.conf.unset(OPTIMIZES_WRITES)


def files_in(path: str) -> int:
    return int(anabranch.files(path).num_rows)


@pytest.mark.exhaustive(
    "tests/spark/writing/test_rebalance.py::test_the_option_and_the_session_say_it_too_and_the_option_counts",
    "tests/spark/writing/test_rebalance.py::test_many_images_go_into_few_files_and_row_ids_stay",
    "tests/spark/writing/test_rebalance.py::test_rows_of_partitions_are_parted_finely_and_others_are_not",
)
@pytest.mark.spark
@pytest.mark.parametrize("partition_by", [(), ("a`b`.c",)])
def test_few_files_hold_the_same_rows(session: SparkSession, tmp_path: Path, partition_by: tuple[str, ...]) -> None:
    frame = session.range(0, 3000, 1, PARTS).selectExpr("id", "nullif(id % 3, 1) AS `a``b``.c`")
    plain, even = str(tmp_path / "plain"), str(tmp_path / "even")
    frame.write.format("delta").partitionBy(*partition_by).save(plain)
    frame.write.format("delta").partitionBy(*partition_by).option(WISH, "true").save(even)
    assert files_in(plain) == PARTS * (3 if partition_by else 1)
    assert files_in(even) <= (3 if partition_by else 2)
    assert same_rows(deltalake_rows(even), deltalake_rows(plain))


@pytest.mark.spark
def test_the_option_and_the_session_say_it_too_and_the_option_counts(session: SparkSession, tmp_path: Path) -> None:
    frame, path = session.range(0, 600, 1, PARTS), str(tmp_path / "t")
    append = frame.write.format("delta").mode("append")
    append.option("optimizeWrite", True).save(path)
    assert (first := files_in(path)) <= 2
    session.conf.set(OPTIMIZES_WRITES, "true")
    frame.write.format("delta").mode("append").save(path)
    assert (second := files_in(path)) <= first + 2
    frame.write.format("delta").mode("append").option("optimizeWrite", False).save(path)
    assert files_in(path) == second + PARTS
    with pytest.raises(InvalidOption):
        frame.write.format("delta").mode("append").option("optimizeWrite", "often").save(path)
    assert same_rows(deltalake_rows(path), [{"id": i} for i in range(600)] * 3)


@pytest.mark.spark
def test_without_adaptive_execution_rows_lie_as_they_came(session: SparkSession, tmp_path: Path) -> None:
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.range(0, 60, 1, PARTS).write.format("delta").option(WISH, "true").save(str(tmp_path / "t"))
    assert files_in(str(tmp_path / "t")) == PARTS


@pytest.mark.spark
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_many_images_go_into_few_files_and_row_ids_stay(
    session: SparkSession, tmp_path: Path, vectors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_rows, "MOST_ROWS", 0)  # all of it by Spark
    monkeypatch.setattr(arrow_writing, "FILE_ROWS", 10)
    monkeypatch.setattr(writing, "rebalance_rows", counted := Counted(writing.rebalance_rows))
    path = str(tmp_path / "t")
    wishes = {WISH: "true", "delta.enableDeletionVectors": vectors, "delta.enableRowTracking": "true"}
    for first in range(0, 600, 600 // PARTS):
        rows = [{"id": i, "n": i % 2} for i in range(first, first + 600 // PARTS)]
        anabranch.append(path, rows, properties=wishes if first == 0 else None)
    table = DeltaTable.forPath(session, path)
    assert files_in(path) == PARTS
    table.update("n = 1", {"n": "shiftright(12 % 7, 0)"})  # a function that only Spark computes
    source = session.range(700).selectExpr("id", "if(id < 300, 7L, 8L) AS n").filter("id < 300 OR id >= 600")
    on = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge = on.whenMatchedUpdate(set={"n": "shiftright(s.n % 100, 0)"})
    merge.whenNotMatchedInsert(values={"id": "s.id", "n": "shiftright(s.n % 100, 0)"}).execute()
    expected = [(i, 7 if i < 300 else 8 if i >= 600 else 5 if i % 2 else 0) for i in range(700)]
    found = rows_with_ids(session, path)
    assert [(number, n) for number, n, _ in found] == expected
    assert all(number == row_id for number, _, row_id in found if number < 600)
    assert counted.calls >= 3  # the images of both, and the inserts
    assert files_in(path) <= (PARTS if vectors == "true" else 0) + 6


class Counted:
    def __init__(self, plain: object) -> None:
        self.plain, self.calls = plain, 0

    def __call__(self, *arguments: object) -> object:
        self.calls += 1
        return self.plain(*arguments)  # type: ignore[operator]


def rows_with_ids(session: SparkSession, path: str) -> list[tuple[int, int, int]]:
    rows = anabranch.read(path, row_ids=True, spark=session).select("id", "n", "_row_id")
    return sorted(map(tuple, rows.collect()))
