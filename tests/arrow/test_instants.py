"""Days and instants that other writers have stored: as Spark reads them, or left to Spark."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anabranch
from anabranch.errors import ConcurrentDeleteReadException, NeedsSpark
from anabranch.testing import at_phase

UTC = pa.timestamp("us", "UTC")
INSTANTS = [dt.datetime(year, 5, 6, 7, 8, 9, 123_456, dt.UTC) for year in (1, 1500, 1969, 2024, 9999)]
OLD_WRITERS = [
    {"org.apache.spark.version": "2.4.8"},
    {"org.apache.spark.version": "3.0.1"},
    {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""},
    {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyINT96": ""},
]


def rows_of(instants: list[dt.datetime]) -> pa.Table:
    """Rows with these instants by themselves and in columns of each nested kind."""
    return pa.table(
        {
            "id": range(len(instants)),
            "at": pa.array(instants, UTC),
            "member": pa.array([{"at": each} for each in instants], pa.struct([("at", UTC)])),
            "several": pa.array([[each, None] for each in instants], pa.list_(UTC)),
            "by_name": pa.array([[("a", each)] for each in instants], pa.map_(pa.string(), UTC)),
        }
    )


def stored_as(root: Path, rows: pa.Table, **options: Any) -> anabranch.Table:
    """A table whose one file another writer has made of these rows."""
    [file] = root.glob("**/*.parquet")
    size = file.stat().st_size
    pq.write_table(rows, file, **options)
    [commit] = root.glob("_delta_log/*.json")
    commit.write_text(commit.read_text().replace(f'"size":{size}', f'"size":{file.stat().st_size}'))
    return anabranch.table(root)


def table_of(root: Path, rows: pa.Table, footer: dict[str, str], **options: Any) -> anabranch.Table:
    """A table of these rows, of a writer that notes so much about itself."""
    anabranch.append(root, rows)
    return stored_as(root, rows.replace_schema_metadata(footer), **options)


def test_timestamps_of_96_bits_are_read_to_the_microsecond_at_any_depth(tmp_path: Path) -> None:
    rows = rows_of(INSTANTS)
    table = table_of(tmp_path, rows, {}, use_deprecated_int96_timestamps=True)
    assert table.to_arrow().to_pylist() == rows.to_pylist()
    assert table.to_arrow(where="at < '1969-06-01'")["id"].to_pylist() == [0, 1, 2]


KINDS = {"milliseconds": pa.timestamp("ms", "UTC"), "no zone": pa.timestamp("us"), "neither": pa.timestamp("ms")}


@pytest.mark.parametrize("kind", KINDS)
def test_an_instant_is_one_whatever_unit_and_zone_its_file_names(tmp_path: Path, kind: str) -> None:
    rows = rows_of([each.replace(microsecond=123_000) for each in INSTANTS])
    at = KINDS[kind]
    kinds = [pa.int64(), at, pa.struct([("at", at)]), pa.list_(at), pa.map_(pa.string(), at)]
    stored = rows.cast(pa.schema(list(zip(rows.column_names, kinds, strict=True))))
    anabranch.append(tmp_path, rows)
    table = stored_as(tmp_path, stored)
    assert table.to_arrow().to_pylist() == rows.to_pylist()
    table.update("id = 4", {"id": "5"})
    assert table.to_arrow(["at"], where="id = 5")["at"].to_pylist() == rows["at"].to_pylist()[4:]


def test_rows_with_timestamps_of_96_bits_are_changed_and_become_like_all_others(tmp_path: Path) -> None:
    rows = rows_of(INSTANTS)
    table = table_of(tmp_path, rows, {}, use_deprecated_int96_timestamps=True)
    assert table.update("year(at) = 1500", {"id": "10"}).rows == 1
    assert table.delete("id = 0").rows == 1
    expected = [{**row, "id": 10 if row["id"] == 1 else row["id"]} for row in rows.to_pylist()[1:]]
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["at"]) == expected
    table.optimize().compact()
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["at"]) == expected


@pytest.mark.parametrize("footer", OLD_WRITERS, ids=["2.4", "3.0", "dates", "timestamps"])
@pytest.mark.parametrize("is_int96", [False, True], ids=["64 bits", "96 bits"])
def test_days_that_both_calendars_count_alike_are_read_whoever_wrote_them(
    tmp_path: Path, footer: dict[str, str], is_int96: bool
) -> None:
    rows = rows_of(INSTANTS[2:]).append_column("day", pa.array([dt.date(1950, 1, 1)] * 3))
    table = table_of(tmp_path, rows, footer, use_deprecated_int96_timestamps=is_int96)
    assert table.to_arrow().to_pylist() == rows.to_pylist()


OLD = {
    "an instant": ("at", dt.datetime(1899, 12, 31, tzinfo=dt.UTC), UTC),
    "a day": ("day", dt.date(1582, 1, 1), pa.date32()),
    "in a list": ("several", [dt.datetime(1500, 1, 1, tzinfo=dt.UTC)], pa.list_(UTC)),
    "in a struct": ("member", {"day": dt.date(1500, 1, 1)}, pa.struct([("day", pa.date32())])),
    "in a map": ("by_day", [(dt.date(1500, 1, 1), 1)], pa.map_(pa.date32(), pa.int64())),
}


@pytest.mark.parametrize("what", OLD)
@pytest.mark.parametrize("footer", OLD_WRITERS, ids=["2.4", "3.0", "dates", "timestamps"])
def test_days_that_the_calendars_count_differently_are_left_to_spark(
    tmp_path: Path, footer: dict[str, str], what: str
) -> None:
    name, value, kind = OLD[what]
    rows = pa.table({"id": [1, 2], name: pa.array([None, value], kind)})
    table = table_of(tmp_path, rows, footer)
    assert table.to_arrow(["id"])["id"].to_pylist() == [1, 2]
    with pytest.raises(NeedsSpark, match="Julian"):
        table.to_arrow()
    with pytest.raises(NeedsSpark, match="Julian"):
        table.update("id = 2", {"id": "3"})
    assert len(table.history()) == 1


def test_a_conflict_shows_old_timestamps_of_96_bits_as_they_are(tmp_path: Path) -> None:
    """Their nanoseconds would not reach back to them."""
    table = table_of(tmp_path, rows_of(INSTANTS[1:2]), {}, use_deprecated_int96_timestamps=True)
    with (
        at_phase("staged", lambda: table.update("id = 0", {"id": "1"})),
        pytest.raises(ConcurrentDeleteReadException) as conflict,
    ):
        table.delete("year(at) = 1500")
    assert [row["at"].year for row in conflict.value.facts["samples"]] == [1500]
