"""Intervals without Spark: spans are durations and months are numbers, copied as they are and never counted wrong."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch._protocol.schema.intervals import DAY_SECOND, YEAR_MONTH
from anabranch._protocol.schema.types import Array, Field, Struct
from anabranch.commands.opening import open_log
from anabranch.errors import InvalidPartitionValue, NeedsSpark, SchemaMismatch
from tests.support.raw_logs import WITH_VECTORS, add, metadata, put_commit
from tests.support.worlds import table_path

HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
COLUMNS = Struct(
    (Field("id", "long"), Field("ym", YEAR_MONTH), Field("ds", DAY_SECOND), Field("yms", Array(YEAR_MONTH)))
)
FIRST = [{"id": 1, "ym": 18, "ds": DAY, "yms": [1, None]}, {"id": 2, "ym": -1, "ds": -HOUR, "yms": None}, {"id": 3}]


@pytest.fixture
def path(tmp_path: Path) -> str:
    where = table_path(tmp_path)
    put_commit(where, 0, WITH_VECTORS, metadata(COLUMNS))
    anabranch.append(where, FIRST)
    return where


def rows_of(path: str, *columns: str) -> list[tuple[Any, ...]]:
    rows = sorted(anabranch.table(path).to_arrow().to_pylist(), key=lambda row: row["id"])
    return [tuple(row[name] for name in ("id", *columns)) for row in rows]


def test_rows_come_back_and_statistics_have_no_bounds_of_them(path: str) -> None:
    assert rows_of(path, "ym", "ds", "yms") == [(1, 18, DAY, [1, None]), (2, -1, -HOUR, None), (3, None, None, None)]
    (text,) = open_log(path).snapshot().files["stats"].to_pylist()
    stats = json.loads(text)
    assert (stats["minValues"], stats["maxValues"]) == ({"id": 1}, {"id": 3})
    assert (stats["nullCount"]["ym"], stats["nullCount"]["ds"]) == (1, 1)


def test_rows_are_updated_deleted_merged_and_written_anew(path: str) -> None:
    table = anabranch.table(path)
    table.update("ds = ds AND id = 1", {"ds": "NULL", "ym": "coalesce(NULL, ym)", "id": "10"})
    table.delete("ym IS NULL")
    source = pa.table({"id": [2, 4], "ds": pa.array([2 * HOUR, 4 * HOUR])})
    merge = table.merge(source, "t.id = s.id", target_alias="t", source_alias="s")
    merge.when_matched_update({"ds": "s.ds"}).when_not_matched_insert({"id": "s.id", "ds": "s.ds"}).execute()
    assert rows_of(path, "ym", "ds") == [(2, -1, 2 * HOUR), (4, None, 4 * HOUR), (10, 18, None)]
    assert table.optimize().compact().committed is not None
    assert rows_of(path, "ym", "ds") == [(2, -1, 2 * HOUR), (4, None, 4 * HOUR), (10, 18, None)]
    table.overwrite([{"id": 5, "ym": 7}])
    assert rows_of(path, "ym", "ds") == [(5, 7, None)]
    assert anabranch.check(path, deep=True).is_clean


@pytest.mark.parametrize(
    "condition",
    ["ym = 18", "ym + ym > ym", "ds = '1'", "ds > INTERVAL '1' DAY", "cast(ym AS int) = 18", "id::interval day = ds"],
)
def test_what_arrow_does_not_compute_of_them_needs_spark(path: str, condition: str) -> None:
    with pytest.raises(NeedsSpark):
        anabranch.table(path).count(condition)


def test_numbers_are_no_months_to_an_expression(path: str) -> None:
    with pytest.raises(NeedsSpark, match="integer is stored as interval year to month"):
        anabranch.table(path).update("id = 1", {"ym": "5"})
    with pytest.raises(NeedsSpark, match="interval year to month is stored as long"):
        anabranch.table(path).update("id = 1", {"id": "ym"})


@pytest.mark.parametrize(
    "row",
    [{"ym": 1 << 31}, {"ym": 1.5}, {"ym": "1-6"}, {"ym": DAY}, {"ds": 5}, {"yms": [1 << 31]}],
    ids=["too many months", "a fraction", "a text", "a span", "a number", "too many inside"],
)
def test_rows_with_other_values_do_not_fit(path: str, row: dict[str, Any]) -> None:
    with pytest.raises(SchemaMismatch):
        anabranch.append(path, [{"id": 4, **row}])


def test_a_span_with_parts_of_a_microsecond_does_not_fit(path: str) -> None:
    fits, not_quite = (pa.array([number], pa.duration("ns")) for number in (5_000, 5_001))
    anabranch.append(path, {"id": [4], "ds": fits})
    assert rows_of(path, "ds")[-1] == (4, dt.timedelta(microseconds=5))
    with pytest.raises(SchemaMismatch):
        anabranch.append(path, {"id": [4], "ds": not_quite})


def test_spans_partition_a_table_and_no_file_is_left_out_by_them(tmp_path: Path) -> None:
    path = table_path(tmp_path)
    rows = [{"id": i, "ds": None if i == 2 else i * HOUR - DAY} for i in range(4)]
    anabranch.append(path, rows, partition_by=["ds"])
    values = [dict(each)["ds"] for each in open_log(path).snapshot().files["partitionValues"].to_pylist()]
    assert "INTERVAL '-0 23:00:00' DAY TO SECOND" in values
    assert rows_of(path, "ds") == [tuple(row.values()) for row in rows]
    assert len(anabranch.files(path, where="ds > ds")) == 4
    anabranch.table(path).update("ds = ds AND id = 3", {"ds": "NULL"})
    assert rows_of(path, "ds")[2:] == [(2, None), (3, None)]


@pytest.mark.parametrize("text", ["18", "INTERVAL '1' DAY", "INTERVAL '178956970-8' YEAR TO MONTH"])
def test_a_partition_value_that_is_no_literal_of_its_type_is_refused(tmp_path: Path, text: str) -> None:
    """RFC #7077, "Error Conditions"."""
    columns = Struct((Field("id", "long"), Field("ym", YEAR_MONTH)))
    put_commit(tmp_path, 0, WITH_VECTORS, metadata(columns, ("ym",)), add("a.parquet", partitionValues={"ym": text}))
    with pytest.raises(InvalidPartitionValue):
        anabranch.table(tmp_path).to_arrow()
