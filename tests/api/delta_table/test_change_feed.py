"""The change data feed by its doors: reader options, ``anabranch.changes`` and ``table_changes``."""

from __future__ import annotations

import datetime as dt
import json
import re
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import errors
from anabranch._log.file_names import commit_name
from anabranch._log.log import forget
from anabranch._protocol.change_feed import ENABLED
from anabranch._protocol.settings import READS_BEYOND
from anabranch._spark.engine import SparkEngine
from anabranch.commands import change_recorder
from anabranch.commands.dml.append import Append
from anabranch.commands.queries.change_feed import ReadChanges
from tests.support.feeds import applied, plain, record_changes, rows_of
from tests.support.readers import deltalake_rows
from tests.support.tiers import few_of
from tests.support.worlds import World

pytestmark = pytest.mark.spark

Told = list[tuple[int, str, int]]


def told(rows: DataFrame) -> Told:
    return sorted((row["_commit_version"], row["_change_type"], row["id"]) for row in rows.collect())


def told_by_each(doors: Mapping[str, DataFrame]) -> dict[str, Told]:
    """What the frames of several doors tell, in one query."""
    said = ["_commit_version", "_change_type", "id"]
    frames = [frame.select(F.lit(door).alias("door"), *said) for door, frame in doors.items()]
    found: dict[str, Told] = {door: [] for door in doors}
    for door, *change in reduce(DataFrame.unionAll, frames).collect():
        found[door].append(tuple(change))
    return {door: sorted(changes) for door, changes in found.items()}


def kinds(path: str, version: int) -> Counter[str]:
    """How many changes of each kind a version tells."""
    return Counter(row["_change_type"] for row in rows_of(ReadChanges(path, version, version).run()))


def build(path: str) -> None:
    """Versions 0 to 5: six rows in two partitions, two more, DELETE, UPDATE, RESTORE, OPTIMIZE."""
    table = World(path).create([{"id": i, "g": i % 2, "s": f"a b{i}"} for i in range(6)], partition_by=("g",))
    table.append({"id": 6, "g": 0, "s": "x"}, {"id": 7, "g": None, "s": "y"})
    table.delete("id IN (1, 3)")
    table.update("id = 0", s="new", g=1)
    table.restore(1)
    table.optimize()
    record_changes(path)


CHANGES: Told = [
    (2, "delete", 1),
    (2, "delete", 3),
    (3, "delete", 0),
    (3, "insert", 0),
    (4, "delete", 0),
    (4, "insert", 0),
    (4, "insert", 1),
    (4, "insert", 3),
]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    anabranch.install(spark)
    yield spark
    anabranch.uninstall(spark)


@pytest.fixture(scope="module")
def path(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    found = str(tmp_path_factory.mktemp("feeds") / "t [1]")
    build(found)
    return found


def test_each_door_gives_the_changes_of_a_range(session: SparkSession, path: str) -> None:
    reader = session.read.format("delta").option("readChangeFeed", True)
    whole = reader.option("startingVersion", 0).load(path)
    assert whole.columns == ["id", "g", "s", "_change_type", "_commit_version", "_commit_timestamp"]
    assert [whole.schema[name].dataType.simpleString() for name in whole.columns[3:]] == [
        "string",
        "bigint",
        "timestamp",
    ]
    inserts = [(0, "insert", i) for i in range(6)] + [(1, "insert", 6), (1, "insert", 7)]
    changes = whole.collect()
    assert sorted((row["_commit_version"], row["_change_type"], row["id"]) for row in changes) == inserts + CHANGES
    moments = {row["_commit_version"]: row["_commit_timestamp"] for row in changes}
    some = {"readChangeData": "true", "startingVersion": "2", "endingVersion": "3"}
    timed = session.read.format("delta").options(readChangeFeed="true", startingTimestamp=str(moments[2]))
    doors = {
        "options": (session.read.options(**some).format("delta").load(path), CHANGES[:4]),
        "function": (anabranch.changes(path, 4, 5, spark=session), CHANGES[4:]),
        "SQL": (session.sql(f"SELECT * FROM table_changes('{path}', 2, 3)"), CHANGES[:4]),
        "SQL by path": (session.sql("SELECT * FROM table_changes_by_path(:p, 2 + 1)", {"p": path}), CHANGES[2:]),
        "SQL of moments": (
            session.sql("SELECT * FROM table_changes(?, ?, ?)", [path, moments[2], moments[3]]),
            CHANGES[:4],
        ),
        "function of a moment": (anabranch.changes(path, start_timestamp=moments[4], spark=session), CHANGES[4:]),
        "moments": (timed.option("endingTimestamp", str(moments[3])).load(path), CHANGES[:4]),
        "a reader that is asked again with the same options": (timed.load(path), CHANGES[:4]),
    }
    assert told_by_each({door: frame for door, (frame, _) in doors.items()}) == {
        door: expected for door, (_, expected) in doors.items()
    }


@pytest.mark.exhaustive(
    "tests/commands/queries/test_change_feed.py::test_whatever_was_done_its_changes_lead_from_each_version_to_the_next",
    "tests/api/delta_table/test_change_feed.py::test_each_door_gives_the_changes_of_a_range",
)
def test_the_changes_lead_from_version_to_version(session: SparkSession, path: str) -> None:
    found = [row.asDict() for row in anabranch.changes(path, 0, spark=session).collect()]
    before: list[dict[str, Any]] = []
    for version in range(6):
        after = [row.asDict() for row in anabranch.read(path, version=version, spark=session).collect()]
        changes = [row for row in found if row["_commit_version"] == version]
        assert applied(before, changes) == Counter(map(plain, after))
        before = after


def test_a_query_joins_changes_with_tables_and_others(session: SparkSession, path: str) -> None:
    query = f"""
        WITH gone AS (SELECT id, _commit_version AS v FROM table_changes(delta.`{path}`, 2, 3) AS c
                      WHERE c._change_type = 'delete')
        SELECT g.id, t.s, g.v FROM gone g JOIN delta.`{path}` t ON g.id = t.id
        WHERE t.id IN (SELECT id FROM table_changes('{path}', :v) WHERE id < 2)"""
    found = session.sql(query, {"v": 4}).collect()
    assert sorted(tuple(row) for row in found) == [(0, "a b0", 3), (1, "a b1", 2)]


def test_a_name_has_changes_too(session: SparkSession, tmp_path: Path) -> None:
    name, location = f"feed_{uuid.uuid4().hex[:8]}", str(tmp_path / "t")
    World(location).create([{"id": i} for i in range(3)]).delete("id = 1")
    record_changes(location)
    session.sql(f"CREATE TABLE {name} USING delta LOCATION '{location}'")
    reader = session.read.option("readChangeFeed", "true").format("delta").option("startingVersion", 1)
    doors = {
        "SQL": session.sql(f"SELECT {name}.* FROM table_changes('default.{name}', 1)"),
        "options": reader.table(name),
        "function": anabranch.changes(name, 1, spark=session),
    }
    assert told_by_each(doors) == {door: [(1, "delete", 1)] for door in doors}
    session.sql(f"DROP TABLE {name}")
    with pytest.raises(errors.UnknownTable):
        session.sql(f"SELECT * FROM table_changes('{name}', 1)")


def test_what_cannot_be_read_is_refused_by_name(session: SparkSession, path: str, tmp_path: Path) -> None:
    def read(**asked: Any) -> DataFrame:
        return session.read.format("delta").options(**asked).load(path)

    with pytest.raises(errors.NoChangeStart):
        read(readChangeFeed="true")
    with pytest.raises(errors.InvalidOption, match="versionAsOf"):
        read(readChangeFeed="true", startingVersion=0, versionAsOf=1)
    with pytest.raises(errors.InvalidOption, match="endingTimestamp"):
        read(readChangeFeed="true", startingVersion=0, endingVersion=0, endingTimestamp="2020-01-01")
    with pytest.raises(errors.InvalidOption, match="startingVersion"):
        read(startingVersion=0)
    with pytest.raises(errors.InvalidOption, match="perhaps"):
        session.read.format("delta").option("readChangeFeed", "perhaps").load(path)
    with pytest.raises(errors.VersionNotFound):
        session.sql(f"SELECT * FROM table_changes('{path}', 6)")
    for bound in ("NULL", "1.5", "array(1)"):
        with pytest.raises(errors.InvalidOption):
            session.sql(f"SELECT * FROM table_changes('{path}', {bound})")
    other = str(tmp_path / "other")
    anabranch.append(other, [{"id": 1}], spark=session)
    with pytest.raises(errors.ChangeDataNotRecorded):
        session.sql(f"SELECT * FROM table_changes('{other}', 0)")
    with pytest.raises(errors.TimestampAfterLatestCommit):
        anabranch.changes(path, start_timestamp=dt.datetime(2999, 1, 1), spark=session)
    session.conf.set(READS_BEYOND, "true")
    try:
        late = anabranch.changes(path, start_timestamp=dt.datetime(2999, 1, 1), spark=session)
        assert (late.count(), late.columns[-1]) == (0, "_commit_timestamp")
    finally:
        session.conf.unset(READS_BEYOND)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_are_found_by_their_names_in_files(session: SparkSession, tmp_path: Path, mode: str) -> None:
    path = str(tmp_path / "t")
    rows = [{"id": i, "g": i % 2, "s": {"a": i, "b": "x"}} for i in range(4)]
    anabranch.append(path, rows, partition_by=("g",), properties={"delta.columnMapping.mode": mode})
    World(path).delete("id = 1")
    session.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN more STRING")
    record_changes(path)
    record_changes(path, 2)
    found = anabranch.changes(path, 0, 1, spark=session)
    assert found.columns[:3] == ["id", "g", "s"], "the columns are those of the last version of the range"
    changes = [
        (row["_commit_version"], row["_change_type"], row["id"], row["g"], row["s"]["a"]) for row in found.collect()
    ]
    assert sorted(changes) == [(0, "insert", i, i % 2, i) for i in range(4)] + [(1, "delete", 1, 1, 1)]
    assert [row["more"] for row in anabranch.changes(path, 1, spark=session).collect()] == [None]


def test_files_of_change_data_say_what_changed(session: SparkSession, tmp_path: Path) -> None:
    """As delta-spark writes them; what it does write is read in the tests beside it."""
    path = str(tmp_path / "t")
    Append(path, [{"id": i, "g": i % 2} for i in range(4)], ("g",)).run()
    Append(path, [{"id": 9, "g": 1}]).run()
    record_changes(path)
    images = {"id": [1, 10], "_change_type": ["update_preimage", "update_postimage"]}
    file = Path(path, "_change_data", "g=1", "cdc-00000-x.c000.snappy.parquet")
    file.parent.mkdir(parents=True)
    pq.write_table(pa.table({**images, "id": pa.array([1, 10], pa.int64())}), file)
    commit = Path(path, commit_name(1))
    name = str(file.relative_to(path)).replace("=", "%3D")
    cdc = {"cdc": {"path": name, "partitionValues": {"g": "1"}, "size": file.stat().st_size, "dataChange": False}}
    commit.write_text(commit.read_text() + json.dumps(cdc, separators=(",", ":")) + "\n")
    forget()
    found = [(row["_change_type"], row["id"], row["g"]) for row in anabranch.changes(path, 1, spark=session).collect()]
    assert sorted(found) == [("update_postimage", 10, 1), ("update_preimage", 1, 1)], "the adds count no more"
    assert len(rows_of(ReadChanges(path, 0).run())) == 6
    file.unlink()
    with pytest.raises(errors.ChangeFilesMissing) as error:
        anabranch.changes(path, 0, spark=session)
    assert (error.value.facts["version"], error.value.facts["file"]) == (1, name)


CREATED = [
    ("", {"delta.enableDeletionVectors": "true"}),
    ("PARTITIONED BY (g)", {"delta.enableDeletionVectors": "false"}),
    ("PARTITIONED BY (g)", {"delta.columnMapping.mode": "id", "delta.enableRowTracking": "true"}),
    ("CLUSTER BY (id)", {"delta.columnMapping.mode": "name"}),
]
CHANGED = [
    "UPDATE {} SET s.`a.b` = concat(s.`a.b`, 'u'), g = 1 - g WHERE id IN (1, 4)",
    "DELETE FROM {} WHERE id IN (0, 2)",
    "MERGE INTO {} t USING (SELECT id, rand() AS x FROM range(3, 9)) s ON t.id = s.id WHEN MATCHED AND t.id = 3 THEN "
    "DELETE WHEN MATCHED THEN UPDATE SET t.x = s.x WHEN NOT MATCHED THEN INSERT (id, g, x) VALUES (s.id, 0, s.x)",
    "MERGE INTO {} t USING (SELECT explode(array(1L, 1L, 8L, 8L, 8L)) AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE AND id > 6 THEN UPDATE SET x = 2D",
    "MERGE INTO {} t USING (SELECT 5L AS id) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND g = 0 THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET x = rand()",
    "INSERT INTO {} REPLACE WHERE id > 6 SELECT 7L, 1, named_struct('a.b', 'r'), 0.5D",
    "UPDATE {} SET x = id * 0.5D",
    "INSERT OVERWRITE {} SELECT 1L, 1, named_struct('a.b', 'o'), 0.5D",
    "DELETE FROM {}",
]


@pytest.mark.parametrize(("clauses", "properties"), CREATED)
def test_what_every_statement_records_leads_from_version_to_version(
    session: SparkSession, tmp_path: Path, clauses: str, properties: dict[str, str]
) -> None:
    path = str(tmp_path / "t [1] %")
    table = f"delta.`{path}`"
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in {**properties, ENABLED: "true"}.items())
    columns = "(id BIGINT, g INT, s STRUCT<`a.b`: STRING>, x DOUBLE)"
    session.sql(f"CREATE TABLE {table} {columns} USING delta {clauses} TBLPROPERTIES ({listed})")
    rows = [{"id": i, "g": i % 2, "s": {"a.b": "s"}, "x": 0.0} for i in range(6)]
    anabranch.append(path, rows)
    changed = list(few_of(CHANGED, 3))
    for each in changed:
        session.sql(each.format(table))
    found = [row.asDict(recursive=True) for row in anabranch.changes(path, 0, spark=session).collect()]
    world, before = World(path), list[Any]()
    for version in range(world.version + 1):
        after = world.rows(version)
        here = [row for row in found if row["_commit_version"] == version]
        assert applied(before, here) == Counter(map(plain, after)), f"version {version}: {changed[version - 2]}"
        before = after
    of_the_update = Counter(row["_change_type"] for row in found if row["_commit_version"] == 2)
    assert of_the_update == {"update_preimage": 2, "update_postimage": 2}
    assert anabranch.check(path).is_clean


@pytest.mark.parametrize("statement", ["UPDATE {} SET x = x + 1 WHERE id > 2", CHANGED[2], CHANGED[3], CHANGED[4]])
def test_once_rows_are_changed_nothing_reads_the_table_again_for_the_feed(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    path = str(tmp_path / "t")
    properties = {ENABLED: "true", "delta.enableDeletionVectors": "true"}
    rows = [{"id": i, "g": i % 2, "x": i / 2} for i in range(9)]
    anabranch.append(path, rows, properties=properties)
    [file] = Path(path).glob("*.parquet")
    calls = []

    def away(write: Callable[..., None]) -> Callable[..., None]:
        def written(*given: Any) -> None:
            calls.append(write.__name__)
            hidden = file.rename(tmp_path / "hidden")
            try:
                write(*given)
            finally:
                hidden.rename(file)

        return written

    for write in (SparkEngine.record, SparkEngine.write_postimages):
        monkeypatch.setattr(SparkEngine, write.__name__, away(write))
    session.sql(statement.format(f"delta.`{path}`"))
    assert calls
    found = rows_of(ReadChanges(path, 1).run())
    assert applied(rows, found) == Counter(map(plain, World(path).rows()))


UPSERT = (
    "MERGE INTO delta.`{}` t USING (SELECT explode(array(1L, 2L, 5L, 20L)) AS id) s ON t.id = s.id "
    "WHEN MATCHED AND s.id = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET x = 1 "
    "WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, 1)"
)


def test_what_a_small_merge_changed_lies_in_one_file(session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    properties = {ENABLED: "true", "delta.enableDeletionVectors": "true"}
    for start in (0, 4):
        anabranch.append(path, [{"id": start + i, "x": 0} for i in range(4)], properties=properties)
    session.sql(UPSERT.format(path))
    assert kinds(path, 2) == {"update_preimage": 2, "update_postimage": 2, "delete": 1, "insert": 1}
    assert len(list(Path(path, "_change_data").rglob("*.parquet"))) == 1


def test_what_a_large_merge_changed_is_recorded_while_it_writes_its_new_rows(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_recorder, "WORTH_A_JOB", 3)
    path, threads = str(tmp_path / "t"), list[str]()
    record = SparkEngine.record

    def recorded(*given: Any) -> None:
        threads.append(threading.current_thread().name)
        record(*given)

    monkeypatch.setattr(SparkEngine, "record", recorded)
    properties = {ENABLED: "true", "delta.enableDeletionVectors": "true"}
    anabranch.append(path, [{"id": i, "x": 0} for i in range(8)], properties=properties)
    session.sql(UPSERT.format(path))
    assert [name.startswith("anabranch-beside") for name in threads] == [True, False]
    assert kinds(path, 1) == {"update_preimage": 2, "update_postimage": 2, "delete": 1, "insert": 1}
    assert anabranch.check(path).is_clean


def test_a_merge_whose_record_fails_leaves_nothing(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_recorder, "WORTH_A_JOB", 0)
    path = str(tmp_path / "t")
    anabranch.append(path, [{"id": i, "x": 0} for i in range(8)], properties={ENABLED: "true"})

    def failing(*_: Any) -> None:
        raise errors.ExecutionFailed(what="the record", reason="no room")

    monkeypatch.setattr(SparkEngine, "record", failing)
    with pytest.raises(errors.ExecutionFailed, match="no room"):
        session.sql(UPSERT.format(path))
    assert World(path).version == 0
    assert not [file for file in Path(path).glob("job-*/**/*") if file.is_file()], "what was staged is removed"


def test_a_file_that_a_vacuum_removed_is_missed_by_the_version_that_needs_it(
    session: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t [1]")
    table = World(path).create([{"id": 0}])
    table.append({"id": 1})
    table.delete("id = 0")
    record_changes(path)
    assert kinds(path, 2) == {"delete": 1}
    first = next(Path(path, name) for name in re.findall(r'"path":"([^"]+)"', Path(path, commit_name(0)).read_text()))
    first.unlink()
    with pytest.raises(errors.ChangeFilesMissing) as error:
        anabranch.changes(path, 1, spark=session)
    assert error.value.facts["version"] == 2
    assert first.name in error.value.facts["file"]
    assert told(anabranch.changes(path, 1, 1, spark=session)) == [(1, "insert", 1)]


def test_a_merge_of_changes_knows_at_which_version_they_were_read(
    session: SparkSession, path: str, tmp_path: Path
) -> None:
    copy = str(tmp_path / "copy")
    anabranch.append(copy, [{"id": i} for i in range(8)])
    session.sql(
        f"""MERGE INTO delta.`{copy}` t USING (SELECT * FROM table_changes('{path}', 2, 2)) c ON t.id = c.id
            WHEN MATCHED AND c._change_type = 'delete' THEN DELETE"""
    )
    assert [row["id"] for row in deltalake_rows(copy)] == [0, 2, 4, 5, 6, 7]
