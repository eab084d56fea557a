"""MERGE that adds columns, and values for members of structs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch import DeltaTable, errors
from anabranch._protocol.merges import Clause, MergePlan, SourceColumn
from anabranch._protocol.schema.assignments import Members
from anabranch._protocol.schema.evolution import evolve_schema
from anabranch._protocol.schema.types import from_arrow
from anabranch.commands.dml.merge import Merge, MergeResult
from anabranch.commands.dml.update import Update
from anabranch.testing import at_phase
from tests.support.readers import deltalake_rows
from tests.support.tiers import few_of
from tests.support.worlds import World, assert_others_agree, equal, insert_all, table_path, update_all

OLD = [{"id": i, "x": i * 10} for i in range(4)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(table_path(tmp_path))
    yield made
    made.assert_clean()


def evolving(world: World, rows: list[dict[str, Any]], *clauses: Clause) -> MergeResult:
    """An upsert that adds what only these rows have."""
    table = pa.Table.from_pylist(rows)
    chosen = clauses or (update_all(*table.column_names), insert_all(*table.column_names))
    matching = MergePlan(lambda row, source: equal(row["id"], source["id"]), chosen, evolves=True)
    schema = evolve_schema(world.log.snapshot().schema, from_arrow(table.schema), None)
    return Merge(world.path, table, matching, world.condition(None), schema=schema).run(world.engine)


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_columns_come_with_their_rows_in_one_commit(world: World, vectors: str) -> None:
    world.create(OLD, delta_enableDeletionVectors=vectors)
    evolving(world, [{"id": 1, "x": 11, "y": "a"}, {"id": 9, "x": 90, "y": "b"}])
    assert [tuple(row.values()) for row in world.rows()] == [
        (0, 0, None),
        (1, 11, "a"),
        (2, 20, None),
        (3, 30, None),
        (9, 90, "b"),
    ]
    commit = world.log.read(1)
    assert commit is not None
    assert commit.head.metadata is not None
    assert commit.head.metadata.schema.names == ("id", "x", "y")
    assert world.version == 1


def test_a_schema_that_stays_writes_no_metadata(world: World) -> None:
    world.create(OLD)
    evolving(world, [{"id": 1, "x": 11}])
    commit = world.log.read(1)
    assert commit is not None
    assert commit.head.metadata is None


def test_the_columns_come_even_where_no_row_changes(world: World) -> None:
    """As in delta-spark."""
    world.create(OLD)
    merged = evolving(world, [{"id": 9, "y": "a"}], update_all("id", "y"))
    assert (merged.rows, world.version) == (0, 1)
    assert world.log.snapshot().schema.names == ("id", "x", "y")


@pytest.mark.parametrize("other", ["append", "delete", "upsert", "the same merge"])
@pytest.mark.parametrize("first", [True, False])
def test_a_merge_that_adds_columns_and_any_other_writer_conflict(world: World, other: str, first: bool) -> None:
    world.create(OLD)
    others = {
        "append": lambda: world.append({"id": 8, "x": 80}),
        "delete": lambda: world.delete("id = 0"),
        "upsert": lambda: world.merge([{"id": 7, "x": 70}]),
        "the same merge": lambda: evolving(world, [{"id": 6, "x": 60, "y": 1}]),
    }

    def adding() -> Any:
        return evolving(world, [{"id": 1, "x": 11, "y": 1}])

    ours, winner = (adding, others[other]) if first else (others[other], adding)
    with pytest.raises(errors.MetadataChangedException), at_phase("staged", winner):
        ours()
    assert world.version == 1


def test_members_are_set_and_the_others_stay(world: World) -> None:
    world.create([{"id": 1, "s": {"a": 1, "t": {"b": 2, "c": 3}}}, {"id": 2, "s": None}])
    values = {"s": Members({"t": Members({"c": lambda row: row["id"] * 100})})}
    Update(world.path, values).run(world.engine)
    assert [row["s"] for row in world.rows()] == [
        {"a": 1, "t": {"b": 2, "c": 100}},
        {"a": None, "t": {"b": None, "c": 200}},
    ]
    source = pa.Table.from_pylist([{"id": 1, "n": {"v": 7}}])
    clause = Clause("matched", "update", None, {"s": Members({"a": SourceColumn("n", ("v",))})})
    matching = MergePlan(lambda row, source: equal(row["id"], source["id"]), (clause,))
    Merge(world.path, source, matching, world.condition(None)).run(world.engine)
    assert world.rows()[0]["s"] == {"a": 7, "t": {"b": 2, "c": 100}}


def test_a_merge_runs_under_the_newest_columns_where_no_version_is_given(world: World) -> None:
    """What was understood for an older version never takes a column away again."""
    world.create(OLD)
    table = pa.Table.from_pylist([{"id": 1, "y": 1}])
    schema = evolve_schema(world.log.snapshot().schema, from_arrow(table.schema), None)
    matching = MergePlan(lambda row, source: equal(row["id"], source["id"]), (update_all("id", "y"),), evolves=True)
    command = Merge(world.path, table, matching, world.condition(None), schema=schema)
    evolving(world, [{"id": 2, "z": 5}])
    replace(command).run(world.engine)
    assert world.log.snapshot().schema.names == ("id", "x", "z", "y")
    assert [row["z"] for row in world.rows()] == [None, None, 5, None]


# -- on Spark ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def table(spark: Any, tmp_path: Path) -> Iterator[DeltaTable]:
    session, path = anabranch.install(spark), str(tmp_path / "table")
    rows = [{"id": i, "x": i * 10, "s": {"a": i, "b": "old"}, "l": [{"k": i}]} for i in range(3)]
    anabranch.append(path, rows)
    handle = DeltaTable.forPath(session, path)
    yield handle
    assert anabranch.check(path, deep=True).is_clean
    assert_others_agree(path)


def found(table: DeltaTable) -> list[Any]:
    """The rows as another reader finds them."""
    path = str(table.detail().first()["location"]).removeprefix("file://")
    return sorted(deltalake_rows(path), key=lambda row: str(row["id"]))


def merging(table: DeltaTable, source: Any, on: str = "t.id = s.id") -> Any:
    return table.alias("t").merge(source.alias("s"), on).withSchemaEvolution()


@pytest.mark.spark
def test_stars_add_columns_members_and_elements_on_spark(spark: Any, table: DeltaTable) -> None:
    source = spark.range(2, 4).selectExpr(
        "'new' AS y",
        "cast(id AS int) AS ID",
        "named_struct('c', 1.5D, 'A', 7) AS s",
        "array(named_struct('v', 1)) AS l",
    )
    merging(table, source).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    rows = found(table)
    assert table.toDF().columns == ["id", "x", "s", "l", "y"]
    assert rows[0] == {"id": 0, "x": 0, "s": {"a": 0, "b": "old", "c": None}, "l": [{"k": 0, "v": None}], "y": None}
    # what the source lacks keeps its value in an update, also in a struct, not inside an array; in an insert it is NULL
    assert rows[2] == {"id": 2, "x": 20, "s": {"a": 7, "b": "old", "c": 1.5}, "l": [{"k": None, "v": 1}], "y": "new"}
    assert rows[3] == {"id": 3, "x": None, "s": {"a": 7, "b": None, "c": 1.5}, "l": [{"k": None, "v": 1}], "y": "new"}


@pytest.mark.exhaustive(
    "tests/api/delta_table/test_merge_builder.py::test_the_command_says_what_the_columns_become_where_it_may_add_some",
    "tests/api/dataframe/test_evolution.py::test_members_are_set_on_spark",
    "tests/api/dataframe/test_evolution.py::test_stars_add_columns_members_and_elements_on_spark",
)
@pytest.mark.spark
def test_keys_add_just_what_they_name_on_spark(spark: Any, table: DeltaTable) -> None:
    source = spark.range(2, 4).selectExpr("id", "'new' AS y", "2 AS z", "named_struct('a', 1L, 'c', 'c') AS s")
    merge = merging(table, source).whenMatchedUpdate("y = 'new'", {"y": "upper(s.y)", "s.c": "s.s.c"})
    merge.whenNotMatchedInsert(values={"id": "s.id", "t.y": "s.y"}).whenNotMatchedBySourceUpdate(
        set={"x": "-1"}
    ).execute()
    rows = found(table)
    assert table.toDF().columns == ["id", "x", "s", "l", "y"]
    assert [(row["id"], row["x"], row["y"]) for row in rows] == [
        (0, -1, None),
        (1, -1, None),
        (2, 20, "NEW"),
        (3, None, "new"),
    ]
    assert [row["s"] for row in rows] == [
        {"a": 0, "b": "old", "c": None},
        {"a": 1, "b": "old", "c": None},
        {"a": 2, "b": "old", "c": "c"},
        None,
    ]


@pytest.mark.exhaustive(
    "tests/api/delta_table/test_merge_builder.py::test_the_session_may_let_every_merge_add_columns",
    "tests/api/dataframe/test_evolution.py::test_stars_add_columns_members_and_elements_on_spark",
)
@pytest.mark.spark
def test_the_session_may_let_a_merge_add_columns(spark: Any, table: DeltaTable) -> None:
    source = spark.range(2, 3).selectExpr("id", "'new' AS y").alias("s")
    setting = "spark.databricks.delta.schema.autoMerge.enabled"
    with pytest.raises(errors.UnknownColumn):
        table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdate(set={"y": "s.y"}).execute()
    spark.conf.set(setting, "true")
    try:
        table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().execute()
    finally:
        spark.conf.unset(setting)
    assert found(table)[2]["y"] == "new"
    assert found(table)[2]["x"] == 20


@pytest.mark.spark
def test_without_evolution_a_struct_must_be_whole_and_no_more(spark: Any, table: DeltaTable) -> None:
    for value, path in (("named_struct('a', 1L)", "s.b"), ("named_struct('b', 'x', 'a', 1, 'c', 2)", "s.c")):
        with pytest.raises(errors.SchemaMismatch) as refused:
            update_struct(spark, table, value)
        assert refused.value.column == path


def update_struct(spark: Any, table: DeltaTable, value: str) -> None:
    """A MERGE without evolution that sets the struct of one row."""
    source = spark.range(2, 3).selectExpr("id", f"{value} AS s").alias("u")
    table.alias("t").merge(source, "t.id = u.id").whenMatchedUpdate(set={"s": "u.s"}).execute()


@pytest.mark.exhaustive(
    "tests/api/dataframe/test_evolution.py::test_stars_add_columns_members_and_elements_on_spark",
    "tests/sql/test_settings.py::test_insert_by_name_finds_members_of_structs_by_name_at_every_depth",
)
@pytest.mark.spark
def test_without_evolution_members_are_found_by_name_whatever_their_order(spark: Any, table: DeltaTable) -> None:
    update_struct(spark, table, "named_struct('B', 'x', 'a', 1)")
    assert found(table)[2]["s"] == {"a": 1, "b": "x"}


@pytest.mark.spark
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_members_are_set_on_spark(spark: Any, tmp_path: Path, vectors: str) -> None:
    session, path = anabranch.install(spark), str(tmp_path / "t")
    rows = [{"id": 1, "s": {"a": 1, "t": {"b": 2, "c-d": 3}}}, {"id": 2, "s": None}]
    inner = pa.struct([("b", pa.int32()), ("c-d", pa.int32())])
    types = pa.schema([("id", pa.int32()), ("s", pa.struct([("a", pa.int32()), ("t", inner)]))])
    properties = {"delta.enableDeletionVectors": vectors}
    anabranch.append(path, pa.Table.from_pylist(rows, types), properties=properties)
    table = DeltaTable.forPath(session, path)
    table.alias("t").update("id > 0", {"t.s.t.`c-d`": "s.a + 5", "S.A": "'7'"})
    assert [row["s"] for row in found(table)] == [
        {"a": 7, "t": {"b": 2, "c-d": 6}},
        {"a": 7, "t": {"b": None, "c-d": None}},
    ]
    source = session.sql("SELECT 2 AS id, 9L AS v").alias("u")
    merge = table.alias("t").merge(source, "t.id = u.id").whenMatchedUpdate(set={"t.s.t.b": "u.v"})
    merge.whenNotMatchedBySourceUpdate(set={"s.a": "s.a * 2"}).execute()
    assert [row["s"] for row in found(table)] == [
        {"a": 14, "t": {"b": 2, "c-d": 6}},
        {"a": 7, "t": {"b": 9, "c-d": None}},
    ]
    refused: list[tuple[dict[str, str], type[Exception]]] = [
        ({"s.nope": "1"}, errors.UnknownColumn),
        ({"s.a": "'text'"}, errors.ExecutionFailed),
        ({"s": "NULL", "s.a": "1"}, errors.InvalidOption),
        ({"s.a": "named_struct('x', 1)"}, errors.SchemaMismatch),
    ]
    for values, error in few_of(refused, 3):
        with pytest.raises(error):
            table.update(set=values)
    assert_others_agree(path)
