"""Tables with a session give the same Arrow rows, and leave to Spark what Arrow does not do."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

import anabranch
from anabranch import Table
from anabranch.errors import InvalidArgument, InvalidCondition, NeedsSpark, NotATable

pytestmark = pytest.mark.spark

ROWS = [{"id": i, "name": f"n{i}", "at": dt.datetime(2024, 5, 1, i, tzinfo=dt.UTC)} for i in range(20)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    anabranch.append(str(tmp_path / "t"), ROWS, properties={"delta.enableChangeDataFeed": "true"})
    return str(tmp_path / "t")


def by_id(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=lambda row: row["id"])


TAKES_SPARK: Mapping[str, Callable[[Table], Any]] = {
    "a condition": lambda t: t.delete("regexp_count(name, '^n1') > 0"),
    "a value": lambda t: t.update("id = 3", {"name": "soundex(name)"}),
    "a join": lambda t: (
        t.merge([{"id": 3, "name": "x", "at": None}], "source.id < target.id AND target.id = 9")
        .when_matched_update({"name": "source.name"})
        .execute()
    ),
    "rows that are replaced": lambda t: t.overwrite([ROWS[3]], "regexp_count(name, '^n3$') > 0"),
    "rows that are counted": lambda t: t.count("regexp_count(name, '^n1') > 0"),
    "rows that are read": lambda t: t.to_arrow(["id"], "regexp_count(name, '^n1') > 0"),
    "batches that are read": lambda t: t.to_batches(["id"], "regexp_count(name, '^n1') > 0").read_all(),
}


def test_what_takes_spark_is_done_with_a_session_and_refused_without(spark: SparkSession, path: str) -> None:
    with_session, alone = anabranch.table(path, spark=spark), anabranch.table(path)
    for name, verb in TAKES_SPARK.items():
        with pytest.raises(NeedsSpark):
            verb(alone)
        assert verb(with_session) is not None, name
    names = [row["name"] for row in by_id(alone.to_arrow())]
    assert sorted(names) == ["N000", "n0", "n2", *(f"n{i}" for i in range(3, 9)), "x"]
    assert alone.check(deep=True).is_clean


def test_rows_have_the_same_types_whoever_reads_them(spark: SparkSession, path: str) -> None:
    with_session, alone = anabranch.table(path, spark=spark), anabranch.table(path)
    assert with_session.to_arrow() == alone.to_arrow()
    by_spark = with_session.to_arrow(where="id < 5 AND regexp_count(name, 'n') > 0")
    assert by_spark.schema == alone.to_arrow().schema
    assert by_id(by_spark) == ROWS[:5]
    assert with_session.to_pandas(["id"], "id = 3")["id"].tolist() == [3]
    assert by_id(with_session.changes(0).select(["id", "name", "at"])) == ROWS


def test_a_name_is_one_of_the_catalog_and_a_time_is_in_the_sessions_zone(spark: SparkSession, path: str) -> None:
    anabranch.sql(spark, f"CREATE TABLE IF NOT EXISTS session_table_flights USING delta LOCATION '{path}'")
    try:
        flights = anabranch.table("session_table_flights", spark=spark)
        assert flights.count() == 20
        assert flights.delete("at = '2024-05-01 03:00:00'").rows == 1
        assert flights.append([ROWS[3]]) == 2
        assert flights.optimize().compact().metrics["numAddedFiles"] == 1
        assert flights.history(1)[0]["operation"] == "OPTIMIZE"
    finally:
        anabranch.sql(spark, "DROP TABLE session_table_flights")
    with pytest.raises(NotATable):
        anabranch.table("session_table_flights", spark=spark)


def test_what_fits_no_table_is_refused_in_the_same_words(spark: SparkSession, path: str) -> None:
    table = anabranch.table(path, spark=spark)
    with pytest.raises(InvalidCondition, match="nope"):
        table.delete("nope = 1")
    with pytest.raises(InvalidArgument):
        anabranch.table(path, spark="a session")
    assert table.snapshot().version == 0
