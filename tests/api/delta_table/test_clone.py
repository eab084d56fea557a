"""CLONE on real Spark: the rows of a clone are the source's, whatever the paths look like and whoever changes what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import anabranch
from anabranch import DeltaTable, errors
from anabranch._cli import app
from tests.support.golden import DAT, MISSING
from tests.support.raw_logs import listing
from tests.support.readers import deltalake_rows, same_rows
from tests.support.worlds import World
from tests.test_golden import bag

pytestmark = pytest.mark.spark

both = pytest.mark.parametrize("shallow", [True, False], ids=["shallow", "deep"])


@pytest.fixture
def origin(spark: SparkSession, tmp_path: Path) -> str:
    """A table with partitions whose values are hard to spell, and with vectors."""
    anabranch.install(spark)
    world = World(str(tmp_path / "an origin é 50% #1"))
    world.create([{"id": i, "p": f"a b/%{i % 3}", "x": i / 2} for i in range(40)], partition_by=("p",))
    world.delete("id IN (0, 7, 14, 21, 28, 35)")
    return world.path


def ids(spark: SparkSession, path: str) -> list[int]:
    return sorted(row["id"] for row in spark.read.format("delta").load(path).select("id").collect())


@both
def test_every_command_runs_on_a_clone_and_the_source_stays(
    spark: SparkSession, origin: str, tmp_path: Path, shallow: bool
) -> None:
    before, rows = listing(origin), bag(spark.read.format("delta").load(origin))
    source_rows = deltalake_rows(origin)
    path = str(tmp_path / "the clone ü ?")
    table = DeltaTable.forPath(spark, origin).clone(path, shallow)
    assert bag(table.toDF()) == rows
    assert same_rows(deltalake_rows(path), source_rows)
    table.delete("id IN (1, 2)")
    table.update("id = 3", {"x": "-1.0"})
    source = spark.range(4, 6).selectExpr("id", "'new' AS p", "0.5D AS x")
    table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    spark.range(100, 102).selectExpr("id", "'z' AS p", "1.0D AS x").write.format("delta").mode("append").save(path)
    expected = sorted({i for i in range(40) if i % 7 and i not in (1, 2)} | {100, 101})
    assert ids(spark, path) == expected
    assert [row["x"] for row in deltalake_rows(path) if row["id"] == 3] == [-1.0]
    assert table.check(deep=True).is_clean
    assert (listing(origin), deltalake_rows(origin)) == (before, source_rows)


@pytest.mark.exhaustive(
    "tests/commands/maintenance/test_clone.py::test_what_becomes_of_the_source_does_not_reach_the_clone",
    "tests/api/delta_table/test_clone.py::test_every_command_runs_on_a_clone_and_the_source_stays",
)
@both
def test_what_is_done_to_the_source_is_not_seen_in_a_clone(
    spark: SparkSession, origin: str, tmp_path: Path, shallow: bool
) -> None:
    table, path = DeltaTable.forPath(spark, origin), str(tmp_path / "t")
    rows = bag(table.clone(path, isShallow=shallow).toDF())
    table.delete("id < 20")
    table.update("id = 30", {"x": "-1.0"})
    spark.range(1).selectExpr("id", "'q' AS p", "0.0D AS x").write.format("delta").mode("overwrite").save(origin)
    assert bag(spark.read.format("delta").load(path)) == rows


@both
def test_older_versions_are_cloned_by_number_and_by_moment(
    spark: SparkSession, origin: str, tmp_path: Path, shallow: bool
) -> None:
    table = DeltaTable.forPath(spark, origin)
    cloned = table.cloneAtVersion(0, str(tmp_path / "v"), shallow)
    assert sorted(row["id"] for row in cloned.toDF().select("id").collect()) == list(range(40))
    moment = str(table.history().filter("version = 0").first()["timestamp"])
    table.cloneAtTimestamp(moment, str(tmp_path / "m"), shallow, properties={"owner": "me"})
    assert ids(spark, str(tmp_path / "m")) == list(range(40))
    assert DeltaTable.forPath(spark, str(tmp_path / "m")).detail().first()["properties"]["owner"] == "me"


@pytest.mark.exhaustive(
    "tests/commands/maintenance/test_clone.py::test_a_later_clone_brings_what_is_new_and_takes_away_what_is_gone",
    "tests/commands/maintenance/test_clone.py::test_a_table_that_is_there_is_left_alone",
)
@both
def test_a_clone_again_follows_the_source(spark: SparkSession, origin: str, tmp_path: Path, shallow: bool) -> None:
    table, path = DeltaTable.forPath(spark, origin), str(tmp_path / "t")
    table.clone(path, shallow)
    with pytest.raises(errors.TableAlreadyExists):
        table.clone(path, shallow)
    table.delete("id < 10")
    spark.range(50, 52).selectExpr("id", "'n' AS p", "0.0D AS x").coalesce(1).write.format("delta").mode("append").save(
        origin
    )
    again = table.clone(path, shallow, replace=True)
    assert bag(again.toDF()) == bag(table.toDF())
    done = again.history(1).first()["operationMetrics"]
    assert int(done["numCopiedFiles"]) == (0 if shallow else 1)


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ((1,), "target"),
        (("t", "yes"), "isShallow"),
        (("t", True, 1), "replace"),
        (("t", True, True, {"a": 1}), "properties"),
        (("t", True, True, "a=b"), "properties"),
    ],
)
def test_arguments_of_another_kind_are_refused(
    spark: SparkSession, origin: str, arguments: tuple[Any, ...], option: str
) -> None:
    with pytest.raises(errors.InvalidOption) as refused:
        DeltaTable.forPath(spark, origin).clone(*arguments)
    assert refused.value.option == option
    with pytest.raises(errors.InvalidOption):
        DeltaTable.forPath(spark, origin).cloneAtVersion("1", "t")  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidOption):
        DeltaTable.forPath(spark, origin).cloneAtTimestamp(1, "t")  # type: ignore[arg-type]


def test_the_command_line_clones(spark: SparkSession, origin: str, tmp_path: Path) -> None:
    target = str(tmp_path / "t")
    words = ["clone", origin, target, "--shallow", "--set", "a=b=c", "--json"]
    said = json.loads(CliRunner().invoke(app, words).stdout)
    assert (said["table"], said["version"], said["numCopiedFiles"]) == (target, 0, 0)
    assert DeltaTable.forPath(spark, target).detail().first()["properties"]["a"] == "b=c"
    assert isinstance(CliRunner().invoke(app, words).exception, errors.TableAlreadyExists)


def test_rows_of_a_clone_are_merged_into_its_source(spark: SparkSession, origin: str, tmp_path: Path) -> None:
    """They lie in the source's own files, so that it has to be said of which version they are."""
    path = str(tmp_path / "t")
    clone = DeltaTable.forPath(spark, origin).clone(path, isShallow=True)
    clone.update("id = 1", {"x": "-1.0"})
    table = DeltaTable.forPath(spark, origin)
    again = (clone.toDF().alias("s"), "t.id = s.id")
    with pytest.raises(errors.UnknownSourceVersion):
        table.alias("t").merge(*again).whenMatchedUpdateAll().execute()
    table.alias("t").merge(*again, reads_target=1).whenMatchedUpdateAll().execute()
    assert same_rows(deltalake_rows(origin), deltalake_rows(path))


GOLDEN = (
    "dat/deletion_vectors",
    "dat/multi_partitioned",
    "dat/column_mapping",
    "dat/nested_types",
    "kernel/dv-with-columnmapping",
    "kernel/data-reader-partition-values",
    "kernel/dv-partitioned-with-checkpoint",
)
"""Tables of which rows are hidden, renamed or parted. That a clone has the files and vectors of each golden table is
tested without Spark."""


@both
@pytest.mark.parametrize("name", GOLDEN)
def test_a_golden_table_is_cloned_with_its_rows(spark: SparkSession, tmp_path: Path, name: str, shallow: bool) -> None:
    source, target = str(DAT.parent / name / "delta"), str(tmp_path / "t")
    if not Path(source).is_dir():
        pytest.skip(MISSING)
    rows = bag(anabranch.read(source, spark=spark))
    anabranch.clone(source, target, shallow=shallow)
    assert bag(anabranch.read(target, spark=spark)) == rows
