"""A level or a conflict resolution asked for by a session's setting or by an option of a writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import anabranch
from anabranch import DeltaTable, errors
from anabranch.testing import at_phase

pytestmark = pytest.mark.spark

LEVEL, RESOLUTION = "anabranch.isolationLevel", "anabranch.conflictResolution"
ROWS = [{"id": number, "n": 0} for number in range(4)]


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    anabranch.install(spark)
    yield spark
    for name in (LEVEL, RESOLUTION):
        spark.conf.unset(name)


@pytest.fixture
def path(session: SparkSession, tmp_path: Path) -> str:
    anabranch.append(str(tmp_path / "t"), ROWS)
    return str(tmp_path / "t")


def newest(path: str) -> dict[str, Any]:
    return anabranch.history(path, 1)[0]


def add(path: str, amount: int) -> None:
    anabranch.table(path).update("id = 1", {"n": f"n + {amount}"})


def new(session: SparkSession) -> DataFrame:
    return session.sql("SELECT 1L AS id, 100L AS n")


def test_a_sessions_setting_counts_for_each_of_its_commands_and_for_no_other(session: SparkSession, path: str) -> None:
    session.sql(f"SET {LEVEL} = serializable")
    session.conf.set(RESOLUTION, "redo")
    commands: tuple[Callable[[], Any], ...] = (
        lambda: session.sql(f"UPDATE delta.`{path}` SET n = n + 1 WHERE id = 1"),
        lambda: DeltaTable.forPath(session, path).update("id = 1", {"n": "n + 1"}),
        lambda: anabranch.table(path, spark=session).update("id = 1", {"n": "n + 1"}),
        lambda: new(session).write.format("delta").mode("overwrite").option("replaceWhere", "id = 1").save(path),
    )
    for command in commands:
        with at_phase("staged", lambda: add(path, 10)):
            command()
        level, metrics = newest(path)["isolationLevel"], newest(path)["operationMetrics"]
        assert (level, metrics["numRedoneRuns"]) == ("Serializable", "1")
    add(path, 1)
    assert newest(path)["isolationLevel"] == "WriteSerializable"
    assert anabranch.table(path).to_arrow(["n"], "id = 1").to_pylist() == [{"n": 101}]


def test_a_setting_that_is_weaker_than_the_table_or_unknown_is_refused_by_name(
    session: SparkSession, path: str
) -> None:
    session.conf.set(LEVEL, "WriteSerializable")
    session.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")
    session.conf.unset(LEVEL)
    session.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')")
    session.conf.set(LEVEL, "WriteSerializable")
    before = {file for file in Path(path).rglob("*") if file.is_file()}
    for act in (
        lambda: session.sql(f"UPDATE delta.`{path}` SET n = 5"),
        lambda: new(session).write.format("delta").mode("append").save(path),
    ):
        with pytest.raises(errors.InvalidOption, match=r"anabranch\.isolationLevel cannot be WriteSerializable"):
            act()
    assert session.read.format("delta").load(path).count() == 3  # reading asks for no level
    session.conf.set(LEVEL, "Snapshot")
    with pytest.raises(errors.UnsupportedSetting, match=r"anabranch\.isolationLevel cannot be Snapshot"):
        session.sql(f"UPDATE delta.`{path}` SET n = 5")
    assert {file for file in Path(path).rglob("*") if file.is_file()} == before


def test_an_option_of_a_writer_counts_for_its_write_and_more_than_the_session(session: SparkSession, path: str) -> None:
    session.conf.set(RESOLUTION, "file")
    options = {LEVEL: "Serializable", RESOLUTION.upper(): "redo"}
    writer = new(session).write.format("delta").mode("overwrite").option("replaceWhere", "id = 1").options(**options)
    v2 = new(session).writeTo(f"delta.`{path}`").options(**options)
    for write in (lambda: writer.save(path), lambda: v2.overwrite("id = 1")):
        with at_phase("staged", lambda: add(path, 10)):
            write()
        assert (newest(path)["isolationLevel"], newest(path)["operationMetrics"]["numRedoneRuns"]) == (
            "Serializable",
            "1",
        )
    assert RESOLUTION not in anabranch.table(path).detail()["properties"]
    for name in (LEVEL, RESOLUTION):
        with pytest.raises(errors.InvalidOption, match=f"option {name} cannot be x: it takes"):
            new(session).write.format("delta").mode("append").option(name, "x").save(path)


def test_the_options_of_a_write_that_makes_a_table_count_for_it_too(session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "made")
    options = {LEVEL: "Serializable", RESOLUTION: "redo"}
    new(session).write.format("delta").options(**options).save(path)
    assert newest(path)["isolationLevel"] == "Serializable"
    properties = anabranch.table(path).detail()["properties"]
    assert properties[RESOLUTION] == "redo"
    assert LEVEL not in properties


@pytest.mark.classic("the server needs this package for streams")
def test_batches_are_judged_as_the_streams_options_or_the_session_say(
    session: SparkSession, path: str, tmp_path: Path
) -> None:
    source = session.readStream.format("delta").option(LEVEL, "Serializable").load(path)

    def run(name: str, **options: str) -> str:
        writer = source.writeStream.format("delta").option("checkpointLocation", str(tmp_path / f"_{name}"))
        query = writer.options(**options).trigger(availableNow=True).start(str(tmp_path / name))
        query.awaitTermination()
        return str(newest(str(tmp_path / name))["isolationLevel"])

    def each(batch: DataFrame, number: int) -> None:
        batch.write.format("delta").mode("append").save(str(tmp_path / "each"))

    assert run("a") == "WriteSerializable"
    assert run("b", **{LEVEL: "Serializable"}) == "Serializable"
    session.conf.set(LEVEL, "Serializable")
    assert run("c") == "Serializable"
    query = source.writeStream.foreachBatch(each).option("checkpointLocation", str(tmp_path / "_each"))
    query.trigger(availableNow=True).start().awaitTermination()
    assert newest(str(tmp_path / "each"))["isolationLevel"] == "Serializable"
