"""Rows are read from buckets as from disks, and of a struct only the members that are asked for."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import anabranch
from anabranch._arrow import finding
from anabranch._arrow.reading import map_ahead
from anabranch._arrow.site import site_without_spark
from anabranch._expressions import Context, condition
from anabranch.commands.opening import file_set, open_log
from anabranch.errors import NeedsSpark

ROWS = [{"id": i, "s": {"a": i % 7, "b": f"text {i}" * 5}, "w": f"w{i % 3}"} for i in range(2_000)]

CONDITIONS: Mapping[str, Callable[[Any], bool]] = {
    "s.a = 5": lambda r: r["s"]["a"] == 5,
    "s.b LIKE '%99'": lambda r: r["s"]["b"].endswith("99"),
    "id < 10 AND s.a > 2": lambda r: r["id"] < 10 and r["s"]["a"] > 2,
    "w = 'w1'": lambda r: r["w"] == "w1",
    "w = 'w1' AND id = 4": lambda r: r["w"] == "w1" and r["id"] == 4,
}


@pytest.fixture(params=["memory", "disk"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a table of these rows lies."""
    found = f"memory://{uuid4()}/t" if request.param == "memory" else str(tmp_path / "t")
    anabranch.append(found, ROWS, partition_by="w")
    return found


@pytest.mark.parametrize("text", CONDITIONS)
def test_rows_are_found_wherever_they_lie(path: str, text: str) -> None:
    snapshot = open_log(path).snapshot()
    files = file_set(snapshot)
    context = Context(snapshot.table, snapshot.schema, dt.datetime.now(dt.UTC), "UTC", lambda _: True)
    found = finding.find(site_without_spark(snapshot.store), files, condition(text, context))
    assert sum(map(len, found.values())) == sum(map(CONDITIONS[text], ROWS))


@pytest.mark.slow
def test_a_file_whose_values_arrow_cannot_cast_is_left_to_spark(tmp_path: Path) -> None:
    anabranch.append(tmp_path, pa.table({"s": pa.array([None], pa.struct([("a", pa.int32())]))}))
    [commit] = tmp_path.glob("_delta_log/*.json")
    member = r"\"name\":\"a\",\"type\":\"integer\",\"nullable\":"
    assert f"{member}true" in commit.read_text()
    commit.write_text(commit.read_text().replace(f"{member}true", f"{member}false"))
    with pytest.raises(NeedsSpark, match=r"reading needs Spark .*values of the column s"):
        anabranch.table(tmp_path).to_arrow()


# -- ahead of the caller -----------------------------------------------------------------------------------------------


def test_a_single_item_needs_no_thread() -> None:
    here = threading.current_thread()
    assert [done for _, done in map_ahead(lambda _: threading.current_thread(), [1], 4)] == [here]
    assert here not in {done for _, done in map_ahead(lambda _: threading.current_thread(), [1, 2], 4)}
    assert list(map_ahead(str, [], 4)) == []


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_what_threads_make_comes_in_the_order_of_what_they_were_given(threads: int) -> None:
    found = list(map_ahead(lambda each: each * 2, range(20), threads))
    assert found == [(each, each * 2) for each in range(20)]


def test_no_more_than_a_few_are_taken_ahead_and_of_large_ones_fewer() -> None:
    for most_bytes, most in ((None, 5), (25, 3), (1, 2)):
        taken = list[int]()
        given = (taken.append(each) or each for each in range(20))
        for each, _ in map_ahead(str, given, 4, size_of=lambda _: 10, most_bytes=most_bytes):
            assert len(taken) - each <= most, f"{most_bytes}: {each} was asked for, and {len(taken)} are taken"
        assert len(taken) == 20


def test_a_failure_is_that_of_the_first_that_fails_and_nothing_is_begun_after_it() -> None:
    begun = list[int]()

    def work(each: int) -> int:
        begun.append(each)
        if each in (3, 4):
            raise ValueError(f"{each}")
        return each

    with pytest.raises(ValueError, match="3"):
        list(map_ahead(work, range(1_000), 2, waits=True))
    assert len(begun) < 10
    assert "anabranch-rows" not in {thread.name[:14] for thread in threading.enumerate()}


def test_who_stops_asking_ends_the_threads() -> None:
    several = map_ahead(str, range(1_000), 2, waits=True)
    assert next(several) == (0, "0")
    several.close()
    assert "anabranch-rows" not in {thread.name[:14] for thread in threading.enumerate()}


# -- names in files ----------------------------------------------------------------------------------------------------

INNER = pa.struct([("a", pa.int64()), ("b", pa.string())])
NESTED = pa.table(
    {
        "id": [1, 2, 3],
        "member": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "z"}], INNER),
        "several": pa.array([[{"a": 1, "b": "x"}, None], [], None], pa.list_(INNER)),
        "by_name": pa.array([[("k", {"a": 1, "b": "x"})], None, [("k", None)]], pa.map_(pa.string(), INNER)),
        "deep": pa.array([{"in": [{"a": 1, "b": "x"}]}, {"in": None}, None], pa.struct([("in", pa.list_(INNER))])),
    }
)


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_members_are_found_under_their_names_in_files_at_any_depth(tmp_path: Path, mode: str) -> None:
    anabranch.append(tmp_path, NESTED, properties={"delta.columnMapping.mode": mode})
    table = anabranch.table(tmp_path)
    assert table.to_arrow().to_pylist() == NESTED.to_pylist()
    assert table.to_arrow(["several", "id"], where="member.b = 'z'").to_pylist() == [{"several": None, "id": 3}]
    table.update("member.a = 1", {"id": "id + 10"})
    merge = table.merge(NESTED.slice(2).select(["id"]), "t.id = s.id", target_alias="t", source_alias="s")
    merge.when_matched_update({"id": "s.id + 20"}).execute()
    expected = [{**row, "id": row["id"] + {1: 10, 3: 20}.get(row["id"], 0)} for row in NESTED.to_pylist()]
    by_id = sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
    assert by_id == sorted(expected, key=lambda row: row["id"])


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_nested_columns_are_merged_whatever_their_members_are_called_in_files(tmp_path: Path, mode: str) -> None:
    anabranch.append(tmp_path, NESTED, properties={"delta.columnMapping.mode": mode})
    first, *rest = NESTED.to_pylist()
    given = [{**first, "several": [None], "deep": None}, {**first, "id": 4}]
    merge = anabranch.table(tmp_path).merge(
        pa.Table.from_pylist(given, NESTED.schema), "t.id = s.id", target_alias="t", source_alias="s"
    )
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    found = anabranch.table(tmp_path).to_arrow().to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == [given[0], *rest, given[1]]


OLDER = pa.struct([("a", pa.int64())])
EVOLVED = {
    "a struct": (OLDER, INNER, {"a": 1}),
    "in a list": (pa.list_(OLDER), pa.list_(INNER), [{"a": 1}, None]),
    "in a map": (pa.map_(pa.string(), OLDER), pa.map_(pa.string(), INNER), [("k", {"a": 1})]),
    "in a struct": (pa.struct([("in", OLDER)]), pa.struct([("in", INNER)]), {"in": {"a": 1}}),
}


def add_member(kind: Any) -> None:
    """Add a member ``b`` wherever a struct of a schema has a member ``a``."""
    if not isinstance(kind, dict):
        return
    fields = kind.get("fields", [])
    for inner in (*(field["type"] for field in fields), kind.get("elementType"), kind.get("valueType")):
        add_member(inner)
    if [field["name"] for field in fields] == ["a"]:
        mapping = {"delta.columnMapping.id": 99, "delta.columnMapping.physicalName": "col-b"}
        metadata = mapping if fields[0]["metadata"] else {}
        fields.append({"name": "b", "type": "string", "nullable": True, "metadata": metadata})


def evolve(root: Path) -> None:
    """Add the member to the table's columns, as a schema change of another engine does."""
    [commit] = root.glob("_delta_log/*.json")
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    [metadata] = [action["metaData"] for action in actions if "metaData" in action]
    schema = json.loads(metadata["schemaString"])
    add_member(schema)
    metadata["schemaString"] = json.dumps(schema)
    commit.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


@pytest.mark.parametrize("what", EVOLVED)
@pytest.mark.parametrize("mode", ["none", "name"])
def test_a_member_that_was_added_later_is_null_in_older_files(tmp_path: Path, mode: str, what: str) -> None:
    older, newer, value = EVOLVED[what]
    rows = pa.table({"id": [1, 2], "v": pa.array([value, None], older)})
    anabranch.append(tmp_path, rows, properties={"delta.columnMapping.mode": mode})
    evolve(tmp_path)
    table, expected = anabranch.table(tmp_path), pa.array([value, None], newer)
    assert table.to_arrow()["v"].combine_chunks().equals(expected)
    anabranch.append(tmp_path, pa.table({"id": [3], "v": pa.array([value], newer)}))
    table.update("id = 1", {"id": "4"})
    found = sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
    full = expected.to_pylist()[0]
    assert found == [{"id": 2, "v": None}, {"id": 3, "v": full}, {"id": 4, "v": full}]


def test_a_struct_of_which_a_file_has_no_member_is_left_to_spark(tmp_path: Path) -> None:
    """Nothing that is read of it would say in which rows it is NULL."""
    anabranch.append(tmp_path, pa.table({"id": [1, 2], "v": pa.array([{"a": 1}, None], OLDER)}))
    evolve(tmp_path)
    with pytest.raises(NeedsSpark, match="none of the members of a struct"):
        anabranch.table(tmp_path).to_arrow(["id"], where="v.b IS NULL")


def test_lists_and_maps_are_told_by_their_structure_whatever_their_groups_are_called(tmp_path: Path) -> None:
    """As delta-rs writes them."""
    write_deltalake(tmp_path, NESTED)
    [file] = tmp_path.glob("*.parquet")
    assert "several.list.item.a" in {pq.ParquetFile(file).schema.column(at).path for at in range(8)}
    table = anabranch.table(tmp_path)
    assert table.to_arrow().to_pylist() == NESTED.to_pylist()
    assert table.to_arrow(["several"], where="member.b = 'x'")["several"].to_pylist() == [[{"a": 1, "b": "x"}, None]]
    table.update("id = 1", {"id": "4"})
    table.optimize().compact()
    first, *rest = NESTED.to_pylist()
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == [*rest, {**first, "id": 4}]


UTC_LESS = pa.timestamp("us")
WIDENED: dict[str, tuple[pa.DataType, pa.DataType, Any, Any]] = {
    "a short as double": (pa.int16(), pa.float64(), -7, -7.0),
    "an integer as double": (pa.int32(), pa.float64(), 1 << 30, float(1 << 30)),
    "a decimal": (pa.decimal128(5, 2), pa.decimal128(9, 4), Decimal("-123.45"), Decimal("-123.4500")),
    "a date as timestamp": (pa.date32(), UTC_LESS, dt.date(1999, 12, 31), dt.datetime(1999, 12, 31)),
    "a byte as long": (pa.int8(), pa.int64(), -128, -128),
    "a float as double": (pa.float32(), pa.float64(), 0.5, 0.5),
}


@pytest.mark.parametrize("inside", [False, True], ids=["by itself", "in structs of lists"])
@pytest.mark.parametrize("what", WIDENED)
def test_values_of_older_files_are_as_wide_as_their_column(tmp_path: Path, what: str, *, inside: bool) -> None:
    narrow, wide, value, expected = WIDENED[what]

    def rows(kind: pa.DataType, *values: Any) -> pa.Table:
        if not inside:
            return pa.table({"v": pa.array(values, kind)})
        return pa.table({"v": pa.array([[{"m": each}, None] for each in values], pa.list_(pa.struct([("m", kind)])))})

    properties = {"delta.enableTypeWidening": "true", "delta.feature.timestampNtz": "supported"}
    anabranch.append(tmp_path, rows(narrow, value, None), properties=properties)
    anabranch.append(tmp_path, rows(wide, expected), schema_change="merge")
    found = anabranch.table(tmp_path).to_arrow()["v"].to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, rows(wide, expected, expected, None)["v"].to_pylist()))
