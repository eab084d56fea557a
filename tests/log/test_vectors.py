"""Deletion vectors out of a store: whole, or an error that names the data file."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pyroaring import BitMap64

from anabranch import errors
from anabranch._log import vectors
from anabranch._log.vectors import forget_vectors, vector_of, vectors_of
from anabranch._protocol.actions import files_table
from anabranch._protocol.layout.deletion_vectors import Descriptor, pack, payload, z85_encode
from anabranch._storage import open_store
from anabranch._storage.contract import Store

ROWS = BitMap64([1, 5, 2**33])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "t")


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    forget_vectors()
    yield
    forget_vectors()


def put(store: Store, rows: BitMap64 = ROWS) -> Descriptor:
    name, data, descriptors = pack({"a": rows}, uuid.uuid4())
    store.put(name, data)
    return descriptors["a"]


def file(descriptor: Descriptor | None, **fields: Any) -> dict[str, Any]:
    row = None if descriptor is None else {**descriptor.to_row(), **fields}
    return {"path": "data.parquet", "deletionVector": row}


def refused(store: Store, row: dict[str, Any]) -> str:
    with pytest.raises(errors.CorruptVector) as refusal:
        vector_of(store, row)
    assert refusal.value.file == "data.parquet"
    return str(refusal.value.reason)


def test_a_file_without_a_vector_has_no_deleted_rows(store: Store) -> None:
    assert vector_of(store, file(None)) == BitMap64()


def test_a_vector_is_read_from_the_tables_folder(store: Store) -> None:
    assert vector_of(store, file(put(store))) == ROWS


def test_an_inline_vector_is_read_from_the_log(store: Store) -> None:
    data = payload(ROWS)
    descriptor = Descriptor("i", z85_encode(data + b"\0" * (-len(data) % 4)), len(data), len(ROWS))
    assert vector_of(store, file(descriptor)) == ROWS


def test_a_vector_at_an_absolute_path_inside_the_table_is_read(store: Store) -> None:
    descriptor = put(store)
    absolute = f"{store.url}/{descriptor.name}"
    assert vector_of(store, file(descriptor, storageType="p", pathOrInlineDv=absolute)) == ROWS


@pytest.mark.parametrize("spelling", ["{}", "file:{}", "file://{}"])
def test_a_vector_at_an_absolute_path_elsewhere_is_read(store: Store, tmp_path: Path, spelling: str) -> None:
    """A shallow clone names the vectors of the table that it was made of."""
    other = open_store(tmp_path / "an other é")
    descriptor = put(other)
    absolute = spelling.format(quote(str(tmp_path / "an other é" / descriptor.name)))
    assert vector_of(store, file(descriptor, storageType="p", pathOrInlineDv=absolute)) == ROWS


@pytest.mark.parametrize("rows", [0, 6, 2**33])
def test_a_vector_that_is_longer_than_its_file_is_refused(store: Store, rows: int) -> None:
    row = {**file(put(store)), "stats": json.dumps({"numRecords": rows})}
    assert f"position {2**33} of a file that has {rows} rows" in refused(store, row)


def test_a_vector_that_deletes_the_last_row_is_none_too_long(store: Store) -> None:
    descriptor = put(store)
    assert vector_of(store, {**file(descriptor), "stats": json.dumps({"numRecords": 2**33 + 1})}) == ROWS
    assert vector_of(store, {**file(descriptor), "stats": "{}"}) == ROWS


@pytest.mark.parametrize("storage_type", ["r", "z", "U", ""])
def test_a_vector_stored_in_an_unknown_way_is_refused_by_file_and_type(store: Store, storage_type: str) -> None:
    with pytest.raises(errors.UnsupportedVector) as refusal:
        vector_of(store, file(put(store), storageType=storage_type))
    assert (refusal.value.file, refusal.value.storage_type) == ("data.parquet", storage_type)
    assert "REORG TABLE" in str(refusal.value)
    assert not refusal.value.retryable


def test_only_files_with_a_vector_are_in_the_result(store: Store) -> None:
    files = files_table([{"path": "a", "deletionVector": put(store).to_row()}, {"path": "b"}])
    assert vectors_of(store, files) == {"a": ROWS}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"storageType": None}, "storageType"),
        ({"sizeInBytes": None}, "sizeInBytes"),
        ({"cardinality": None}, "cardinality"),
        ({"cardinality": 4}, "3 rows"),
        ({"offset": 2}, r"\w"),
        ({"offset": -40}, r"\w"),
        ({"offset": None}, r"\w"),
        ({"sizeInBytes": -20}, r"\w"),
        ({"pathOrInlineDv": "short"}, r"\w"),
        ({"pathOrInlineDv": "../x" + "0" * 20}, "leaves"),
        ({"storageType": "p", "pathOrInlineDv": "../x.bin"}, "leaves"),
        ({"storageType": "p", "pathOrInlineDv": "file:/no/such/folder/x.bin"}, "not there"),
        ({"storageType": "p", "pathOrInlineDv": "file:/a/%2e%2e/x.bin"}, "up and down"),
        ({"storageType": "p", "pathOrInlineDv": "s3:///x.bin"}, "no bucket"),
        ({"storageType": "i"}, r"\w"),
    ],
)
def test_a_descriptor_that_is_wrong_is_refused(store: Store, fields: dict[str, Any], reason: str) -> None:
    import re

    assert re.search(reason, refused(store, file(put(store), **fields)))


@pytest.mark.parametrize("path", ["ftp://elsewhere/x.bin", "http://127.0.0.1:1/x.bin", "file://host/x.bin"])
def test_a_vector_on_another_store_is_not_looked_for(store: Store, path: str) -> None:
    with pytest.raises(errors.FileOutsideTable):
        vector_of(store, file(put(store), storageType="p", pathOrInlineDv=path))


def test_a_vector_s_file_that_is_none_is_not_quoted(store: Store) -> None:
    """A stranger's log may point at any file: four of its bytes would be shown as a number."""
    descriptor = put(store)
    store.put("other", b"0" * 100)
    reason = refused(store, file(descriptor, storageType="p", pathOrInlineDv=f"{store.url}/other"))
    assert str(int.from_bytes(b"0000", "big")) not in reason


def test_a_missing_file_is_refused(store: Store) -> None:
    descriptor = put(store)
    store.delete(descriptor.name)
    assert "not there" in refused(store, file(descriptor))


def test_a_damaged_vector_is_refused_each_time(store: Store) -> None:
    descriptor = put(store)
    data = store.get(descriptor.name)
    store.put(descriptor.name, data[:-1] + bytes([data[-1] ^ 1]))
    assert "checksum" in refused(store, file(descriptor))
    assert "checksum" in refused(store, file(descriptor))
    store.put(descriptor.name, data)
    assert vector_of(store, file(descriptor)) == ROWS


def test_a_small_vector_is_read_once_and_a_large_one_each_time(store: Store) -> None:
    """Large ones would fill the memory."""
    small, large = put(store), put(store, BitMap64(range(0, 4_000_000, 2)))
    assert large.size > vectors.KEPT_BYTES_EACH
    assert vector_of(store, file(small)) is vector_of(store, file(small))
    assert vector_of(store, file(large)) is not vector_of(store, file(large))


def in_the_log(number: int) -> dict[str, Any]:
    """A file whose vector, which has one row, is in the log itself."""
    data = payload(BitMap64([number]))
    text = z85_encode(data + b"\0" * (-len(data) % 4))
    return file(Descriptor("i", text, len(data), 1))


def test_no_more_than_so_many_are_kept(store: Store) -> None:
    first = put(store)
    kept = vector_of(store, file(first))
    for number in range(1, vectors.KEPT):
        vector_of(store, in_the_log(number))
    assert vector_of(store, file(first)) is kept
    for number in range(vectors.KEPT):
        vector_of(store, in_the_log(vectors.KEPT + number))
    store.delete(first.name)
    assert "not there" in refused(store, file(first))
