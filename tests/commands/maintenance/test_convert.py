"""A folder of Parquet files becomes a table where it lies, or stays as it is."""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch import errors
from anabranch._protocol.features.table_features import reader_features
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.ddl.rename_and_drop_columns import RenameColumn
from anabranch.commands.maintenance.convert import Convert, parquet_path
from anabranch.testing import at_phase
from tests.support.raw_logs import listing
from tests.support.worlds import World

DAY = Struct((Field("day", "date"),))


def put(folder: Path, name: str, rows: Any, **options: Any) -> Path:
    """A Parquet file with these rows."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows), file, **options)
    return file


def refused_without_a_trace(folder: Path, kind: type[errors.AnabranchError], partitions: Struct = Struct()) -> Any:  # noqa: B008
    before = listing(folder)
    with pytest.raises(kind) as refused:
        Convert(folder, partitions).run()
    assert listing(folder) == before
    return refused.value


# -- what comes out ----------------------------------------------------------------------------------------------------


def test_a_folder_becomes_a_table_and_no_file_is_touched(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", [{"id": 1, "x": "a"}, {"id": 2, "x": None}])
    put(tmp_path, "deep/b", [{"id": 3, "x": "c"}])
    before = {file: file.stat() for file in tmp_path.rglob("*") if file.is_file()}
    committed = Convert(tmp_path).run()
    assert committed is not None
    assert committed.version == 0
    world = World(str(tmp_path))
    assert world.rows() == [{"id": 1, "x": "a"}, {"id": 2, "x": None}, {"id": 3, "x": "c"}]
    assert {file: file.stat().st_mtime_ns for file in before} == {f: s.st_mtime_ns for f, s in before.items()}
    world.assert_clean()


def test_the_commit_says_what_was_done(tmp_path: Path) -> None:
    put(tmp_path, "day=2024-01-31/a.parquet", [{"id": 1}])
    Convert(tmp_path, DAY).run()
    info = World(str(tmp_path)).info(0)
    assert (info["operation"], info["operationMetrics"]) == ("CONVERT", {"numConvertedFiles": "1"})
    expected = {"numFiles": "1", "partitionedBy": '["day"]', "collectStats": "true", "sourceFormat": "parquet"}
    assert info["operationParameters"] == expected
    assert info["isBlindAppend"] is False


def test_the_statistics_are_those_of_the_footers(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", [{"id": 1, "x": "a"}, {"id": 7, "x": None}])
    Convert(tmp_path).run()
    (file,) = World(str(tmp_path)).log.snapshot().files.to_pylist()
    stats = json.loads(file["stats"])
    assert (stats["numRecords"], stats["minValues"]["id"], stats["maxValues"]["id"]) == (2, 1, 7)
    assert stats["nullCount"] == {"id": 0, "x": 1}


@pytest.mark.slow
def test_a_converted_table_can_be_changed(tmp_path: Path) -> None:
    put(tmp_path, "p=a/1.parquet", [{"id": 1}, {"id": 2}])
    put(tmp_path, "p=b/1.parquet", [{"id": 3}])
    Convert(tmp_path, Struct((Field("p", "string"),))).run()
    world = World(str(tmp_path))
    world.delete("id = 1")
    world.append({"id": 4, "p": "c"})
    world.update("p = 'b'", id=30)
    assert [(row["id"], row["p"]) for row in world.rows()] == [(2, "a"), (4, "c"), (30, "b")]
    world.assert_clean()


def test_properties_are_those_of_a_new_table(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", [{"id": 1}])
    Convert(tmp_path, properties={"delta.enableInCommitTimestamps": "true", "team": "harbour"}).run()
    snapshot = World(str(tmp_path)).log.snapshot()
    assert snapshot.metadata.configuration["team"] == "harbour"
    assert World(str(tmp_path)).info(0)["inCommitTimestamp"] == snapshot.timestamp


def test_under_a_column_mapping_columns_keep_the_names_that_the_files_have(tmp_path: Path) -> None:
    put(tmp_path, "day=2024-01-31/a.parquet", [{"id": 1, "s": {"a": 5}}, {"id": 2, "s": None}])
    Convert(tmp_path, DAY, {"delta.columnMapping.mode": "name"}).run()
    world, day = World(str(tmp_path)), dt.date(2024, 1, 31)
    assert world.rows() == [{"id": 1, "s": {"a": 5}, "day": day}, {"id": 2, "s": None, "day": day}]
    (file,) = world.log.snapshot().files.to_pylist()
    assert json.loads(file["stats"])["maxValues"] == {"id": 2, "s": {"a": 5}}
    RenameColumn(tmp_path, ("id",), "key").run()
    world.append({"key": 3, "s": {"a": 7}, "day": day})
    assert [row["key"] for row in world.rows()] == [1, 2, 3]
    world.assert_clean()


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.columnMapping.mode": "id"},
        {"delta.enableIcebergCompatV1": "true"},
        {"delta.enableIcebergCompatV2": "true"},
    ],
)
def test_what_asks_for_numbers_in_files_is_refused(tmp_path: Path, properties: dict[str, str]) -> None:
    put(tmp_path, "a.parquet", [{"id": 1}])
    before = listing(tmp_path)
    with pytest.raises(errors.InvalidProperty, match="field ids"):
        Convert(tmp_path, properties=properties).run()
    assert listing(tmp_path) == before


def test_what_is_a_table_already_stays_as_it_is(tmp_path: Path) -> None:
    world = World(str(tmp_path)).create([{"id": 1}])
    assert Convert(tmp_path, DAY).run() is None
    assert world.version == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other disks hold no such names")
@pytest.mark.parametrize("name", [b"caf\xe9.parquet", b"p=\xe9/a.parquet"])
def test_a_name_that_is_no_text_is_refused(tmp_path: Path, name: bytes) -> None:
    made = put(tmp_path, "made.parquet", [{"id": 1}])
    path = os.path.join(os.fsencode(tmp_path), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.rename(made, path)
    partitions = Struct((Field("p", "string"),)) if b"=" in name else Struct()
    refused = refused_without_a_trace(tmp_path, errors.ConversionRefused, partitions)
    assert "no UTF-8" in str(refused)
    str(refused).encode()


# -- partitions --------------------------------------------------------------------------------------------------------


def test_partition_values_come_from_the_folders_unescaped(tmp_path: Path) -> None:
    for segment in ("p=a%2Fb", "p=x y", "p=__HIVE_DEFAULT_PARTITION__", "p=%25", "P=caf%C3%A9"):
        put(tmp_path, f"{segment}/n=05/f.parquet", [{"id": 1}])
    Convert(tmp_path, Struct((Field("p", "string"), Field("n", "integer")))).run()
    rows = World(str(tmp_path)).rows()
    assert {row["p"] for row in rows} == {"a/b", "x y", None, "%", "cafÃ©"}  # Spark unescapes byte by byte
    assert {row["n"] for row in rows} == {5}
    paths = World(str(tmp_path)).log.snapshot().files["path"].to_pylist()
    assert "p=a%252Fb/n=05/f.parquet" in paths


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("date", "2024-01-31", dt.date(2024, 1, 31)),
        ("boolean", "true", True),
        ("long", "-7", -7),
        ("decimal(5,2)", "1.50", Decimal("1.50")),
        ("timestamp_ntz", "2024-01-31 12%3A30%3A00", dt.datetime(2024, 1, 31, 12, 30)),
    ],
)
def test_partition_values_have_the_types_that_are_given(tmp_path: Path, type_: str, text: str, value: Any) -> None:
    put(tmp_path, f"p={text}/f.parquet", [{"id": 1}])
    Convert(tmp_path, Struct((Field("p", type_),))).run()
    world = World(str(tmp_path))
    assert world.rows() == [{"id": 1, "p": value}]
    world.assert_clean()


@pytest.mark.parametrize(
    ("type_", "text", "written"),
    [
        ("integer", "007", "7"),
        ("date", "2024-1-5", "2024-01-05"),
        ("decimal(5,2)", "1.5", "1.50"),
        ("boolean", "TRUE", "true"),
        ("double", "1e3", "1000.0"),
        ("string", "007", "007"),
        ("timestamp", "2024-01-05 1%3A02%3A03", "2024-01-05 1:02:03"),
    ],
)
def test_partition_values_are_spelled_as_the_protocol_does(tmp_path: Path, type_: str, text: str, written: str) -> None:
    put(tmp_path, f"p={text}/f.parquet", [{"id": 1}])
    Convert(tmp_path, Struct((Field("p", type_),))).run()
    [file] = World(str(tmp_path)).log.snapshot().files.to_pylist()
    assert dict(file["partitionValues"]) == {"p": written}


def test_a_partition_column_that_files_hold_too_keeps_its_place_and_the_folders_value(tmp_path: Path) -> None:
    put(tmp_path, "p=a/f.parquet", [{"p": "other", "id": 1}])
    Convert(tmp_path, Struct((Field("p", "string"),))).run()
    world = World(str(tmp_path))
    assert world.log.snapshot().schema.names == ("p", "id")
    assert world.rows() == [{"p": "a", "id": 1}]


@pytest.mark.parametrize(
    ("files", "partitions"),
    [
        (["day=2024-01-31/f.parquet"], Struct()),
        (["f.parquet"], DAY),
        (["month=2024-01-31/f.parquet"], DAY),
        (["day=2024-01-31/hour=1/f.parquet"], DAY),
        (["day=2024-01-31/f.parquet", "f.parquet"], DAY),
        (["day=2024-01-31/sub/f.parquet"], DAY),
        (["hour=1/day=2024-01-31/f.parquet"], Struct((*DAY, Field("hour", "integer")))),
    ],
)
def test_folders_that_are_not_as_given_are_refused(tmp_path: Path, files: list[str], partitions: Struct) -> None:
    for name in files:
        put(tmp_path, name, [{"id": 1}])
    refused = refused_without_a_trace(tmp_path, errors.UnexpectedPartition, partitions)
    assert refused.file in files
    assert refused.expected == (", ".join(partitions.names) or "none")


def test_a_value_of_another_type_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "day=monday/f.parquet", [{"id": 1}])
    refused = refused_without_a_trace(tmp_path, errors.InvalidPartitionValue, DAY)
    assert (refused.file, refused.value, refused.column) == ("day=monday/f.parquet", "monday", "day")


@pytest.mark.parametrize("partitions", [Struct((*DAY, *DAY)), Struct((Field("day", DAY),))])
def test_partition_columns_that_no_table_can_have_are_refused(tmp_path: Path, partitions: Struct) -> None:
    put(tmp_path, "day=2024-01-31/day=2024-01-31/f.parquet", [{"id": 1}])
    refused_without_a_trace(tmp_path, errors.InvalidOption, partitions)


@pytest.mark.parametrize("folder", ["p=1", "p="])
@pytest.mark.parametrize("kind", ["variant", "void", "interval", "decimal(99,2)"])
def test_partition_columns_of_types_that_no_folder_can_have_are_refused(tmp_path: Path, folder: str, kind: str) -> None:
    put(tmp_path, f"{folder}/f.parquet", [{"id": 1}])
    refused_without_a_trace(tmp_path, errors.AnabranchError, Struct((Field("p", kind),)))


# -- columns -----------------------------------------------------------------------------------------------------------


def test_a_column_that_a_file_lacks_is_null_there(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", [{"id": 1, "s": {"a": 1}}])
    put(tmp_path, "b.parquet", [{"x": 2.5, "id": 2, "s": {"a": 2, "b": "z"}}])
    Convert(tmp_path).run()
    world = World(str(tmp_path))
    assert world.log.snapshot().schema.names == ("id", "s", "x")
    assert [(row["id"], row["x"]) for row in world.rows()] == [(1, None), (2, 2.5)]


def test_integers_of_32_bits_go_together(tmp_path: Path) -> None:
    for i, type_ in enumerate((pa.int8(), pa.int32(), pa.int16())):
        put(tmp_path, f"{i}.parquet", pa.table({"n": pa.array([i], type_)}))
    Convert(tmp_path).run()
    world = World(str(tmp_path))
    assert world.log.snapshot().schema.field("n").type == "integer"
    assert [row["n"] for row in world.rows()] == [0, 1, 2]


@pytest.mark.parametrize(
    ("first", "second", "column"),
    [
        ({"id": pa.array([1])}, {"id": pa.array(["1"])}, "id"),
        ({"id": pa.array([1], pa.int32())}, {"id": pa.array([1], pa.int64())}, "id"),
        ({"s": pa.array([{"a": 1}])}, {"s": pa.array([{"a": "x"}])}, "s.a"),
        ({"l": pa.array([[1]])}, {"l": pa.array([[1.5]])}, "l.element"),
        ({"id": pa.array([1])}, {"ID": pa.array([1])}, "ID"),
    ],
)
def test_types_that_differ_are_refused_with_the_files_name(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], column: str
) -> None:
    put(tmp_path, "a.parquet", pa.table(first))
    put(tmp_path, "b.parquet", pa.table(second))
    refused = refused_without_a_trace(tmp_path, errors.SchemaMergeFailed)
    assert (refused.file, refused.column) == ("b.parquet", column)


def test_a_type_that_no_table_can_hold_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", pa.table({"t": pa.array([dt.time(1)], pa.time64("us"))}))
    assert refused_without_a_trace(tmp_path, errors.UnsupportedType).column == "t"


def test_timestamps_of_96_bits_have_no_bounds(tmp_path: Path) -> None:
    moment = dt.datetime(2024, 1, 31, tzinfo=dt.UTC)
    rows = pa.table({"t": pa.array([moment, moment], pa.timestamp("us", "UTC"))})
    put(tmp_path, "a.parquet", rows, use_deprecated_int96_timestamps=True)
    Convert(tmp_path).run()
    snapshot = World(str(tmp_path)).log.snapshot()
    assert snapshot.schema.field("t").type == "timestamp"
    stats = json.loads(snapshot.files["stats"][0].as_py())
    assert (stats["minValues"], stats["maxValues"], stats["numRecords"]) == ({}, {}, 2)


def test_timestamps_without_zone_bring_their_feature(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", pa.table({"t": pa.array([dt.datetime(2024, 1, 31)], pa.timestamp("us"))}))
    Convert(tmp_path).run()
    snapshot = World(str(tmp_path)).log.snapshot()
    assert snapshot.schema.field("t").type == "timestamp_ntz"
    assert "timestampNtz" in reader_features(snapshot.protocol)


# -- files -------------------------------------------------------------------------------------------------------------


def test_hidden_files_and_folders_do_not_count(tmp_path: Path) -> None:
    put(tmp_path, "_p=1/f.parquet", [{"id": 1}])
    for name in ("_SUCCESS", ".f.crc", "_temporary/0/x.parquet", ".spark-staging/x", "_p=1/_committed_7"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("nothing")
    Convert(tmp_path, Struct((Field("_p", "integer"),))).run()
    assert World(str(tmp_path)).rows() == [{"id": 1, "_p": 1}]


@pytest.mark.parametrize("hidden", [(), ("_SUCCESS", ".x/f.parquet")])
def test_a_folder_without_data_is_refused(tmp_path: Path, hidden: tuple[str, ...]) -> None:
    folder = tmp_path / "empty"
    for name in hidden:
        put(folder, name, [{"id": 1}])
    assert "empty" in str(refused_without_a_trace(folder, errors.EmptyDirectory))


@pytest.mark.parametrize("data", [b"", b"id,x\n1,2\n", b"PAR1", b"PAR1" + b"x" * 100 + b"PAR1", b"PAR1xxxxPARE"])
def test_a_file_that_is_no_parquet_is_refused_by_its_name(tmp_path: Path, data: bytes) -> None:
    put(tmp_path, "a.parquet", [{"id": 1}])
    (tmp_path / "notes.csv").write_bytes(data)
    assert refused_without_a_trace(tmp_path, errors.UnreadableFooter).file == "notes.csv"


def test_a_footer_whose_chunks_are_of_another_type_than_their_columns_is_refused(tmp_path: Path) -> None:
    """Arrow ends the process where it is asked of such a chunk."""
    file = put(tmp_path, "a.parquet", [{"id": 1, "s": "one"}])
    data = file.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    chunk = data.rindex(b"\x15\x04\x19", footer)  # ColumnMetaData begins: its type is INT64, and a list of encodings
    file.write_bytes(data[:chunk] + b"\x15\x0c\x19" + data[chunk + 3 :])
    error = refused_without_a_trace(tmp_path, errors.UnreadableFooter)
    assert (error.file, "a chunk of id is of another type" in error.message) == ("a.parquet", True)


def test_a_file_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    file = put(tmp_path, "a.parquet", [{"id": 1}])
    file.write_bytes(file.read_bytes()[:-5])
    assert refused_without_a_trace(tmp_path, errors.UnreadableFooter).file == "a.parquet"


@pytest.mark.parametrize(("stray", "said"), [("_spark_metadata/0", "stream"), ("sub/_delta_log/0.json", "sub")])
def test_a_folder_where_not_every_file_counts_is_refused(tmp_path: Path, stray: str, said: str) -> None:
    put(tmp_path, "sub/a.parquet", [{"id": 1}])
    (tmp_path / stray).parent.mkdir(parents=True)
    (tmp_path / stray).write_text("v1")
    assert said in refused_without_a_trace(tmp_path, errors.ConversionRefused).reason


@pytest.mark.parametrize(
    "target", ["../other/a.parquet", "../other", "a.parquet", ".", "absent", "day=2024-01-32", "/dev/zero"]
)
@pytest.mark.parametrize("name", ["b.parquet", "day=2024-01-31", "x/b.parquet"])
def test_a_folder_with_a_symbolic_link_is_refused(tmp_path: Path, target: str, name: str) -> None:
    """Behind a link rows of another folder would get into the table, or rows of this one get lost or count twice."""
    put(tmp_path / "other", "a.parquet", [{"id": 2}])
    put(tmp_path / "t", "a.parquet", [{"id": 1}])
    (tmp_path / "t" / name).parent.mkdir(exist_ok=True)
    (tmp_path / "t" / name).symlink_to(target)
    assert name in refused_without_a_trace(tmp_path / "t", errors.ConversionRefused).reason
    assert [file.name for file in (tmp_path / "other").iterdir()] == ["a.parquet"]


def test_a_link_that_does_not_count_is_left_alone(tmp_path: Path) -> None:
    put(tmp_path / "t", "a.parquet", [{"id": 1}])
    (tmp_path / "t" / "_old").mkdir()
    for name in ("_latest", ".b.parquet", "_old/b.parquet"):
        (tmp_path / "t" / name).symlink_to("..")
    Convert(tmp_path / "t").run()
    assert World(str(tmp_path / "t")).rows() == [{"id": 1}]


@pytest.mark.parametrize("folder", ["file:", "s3:/bucket", "http:", "a+b:/c"])
def test_a_folder_called_like_the_beginning_of_a_url_is_in_the_table(tmp_path: Path, folder: str) -> None:
    put(tmp_path, f"{folder}/a.parquet", [{"id": 1}])
    Convert(tmp_path).run()
    assert World(str(tmp_path)).rows() == [{"id": 1}]


def test_a_footer_larger_than_any_writer_writes_is_not_fetched(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", [{"id": 1}])
    length = 300 << 20
    with (tmp_path / "b.parquet").open("wb") as file:  # most of it takes no room on the disk
        file.write(b"PAR1")
        file.seek(length + 4)
        file.write(length.to_bytes(4, "little") + b"PAR1")
    error = refused_without_a_trace(tmp_path, errors.UnreadableFooter)
    assert (error.file, f"footer of {length + 8} bytes" in error.message) == ("b.parquet", True)


@pytest.mark.parametrize("phase", ["read", "staged"])
@pytest.mark.parametrize("change", ["add", "remove", "remove all", "rewrite"])
def test_a_folder_that_changes_meanwhile_is_refused(tmp_path: Path, phase: str, change: str) -> None:
    file = put(tmp_path, "a.parquet", [{"id": 1}])
    other = put(tmp_path, "c.parquet", [{"id": 1}])

    def meanwhile() -> None:
        if change.startswith("remove"):
            for each in [file, other][: 1 if change == "remove" else 2]:
                each.unlink()
        else:
            put(tmp_path, "b.parquet" if change == "add" else "a.parquet", [{"id": 2}, {"id": 3}])

    with at_phase(phase, meanwhile), pytest.raises(errors.ConversionRefused):
        Convert(tmp_path).run()
    assert not (tmp_path / "_delta_log").exists()


def test_of_two_who_create_the_table_one_wins(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", [{"id": 1}])
    world = World(str(tmp_path))
    with at_phase("put", lambda: world.append({"name": "x"})), pytest.raises(errors.ProtocolChangedException):
        Convert(tmp_path).run()
    assert (world.version, world.rows()) == (0, [{"name": "x"}])
    assert (tmp_path / "a.parquet").exists(), "the user's files are not ours to remove"


# -- identifiers -------------------------------------------------------------------------------------------------------


def test_an_identifier_is_a_format_and_a_path() -> None:
    assert parquet_path("parquet.`/data/a b`") == ("parquet", "/data/a b")
    assert parquet_path(" PARQUET . `s3://x/``y``` ") == ("parquet", "s3://x/`y`")
    assert parquet_path("delta.`/data`") == ("delta", "/data")


@pytest.mark.parametrize(
    "identifier", ["iceberg.`/data`", "/data", "`/data`", "parquet.``", "parquet./data", "air.flights", 5, ""]
)
def test_what_is_no_identifier_is_refused(identifier: Any) -> None:
    with pytest.raises(errors.InvalidOption):
        parquet_path(identifier)


def test_without_statistics_the_log_counts_rows_and_knows_no_bounds(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", [{"id": 1}, {"id": 2}])
    Convert(tmp_path, statistics=False).run()
    world = World(str(tmp_path))
    assert json.loads(world.log.snapshot().files["stats"][0].as_py()) == {"numRecords": 2}
    assert world.info()["operationParameters"]["collectStats"] == "false"
    world.delete("id = 1")
    assert world.rows() == [{"id": 2}]
    world.assert_clean()
