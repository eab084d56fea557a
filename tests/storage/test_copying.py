"""A copy is the whole file, whatever keeps the two; what is read and put is put once, and never held whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch._storage import Store, open_store
from anabranch._storage.copying import CHUNK_BYTES, copy_file
from anabranch.errors import NotFound, StoreError
from anabranch.testing import DictStore, ObservedStore

DATA = bytes(range(256)) * 4 * 1024 * 20  # 20 MiB
PAIRS = [("memory", "memory"), ("file", "memory"), ("memory", "file"), ("file", "file"), ("dict", "file")]


def opened(kind: str, folder: Path, name: str) -> Store:
    if kind == "dict":
        return DictStore(f"memory://dict/{name}")
    return open_store(folder / name if kind == "file" else f"memory://{folder.name}/{name}")


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("size", [0, 5, CHUNK_BYTES, len(DATA)])
def test_a_file_is_copied_under_another_name(tmp_path: Path, one: str, other: str, size: int) -> None:
    source, target = opened(one, tmp_path, "a é"), opened(other, tmp_path, "b")
    source.put("x y/1%.parquet", DATA[:size])
    copy_file(source, "x y/1%.parquet", target, "job/2.parquet", size=size)
    assert target.get("job/2.parquet") == DATA[:size]
    assert source.get("x y/1%.parquet") == DATA[:size]


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("wrong", [-1, 1])
def test_a_file_of_another_size_is_not_copied(tmp_path: Path, one: str, other: str, wrong: int) -> None:
    source, target = opened(one, tmp_path, "a"), opened(other, tmp_path, "b")
    source.put("x", DATA)
    with pytest.raises(StoreError, match="were to be copied"):
        copy_file(source, "x", target, "y", size=len(DATA) + wrong)
    assert target.head("y") is None


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_file_that_is_not_there_is_said_to_be_so(tmp_path: Path, one: str, other: str) -> None:
    source, target = opened(one, tmp_path, "a"), opened(other, tmp_path, "b")
    with pytest.raises(NotFound):
        copy_file(source, "x", target, "y", size=1)
    assert target.head("y") is None


def test_a_bucket_copies_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is one request, where it would be two transfers of the whole file."""
    source, target = open_store(f"memory://{tmp_path.name}/a"), open_store(f"memory://{tmp_path.name}/b")
    source.put("x", DATA)
    monkeypatch.setattr(type(source), "read_range", None)
    copy_file(source, "x", target, "y", size=len(DATA))
    assert target.get("y") == DATA


def test_elsewhere_a_file_is_read_in_chunks(tmp_path: Path) -> None:
    source = ObservedStore(open_store(f"memory://{tmp_path.name}/a"))
    source.put("x", DATA)
    copy_file(source, "x", open_store(tmp_path / "b"), "y", size=len(DATA))
    assert [call.method for call in source.calls] == ["put", *["read_range"] * 3]
