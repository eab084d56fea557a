"""What skipping takes a condition for is what Spark makes of it: under ANSI rules and without, in every time zone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from anabranch._protocol.schema.types import to_arrow
from tests.support import random_terms
from tests.support.random_terms import SCHEMA, Condition, check, files_of, stats_of, truth

pytestmark = pytest.mark.spark
SETTINGS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.timestampType")


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    before = {name: spark.conf.get(name) for name in SETTINGS}
    yield spark
    for name, value in before.items():
        spark.conf.set(name, str(value))


@pytest.mark.parametrize(
    ("zone", "ansi", "kind"),
    [
        ("UTC", "true", "TIMESTAMP_LTZ"),
        ("Europe/Paris", "false", "TIMESTAMP_LTZ"),
        ("Pacific/Apia", "true", "TIMESTAMP_LTZ"),
        ("America/New_York", "true", "TIMESTAMP_NTZ"),
    ],
)
def test_no_row_that_spark_finds_is_skipped(
    session: SparkSession, tmp_path: Path, zone: str, ansi: str, kind: str
) -> None:
    for name, value in zip(SETTINGS, (zone, ansi, kind), strict=True):
        session.conf.set(name, value)
    runtime = random.Random(f"{zone}{ansi}{kind}")
    rows = [random_terms.row(runtime) for _ in range(60)]
    wanted = [random_terms.condition(runtime) for _ in range(40)]
    table = pa.Table.from_pylist(rows, to_arrow(SCHEMA)).append_column("row", pa.array(range(len(rows))))
    texts = [f"{each.text()} AS c{i}" for i, each in enumerate(wanted)]
    pq.write_table(table, tmp_path / "rows.parquet")
    found = {each["row"]: each for each in session.read.parquet(str(tmp_path)).selectExpr("row", *texts).collect()}
    stated = files_of([stats_of([row], random.Random(0)) for row in rows])
    files = [[{"row": row}] for row in range(len(rows))]
    for i, each in enumerate(wanted):
        column = [found[row][i + 1] for row in range(len(rows))]
        check(each, files, stated, zone, lambda _, row, column=column: column[row["row"]])  # type: ignore[misc]
        if kind == "TIMESTAMP_LTZ":  # the evaluator that the other tests trust
            assert column == _truths(each, rows, zone), each.text()


def _truths(wanted: Condition, rows: list[dict[str, object]], zone: str) -> list[bool | None]:
    return [truth(wanted, row, ZoneInfo(zone)) for row in rows]
