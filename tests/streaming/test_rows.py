"""The rows of a stream as executors read them, of tables that others wrote, whether well or ill."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from anabranch._protocol.layout.deletion_vectors import payload, z85_encode
from anabranch._protocol.schema.types import Array, DataType, Field, Struct
from anabranch.errors import CorruptVector, InvalidOption
from tests.support.raw_logs import PROTOCOL, WITH_VECTORS, add, metadata, put_commit, put_rows
from tests.support.streams import Stream
from tests.support.worlds import table_path

NTZ = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["timestampNtz"],
        "writerFeatures": ["timestampNtz"],
    }
}


def shown(folder: Path, values: pa.Array, data_type: DataType) -> list[Any]:
    """What a stream shows of a column of this type, whose file has these values."""
    table = Path(table_path(folder))
    table.mkdir()
    pq.write_table(pa.table({"c": values}), table / "a.parquet")
    size = (table / "a.parquet").stat().st_size
    put_commit(table, 0, NTZ, metadata(Struct((Field("c", data_type),))), add("a.parquet", size=size))
    return [row["c"] for row in Stream(str(table)).batch()]


@pytest.mark.parametrize(
    ("values", "data_type"),
    [
        (pa.array([1e300]), "float"),
        (pa.array([1e-9]), "decimal(10,2)"),
        (pa.array(["1.000000000000000000000001"]).cast(pa.decimal128(38, 24)), "double"),
        (pa.array([2**53 + 1]), "double"),
        (pa.array([2**60], pa.timestamp("ms", tz="UTC")), "timestamp"),
        (pa.array([2**30], pa.date32()), "timestamp_ntz"),
        (pa.array(["1"]), "long"),
    ],
)
def test_a_value_that_a_column_cannot_hold_ends_the_task(tmp_path: Path, values: pa.Array, data_type: str) -> None:
    with pytest.raises(ValueError, match=r"read as|overflow|out of bounds|not in range"):
        shown(tmp_path, values, data_type)


def test_a_value_of_a_narrower_type_is_shown_as_it_is(tmp_path: Path) -> None:
    assert shown(tmp_path, pa.array([1], pa.int16()), "double") == [1.0]
    assert shown(tmp_path, pa.array([0.5], pa.float32()), "double") == [0.5]
    day = dt.date(1850, 2, 3)
    assert shown(tmp_path, pa.array([day, None]), "timestamp_ntz") == [dt.datetime(1850, 2, 3), None]
    assert shown(tmp_path, pa.array([-1999], pa.timestamp("ns")), "timestamp_ntz")[0].microsecond == 999999


@pytest.mark.parametrize(
    ("values", "data_type"),
    [
        (pa.array(["x", None], pa.string_view()), "string"),
        (pa.array([b"x", None], pa.binary_view()), "binary"),
        (pa.array([[1, None], None, []], pa.large_list(pa.int64())), Array("long")),
        (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), Array("long")),
        (pa.array([["x"], None], pa.large_list(pa.string_view())), Array("string")),
        (pa.array(["x", None]).dictionary_encode(), "string"),
    ],
)
def test_files_of_writers_with_other_arrow_types_are_read(
    tmp_path: Path, values: pa.Array, data_type: DataType
) -> None:
    assert shown(tmp_path, values, data_type) == values.to_pylist()


def test_a_size_that_lies_makes_no_endless_plan(tmp_path: Path) -> None:
    table = table_path(tmp_path)
    put_commit(table, 0, PROTOCOL, metadata(), put_rows(table, "a.parquet", [{"id": 1, "x": 2}], size=2**62))
    with pytest.raises(ValueError, match=r"DELTA_DATA_FILE_MISSING.*not 4611686018427387904"):
        Stream(table).batch()


def with_vector(folder: Path, *positions: int) -> str:
    """A table of four rows, with these deleted; no statistics say how many there are."""
    table, data = table_path(folder), payload(BitMap64(positions))
    text = z85_encode(data + bytes(-len(data) % 4))
    vector = {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(positions)}
    rows = [{"id": each, "x": 0} for each in range(4)]
    file = put_rows(table, "a.parquet", rows, deletionVector=vector, stats=None)
    put_commit(table, 0, WITH_VECTORS, metadata(), file)
    return table


def test_a_vector_that_is_not_of_its_file_is_refused(tmp_path: Path) -> None:
    assert [row["id"] for row in Stream(with_vector(tmp_path, 0, 3)).batch()] == [1, 2]
    with pytest.raises(ValueError, match="DELTA_DELETION_VECTOR_CORRUPT"):
        Stream(with_vector(tmp_path, 1, 3_000_000)).batch()
    for far in (2**45, 2**63):
        with pytest.raises(CorruptVector, match=str(far)):
            Stream(with_vector(tmp_path, 1, far)).batch()


def test_a_partition_of_a_timestamp_has_the_zone_of_the_session(tmp_path: Path) -> None:
    table = table_path(tmp_path)
    columns = Struct((Field("id", "long"), Field("at", "timestamp")))
    file = put_rows(table, "a.parquet", [{"id": 1}], partitionValues={"at": "2020-01-01 00:00:00"})
    put_commit(table, 0, PROTOCOL, metadata(columns, ("at",)), file)
    for zone, hour in (("+02:00", 22), ("GMT+2", 22), ("Z", 0), ("America/New_York", 5)):
        assert Stream(table, zone=zone).batch()[0]["at"].hour == hour


def test_a_feed_of_a_table_with_a_column_of_that_name_is_refused(tmp_path: Path) -> None:
    table = table_path(tmp_path)
    columns = Struct((Field("id", "long"), Field("_Change_Type", "string")))
    put_commit(
        table, 0, PROTOCOL, metadata(columns, delta_enableChangeDataFeed="true"), put_rows(table, "a", [{"id": 1}])
    )
    with pytest.raises(InvalidOption, match="readChangeFeed"):
        Stream(table, feed=True).batch()


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_regular_file_is_no_data_file(tmp_path: Path, kind: str) -> None:
    """Nothing waits for a writer, and nothing is read without end."""
    put_commit(tmp_path / "t", 0, PROTOCOL, metadata(), add("a.parquet", size=0))
    file = tmp_path / "t" / "a.parquet"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    else:
        file.mkdir()
    with pytest.raises(FileNotFoundError, match="DELTA_DATA_FILE_MISSING"):
        Stream(str(tmp_path / "t")).batch()
