"""Tables without Spark at the edges of values, types and arguments."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from math import isnan, nan
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anabranch
from anabranch import Table
from anabranch._arrow import finding
from anabranch._protocol.rules.identity import identity_metadata
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands import Create
from anabranch.commands.ddl.alter import AddColumns, NewColumn
from anabranch.commands.dml.new_table import NewTable
from anabranch.errors import (
    InvalidArgument,
    InvalidCondition,
    InvalidOption,
    NeedsSpark,
    NotNullViolated,
    UnknownColumn,
)
from tests.support.patience import PATIENCE
from tests.support.raw_logs import WITH_VECTORS, metadata, put_commit, put_rows


def made(folder: Path, rows: Any, **options: Any) -> Table:
    path = str(folder / f"t{uuid4().hex[:6]}")
    anabranch.append(path, rows, **options)
    return anabranch.table(path)


def test_a_condition_on_partitions_alone_or_on_nothing_takes_no_spark(tmp_path: Path) -> None:
    table = made(tmp_path, [{"id": i, "p": "x" if i % 2 else "y", "v": 0} for i in range(10)], partition_by="p")
    assert table.update("p = 'x'", {"v": "id"}).rows == 5
    assert table.update(None, {"v": "v + 1"}).rows == 10
    assert table.update("1 = 1 AND true", {"v": "v + 1"}).rows == 10
    assert sorted(table.to_arrow(["p"]).column("p").to_pylist()) == ["x"] * 5 + ["y"] * 5
    done = table.merge([{"p": "x"}], "source.p = target.p").when_matched_delete().execute()
    assert done.rows == 5
    assert table.to_arrow().num_rows == 5


@pytest.mark.parametrize(
    ("text", "found"),
    [("s = 'O''Hare'", [1]), ('s = "O\'Hare"', [1]), (r"s = 'O\'Hare'", [1]), ("s <> 'O''Hare'", [2]), ("null", [])],
)
def test_texts_mean_what_they_mean_by_sparks_defaults(tmp_path: Path, text: str, found: list[int]) -> None:
    table = made(tmp_path, [{"id": 1, "s": "O'Hare"}, {"id": 2, "s": "Oslo"}])
    assert table.to_arrow(["id"], text).column("id").to_pylist() == found
    assert table.delete(text).rows == len(found)


def test_nan_is_a_value_of_a_column_that_holds_no_null(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    Create(path, NewTable(Struct((Field("id", "long"), Field("x", "double", nullable=False))))).run()
    table = anabranch.table(path)
    table.append(pa.table({"id": [2], "x": [nan]}))
    assert table.update("id = 2", {"id": "id + 1"}).rows == 1
    assert isnan(table.to_arrow(["x"], "id = 3").column("x")[0].as_py())
    with pytest.raises(NotNullViolated):
        table.append(pa.table({"id": [4], "x": pa.array([None], pa.float64())}))


def test_moments_that_have_no_place_in_microseconds_are_refused(tmp_path: Path) -> None:
    table = made(tmp_path, pa.table({"at": pa.array([0], pa.timestamp("us", "UTC")), "v": [0]}))
    for moment, unit in ((2**62, "s"), (999, "ns")):
        source = pa.table({"at": pa.array([moment], pa.timestamp(unit, "UTC")), "v": [1]})
        with pytest.raises(InvalidOption, match="Cast it first"):
            table.merge(source, "source.at = target.at").when_matched_update_all().execute()
    assert table.to_arrow(["v"]).column("v").to_pylist() == [0]


def test_a_merge_updates_rows_with_nested_columns(tmp_path: Path) -> None:
    rows = [{"id": i, "l": [i, None], "s": {"a": i, "b": "x"}, "v": 0} for i in range(4)]
    table = made(tmp_path, rows)
    table.merge([{"id": 1, "v": 7}], "source.id = target.id").when_matched_update({"v": "source.v"}).execute()
    assert table.to_arrow(where="id = 1").to_pylist() == [{"id": 1, "l": [1, None], "s": {"a": 1, "b": "x"}, "v": 7}]
    more = [{"id": i, "l": [9], "s": {"a": 5, "b": "y"}, "v": 1} for i in (2, 8)]
    merge = table.merge(more, "source.id = target.id").when_matched_update_all().when_not_matched_insert_all()
    assert merge.execute().rows == 2
    assert sorted(table.to_arrow(where="v = 1").to_pylist(), key=lambda row: row["id"]) == more


def test_a_struct_that_was_added_is_null_in_older_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    anabranch.append(path, [{"id": 1}, {"id": 2}])
    AddColumns(path, [NewColumn(Field("s", Struct((Field("a", "long"),))))]).run()
    table = anabranch.table(path)
    assert table.to_arrow().to_pylist() == [{"id": 1, "s": None}, {"id": 2, "s": None}]
    assert table.update("s.a IS NULL AND id = 2", {"id": "3"}).rows == 1
    table.append([{"id": 4, "s": {"a": 5}}])
    assert table.to_arrow(None, "s.a = 5").to_pylist() == [{"id": 4, "s": {"a": 5}}]
    assert sorted(table.to_arrow(["id"]).column("id").to_pylist()) == [1, 3, 4]


def test_an_identity_column_counts_on_in_a_merge(tmp_path: Path) -> None:
    path, counted = str(tmp_path / "t"), Field("id", "long", True, identity_metadata(1, 1, explicit=False))
    Create(path, NewTable(Struct((counted, Field("k", "long"))))).run()
    table = anabranch.table(path)
    table.append([{"k": 1}, {"k": 2}])
    merge = table.merge([{"k": 2}, {"k": 3}, {"k": 4}], "source.k = target.k")
    merge.when_not_matched_insert({"k": "source.k"}).execute()
    found = table.to_arrow().to_pylist()
    assert sorted(row["k"] for row in found) == [1, 2, 3, 4]
    assert len({row["id"] for row in found} - {None}) == 4


def test_timestamp_partitions_may_all_be_null(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "at": pa.array([None, None], pa.timestamp("us", "UTC"))})
    table = made(tmp_path, rows, partition_by="at")
    assert table.to_arrow().to_pylist() == rows.to_pylist()
    assert table.delete("id = 1").rows == 1


def test_rows_that_take_much_memory_are_rewritten_some_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "MOST_BYTES", 50_000)
    rows = [{"id": i, "s": "x" * 1_000} for i in range(200)]
    table = made(tmp_path, rows, properties={"delta.enableDeletionVectors": "false"})
    assert table.delete("id % 2 = 0").rows == 100
    assert table.update("id < 100", {"s": "upper(s)"}).rows == 50
    found = {row["id"]: row["s"][0] for row in table.to_arrow().to_pylist()}
    assert found == {i: "X" if i < 100 else "x" for i in range(1, 200, 2)}


READ_BY_ARROW = """
import sys, anabranch, pyarrow as pa, pyarrow.dataset as ds
pa.set_io_thread_count(1)
reader = anabranch.table(sys.argv[1]).to_batches(["id"])
print(ds.Scanner.from_batches(reader).to_table().num_rows)
"""


@pytest.mark.slow
def test_a_reader_of_batches_waits_for_no_thread_of_arrows_own(tmp_path: Path) -> None:
    made(tmp_path, [{"id": 1}])
    (path,) = tmp_path.iterdir()
    given = [sys.executable, "-c", READ_BY_ARROW, str(path)]
    done = subprocess.run(given, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.stdout == "1\n", done.stderr


WRONG: Mapping[str, tuple[Callable[[Table], Any], type[Exception], str]] = {
    "a change of the schema": (
        lambda t: t.overwrite([{"id": 1}], schema_change="MERGE"),
        InvalidOption,
        "schema_change",
    ),
    "columns as text": (lambda t: t.to_arrow("id"), InvalidArgument, "list"),
    "columns of no text": (lambda t: t.to_arrow([1]), InvalidArgument, "list"),
    "a column twice": (lambda t: t.to_arrow(["id", "ID"]), InvalidArgument, "twice"),
    "an array": (lambda t: t.delete(pa.array([1, 2])), InvalidArgument, "text"),
    "values as a list": (lambda t: t.merge([{"id": 1}], "true").when_matched_update([]), InvalidArgument, "dict"),
    "no values": (lambda t: t.merge([{"id": 1}], "true").when_matched_update(None), InvalidArgument, "dict"),
    "a key of no text": (lambda t: t.update(None, {1: "5"}), InvalidArgument, "dict"),
    "an alias": (lambda t: t.merge([{"id": 1}], "true", source_alias=5), InvalidArgument, "name"),
    "a number of 70 bits": (lambda t: t.append([{"id": 2**70}]), InvalidOption, "table"),
    "an unknown column in ON": (
        lambda t: t.merge([{"id": 1}], "source.zz = target.id").when_matched_delete().execute(),
        InvalidCondition,
        "zz",
    ),
    "a column of both sides": (
        lambda t: t.merge([{"id": 1}], "id = id").when_matched_delete().execute(),
        InvalidCondition,
        "several",
    ),
    "the table's column in an insert": (
        lambda t: t.merge([{"id": 1}], "source.id = target.id").when_not_matched_insert({"id": "target.id"}).execute(),
        InvalidCondition,
        "source",
    ),
    "an unknown column to insert": (
        lambda t: t.merge([{"id": 1}], "source.id = target.id").when_not_matched_insert({"zz": "1"}).execute(),
        UnknownColumn,
        "zz",
    ),
}


@pytest.mark.parametrize(("work", "error", "word"), WRONG.values(), ids=WRONG)
def test_what_is_no_argument_is_refused_by_name(
    tmp_path: Path, work: Callable[[Table], Any], error: type[Exception], word: str
) -> None:
    table = made(tmp_path, [{"id": 1, "name": "x"}])
    with pytest.raises(error, match=word):
        work(table)
    assert len(table.history()) == 1


NESTED = pa.table(
    {"id": [1], "s": [{"x": 1}], "l": [[1]], "m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}
)


@pytest.mark.parametrize("value", ["source.s", "source.m.a"])
def test_a_nested_column_that_a_clause_names_is_left_to_spark_and_not_called_unknown(
    tmp_path: Path, value: str
) -> None:
    merge = made(tmp_path, NESTED).merge(NESTED, "source.id = target.id")
    for asked in (
        merge.when_matched_update({"id": "1"}, f"{value} IS NULL"),
        merge.when_matched_update({value.split(".")[1]: value}),
    ):
        with pytest.raises(NeedsSpark):
            asked.execute()


@pytest.mark.parametrize("name", ["l", "m"])
def test_a_list_or_map_of_the_source_is_compared_with_null_and_not_assigned(tmp_path: Path, name: str) -> None:
    table = made(tmp_path, NESTED)
    merge = table.merge(NESTED, "source.id = target.id")
    with pytest.raises(NeedsSpark):
        merge.when_matched_update({name: f"source.{name}"}).execute()
    merge.when_matched_update({"id": "2"}, f"source.{name} IS NULL").execute()
    assert table.to_arrow()["id"].to_pylist() == [1]
    merge.when_matched_update({"id": "2"}, f"source.{name} IS NOT NULL").execute()
    assert table.to_arrow()["id"].to_pylist() == [2]


def test_a_member_that_a_struct_lacks_is_unknown(tmp_path: Path) -> None:
    merge = made(tmp_path, NESTED).merge(NESTED, "source.id = target.id")
    with pytest.raises(InvalidCondition, match=r"s\.nope"):
        merge.when_matched_delete("source.s.nope = 1").execute()


def test_rows_of_files_without_statistics_are_those_of_their_footers(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = [{"id": i, "x": i} for i in range(6)]
    put_commit(path, 0, WITH_VECTORS, metadata(), put_rows(path, "a.parquet", rows, stats=None))
    table = anabranch.table(path)
    table.delete("id = 1")
    merge = table.merge([{"id": 2, "x": 20}], "source.id = target.id").when_matched_update_all()
    done = merge.when_not_matched_by_source_update({"x": "-target.x"}, "target.id > 3").execute()
    assert done.metrics["numTargetRowsUpdated"] == 3
    found = sorted((row["id"], row["x"]) for row in table.to_arrow().to_pylist())
    assert found == [(0, 0), (2, 20), (3, 3), (4, -4), (5, -5)]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view()])
def test_texts_in_another_layout_of_arrow_are_read_and_changed(tmp_path: Path, kind: pa.DataType) -> None:
    """As Polars and delta-rs write them."""
    anabranch.append(tmp_path / "t", [{"id": 1, "s": "a", "l": ["x"]}, {"id": 2, "s": None, "l": None}])
    (file,) = anabranch.files(tmp_path / "t")["path"].to_pylist()
    rows = pq.read_table(tmp_path / "t" / file)
    other = pa.table({"id": rows["id"], "s": rows["s"].cast(kind), "l": rows["l"].cast(pa.list_(kind))})
    size = (tmp_path / "t" / file).stat().st_size
    pq.write_table(other, tmp_path / "t" / file)
    table = anabranch.table(tmp_path / "t")
    log = tmp_path / "t" / "_delta_log" / "00000000000000000000.json"
    log.write_text(log.read_text().replace(f'"size":{size}', f'"size":{(tmp_path / "t" / file).stat().st_size}'))
    table.update("s = 'a'", {"s": "concat(s, '!')"})
    assert sorted(map(str, table.to_arrow().to_pylist())) == sorted(
        map(str, [{"id": 1, "s": "a!", "l": ["x"]}, {"id": 2, "s": None, "l": None}])
    )
