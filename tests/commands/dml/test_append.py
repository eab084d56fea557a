"""Appending rows at hand: every kind of rows, fitted without loss, and never stopped by anybody."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anabranch
from anabranch import errors
from anabranch._log.log import forget
from anabranch._storage import open_store
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.dml.append import Append, as_arrow
from anabranch.commands.queries.read import Read
from anabranch.testing import ObservedStore, at_phase, mounted
from anabranch.testing.stores import Call
from tests.support.raw_logs import PROTOCOL, add, info, listing, metadata, put_commit
from tests.support.readers import deltalake_rows, duckdb_rows, same_rows
from tests.support.tiers import examples
from tests.support.worlds import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    forget()
    made = World(str(tmp_path / "t"))
    yield made
    if (tmp_path / "t" / "_delta_log").is_dir():
        made.assert_clean()


def stats_of(world: World) -> list[dict[str, Any]]:
    return [json.loads(text) for text in world.log.snapshot().files["stats"].to_pylist()]


def column(world: World, name: str) -> list[Any]:
    return [row[name] for row in world.rows()]


@pytest.mark.parametrize("rows", [[], (), {}, {"id": []}, pa.table({"id": pa.array([], pa.int64())})])
def test_no_rows_are_a_version_without_new_rows(world: World, rows: Any) -> None:
    world.append({"id": 1, "s": "a"})
    assert anabranch.append(world.path, rows) == 1
    assert world.rows() == [{"id": 1, "s": "a"}]


def test_no_rows_without_columns_make_no_table(world: World) -> None:
    with pytest.raises(errors.InvalidOption, match="at least one column"):
        anabranch.append(world.path, [])


@pytest.mark.parametrize("argument", ["partition_by", "cluster_by"])
def test_one_column_may_be_said_by_its_name(world: World, argument: str) -> None:
    anabranch.append(world.path, [{"id": 1, "day": "mon"}], **{argument: "day"})  # type: ignore[arg-type]
    snapshot = world.log.snapshot()
    found = {
        "partition_by": snapshot.partition_columns,
        "cluster_by": tuple(name for (name,) in snapshot.clustering_columns),
    }
    assert found[argument] == ("day",)


# -- columns that only the rows have -----------------------------------------------------------------------------------


def merge(world: World, rows: Any) -> int:
    return anabranch.append(world.path, rows, schema_change="merge")


def types(world: World) -> dict[str, Any]:
    return {field.name: field.type for field in world.log.snapshot().schema}


def test_new_columns_come_last_and_are_null_in_older_rows(world: World) -> None:
    world.append({"id": 1, "s": "a"})
    assert merge(world, [{"n": 5, "ID": 2}]) == 1
    assert world.rows() == [{"id": 1, "s": "a", "n": None}, {"id": 2, "s": None, "n": 5}]


def test_new_members_of_structs_are_added_at_any_depth(world: World) -> None:
    world.append({"id": 1, "place": {"city": "Oslo"}, "stops": [{"gate": 1}]})
    merge(world, [{"id": 2, "place": {"city": "Lima", "zip": "1"}, "stops": [{"gate": 2, "late": True}]}])
    assert world.rows()[0]["place"] == {"city": "Oslo", "zip": None}
    assert world.rows()[1]["stops"] == [{"gate": 2, "late": True}]


def test_rows_without_new_columns_write_no_metadata_and_stay_blind(world: World) -> None:
    world.append({"id": 1, "s": "a"})
    merge(world, [{"id": 2}])
    assert world.info()["isBlindAppend"] is True
    assert world.log.snapshot().metadata == world.log.snapshot(0).metadata


def test_a_type_widens_where_the_table_allows_it_and_else_only_values_count(tmp_path: Path) -> None:
    world = World(str(tmp_path / "wide"))  # which not all readers can read
    narrow = pa.table({"id": pa.array([1], pa.int32())})
    anabranch.append(world.path, narrow)
    merge(world, [{"id": 2, "n": 1}])
    assert types(world)["id"] == "integer"
    with pytest.raises(errors.SchemaMismatch):
        merge(world, [{"id": 1 << 40}])
    SetProperties(world.path, {"delta.enableTypeWidening": "true"}).run()
    merge(world, [{"id": 1 << 40}])
    assert types(world)["id"] == "long"
    assert column(world, "id") == [1, 2, 1 << 40]


def test_a_value_that_does_not_fit_its_column_is_refused_and_adds_nothing(world: World) -> None:
    world.append({"id": 1})
    with pytest.raises(errors.SchemaMismatch):
        merge(world, [{"id": "one", "n": 1}])
    assert (world.version, list(types(world))) == (0, ["id"])


def test_an_append_that_changes_columns_conflicts_with_another_change_of_them(world: World) -> None:
    world.append({"id": 1})
    with pytest.raises(errors.MetadataChangedException), at_phase("staged", lambda: merge(world, [{"b": 1}])):
        merge(world, [{"a": 1}])
    assert list(types(world)) == ["id", "b"]


def test_a_change_of_columns_creates_a_table_too(world: World) -> None:
    assert merge(world, [{"id": 1}]) == 0


def test_an_append_takes_no_other_change_of_columns(world: World) -> None:
    world.append({"id": 1})
    with pytest.raises(errors.InvalidOption, match="schema_change"):
        anabranch.append(world.path, [{"x": 1}], schema_change="overwrite")  # type: ignore[arg-type]


def test_a_table_without_spark_appends_new_columns_in_the_same_way(world: World) -> None:
    world.append({"id": 1})
    assert anabranch.table(world.path).append([{"id": 2, "n": 1}], schema_change="merge") == 1
    assert column(world, "n") == [None, 1]


# -- kinds of rows -----------------------------------------------------------------------------------------------------

TABLE = pa.table({"id": [1, 2], "s": ["a", None]})
KINDS = {
    "Arrow table": TABLE,
    "record batch": TABLE.to_batches()[0],
    "record batch reader": TABLE.to_reader(),
    "pandas": pd.DataFrame({"id": [1, 2], "s": ["a", None]}),
    "pandas with an index": pd.DataFrame({"id": [1, 2], "s": ["a", None]}, index=[7, 8]),
    "list of dicts": [{"id": 1, "s": "a"}, {"id": 2, "s": None}],
    "tuple of dicts": ({"id": 1, "s": "a"}, {"id": 2, "s": None}),
    "dict of lists": {"id": [1, 2], "s": ["a", None]},
    "dicts with gaps": [{"id": 1, "s": "a"}, {"id": 2}],
    "dicts that grow": [{"id": 2}, {"s": "a", "id": 1}],
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_any_kind_are_appended(world: World, kind: str) -> None:
    assert Append(world.path, KINDS[kind]).run().version == 0
    assert world.rows() == [{"id": 1, "s": "a"}, {"id": 2, "s": None}]


def test_a_generator_of_dicts_is_appended(world: World) -> None:
    Append(world.path, ({"id": i} for i in range(3))).run()
    assert column(world, "id") == [0, 1, 2]


def test_no_key_of_a_later_dict_is_dropped() -> None:
    assert as_arrow([{"a": 1}, {"b": 2}, {"a": 3, "c": 4}]).to_pylist() == [
        {"a": 1, "b": None, "c": None},
        {"a": None, "b": 2, "c": None},
        {"a": 3, "b": None, "c": 4},
    ]


@pytest.mark.parametrize(
    "rows",
    [
        None,
        5,
        "text",
        b"bytes",
        [1, 2],
        [{"a": 1}, 5],
        [[1], [2]],
        {"a": 1},
        {"a": [1], "b": [1, 2]},
        [{"a": 1}, {"a": "x"}],
        pd.Series([1]),
    ],
)
def test_what_is_no_rows_is_refused_and_nothing_is_created(world: World, rows: Any) -> None:
    with pytest.raises(errors.InvalidOption):
        Append(world.path, rows).run()
    assert not Path(world.path).exists()


def test_an_empty_table_creates_a_table_without_files(world: World) -> None:
    Append(world.path, TABLE.slice(0, 0)).run()
    assert len(world.log.snapshot().files) == 0
    assert world.log.snapshot().schema.names == ("id", "s")
    assert Append(world.path, TABLE.slice(0, 0)).run().version == 1


def test_an_index_of_pandas_is_a_column_if_it_has_a_name(world: World) -> None:
    """Whatever its version: some drop it, some keep it under a name of their own."""
    rows = pd.DataFrame({"id": [1, 2, 3], "s": ["a", "b", "c"]})
    assert as_arrow(rows[rows["id"] > 1]).column_names == ["id", "s"]
    assert as_arrow(rows.set_index("id")).to_pydict() == {"id": [1, 2, 3], "s": ["a", "b", "c"]}
    several = rows.set_index(["id", pd.Index([7, 8, 9])])
    assert as_arrow(several).column_names == ["id", "s"]
    Append(world.path, rows).run()
    with pytest.raises(errors.SchemaMismatch, match="day"):
        Append(world.path, rows.rename_axis("day")).run()
    with pytest.raises(errors.InvalidOption):
        as_arrow(rows.rename_axis("id"))


def test_pandas_missing_values_become_null(world: World) -> None:
    frame = pd.DataFrame(
        {"i": pd.array([1, None], "Int64"), "t": [pd.Timestamp("2020-01-01"), pd.NaT], "s": ["x", None]}
    )
    Append(world.path, frame).run()
    assert world.rows()[1] == {"i": None, "t": None, "s": None}


# -- fitting -----------------------------------------------------------------------------------------------------------

WIDE = pa.schema([("i", pa.int32()), ("d", pa.decimal128(12, 2)), ("f", pa.float64()), ("s", pa.string())])


@pytest.fixture
def wide(world: World) -> World:
    Append(world.path, WIDE.empty_table()).run()
    return world


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({"i": pa.array([7], pa.int8())}, 7),
        ({"i": pa.array([7], pa.uint16())}, 7),
        ({"i": pa.array([7], pa.int64())}, 7),
        ({"I": [7]}, 7),
        ({"i": [None]}, None),
    ],
)
def test_rows_are_fitted_to_the_tables_types(wide: World, rows: dict[str, Any], expected: int | None) -> None:
    Append(wide.path, rows).run()
    assert wide.rows() == [{"i": expected, "d": None, "f": None, "s": None}]


def test_dictionaries_large_strings_and_views_are_plain_strings(wide: World) -> None:
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        Append(wide.path, pa.table({"s": pa.array(["x"]).cast(kind)})).run()
    assert column(wide, "s") == ["x"] * 3


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ({"i": [2**31]}, "i"),
        ({"i": [-(2**31) - 1]}, "i"),
        ({"i": [1.5]}, "i"),
        ({"i": ["1"]}, "i"),
        ({"i": [True]}, "i"),
        ({"s": [1]}, "s"),
        ({"s": [b"x"]}, "s"),
        ({"d": [Decimal("1.123")]}, "d"),
        ({"d": [Decimal("12345678901.00")]}, "d"),
        ({"d": [1.5]}, "d"),
        ({"nope": [1]}, "nope"),
        ({"i": [1], "I": [2]}, "I"),
    ],
)
def test_rows_that_do_not_fit_are_refused_and_nothing_is_written(wide: World, rows: dict[str, Any], named: str) -> None:
    before = listing(wide.path)
    with pytest.raises(errors.SchemaMismatch) as refused:
        Append(wide.path, rows).run()
    assert refused.value.column == named
    assert listing(wide.path) == before


def test_two_columns_of_one_name_are_refused(wide: World) -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["i", "i"])
    with pytest.raises(errors.SchemaMismatch):
        Append(wide.path, twice).run()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kolkata"])
def test_timestamps_of_every_unit_and_zone_keep_their_moment(world: World, unit: str, zone: str | None) -> None:
    moment = dt.datetime(2020, 1, 1, 12, 30, tzinfo=None if zone is None else dt.UTC)
    Append(world.path, pa.table({"t": pa.array([moment], pa.timestamp(unit, zone))})).run()
    (found,) = column(world, "t")
    assert found == moment
    assert (found.tzinfo is None) is (zone is None)


def test_nested_values_come_back(world: World) -> None:
    row = {"l": [1, None], "s": {"a": 1, "b": None}, "m": [("k", 1.5)], "deep": [{"x": [True]}]}
    schema = pa.schema(
        [
            ("l", pa.list_(pa.int64())),
            ("s", pa.struct([("a", pa.int64()), ("b", pa.string())])),
            ("m", pa.map_(pa.string(), pa.float64())),
            ("deep", pa.list_(pa.struct([("x", pa.list_(pa.bool_()))]))),
        ]
    )
    for _ in range(2):
        Append(world.path, pa.Table.from_pylist([row], schema=schema)).run()
    assert world.engine.rows(Read(world.path).run()) == [row, row]


@pytest.mark.parametrize("kind", [pa.uint64(), pa.time64("us"), pa.null(), pa.month_day_nano_interval()])
def test_a_type_that_delta_cannot_hold_is_refused_by_name(world: World, kind: pa.DataType) -> None:
    with pytest.raises(errors.UnsupportedType) as refused:
        Append(world.path, pa.table({"c": pa.nulls(1, kind)})).run()
    assert refused.value.column == "c"
    assert not Path(world.path).exists()


# -- NOT NULL ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [{"id": [None], "x": [1]}, {"x": [1]}, {"id": [1, None], "x": [1, 2]}])
def test_null_in_a_column_that_is_not_null_is_refused(world: World, rows: dict[str, Any]) -> None:
    schema = json.loads(metadata()["metaData"]["schemaString"])
    schema["fields"][0]["nullable"] = False
    body = {**metadata()["metaData"], "schemaString": json.dumps(schema)}
    put_commit(world.path, 0, PROTOCOL, {"metaData": body})
    before = listing(world.path)
    with pytest.raises(errors.NotNullViolated) as refused:
        Append(world.path, rows).run()
    x = 2 if len(rows["x"]) > 1 else 1
    assert (refused.value.column, refused.value.values) == ("id", {"id": None, "x": str(x)})
    assert listing(world.path) == before


# -- partitions --------------------------------------------------------------------------------------------------------

NASTY = [
    "a/b",
    "a b",
    "a%20b",
    "a=b",
    "ü😀",
    "..",
    ".",
    "'\"",
    "a\\b",
    "x:y",
    "a#b?c",
    "__HIVE_DEFAULT_PARTITION",
    "\n",
    "\x01",
    " lead",
    "trail ",
    "null",
    "%",
    "{a}",
    "+",
    "&;|",
]


@pytest.mark.slow
def test_nasty_partition_values_come_back_to_us_and_to_others(world: World) -> None:
    rows = [{"id": i, "p": value} for i, value in enumerate([*NASTY, None])]
    Append(world.path, rows, ("p",)).run()
    assert world.rows() == rows
    assert len(world.log.snapshot().files) == len(rows)
    assert same_rows(deltalake_rows(world.path), rows)
    assert same_rows(duckdb_rows(world.path), rows)


def test_an_empty_text_is_null_as_a_partition_value(world: World) -> None:
    """PROTOCOL.md, "Partition Value Serialization": the empty string is null for every type."""
    Append(world.path, [{"id": 1, "p": ""}, {"id": 2, "p": None}], ("p",)).run()
    assert column(world, "p") == [None, None]
    assert len(world.log.snapshot().files) == 1


TYPED = {
    "long": pa.array([1, -(2**63), None], pa.int64()),
    "double": pa.array([1.5, float("inf"), None]),
    "boolean": pa.array([True, False, None]),
    "date": pa.array([dt.date(2020, 1, 1), dt.date(1, 1, 1), None]),
    "timestamp": pa.array([dt.datetime(2020, 1, 1, 1, 2, 3, 4, dt.UTC), None, None], pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.array([dt.datetime(2020, 1, 1, 1, 2, 3, 4), None, None]),
    "decimal": pa.array([Decimal("1.20"), Decimal("-0.01"), None], pa.decimal128(5, 2)),
    "binary": pa.array([b"abc", None, None]),
}


@pytest.mark.parametrize("kind", TYPED)
def test_partition_values_of_every_type_come_back(world: World, kind: str) -> None:
    Append(world.path, pa.table({"id": [0, 1, 2], "p": TYPED[kind]}), ("p",)).run()
    assert column(world, "p") == TYPED[kind].to_pylist()


@pytest.mark.parametrize("name", ["row", "row_list", "path", "p/q", "a-b", "ä", "line", "__index__"])
def test_a_partition_column_may_have_any_name(world: World, name: str) -> None:
    rows = [{"id": i, name: f"v{i % 2}"} for i in range(4)]
    Append(world.path, rows, (name,)).run()
    assert world.rows() == rows
    assert len(world.log.snapshot().files) == 2


def test_several_partition_columns_keep_their_order_and_their_rows_apart(world: World) -> None:
    rows = [{"a": a, "id": i, "b": b} for i, (a, b) in enumerate([(1, "x"), (1, None), (None, "x"), (1, "x")])]
    Append(world.path, rows, ("b", "a")).run()
    assert sorted(world.rows(), key=lambda row: row["id"]) == rows
    assert len(world.log.snapshot().files) == 3
    assert all(path.startswith("b=") for path in world.log.snapshot().files["path"].to_pylist())


def test_a_partition_value_that_cannot_be_written_is_refused(world: World) -> None:
    with pytest.raises(errors.InvalidOption):
        Append(world.path, pa.table({"id": [1], "p": [b"\xff"]}), ("p",)).run()
    assert not Path(world.path).exists()


@pytest.mark.slow
@settings(max_examples=examples(25, 5))
@given(st.lists(st.tuples(st.none() | st.text(max_size=5), st.integers(0, 3)), min_size=1, max_size=6))
def test_any_partition_values_come_back(
    tmp_path_factory: pytest.TempPathFactory, values: list[tuple[str | None, int]]
) -> None:
    world = World(str(tmp_path_factory.mktemp("p") / "t"))
    rows = [{"id": i, "p": p, "q": q} for i, (p, q) in enumerate(values)]
    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("q", pa.int64())])
    Append(world.path, pa.Table.from_pylist(rows, schema=schema), ("p", "q")).run()
    assert sorted(world.rows(), key=lambda row: row["id"]) == [{**row, "p": row["p"] or None} for row in rows]


# -- statistics --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_a_column_with_nan_gets_no_bounds_and_one_without_does(world: World, kind: pa.DataType) -> None:
    """NaN is greater than every number, but Arrow's statistics leave it out, so there are none of its column."""
    nan = pa.array([1.0, float("nan"), None], kind)
    Append(world.path, pa.table({"n": nan, "f": pa.array([1.0, 2.0, None], kind)})).run()
    (stats,) = stats_of(world)
    assert "n" not in stats["minValues"]
    assert (stats["minValues"]["f"], stats["maxValues"]["f"]) == (1.0, 2.0)
    assert stats["nullCount"] == {"f": 1}
    assert stats["numRecords"] == 3


@pytest.mark.slow
def test_a_row_of_nan_is_found_by_a_condition_above_all_bounds(world: World) -> None:
    Append(world.path, pa.table({"id": [1], "f": [float("nan")]})).run()
    Append(world.path, pa.table({"id": [2], "f": [5.0]})).run()
    assert world.delete("f > 100").rows == 1
    assert column(world, "id") == [2]


# -- races and blindness -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_blind_append_reads_no_add(world: World) -> None:
    world.create([{"id": 1, "x": 1}])
    for i in range(5):
        world.append({"id": i, "x": i})
    assert not world.log.snapshot().files_are_loaded
    forget()
    world.append({"id": 9, "x": 9})
    assert not world.log.snapshot().files_are_loaded


def test_a_blind_append_that_passes_winners_reads_no_add_of_theirs(world: World) -> None:
    """The winner's cannot be read, so that whoever reads it is refused."""
    world.create([{"id": 1, "x": 1}])
    with at_phase("staged", lambda: put_commit(world.path, 1, info(), {"add": {"path": 7}})):
        assert world.append({"id": 9, "x": 9}) == 2
    with pytest.raises(errors.CorruptLog):
        _ = world.log.snapshot().files
    shutil.rmtree(world.path)


def test_two_appends_that_create_one_table_both_land(world: World) -> None:
    with at_phase("staged", lambda: world.append({"id": 1, "x": 1})):
        assert world.append({"id": 2, "x": 2}) == 1
    assert column(world, "id") == [1, 2]


def test_the_loser_of_a_creation_race_lands_under_the_winners_metadata(world: World) -> None:
    """Partitioning, types and properties are the winner's."""
    rows = pa.table({"id": pa.array([1], pa.int32()), "x": ["a"]})
    winner = Append(world.path, rows, ("x",), {"delta.appendOnly": "true"})
    with at_phase("staged", winner.run):
        committed = Append(world.path, [{"id": 2, "x": "b"}]).run()
    assert committed.version == 1
    snapshot = world.log.snapshot()
    assert snapshot.partition_columns == ("x",)
    assert snapshot.properties.append_only
    assert [dict(each) for each in snapshot.files["partitionValues"].to_pylist()] == [{"x": "a"}, {"x": "b"}]
    assert str(snapshot.schema.field("id").type) == "integer"
    paths = {name for name in listing(world.path) if name.endswith(".parquet")}
    assert len(paths) == 2, "what was staged under the loser's own metadata is gone"


def test_the_loser_of_a_creation_race_whose_rows_do_not_fit_is_refused(world: World) -> None:
    with pytest.raises(errors.SchemaMismatch), at_phase("staged", lambda: world.append({"id": 1, "x": 1})):
        world.append({"id": "text", "x": 1})
    assert column(world, "id") == [1]
    assert sum(name.endswith(".parquet") for name in listing(world.path)) == 1


def test_the_loser_of_a_creation_race_who_asked_for_another_partitioning_is_refused(world: World) -> None:
    with pytest.raises(errors.InvalidOption), at_phase("staged", lambda: world.append({"id": 1, "x": 1})):
        Append(world.path, [{"id": 2, "x": 2}], ("id",)).run()
    assert column(world, "id") == [1]


def test_at_the_file_dial_the_loser_of_a_creation_race_is_told(world: World) -> None:
    """The documented behaviour: several writers creating one table."""
    file_dial = Append(world.path, [{"id": 1}], None, {"anabranch.conflictResolution": "file"})
    with (
        pytest.raises(errors.ProtocolChangedException) as refused,
        at_phase("staged", file_dial.run),
    ):
        replace(file_dial, rows=[{"id": 2}]).run()
    assert refused.value.retryable
    assert refused.value.winner_version == 0
    assert column(world, "id") == [1]
    assert sum(name.endswith(".parquet") for name in listing(world.path)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("level", ["WriteSerializable", "Serializable"])
def test_an_append_stands_behind_anything_but_a_change_of_metadata(world: World, level: str) -> None:
    world.create([{"id": i, "x": i} for i in range(3)], delta_isolationLevel=level)

    def winners() -> None:
        world.update("id = 1", x=5)
        world.delete("id = 2")
        world.overwrite({"id": 7, "x": 7})

    with at_phase("staged", winners):
        assert world.append({"id": 1, "x": 1}) == 4
    assert column(world, "id") == [1, 7]
    assert world.info()["isBlindAppend"] is True


def test_an_append_to_an_append_only_table_is_allowed_and_nothing_else_is(world: World) -> None:
    world.create([{"id": 1, "x": 1}], **{"delta_appendOnly": "true"})
    world.append({"id": 2, "x": 2})
    for command in (
        lambda: world.delete("id = 1"),
        lambda: world.update("id = 1", x=2),
        lambda: world.overwrite({"id": 3, "x": 3}),
    ):
        with pytest.raises(errors.AppendOnlyTable):
            command()
    assert column(world, "id") == [1, 2]


def test_the_commit_says_what_was_done(world: World) -> None:
    Append(world.path, [{"id": 1}, {"id": 2}], user_metadata="why").run()
    info = world.info()
    assert info["operation"] == "WRITE"
    assert info["operationParameters"] == {"mode": "Append", "partitionBy": "[]"}
    assert info["operationMetrics"]["numOutputRows"] == "2"
    assert info["operationMetrics"]["numFiles"] == "1"
    assert info["userMetadata"] == "why"
    assert "readVersion" not in info
    Append(world.path, [{"id": 3}]).run()
    assert world.info()["readVersion"] == 0


@pytest.mark.parametrize("value", [True, False, 1])
def test_a_property_that_is_no_text_never_reaches_the_log(world: World, value: Any) -> None:
    with pytest.raises(errors.InvalidProperty):
        Append(world.path, [{"id": 1}], None, {"delta.appendOnly": value}).run()
    assert not Path(world.path).exists()


def test_a_table_with_statistics_that_no_reader_here_knows_is_appended_to(world: World) -> None:
    put_commit(world.path, 0, PROTOCOL, metadata(), add("x.parquet", stats="not json", size=1))
    world.append({"id": 1, "x": 1})
    assert world.version == 1
    shutil.rmtree(world.path)  # nobody can read that file


@pytest.mark.parametrize(("kind", "left"), [(errors.StorePermissionDenied, 0), (errors.PutOutcomeUnknown, 1)])
def test_only_a_file_that_may_be_there_is_removed_or_told_of(
    world: World, caplog: pytest.LogCaptureFixture, kind: type[errors.StoreError], left: int
) -> None:
    world.append({"id": 1})
    failing = {"put": kind, "delete": errors.StorePermissionDenied}

    def fail(call: Call) -> Exception | None:
        made = failing.get(call.method) if str(call.about).endswith(".parquet") else None
        return made and made(name=str(call.about), root="t", reason="as the test asked.")

    with mounted(ObservedStore(open_store(world.path), before=fail), world.path), pytest.raises(kind):
        anabranch.append(world.path, [{"id": 2}])
    assert [each.levelname for each in caplog.records if "which nothing names" in each.message] == ["WARNING"] * left
    assert column(world, "id") == [1]


@pytest.mark.parametrize(
    ("rows", "column", "has", "have"),
    [
        ({"id": 1, "s": "a", "more": 2}, "more", "id, s", "id, s, more"),
        ({"id": "x"}, "id", "bigint", "string"),
        ({"id": 1, "ID": 1}, "ID", "one", "two"),
    ],
)
def test_rows_that_do_not_fit_are_told_names_by_names_and_types_by_types(
    world: World, rows: dict[str, Any], column: str, has: str, have: str
) -> None:
    world.append({"id": 1, "s": "a"})
    with pytest.raises(errors.SchemaMismatch) as refused:
        world.append(rows)
    assert (refused.value.column, refused.value.expected, refused.value.found) == (column, has, have)
    assert refused.value.message.endswith(f". The table has {has}, the rows have {have}.")
