"""Tables without Spark: each verb changes the rows that it names, and what takes Spark is refused before it writes."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import anabranch
from anabranch import Table
from anabranch.errors import (
    AmbiguousMerge,
    ChangeDataNotRecorded,
    CheckConstraintViolated,
    InvalidArgument,
    InvalidCondition,
    InvalidOption,
    MissingDataFile,
    NeedsSpark,
    NotATable,
    NotNullViolated,
    ReplaceWhereMismatch,
    SchemaMismatch,
    UnknownColumn,
    UnreadableExpression,
    VersionNotFound,
)
from tests.support.patience import PATIENCE
from tests.support.readers import deltalake_rows, duckdb_rows
from tests.test_storeys import IMPORT_WITHOUT_SPARK

ROWS = [{"id": i, "name": f"n{i}", "amount": i * 1.5, "part": i % 3} for i in range(60)]
KINDS: Mapping[str, Mapping[str, Any]] = {
    "vectors": {},
    "no vectors": {"properties": {"delta.enableDeletionVectors": "false"}},
    "partitions": {"partition_by": "part"},
    "feed": {"properties": {"delta.enableChangeDataFeed": "true"}},
    "feed, no vectors": {
        "properties": {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "false"},
    },
    "tracked rows": {"properties": {"delta.enableRowTracking": "true"}},
    "mapped columns": {"properties": {"delta.columnMapping.mode": "name"}, "partition_by": "part"},
}


def made(folder: Path, rows: Any = None, **options: Any) -> Table:
    """A table of these rows."""
    path = str(folder / "t")
    anabranch.append(path, ROWS if rows is None else rows, **options)
    return anabranch.table(path)


def by_id(found: pa.Table) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in found.to_pylist()}


def assert_clean(table: Table, folder: Path) -> None:
    """Hold that the log says the truth, and other engines see the same rows."""
    assert table.check(deep=True).is_clean
    ours = sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
    assert sorted(deltalake_rows(str(folder / "t")), key=lambda row: row["id"]) == ours
    if not any(
        name.startswith("col-") for path in table.snapshot().files["path"].to_pylist() for name in path.split("/")
    ):
        # DuckDB reads NULL in partition columns that have other names in the log.
        assert sorted(duckdb_rows(str(folder / "t")), key=lambda row: row["id"]) == ours


# -- reading -----------------------------------------------------------------------------------------------------------


def test_rows_are_read_by_columns_and_condition(tmp_path: Path) -> None:
    table = made(tmp_path, partition_by="part")
    found = table.to_arrow(["name", "part"], "id % 20 = 7 AND part < 2")
    assert sorted(found.to_pylist(), key=lambda row: row["name"]) == [
        {"name": "n27", "part": 0},
        {"name": "n7", "part": 1},
    ]
    assert table.to_arrow(["NAME"], "id < 0").schema == pa.schema([("name", pa.string())])
    assert table.to_pandas(where="id = 5").to_dict("records") == [{"id": 5, "name": "n5", "amount": 7.5, "part": 2}]


def test_rows_are_read_as_they_were(tmp_path: Path) -> None:
    table = made(tmp_path)
    before = dt.datetime.now(dt.UTC)
    table.delete("id >= 10")
    assert table.to_arrow().num_rows == 10
    assert table.to_arrow(version=0).num_rows == 60
    assert table.to_arrow(timestamp=before).num_rows == 60
    with pytest.raises(VersionNotFound):
        table.to_arrow(version=7)


def test_rows_that_are_read_in_batches_are_those_of_the_version_at_which_reading_began(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.append([{"id": 100}])
    reader = table.to_batches(["id"])
    table.delete()
    assert sum(batch.num_rows for batch in reader) == 61


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_changes_say_what_became_of_each_row(tmp_path: Path, vectors: str) -> None:
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": vectors}
    table = made(tmp_path, [{"id": 1, "v": 0}, {"id": 2, "v": 0}], properties=properties)
    table.update("id = 1", {"v": "7"})
    table.delete("id = 2")
    found = table.changes(1)
    assert found.schema.names == ["id", "v", "_change_type", "_commit_version", "_commit_timestamp"]
    assert [tuple(row.values())[:4] for row in found.to_pylist()] == [
        (1, 0, "update_preimage", 1),
        (1, 7, "update_postimage", 1),
        (2, 0, "delete", 2),
    ]
    assert table.changes(2, 2).num_rows == 1
    moments = {each["version"]: each["timestamp"] for each in table.history()}
    assert all(row["_commit_timestamp"] == moments[row["_commit_version"]] for row in found.to_pylist())
    unrecorded = made(tmp_path / "other")
    with pytest.raises(ChangeDataNotRecorded):
        unrecorded.changes(0)


def test_rows_are_counted_from_the_log_where_it_says_how_many(tmp_path: Path) -> None:
    table = made(tmp_path, partition_by="part")
    table.delete("id % 10 = 3")
    assert [table.count(where) for where in (None, "part = 1", "id < 30", "amount IS NULL")] == [54, 18, 27, 0]
    assert [table.count(where, version=0) for where in (None, "id < 30")] == [60, 30]
    for file in tmp_path.glob("t/part=*/*.parquet"):
        file.unlink()
    assert [table.count(where) for where in (None, "part = 1", "id >= 0", "part = 7")] == [54, 18, 54, 0]
    with pytest.raises(MissingDataFile):
        table.count("id < 30")


def test_a_table_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotATable):
        anabranch.table(str(tmp_path / "nothing"))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    table = made(tmp_path)
    (file,) = tmp_path.glob("t/*.parquet")
    file.unlink()
    for work in (table.to_arrow, lambda: table.delete("id = 1"), lambda: table.update("id = 1", {"amount": "0"})):
        with pytest.raises(MissingDataFile, match=file.name):
            work()


# -- changes -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_verb_changes_the_rows_that_it_names(tmp_path: Path, kind: Mapping[str, Any]) -> None:
    table = made(tmp_path, **kind)
    wanted = {row["id"]: dict(row) for row in ROWS}

    assert table.delete("id % 10 = 3").rows == 6
    wanted = {i: row for i, row in wanted.items() if i % 10 != 3}
    assert by_id(table.to_arrow()) == wanted

    assert table.update("id < 20 AND part = 1", {"amount": "amount * 2", "name": "upper(name)"}).rows == 6
    for i, row in wanted.items():
        if i < 20 and row["part"] == 1:
            row |= {"amount": row["amount"] * 2, "name": row["name"].upper()}
    assert by_id(table.to_arrow()) == wanted

    source = [{"id": i, "name": "s", "amount": 0.5, "part": 1} for i in (1, 2, 50, 100, 101)]
    merge = table.merge(source, "source.id = target.id").when_matched_delete("source.id = 2")
    merge = merge.when_matched_update({"amount": "source.amount + target.amount"}).when_not_matched_insert_all()
    done = merge.when_not_matched_by_source_update({"name": "'left'"}, "target.id >= 55").execute()
    assert (done.metrics["numTargetRowsUpdated"], done.metrics["numTargetRowsDeleted"]) == (7, 1)
    del wanted[2]
    for i in (1, 50):
        wanted[i]["amount"] += 0.5
    for i in (55, 56, 57, 58, 59):
        wanted[i]["name"] = "left"
    wanted |= {row["id"]: row for row in source if row["id"] >= 100}
    assert by_id(table.to_arrow()) == wanted

    table.overwrite([{"id": 200, "name": "x", "amount": None, "part": 2}], "part = 2")
    wanted = {i: row for i, row in wanted.items() if row["part"] != 2}
    wanted[200] = {"id": 200, "name": "x", "amount": None, "part": 2}
    assert by_id(table.to_arrow()) == wanted

    table.restore(0)
    assert by_id(table.to_arrow()) == {row["id"]: row for row in ROWS}
    table.overwrite([])
    assert table.to_arrow().num_rows == 0
    assert_clean(table, tmp_path)


def test_names_of_both_libraries_build_a_merge(tmp_path: Path) -> None:
    table = made(tmp_path)
    merge = table.merge(
        [{"id": 1, "name": "one", "amount": 0.0, "part": 0}], "s.id = t.id", source_alias="s", target_alias="t"
    )
    done = merge.whenMatchedUpdate("s.amount < t.amount", {"name": "s.name"}).whenNotMatchedInsertAll().execute()
    assert done.rows == 1
    assert table.to_arrow(["name"], "id = 1").to_pylist() == [{"name": "one"}]


def test_the_clock_needs_no_parentheses_in_a_merge(tmp_path: Path) -> None:
    table = made(tmp_path, pa.table({"id": [1], "day": [dt.date(2020, 1, 1)]}))
    source = pa.table({"id": [1, 2]})
    merge = table.merge(source, "t.id = s.id AND t.day <= current_date", target_alias="t", source_alias="s")
    merge = merge.when_matched_update(updates={"day": "current_date"}, predicate="t.day < current_timestamp")
    merge.when_not_matched_insert(updates={"id": "s.id", "day": "current_date"}).execute()
    assert all(day >= dt.date(2026, 1, 1) for day in table.to_arrow()["day"].to_pylist())


def test_a_merge_in_which_two_rows_would_change_one_is_refused(tmp_path: Path) -> None:
    table = made(tmp_path)
    with pytest.raises(AmbiguousMerge) as error:
        table.merge([{"id": 1}, {"id": 1}, {"id": 2}], "source.id = target.id").when_matched_delete(
            "source.id > 0"
        ).execute()
    assert error.value.facts["count"] == 1
    assert len(table.history()) == 1


def test_rules_hold_for_what_is_written(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("amount", pa.float64())])
    table = made(
        tmp_path,
        pa.table({"id": [1, 2], "amount": [1.0, 2.0]}, schema),
        properties={"delta.constraints.few": "amount < 10"},
    )
    with pytest.raises(CheckConstraintViolated):
        table.update(None, {"amount": "amount * 10"})
    with pytest.raises(CheckConstraintViolated):
        table.merge([{"id": 3, "amount": 11.0}], "source.id = target.id").when_not_matched_insert_all().execute()
    with pytest.raises(CheckConstraintViolated):
        table.overwrite([{"id": 3, "amount": 11.0}])
    assert len(table.history()) == 1
    assert not list(tmp_path.glob("t/job-*/*.parquet"))


def test_an_overwrite_brings_no_row_that_it_does_not_replace(tmp_path: Path) -> None:
    table = made(tmp_path)
    with pytest.raises(ReplaceWhereMismatch):
        table.overwrite([{"id": 1, "part": 1}], "part = 2")
    assert table.to_arrow().num_rows == 60


@pytest.mark.parametrize(
    "where",
    [
        "at < CAST('2020-01-01' AS TIMESTAMP)",
        "at < to_timestamp('2020-01-01')",
        "at < to_timestamp('20200101', 'yyyyMMdd')",
        "at < DATEADD(DAY, -1, to_timestamp('20200102', 'yyyyMMdd'))",
        "CAST(text AS TIMESTAMP) < to_timestamp('2020', 'yyyy')",
    ],
)
def test_without_a_session_a_timestamp_has_a_time_zone_as_by_default(tmp_path: Path, where: str) -> None:
    moments = [dt.datetime(2019, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]
    anabranch.append(tmp_path, {"id": [1, 2], "at": moments, "text": ["2019-01-01 00:00:00", "2024-01-01"]})
    assert anabranch.table(tmp_path).to_arrow(where=where)["id"].to_pylist() == [1]


def test_values_of_all_plain_types_are_kept(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "d": pa.array([Decimal("12345678901234567890.12"), None], pa.decimal128(38, 2)),
            "day": pa.array([dt.date(1969, 12, 31), None]),
            "at": pa.array([dt.datetime(2024, 2, 29, tzinfo=dt.UTC), None], pa.timestamp("us", "UTC")),
            "local": pa.array([dt.datetime(1900, 1, 1), None], pa.timestamp("us")),
            "b": pa.array([b"\x00\xff", None]),
            "s": pa.array(
                [{"x": 1, "y": ["a", None]}, None], pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])
            ),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        }
    )
    table = made(tmp_path, rows)
    assert table.update("id = 1", {"id": "id + 10"}).rows == 1
    found = sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
    assert found == [rows.to_pylist()[1], {**rows.to_pylist()[0], "id": 11}]


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_files_are_packed_and_ordered_and_rows_stay(tmp_path: Path, kind: Mapping[str, Any]) -> None:
    table = made(tmp_path, **kind)
    table.delete("id % 7 = 3")
    table.update("id % 10 = 1", {"amount": "amount + 1"})
    for first in (100, 200, 300):
        table.append([{**row, "id": first + int(row["id"])} for row in ROWS])
    before = by_id(table.to_arrow())
    packed = table.optimize().compact()
    assert packed.metrics["numRemovedFiles"] > packed.metrics["numAddedFiles"]
    assert by_id(table.to_arrow()) == before
    table.append([{"id": 1_000, "name": "x", "amount": 0.0, "part": 1}])
    ordered = table.optimize().z_order("amount", "id")
    assert ordered.metrics["numAddedFiles"] == (3 if "partition_by" in kind else 1)
    assert len(by_id(table.to_arrow())) == len(before) + 1
    assert_clean(table, tmp_path)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_files_in_a_bucket_are_packed_and_ordered_as_on_a_disk(kind: Mapping[str, Any]) -> None:
    path = f"memory://{uuid4()}/t"
    anabranch.append(path, ROWS, **kind)
    table = anabranch.table(path)
    table.delete("id % 7 = 3")
    table.append([{**row, "id": 100 + int(row["id"])} for row in reversed(ROWS)])
    before = by_id(table.to_arrow())
    each = 3 if "partition_by" in kind else 1
    assert table.optimize().compact().metrics["numAddedFiles"] == each
    assert table.optimize().z_order("amount").metrics["numAddedFiles"] == each
    found = table.to_arrow()
    assert by_id(found) == before
    for part in {row["part"] for row in ROWS} if each == 3 else [None]:
        amounts = [row["amount"] for row in found.to_pylist() if part in (None, row["part"])]
        assert amounts == sorted(amounts)
    assert table.check(deep=True).is_clean


def test_only_the_partitions_that_are_asked_for_are_packed(tmp_path: Path) -> None:
    table = made(tmp_path, partition_by="part")
    table.append(ROWS)
    assert table.optimize("part = 1").compact().metrics["numRemovedFiles"] == 2
    with pytest.raises(InvalidCondition):
        table.optimize("id = 1").compact()


# -- refusals ----------------------------------------------------------------------------------------------------------

REFUSED: Mapping[str, tuple[Callable[[Table], Any], type[Exception], str]] = {
    "a condition": (lambda t: t.delete("soundex(name) = 'x'"), NeedsSpark, "soundex"),
    "a condition to read": (lambda t: t.to_arrow(where="soundex(name) = 'x'"), NeedsSpark, "soundex"),
    "a value": (lambda t: t.update(None, {"amount": "rand()"}), NeedsSpark, "rand"),
    "a join": (lambda t: t.merge([{"id": 1}], "true").when_matched_delete().execute(), NeedsSpark, "equal"),
    "a clause": (
        lambda t: t.merge([{"id": 1}], "source.id = target.id").when_matched_update({"amount": "rand()"}).execute(),
        NeedsSpark,
        "rand",
    ),
    "a column": (lambda t: t.delete("nope = 1"), InvalidCondition, "nope"),
    "a column of a value": (lambda t: t.update(None, {"amount": "nope + 1"}), InvalidCondition, "nope"),
    "a column to set": (lambda t: t.update(None, {"nope": "1"}), UnknownColumn, "nope"),
    "a column to read": (lambda t: t.to_arrow(["nope"]), UnknownColumn, "nope"),
    "a syntax": (lambda t: t.delete("id = ("), UnreadableExpression, "syntax"),
    "no text": (lambda t: t.delete(7), InvalidArgument, "text"),
    "no value's text": (lambda t: t.update(None, {"amount": 7}), InvalidArgument, "text"),
    "no values": (lambda t: t.update("id = 1"), InvalidArgument, "dict"),
    "an order": (lambda t: t.optimize().z_order("nope"), InvalidOption, "nope"),
    "no order": (lambda t: t.optimize().z_order(), InvalidOption, "names"),
    "no clause": (lambda t: t.merge([{"id": 1}], "source.id = target.id").execute(), InvalidOption, "WHEN"),
    "a row": (lambda t: t.overwrite([{"id": "one"}]), SchemaMismatch, "id"),
    "a row's column": (lambda t: t.overwrite([{"nope": 1}]), SchemaMismatch, "nope"),
}


@pytest.mark.parametrize(("work", "error", "word"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_or_takes_spark_is_refused_before_anything_is_written(
    tmp_path: Path, work: Callable[[Table], Any], error: type[Exception], word: str
) -> None:
    table = made(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(error, match=word):
        work(table)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == [path for path in before if path.is_file()]


def test_null_in_a_column_that_holds_none_is_refused(tmp_path: Path) -> None:
    anabranch.append(
        path := str(tmp_path / "t"), [{"id": 1, "n": 1}], properties={"delta.constraints.n": "n IS NOT NULL"}
    )
    with pytest.raises((CheckConstraintViolated, NotNullViolated)):
        anabranch.table(path).update("id = 1", {"n": "NULL"})


# -- beside others -----------------------------------------------------------------------------------------------------

CHANGES = """
import anabranch
path, first, last = {path!r}, {first}, {last}
table = anabranch.table(path)
for i in range(first, last):
    table.update(f"id = {{i}}", {{"amount": "amount + 1"}}) if i % 2 else table.delete(f"id = {{i}}")
assert "pyspark" not in sys.modules
print(anabranch.table(path).to_arrow().num_rows > 0)
"""


@pytest.mark.slow
def test_processes_without_spark_change_their_own_rows_of_one_file_and_none_fails(tmp_path: Path) -> None:
    made(tmp_path)

    def changed(writer: int) -> subprocess.CompletedProcess[str]:
        code = CHANGES.format(path=str(tmp_path / "t"), first=writer * 10, last=writer * 10 + 10)
        given = [sys.executable, "-c", IMPORT_WITHOUT_SPARK + code]
        return subprocess.run(given, capture_output=True, text=True, timeout=PATIENCE, check=False)

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(changed, range(4)))
    assert [each.returncode for each in done] == [0] * 4, [each.stderr[-800:] for each in done]
    table = anabranch.table(str(tmp_path / "t"))
    wanted = {row["id"]: row["amount"] + (row["id"] < 40) for row in ROWS if row["id"] >= 40 or row["id"] % 2}
    assert {i: row["amount"] for i, row in by_id(table.to_arrow()).items()} == wanted
    assert_clean(table, tmp_path)
