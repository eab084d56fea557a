"""Writes that change the schema: mergeSchema and overwriteSchema, and how older files read afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import anabranch
from anabranch import errors
from anabranch.commands.dml.write import Write
from anabranch.testing import ArrowEngine, at_phase
from tests.support.worlds import World, assert_others_agree, insert_all, table_path, update_all

OLD = [{"id": i, "x": i * 10} for i in range(4)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(table_path(tmp_path))
    yield made
    made.assert_clean()


def merging(world: World, *rows: dict[str, Any], mode: str = "append", **more: Any) -> Any:
    table = pa.Table.from_pylist(list(rows))
    return Write(world.path, table, mode, schema_change="merge", **more).run(world.engine)


def replacing(world: World, *rows: dict[str, Any], mode: str = "overwrite", **more: Any) -> Any:
    table = pa.Table.from_pylist(list(rows))
    return Write(world.path, table, mode, schema_change="overwrite", **more).run(world.engine)


def metadata_at(world: World, version: int) -> Any:
    commit = world.log.read(version)
    assert commit is not None
    return commit.head.metadata


# -- mergeSchema -------------------------------------------------------------------------------------------------------


def test_new_columns_come_with_their_rows_in_one_commit_and_older_rows_have_null(world: World) -> None:
    world.create(OLD[:1])
    merging(world, {"y": "new", "ID": 7})
    assert world.rows() == [{"id": 0, "x": 0, "y": None}, {"id": 7, "x": None, "y": "new"}]
    assert world.version == 1
    assert metadata_at(world, 1).schema.names == ("id", "x", "y")
    assert world.info()["isBlindAppend"] is False
    assert world.info()["isolationLevel"] == "WriteSerializable"


def test_where_nothing_is_new_no_metadata_is_written_and_the_append_is_blind(world: World) -> None:
    world.create(OLD)
    merging(world, {"x": 5, "Id": 9})
    assert metadata_at(world, 1) is None
    assert world.info()["isBlindAppend"] is True


def test_what_the_table_says_of_itself_is_kept(world: World) -> None:
    world.create(OLD, partition_by=("x",), delta_appendOnly="true")
    before = world.log.snapshot().metadata
    merging(world, {"id": 9, "x": 1, "z": 1.5})
    after = world.log.snapshot().metadata
    assert (after.id, after.configuration, after.partition_columns) == (before.id, before.configuration, ("x",))


@pytest.mark.slow
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_older_files_are_changed_under_the_new_columns_on_every_path(world: World, vectors: str) -> None:
    """Conditions on a column that a file lacks see NULL there, whatever its statistics do not say."""
    world.create(OLD, delta_enableDeletionVectors=vectors)
    merging(world, {"id": 9, "x": 90, "y": 1})
    assert world.update("y IS NULL AND id < 2", y=5).rows == 2
    assert world.delete("y = 1").rows == 1
    assert world.delete("y IS NULL AND x = 20").rows == 1
    assert world.delete("y > 100 OR y < 0").rows == 0
    merged = world.merge([{"id": 3, "x": 33, "y": 3}, {"id": 8, "x": 80, "y": None}])
    assert merged.rows == 2
    assert [tuple(row.values()) for row in world.rows()] == [(0, 0, 5), (1, 10, 5), (3, 33, 3), (8, 80, None)]


def test_members_of_structs_and_arrays_are_added(world: World) -> None:
    world.create([{"id": 1, "p": {"a": 1}, "l": [{"k": 1}]}])
    merging(world, {"id": 2, "p": {"b": "x", "A": 2}, "l": [{"v": 2.5}, None]})
    assert world.rows() == [
        {"id": 1, "p": {"a": 1, "b": None}, "l": [{"k": 1, "v": None}]},
        {"id": 2, "p": {"a": 2, "b": "x"}, "l": [{"k": None, "v": 2.5}, None]},
    ]


def test_an_append_may_lack_members_without_the_option(world: World) -> None:
    world.create([{"id": 1, "p": {"a": 1, "b": 2}}])
    world.append({"id": 2, "p": {"B": 5}})
    assert world.rows()[1] == {"id": 2, "p": {"a": None, "b": 5}}


def test_another_type_is_refused_by_path_with_both_types(world: World) -> None:
    world.create([{"id": 1, "p": {"a": 1}}])
    with pytest.raises(errors.SchemaMismatch) as refused:
        merging(world, {"id": 2, "p": {"a": "text"}, "new": 1})
    error = refused.value
    assert (error.column, error.expected, error.found) == ("p.a", "bigint", "string")
    assert "overwriteSchema" in error.message
    assert world.version == 0


def test_a_type_that_needs_a_feature_brings_it_in_the_same_commit(world: World) -> None:
    world.create(OLD)
    stamp = pa.table({"id": [1], "t": pa.array([0], pa.timestamp("us"))})
    Write(world.path, stamp, "append", schema_change="merge").run(world.engine)
    commit = world.log.read(1)
    assert commit is not None
    assert commit.head.protocol is not None
    assert commit.head.protocol.reader_features == {"deletionVectors", "timestampNtz"}
    assert commit.head.metadata is not None


@pytest.mark.parametrize("part", ["static", "dynamic", "where"])
def test_overwrites_may_add_columns_too(world: World, part: str) -> None:
    world.create(OLD, partition_by=("x",))
    more: dict[str, Any] = {"static": {}, "dynamic": {"dynamic": True}, "where": {}}[part]
    if part == "where":
        more = {"replace_where": world.condition("x = 10")}
    merging(world, {"id": 7, "x": 10, "z": 1}, mode="overwrite", **more)
    left = [] if part == "static" else [{"id": i, "x": i * 10, "z": None} for i in (0, 2, 3)]
    assert world.rows() == [*left, {"id": 7, "x": 10, "z": 1}]


# -- overwriteSchema ---------------------------------------------------------------------------------------------------


def test_columns_and_rows_are_replaced_in_one_commit(world: World) -> None:
    world.create(OLD, delta_checkpointInterval="5")
    before = world.log.snapshot().metadata
    replacing(world, {"x": "text", "z": 1})
    after = world.log.snapshot().metadata
    assert world.rows() == [{"x": "text", "z": 1}]
    assert (world.version, after.id, after.configuration) == (1, before.id, before.configuration)


def test_the_partitioning_is_replaced_where_it_is_given(world: World) -> None:
    world.create(OLD, partition_by=("x",))
    replacing(world, {"id": "a", "y": 1, "z": 2}, partition_by=("Y",))
    assert world.log.snapshot().partition_columns == ("y",)
    assert world.info()["operationParameters"] == {"mode": "Overwrite", "partitionBy": '["y"]'}
    replacing(world, {"id": "a", "y": 1, "z": 2}, partition_by=())
    assert world.log.snapshot().partition_columns == ()
    assert world.rows() == [{"id": "a", "y": 1, "z": 2}]


@pytest.mark.parametrize("new", [{"id": 1, "x": 10}, {"id": "a", "x": 1, "y": 1}, {"id": 1, "y": 1}])
@pytest.mark.parametrize("layout", [{"partition_by": ("x",)}, {"cluster_by": ("x",)}], ids=["partitions", "clusters"])
def test_the_layout_goes_where_none_is_given(world: World, layout: dict[str, Any], new: dict[str, Any]) -> None:
    """Whether the columns stay, others come, or the one by which the table is laid out goes."""
    world.create(OLD, **layout)
    replacing(world, new)
    after = world.log.snapshot()
    assert (after.partition_columns, after.clustering_columns) == ((), ())
    assert world.rows() == [new]
    world.append(new)
    assert world.rows() == [new, new]


def test_a_layout_of_the_other_kind_takes_the_place_of_the_present_one(world: World) -> None:
    world.create(OLD, partition_by=("x",))
    replacing(world, {"id": 1, "x": 1}, cluster_by=(("id",),))
    after = world.log.snapshot()
    assert (after.partition_columns, after.clustering_columns) == ((), (("id",),))
    replacing(world, {"id": 1, "x": 1}, partition_by=("id",))
    after = world.log.snapshot()
    assert (after.partition_columns, after.clustering_columns) == (("id",), ())


def test_the_same_columns_replace_no_metadata(world: World) -> None:
    world.create(OLD)
    replacing(world, {"id": 1, "x": 1})
    assert metadata_at(world, 1) is None


def test_columns_are_not_replaced_where_rows_stay(world: World) -> None:
    world.create(OLD, partition_by=("x",))
    with pytest.raises(errors.InvalidOption, match="replaceWhere"):
        replacing(world, {"id": 1, "x": 1}, replace_where=world.condition("x = 1"))
    with pytest.raises(errors.InvalidOption, match="partitionOverwriteMode"):
        replacing(world, {"id": 1, "x": 1}, dynamic=True)
    with pytest.raises(errors.SchemaMismatch):  # an append replaces nothing, as in delta-spark
        replacing(world, {"id": 1, "x": 1, "y": 1}, mode="append")
    assert world.version == 0


# -- beside other writers ----------------------------------------------------------------------------------------------

LATE = {"id": 8, "x": 80}
OTHERS = {
    "a blind append": lambda w: w.append(LATE),
    "an append of the same new column": lambda w: merging(w, {"id": 8, "y": 1}),
    "a delete": lambda w: w.delete("id = 1"),
    "an update": lambda w: w.update("id = 1", x=5),
    "a merge": lambda w: w.merge([LATE], update_all("id", "x"), insert_all("id", "x")),
    "an overwrite": lambda w: w.overwrite(LATE),
    "other columns": lambda w: replacing(w, {"q": 1}),
}


@pytest.mark.parametrize("level", ["WriteSerializable", "Serializable"])
@pytest.mark.parametrize("other", OTHERS)
def test_no_writer_lands_under_a_schema_that_it_has_not_seen(world: World, other: str, level: str) -> None:
    world.create(OLD, delta_isolationLevel=level)
    with (
        pytest.raises(errors.MetadataChangedException) as lost,
        at_phase("staged", lambda: merging(world, {"id": 7, "y": 1})),
    ):
        OTHERS[other](world)
    assert (lost.value.winner_version, lost.value.sub_condition) == (1, "METADATA_CHANGE")
    assert [row["id"] for row in world.rows()] == [0, 1, 2, 3, 7]


@pytest.mark.parametrize("other", OTHERS)
def test_no_schema_changes_behind_a_writer_that_it_has_not_seen(world: World, other: str) -> None:
    world.create(OLD)
    with (
        pytest.raises(errors.MetadataChangedException),
        at_phase("staged", lambda: OTHERS[other](world)),
    ):
        merging(world, {"id": 7, "y": "text"})
    assert world.version == 1
    assert "text" not in [row.get("y") for row in world.rows()]


@pytest.mark.parametrize("other", OTHERS)
def test_no_columns_are_replaced_behind_a_writer_that_was_not_seen(world: World, other: str) -> None:
    world.create(OLD)
    with (
        pytest.raises(errors.DeltaConcurrentModificationException),
        at_phase("staged", lambda: OTHERS[other](world)),
    ):
        replacing(world, {"z": 1})
    assert world.version == 1


def test_an_append_that_changes_nothing_stands_behind_an_append(world: World) -> None:
    world.create(OLD)
    with at_phase("staged", lambda: world.append(LATE)):
        merging(world, {"id": 7, "x": 1})
    assert world.version == 2


def test_a_commit_that_wrote_nothing_stops_no_change_of_the_schema(world: World) -> None:
    from tests.support.raw_logs import info, put_commit

    world.create(OLD)
    with at_phase("staged", lambda: put_commit(world.path, 1, info())):
        merging(world, {"id": 7, "y": 1})
    assert world.version == 2


# -- the door ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def table(spark: Any, tmp_path: Path) -> Iterator[str]:
    anabranch.install(spark)
    path, ids = str(tmp_path / "table"), range(4)
    maps = pa.array([[("m", {"k": i})] for i in ids], pa.map_(pa.string(), pa.struct([("k", pa.int64())])))
    rows = [{"id": i, "x": i * 10, "s": {"a": i}, "l": [{"k": i}]} for i in ids]
    anabranch.append(path, pa.Table.from_pylist(rows).append_column("m", maps))
    yield path
    assert anabranch.check(path, deep=True).is_clean


def writing(rows: Any, mode: str = "append", **options: Any) -> Any:
    return rows.write.format("delta").mode(mode).options(**options)


def found(spark: Any, path: str, *columns: str) -> list[Any]:
    rows = spark.read.format("delta").load(path).selectExpr(*columns or ["*"])
    return sorted((row.asDict(recursive=True) for row in rows.collect()), key=lambda row: str(row.get("id")))


@pytest.mark.spark
def test_merge_schema_on_spark_at_every_depth(spark: Any, table: str) -> None:
    rows = spark.range(9, 10).selectExpr(
        "named_struct('b', 'new', 'A', 1) AS s", "array(named_struct('v', 1.5D), NULL) AS l",
        "map('n', named_struct('v', 2S)) AS m", "cast(id AS int) AS ID", "DATE '2026-01-01' AS y",
    )  # fmt: skip
    writing(rows, mergeSchema=True).save(table)
    old, new = found(spark, table)[0], found(spark, table)[-1]
    assert old == {
        "id": 0,
        "x": 0,
        "s": {"a": 0, "b": None},
        "l": [{"k": 0, "v": None}],
        "m": {"m": {"k": 0, "v": None}},
        "y": None,
    }
    assert (new["id"], new["x"], new["s"]) == (9, None, {"a": 1, "b": "new"})
    assert (new["l"], new["m"]) == ([{"k": None, "v": 1.5}, None], {"n": {"k": None, "v": 2}})
    assert found(spark, table, "id", "s.b AS b")[0] == {"id": 0, "b": None}
    # delta-rs and DuckDB read no map to whose values members were added; all else they read as we do
    without_maps = str(Path(table).parent / "others")
    anabranch.append(without_maps, [{"id": i, "s": {"a": i}, "l": [{"k": i}]} for i in range(4)])
    writing(rows.drop("m"), mergeSchema=True).save(without_maps)
    assert_others_agree(without_maps)


@pytest.mark.spark
def test_older_files_are_null_on_every_path_on_spark(spark: Any, table: str) -> None:
    new = pa.table({"id": [9], "y": pa.array([1], pa.int32()), "s": [{"b": 5}]})
    Write(table, new, "append", schema_change="merge").run(ArrowEngine())
    handle = anabranch.DeltaTable.forPath(spark, table)
    handle.update("y IS NULL AND s.b IS NULL AND id = 0", {"y": "7"})
    handle.delete("y IS NULL AND id = 1")
    source = spark.createDataFrame(pa.table({"id": [2], "y": pa.array([2], pa.int32())})).alias("s")
    handle.alias("t").merge(source, "t.id = s.id AND t.y IS NULL").whenMatchedUpdate(set={"y": "s.y"}).execute()
    rows = found(spark, table, "id", "y", "s", "x")
    assert [(row["id"], row["y"]) for row in rows] == [(0, 7), (2, 2), (3, None), (9, 1)]
    assert [row["s"] for row in rows] == [{"a": i, "b": None} for i in (0, 2, 3)] + [{"a": None, "b": 5}]
    assert [row["id"] for row in spark.read.format("delta").load(table).where("y IS NULL").collect()] == [3]
    assert_others_agree(table)


@pytest.mark.spark
def test_a_struct_is_not_null_where_only_members_that_a_file_lacks_are_read(spark: Any, table: str) -> None:
    """Spark reads just the members that a query names; a file may have none of them."""
    Write(table, pa.table({"id": [9], "s": [{"b": 5}]}), "append", schema_change="merge").run(ArrowEngine())
    rows = spark.read.format("delta").load(table).where("s IS NOT NULL").selectExpr("id", "s.b AS b")
    assert {row["id"]: row["b"] for row in rows.collect()} == {0: None, 1: None, 2: None, 3: None, 9: 5}
    anabranch.DeltaTable.forPath(spark, table).delete("s IS NOT NULL AND s.b IS NULL AND id < 3")
    assert [row["id"] for row in World(table).rows()] == [3, 9]


@pytest.mark.exhaustive(
    "tests/commands/ddl/test_schema_change.py::test_older_files_are_changed_under_the_new_columns_on_every_path",
    "tests/commands/ddl/test_schema_change.py::test_older_files_are_null_on_every_path_on_spark",
)
@pytest.mark.spark
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_older_files_are_rewritten_with_null_on_spark(spark: Any, tmp_path: Path, vectors: str) -> None:
    anabranch.install(spark)
    path, properties = str(tmp_path / "t"), {"delta.enableDeletionVectors": vectors}
    writing(spark.range(4).selectExpr("id", "id % 2 AS p").coalesce(1), "error", **properties).save(path)
    writing(spark.range(4, 5).selectExpr("id", "id AS y"), mergeSchema=True).save(path)
    handle = anabranch.DeltaTable.forPath(spark, path)
    handle.delete("id = 0")
    handle.update("id = 1", {"y": "100"})
    assert [tuple(row.values()) for row in found(spark, path)] == [
        (1, 1, 100), (2, 0, None), (3, 1, None), (4, None, 4)
    ]  # fmt: skip
    assert_others_agree(path)


@pytest.mark.spark
def test_refusals_on_spark_name_the_path_what_the_rows_have_and_the_option(spark: Any, table: str) -> None:
    cases = [
        ("id", "1 AS extra", {}, "extra", "id, extra", "mergeSchema"),
        ("id", "named_struct('a', 1L, 'z', 2S) AS s", {}, "s.z", "a, z", "mergeSchema"),
        ("id", "named_struct('a', 'text') AS s", {"mergeSchema": True}, "s.a", "string", "overwriteSchema"),
        ("id", "array(named_struct('k', 1.5D)) AS l", {}, "l.element.k", "double", "overwriteSchema"),
    ]
    for one, other, options, path, given, advice in cases:
        with pytest.raises(errors.SchemaMismatch) as refused:
            writing(spark.range(1).selectExpr(one, other), **options).save(table)
        assert (refused.value.column, refused.value.facts["found"]) == (path, given)
        assert advice in refused.value.message
    for name in ("mergeSchema", "overwriteSchema"):
        with pytest.raises(errors.InvalidOption, match="true or false"):
            writing(spark.range(1), **{name: "maybe"}).save(table)
    assert len(anabranch.history(table)) == 1


@pytest.mark.spark
def test_the_session_may_let_every_write_add_columns_and_an_option_counts_more(spark: Any, table: str) -> None:
    setting = "spark.databricks.delta.schema.autoMerge.enabled"
    rows = spark.range(9, 10).withColumn("y", F.lit(1))
    spark.conf.set(setting, "true")
    try:
        with pytest.raises(errors.SchemaMismatch):
            writing(rows, mergeSchema=False).save(table)
        writing(rows).save(table)
    finally:
        spark.conf.unset(setting)
    assert found(spark, table, "id", "y")[-1] == {"id": 9, "y": 1}


@pytest.mark.spark
def test_overwrite_schema_on_spark(spark: Any, table: str) -> None:
    rows = spark.range(2).selectExpr("cast(id AS string) AS x", "id AS part")
    with pytest.raises(errors.InvalidOption, match="replaceWhere"):
        writing(rows, "overwrite", overwriteSchema=True, replaceWhere="id = 1").save(table)
    with pytest.raises(errors.InvalidOption, match="dynamic"):
        writing(rows, "overwrite", overwriteSchema=True, partitionOverwriteMode="dynamic").save(table)
    writing(rows, "overwrite", overwriteSchema=True, mergeSchema=True).partitionBy("part").save(table)
    rows_there = sorted(found(spark, table), key=lambda row: row["x"])
    assert rows_there == [{"x": "0", "part": 0}, {"x": "1", "part": 1}]
    assert anabranch.DeltaTable.forPath(spark, table).detail().first()["partitionColumns"] == ["part"]
    assert_others_agree(table)
    writing(rows.drop("part"), "overwrite", overwriteSchema=True).save(table)
    assert anabranch.DeltaTable.forPath(spark, table).detail().first()["partitionColumns"] == []
    writing(rows, "overwrite", overwriteSchema=True).clusterBy("part").save(table)
    writing(rows, "overwrite", overwriteSchema=True).insertInto(f"delta.`{table}`")
    assert anabranch.DeltaTable.forPath(spark, table).detail().first()["clusteringColumns"] == []
