"""The tables of features and engines in the documentation say what is seen here, and name all that is tried."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from tests.support.delta_spark import DeltaSpark
from tests.support.delta_spark_tables import MADE
from tests.support.our_tables import OURS
from tests.support.readers import Row, deltalake_rows, duckdb_rows, same_rows
from tests.support.worlds import World, table_path

pytestmark = [pytest.mark.interop]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "other-engines.md"


def stated(heading: str) -> dict[str, tuple[str, ...]]:
    """The rows of the table below a heading: feature -> what its engines do."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", section, re.M)]
    return {row[0]: tuple(row[1:]) for row in rows[2:]}


def how(read: Callable[[], Iterable[Row]], expected: Iterable[Row]) -> str:
    """Whether an engine reads a table equal, or refuses it; other rows than ours are never right."""
    try:
        found = read()
    except Exception:  # each engine has its own
        return "no"
    assert same_rows(found, expected)
    return "yes"


OURS_STATED, THEIRS_STATED = stated("Reading our tables with other engines"), stated("Reading tables of delta-spark")


def test_the_tables_name_what_is_tried_and_nothing_else() -> None:
    assert set(OURS_STATED) == set(OURS)
    assert {name.replace("`", "") for name in THEIRS_STATED} == set(MADE)


@pytest.mark.parametrize("name", OURS)
def test_delta_rs_and_duckdb_read_what_we_write_as_is_said(tmp_path: Path, name: str) -> None:
    world = World(table_path(tmp_path))
    OURS[name](world)
    path, rows = world.path, world.rows()
    found = (how(lambda: deltalake_rows(path), rows), how(lambda: duckdb_rows(path), rows))
    assert found == OURS_STATED[name][1:]


@pytest.mark.spark
@pytest.mark.parametrize("name", OURS)
def test_delta_spark_reads_what_we_write_as_is_said(delta_spark: DeltaSpark, tmp_path: Path, name: str) -> None:
    world = World(table_path(tmp_path))
    OURS[name](world)
    assert how(lambda: delta_spark.rows(world.path), world.rows()) == OURS_STATED[name][0]


@pytest.mark.spark
@pytest.mark.parametrize("name", THEIRS_STATED)
def test_we_and_the_others_read_what_delta_spark_writes_as_is_said(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, name: str
) -> None:
    path, made = table_path(tmp_path), MADE[name.replace("`", "")]
    made.by(delta_spark, path)
    expected = delta_spark.query(f"SELECT {', '.join(made.select)} FROM delta.`{path}`").to_pylist()
    assert expected
    ours, *others = THEIRS_STATED[name]
    found = anabranch.read(path, spark=spark).selectExpr(*made.select).toArrow().to_pylist()
    assert same_rows(found, expected)
    assert ours == "yes"
    if made.select == ("*",):
        assert [how(lambda: deltalake_rows(path), expected), how(lambda: duckdb_rows(path), expected)] == others
