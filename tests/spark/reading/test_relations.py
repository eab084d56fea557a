"""Frames over many files are made once; each use is as if it were made anew."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable
from anabranch._spark.reading import raw_rows
from anabranch.errors import MissingDataFile
from anabranch.errors.process_state import forget
from tests.support.worlds import World

pytestmark = [pytest.mark.spark, pytest.mark.classic("a server keeps no relation")]

FILES = 33
"""One more than are few."""


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return anabranch.install(spark)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of many files, of which each test has a copy."""
    found = str(tmp_path_factory.mktemp("many") / "t")
    with anabranch.appender(found) as rows:
        for i in range(FILES):
            rows.append([{"id": i, "p": i % 3, "s": {"x": i}}])
    return found


@pytest.fixture
def path(many: str, tmp_path: Path) -> str:
    return shutil.copytree(many, str(tmp_path / "t"))


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many files each relation is made of that is made in a test."""
    seen = list[int]()
    plain = raw_rows.few_tasks

    def counting(spark: SparkSession, root: str, paths: int) -> object:
        seen.append(paths)
        return plain(spark, root, paths)

    monkeypatch.setattr(raw_rows, "few_tasks", counting)
    forget("relations of many files")
    yield seen
    forget("relations of many files")


def load(session: SparkSession, path: str) -> DataFrame:
    return session.read.format("anabranch").load(path)


def ids(rows: DataFrame) -> list[int]:
    return sorted(row["id"] for row in rows.select("id").collect())


def test_a_version_is_listed_once(session: SparkSession, path: str, made: list[int]) -> None:
    load(session, path)
    assert ids(load(session, path)) == list(range(FILES))
    assert anabranch.sql(session, f"SELECT sum(id) AS s FROM delta.`{path}`").first()["s"] == sum(range(FILES))
    assert made == [FILES]


def test_a_newer_version_is_another_one(session: SparkSession, path: str, made: list[int]) -> None:
    before = load(session, path)
    anabranch.append(path, [{"id": FILES, "p": 0, "s": {"x": 0}}])
    assert ids(load(session, path)) == list(range(FILES + 1))
    World(path).delete("id = 7")
    assert ids(load(session, path)) == [i for i in range(FILES + 1) if i != 7]
    assert ids(before) == list(range(FILES))
    assert max(made) == FILES + 1


def test_deleted_rows_stay_hidden_in_every_use(session: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(session, path)
    World(path).optimize()
    with anabranch.appender(path) as rows:
        for i in range(FILES):
            rows.append([{"id": 100 + i, "p": 0, "s": {"x": 0}}])
    table.delete("id % 2 = 1")
    wanted = [i for i in [*range(FILES), *range(100, 100 + FILES)] if i % 2 == 0]
    load(session, path)
    assert ids(load(session, path)) == wanted


def test_two_uses_can_be_joined_by_their_own_columns(session: SparkSession, path: str) -> None:
    one, other = load(session, path), load(session, path)
    joined = one.join(other, one["id"] == other["id"] - 1).select(one["id"].alias("a"), other["id"].alias("b"))
    assert sorted((row["a"], row["b"]) for row in joined.collect()) == [(i, i + 1) for i in range(FILES - 1)]


def test_each_use_has_its_hidden_columns_and_those_within_others(session: SparkSession, path: str) -> None:
    load(session, path)
    rows = load(session, path)
    files = rows.select(F.col("_metadata.file_path").alias("f"), F.col("s.x").alias("x")).distinct()
    assert files.count() == FILES
    assert rows.schema.fieldNames() == ["id", "p", "s"]


def test_a_filter_of_a_later_use_opens_few_files(session: SparkSession, path: str) -> None:
    assert load(session, path).where("id = 5").count() == 1
    for file in Path(path).glob("*.parquet"):
        if anabranch.files(path, where="id = 5")["path"].to_pylist() != [file.name]:
            data = bytearray(file.read_bytes())
            file.write_bytes(bytes(len(data)))
    assert ids(load(session, path).where("id = 5")) == [5]


@pytest.mark.exhaustive("tests/spark/reading/test_relations.py::test_few_are_kept")
def test_settings_on_which_it_depends_make_another_one(session: SparkSession, path: str, made: list[int]) -> None:
    load(session, path)
    zone = session.conf.get("spark.sql.session.timeZone")
    try:
        session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        load(session, path)
    finally:
        session.conf.set("spark.sql.session.timeZone", zone)
    assert made == [FILES, FILES]


def test_another_session_has_its_own(session: SparkSession, path: str, made: list[int]) -> None:
    load(session, path)
    other = anabranch.install(session.newSession())
    assert ids(load(other, path)) == list(range(FILES))
    assert load(other, path).sparkSession is other
    assert made == [FILES, FILES]


def test_a_table_made_again_at_its_place_is_another_one(session: SparkSession, path: str) -> None:
    load(session, path)
    for file in [*Path(path).rglob("*.json"), *Path(path).rglob("*.crc"), *Path(path).rglob("*.checkpoint.parquet")]:
        file.unlink()
    (Path(path) / "_delta_log" / "_last_checkpoint").unlink(missing_ok=True)
    with anabranch.appender(path) as rows:
        for i in range(FILES):
            rows.append([{"id": -i}])
    assert ids(load(session, path)) == sorted(-i for i in range(FILES))


def test_a_file_that_vanished_since_is_named(session: SparkSession, path: str) -> None:
    load(session, path)
    name = anabranch.files(path, where="id = 5")["path"][0].as_py()
    (Path(path) / name).unlink()
    with pytest.raises(MissingDataFile) as told:
        load(session, path).collect()
    assert name in told.value.facts["file"]
    assert "anabranch fsck" in told.value.message
    assert "VACUUM retained" not in told.value.message, "there was none"


def test_few_are_kept(session: SparkSession, path: str, made: list[int]) -> None:
    """Four of them; each zone makes another one of the same files."""
    zones = ["UTC", "Asia/Tokyo", "Europe/Paris", "America/Lima", "Africa/Cairo"]
    before = session.conf.get("spark.sql.session.timeZone")
    try:
        for zone in (*zones, *zones[1:]):
            session.conf.set("spark.sql.session.timeZone", zone)
            load(session, path)
        assert made == [FILES] * 5
        session.conf.set("spark.sql.session.timeZone", zones[0])
        load(session, path)
        assert made == [FILES] * 6
    finally:
        session.conf.set("spark.sql.session.timeZone", before)
