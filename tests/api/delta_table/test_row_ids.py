"""Row ids through the doors on Spark: what a user sees, and what every verb keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable, errors
from anabranch._protocol.change_feed import ENABLED
from anabranch._storage import open_store
from tests.support.readers import deltalake_rows, duckdb_rows, same_rows
from tests.support.row_ids import tracked_rows, wrong_ids
from tests.support.worlds import World

pytestmark = pytest.mark.spark

Ids = dict[Any, tuple[int, int]]


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    return anabranch.install(spark)


@pytest.fixture(
    params=[
        *(("true", (), "false"), ("false", (), "false"), ("true", ("p",), "false"), ("false", ("p",), "false")),
        ("true", ("p",), "true"),
    ],
    ids=["vectors", "files", "vectors by p", "files by p", "vectors by p with a feed"],
)
def path(request: pytest.FixtureRequest, session: SparkSession, tmp_path: Path) -> Iterator[str]:
    """Four rows, k from 0, in two files or more; its log is read by other eyes at the end."""
    vectors, partitions, feed = request.param
    found = str(tmp_path / "t")
    properties = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": vectors, ENABLED: feed}
    for rows in ([(0, 0, 0), (1, 1, 1)], [(2, 0, 2), (3, 1, None)]):
        table = [dict(zip("kpx", row, strict=True)) for row in rows]
        anabranch.append(found, table, partition_by=partitions, properties=properties, spark=session)
    yield found
    assert wrong_ids(open_store(found), ("k", "p", "x")) == []
    report = anabranch.check(found, deep=True)
    assert report.is_clean, str(report)
    ours = World(found).rows()
    assert same_rows(deltalake_rows(found), ours)
    assert same_rows(duckdb_rows(found), ours)


def ids(session: SparkSession, path: str, version: int | None = None) -> Ids:
    rows = anabranch.read(path, version=version, row_ids=True, spark=session).collect()
    return {row["k"]: (row["_row_id"], row["_row_commit_version"]) for row in rows}


def tracked(path: str) -> Ids:
    """The same as a plain reader of the protocol finds them."""
    return {row.row[0]: (row.id, row.version) for row in tracked_rows(open_store(path), ("k", "p", "x"))}


def test_rows_have_ids_of_their_own_and_the_version_that_brought_them(session: SparkSession, path: str) -> None:
    found = ids(session, path)
    assert sorted(id_ for id_, _ in found.values()) == [0, 1, 2, 3]
    assert [version for _, version in found.values()] == [0, 0, 1, 1] or found.keys() == {0, 1, 2, 3}
    assert {found[k][1] for k in (0, 1)} == {0}
    assert {found[k][1] for k in (2, 3)} == {1}


def upsert(session: SparkSession, path: str) -> None:
    source = session.sql("SELECT * FROM VALUES (1L, 1L, 10L), (7L, 0L, 70L), (8L, 1L, 80L) AS s (k, p, x)").alias("s")
    merge = DeltaTable.forPath(session, path).alias("t").merge(source, "t.k = s.k")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def merge_alone(session: SparkSession, path: str) -> None:
    source = session.sql("SELECT * FROM VALUES (1L, 1L, 10L), (2L, 0L, 20L) AS s (k, p, x)").alias("s")
    merge = DeltaTable.forPath(session, path).alias("t").merge(source, "t.k = s.k")
    merge = merge.whenMatchedUpdate("t.k = 1", {"x": "s.x + 1"}).whenMatchedDelete()
    merge.whenNotMatchedBySourceUpdate("t.k = 3", {"x": "-1"}).execute()


CHANGES: dict[str, tuple[Callable[[SparkSession, str], Any], set[int], set[int], set[int]]] = {
    "update": (lambda s, p: DeltaTable.forPath(s, p).update("k IN (1, 2)", {"x": "x + 1"}), {1, 2}, set(), set()),
    "move": (lambda s, p: DeltaTable.forPath(s, p).update("k = 1", {"p": "0"}), {1}, set(), set()),
    "delete": (lambda s, p: DeltaTable.forPath(s, p).delete("k = 1"), set(), {1}, set()),
    "upsert": (upsert, {1}, set(), {7, 8}),
    "merge alone": (merge_alone, {1, 3}, {2}, set()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_rows_keep_their_ids_and_changed_ones_get_the_version(session: SparkSession, path: str, change: str) -> None:
    run, changed, gone, new = CHANGES[change]
    before = tracked(path)
    for version in (2, 3):  # the second time, rows lie where the first has put them
        run(session, path)
        after = tracked(path)
        if version == 2:
            assert after.keys() == before.keys() - gone | new
            assert all(after[k][0] > max(id_ for id_, _ in before.values()) for k in new)
            assert {k for k in after if after[k][1] == version} == changed | new
        kept = before.keys() & after.keys()
        assert {k: after[k][0] for k in kept} == {k: before[k][0] for k in kept}
        assert all(after[k] == before[k] for k in kept - changed - new)
        before = after


def test_ids_are_read_beside_other_columns_and_conditions(session: SparkSession, path: str) -> None:
    World(path).update("k = 2", x=20)
    rows = anabranch.read(path, where="k >= 2", columns=["x"], row_ids=True, spark=session)
    assert rows.columns == ["x", "_row_id", "_row_commit_version"]
    assert {(row["x"], row["_row_commit_version"]) for row in rows.collect()} == {(20, 2), (None, 1)}
    loaded = session.read.format("delta").option("rowIds", "true").option("versionAsOf", 0).load(path)
    assert loaded.columns == ["k", "p", "x", "_row_id", "_row_commit_version"]
    assert loaded.count() == 2
    assert session.read.format("delta").option("rowIds", "false").load(path).columns == ["k", "p", "x"]


def test_a_row_that_breaks_a_rule_is_shown_without_hidden_columns(session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "strict")
    builder = DeltaTable.create(session).location(path).addColumn("k", "LONG", nullable=False).addColumn("x", "LONG")
    table = builder.property("delta.enableRowTracking", "true").execute()
    anabranch.append(path, [{"k": 1, "x": 1}], spark=session)
    with pytest.raises(errors.NotNullViolated) as broken:
        table.update("k = 1", {"k": "NULL"})
    assert "_row-" not in str(broken.value)
    table.update("k = 1", {"x": "2"})
    assert [(row.id, row.version) for row in tracked_rows(open_store(path), ("k", "x"))] == [(0, 2)]


def test_ids_of_a_table_without_them_are_refused(session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "plain")
    anabranch.append(path, [{"k": 1}], spark=session)
    with pytest.raises(errors.InvalidOption, match="does not track its rows"):
        anabranch.read(path, row_ids=True, spark=session)
    with pytest.raises(errors.InvalidOption, match="rowIds"):
        session.read.format("delta").option("rowIds", "maybe").load(path)
    named = str(tmp_path / "named")
    anabranch.append(named, [{"_row_id": 1}], properties={"delta.enableRowTracking": "true"}, spark=session)
    with pytest.raises(errors.InvalidOption, match="a column _row_id of its own"):
        anabranch.read(named, row_ids=True, spark=session)


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_columns_may_have_other_names_in_files(session: SparkSession, tmp_path: Path, vectors: str) -> None:
    path = str(tmp_path / "mapped")
    properties = {"delta.enableRowTracking": "true", "delta.columnMapping.mode": "name"}
    rows = [dict(zip("kpx", row, strict=True)) for row in [(0, 0, 0), (1, 1, 1), (3, 1, None)]]
    anabranch.append(path, rows, properties={**properties, "delta.enableDeletionVectors": vectors}, spark=session)
    World(path).update("k = 1", x=10)
    upsert(session, path)
    found = ids(session, path)
    assert {k: found[k] for k in (0, 1, 3)} == {0: (0, 0), 1: (1, 2), 3: (2, 0)}
    assert found[7][0] > 2
    assert session.read.format("delta").load(path).columns == ["k", "p", "x"]
    assert anabranch.check(path, deep=True).is_clean
