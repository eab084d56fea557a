"""A struct that is NULL stays NULL where it is assigned in part from one that is NULL, at each depth."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch import DeltaTable
from anabranch._protocol.merges import Clause, MergePlan, SourceColumn
from anabranch._protocol.schema.assignments import Members
from anabranch._spark.writing import few_rows
from anabranch.commands.dml.merge import Merge
from anabranch.commands.queries.change_feed import ReadChanges
from tests.support import feeds
from tests.support.tiers import few_of
from tests.support.worlds import World, assert_others_agree, equal, table_path

Value = dict[str, Any] | None

INNER = pa.struct({"a": pa.int32(), "b": pa.int32()})
PAIR = pa.struct({"y": pa.int32(), "z": pa.int32()})
TABLE = pa.schema({"id": pa.int32(), "c": pa.struct([*PAIR, pa.field("n", INNER)]), "l": pa.list_(PAIR)})
SOURCE = "id INT, c STRUCT<n: STRUCT<w: INT, a: INT>, Y: INT>, l ARRAY<STRUCT<y: INT>>, m MAP<STRING, STRUCT<y: INT>>"
OLD: list[Value] = [
    None,
    {"y": None, "z": None, "n": None},
    {"y": 1, "z": 2, "n": None},
    {"y": None, "z": None, "n": {"a": None, "b": None}},
    {"y": 1, "z": 2, "n": {"a": 3, "b": 4}},
]
NEW: list[Value] = [
    None,
    {"n": None, "Y": None},
    {"n": {"w": None, "a": None}, "Y": None},
    {"n": {"w": 6, "a": 7}, "Y": 8},
]
ROWS = list(few_of(list(product(OLD, NEW)), 9))


def right(old: Value, new: Value, *, deeper: bool = False) -> Value:
    """What ``UPDATE SET *`` makes of a struct: what the source lacks stays, and two NULLs are NULL."""
    if old is None and new is None:
        return None
    was, given = old or {}, new or {}
    if deeper:
        return {"a": given.get("a"), "b": was.get("b"), "w": given.get("w")}
    return {"y": given.get("Y"), "z": was.get("z"), "n": right(was.get("n"), given.get("n"), deeper=True)}


def rows_of(path: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in World(path).rows()]


def assert_two_nulls_are_one(spark: Any, path: str, *, on: bool) -> None:
    """A merge at each depth of each two rows, with deletion vectors and the feed, or without either."""
    session, both = anabranch.install(spark), str(on).lower()
    old = [{"id": i, "c": was, "l": [None, was and {"y": 1}]} for i, (was, _) in enumerate(ROWS)]
    properties = {"delta.enableDeletionVectors": both, "delta.enableChangeDataFeed": both}
    anabranch.append(path, pa.Table.from_pylist(old, TABLE), properties=properties)
    given = [(i, new, [None, new and {"y": 5}], {"k": None}) for i, (_, new) in enumerate([*ROWS, (None, None)])]
    merge = (
        DeltaTable.forPath(session, path)
        .alias("t")
        .merge(session.createDataFrame(given, SOURCE).alias("s"), "t.id = s.id")
    )
    merge.withSchemaEvolution().whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    expected = [
        (i, right(was, new), [None, new and {"y": 5, "z": None}], [("k", None)]) for i, (was, new) in enumerate(ROWS)
    ]
    inserted = (len(ROWS), None, [None, None], [("k", None)])
    assert rows_of(path) == [*expected, inserted]
    if on:
        changes = feeds.rows_of(ReadChanges(path, 1).run())
        after = [row for row in changes if row["_change_type"] in ("update_postimage", "insert")]
        found = [tuple(row[name] for name in ("id", "c", "l", "m")) for row in after]
        assert sorted(found, key=lambda row: row[0]) == [*expected, inserted]
    assert_others_agree(path)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.whole
@pytest.mark.parametrize(
    ("most", "on"), [(few_rows.MOST_ROWS, True), (-1, False)], ids=["few rows, with a feed", "as if many rows"]
)
def test_two_nulls_are_one_at_each_depth_and_nothing_else_is(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, on: bool
) -> None:
    monkeypatch.setattr(few_rows, "MOST_ROWS", most)
    assert_two_nulls_are_one(spark, str(tmp_path / "t"), on=on)


@pytest.mark.exhaustive(
    "tests/api/dataframe/test_null_structs.py::test_two_nulls_are_one_at_each_depth_and_nothing_else_is"
)
@pytest.mark.spark
@pytest.mark.parametrize(
    ("most", "on"), [(few_rows.MOST_ROWS, False), (-1, True)], ids=["few rows", "as if many rows, with a feed"]
)
def test_so_are_they_with_and_without_a_feed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, on: bool
) -> None:
    monkeypatch.setattr(few_rows, "MOST_ROWS", most)
    assert_two_nulls_are_one(spark, str(tmp_path / "t"), on=on)


@pytest.mark.slow
@pytest.mark.spark
def test_a_field_that_may_not_be_null_refuses_no_struct_that_stays_null(spark: Any, tmp_path: Path) -> None:
    session, path = anabranch.install(spark), str(tmp_path / "t")
    session.sql(f"CREATE TABLE delta.`{path}` (id INT, c STRUCT<y: INT, z: INT NOT NULL>) USING delta")
    old = pa.schema({"id": pa.int32(), "c": PAIR})
    anabranch.append(path, pa.Table.from_pylist([{"id": 1}, {"id": 2, "c": {"y": 1, "z": 2}}], old))
    source = session.sql("SELECT id, CAST(NULL AS STRUCT<y: INT>) AS c FROM VALUES (1), (2) AS v(id)")
    source.createOrReplaceTempView("nothing_in_part")
    session.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO delta.`{path}` t USING nothing_in_part s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET *"
    )
    assert rows_of(path) == [(1, None), (2, {"y": None, "z": 2})]


@pytest.mark.parametrize(("old", "given", "new"), [(None, None, None), (None, {"y": 5}, {"y": 5, "z": None})])
def test_the_engine_without_a_jvm_does_the_same(tmp_path: Path, old: Value, given: Value, new: Value) -> None:
    world = World(table_path(tmp_path)).create([{"id": 0, "c": {"y": 1, "z": 2}}, {"id": 1, "c": old}])
    source = pa.Table.from_pylist(
        [{"id": 1, "c": given}], pa.schema({"id": pa.int64(), "c": pa.struct({"y": pa.int64()})})
    )
    members = Members({"y": SourceColumn("c", ("y",))}, SourceColumn("c"))
    matching = MergePlan(
        lambda row, source: equal(row["id"], source["id"]), (Clause("matched", "update", None, {"c": members}),)
    )
    Merge(world.path, source, matching, world.condition(None)).run(world.engine)
    assert [row["c"] for row in world.rows()] == [{"y": 1, "z": 2}, new]
