"""`delta.parquet.format.version`: the version of the data pages in every file that a command writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anabranch
from anabranch import errors
from anabranch._protocol.rules.table_rules import parse_pages
from anabranch.commands.ddl.alter import SetProperties
from tests.support.pages import page_versions
from tests.support.raw_logs import PROTOCOL, metadata, put_commit, put_rows

VERSION = "delta.parquet.format.version"
ROWS = [{"id": i, "x": i % 3} for i in range(10)]


def pages(path: str) -> list[set[int]]:
    """The versions of pages in each live file, sorted."""
    return sorted((page_versions(Path(path) / file) for file in anabranch.files(path)["path"].to_pylist()), key=sorted)


@pytest.mark.parametrize(("version", "page"), [("1.0.0", "1.0"), ("2.12.0", "2.0"), (" 2.0.11 ", "2.0")])
def test_a_version_is_1_0_0_or_any_of_2(version: str, page: str) -> None:
    assert parse_pages(version) == page


@pytest.mark.parametrize("version", ["", "1", "1.0.1", "2", "2.12", "2.x.y", "3.0.0", "2.12.0.1", "v2"])
def test_another_version_is_refused_when_it_is_set(tmp_path: Path, version: str) -> None:
    path = str(tmp_path / "t")
    with pytest.raises(errors.InvalidProperty) as refusal:
        anabranch.append(path, ROWS, properties={VERSION: version})
    assert refusal.value.property == VERSION


@pytest.mark.parametrize(("version", "page"), [(None, 1), ("1.0.0", 1), ("2.12.0", 2)])
def test_each_command_without_spark_writes_pages_of_that_version(
    tmp_path: Path, version: str | None, page: int
) -> None:
    path = str(tmp_path / "t")
    anabranch.append(path, ROWS, properties={} if version is None else {VERSION: version})
    anabranch.append(path, ROWS)
    table = anabranch.table(path)
    table.update("id = 1", {"x": "7"})
    assert pages(path) == [{page}] * 3
    table.optimize().compact()
    assert pages(path) == [{page}]
    assert table.count() == 20


def test_files_of_both_versions_are_read_and_changed(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    anabranch.append(path, ROWS)
    SetProperties(path, {VERSION: "2.12.0"}).run()
    anabranch.append(path, [{"id": 20, "x": 0}])
    assert pages(path) == [{1}, {2}]
    anabranch.table(path).delete("id IN (0, 20)")
    assert sorted(pa.table(anabranch.table(path).to_arrow())["id"].to_pylist()) == list(range(1, 10))


def test_a_version_that_another_engine_has_set_wrong_stops_writers_only(tmp_path: Path) -> None:
    put_commit(tmp_path, 0, PROTOCOL, metadata(**{VERSION: "9.0.0"}), put_rows(tmp_path, "a.parquet", ROWS))
    path = str(tmp_path)
    assert anabranch.table(path).to_arrow().num_rows == 10
    with pytest.raises(errors.InvalidProperty, match=r"2\.12\.0"):
        anabranch.append(path, ROWS)


@pytest.mark.spark
@pytest.mark.parametrize(("version", "page"), [("1.0.0", 1), ("2.12.0", 2)])
def test_spark_writes_pages_of_that_version_and_reads_them(spark: Any, tmp_path: Path, version: str, page: int) -> None:
    path = str(tmp_path / "t")
    anabranch.install(spark)
    anabranch.append(path, [{"id": -1, "x": 0, "s": ""}], properties={VERSION: version})
    rows = spark.range(100_000).selectExpr("id", "id % 3 AS x", "cast(id AS string) AS s")
    rows.write.format("delta").mode("append").save(path)
    assert {number for each in pages(path) for number in each} == {page}
    files = [Path(path) / file for file in anabranch.files(path)["path"].to_pylist()]
    assert any(pq.read_metadata(file).created_by.startswith("parquet-mr") for file in files)
    found = anabranch.read(path, spark=spark)
    assert (found.where("id >= 0 AND x < 3").count(), found.where("s = '99999'").count()) == (100_000, 1)
    assert anabranch.table(path).to_arrow().num_rows == 100_001
