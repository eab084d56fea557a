"""A Parquet checkpoint of few bytes that means many is refused before it fills memory, and named; others are read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anabranch
from anabranch._log.file_names import LAST_CHECKPOINT, checkpoint_name, checksum_name, commit_name
from anabranch._log.log import forget
from anabranch._log.parquet_memory import TooLarge, check_memory
from anabranch._log.row_groups import RowGroups
from anabranch._log.size_limits import MAX_CHECKPOINT_MEMORY, largest_unfolded_bytes
from anabranch.errors import CorruptLog, InvalidOption
from tests.support.drawing import SLOW
from tests.support.tiers import examples
from tests.support.worlds import World, table_path

MIB = 1 << 20
TEXT = "x" * 100_000


def chunks_of(data: bytes) -> tuple[pa.NativeFile, pq.FileMetaData, list[Any]]:
    source = pa.BufferReader(data)
    footer = pq.read_metadata(io.BytesIO(data))
    length = int.from_bytes(data[-8:-4], "little") + 8
    groups = RowGroups(data[-length:-8], footer.num_row_groups)
    names = [field.name for field in footer.schema.to_arrow_schema()]
    return source, footer, groups.chunks(range(footer.num_row_groups), names)


def fits(data: bytes, most: int) -> bool:
    try:
        check_memory(*chunks_of(data), most)
    except TooLarge:
        return False
    return True


def written(table: pa.Table, **how: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **{"compression": "zstd", **how})
    return sink.getvalue()


def repeated(text: str, times: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), pa.array([text]))


def in_maps(values: pa.Array, keys: pa.Array | None = None) -> pa.Array:
    keys = keys if keys is not None else pa.array(["k"] * len(values))
    return pa.MapArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), keys, values)


PLAIN = {"use_dictionary": False}
BOMBS: dict[str, Callable[[], bytes]] = {
    "a dictionary": lambda: written(pa.table({"a": repeated(TEXT, 200)})),
    "a dictionary in a struct": lambda: written(
        pa.table({"a": pa.StructArray.from_arrays([repeated(TEXT, 200)], ["s"])})
    ),
    "a dictionary of a map's values": lambda: written(pa.table({"a": in_maps(repeated(TEXT, 200))})),
    "a dictionary of a map's keys": lambda: written(pa.table({"a": in_maps(pa.array([1] * 200), repeated(TEXT, 200))})),
    "a map of one row": lambda: written(
        pa.table({"a": pa.MapArray.from_arrays([0, 200], pa.array(range(200)), repeated(TEXT, 200))})
    ),
    "a list": lambda: written(
        pa.table({"a": pa.ListArray.from_arrays(pa.array([0, 100, 200], pa.int32()), repeated(TEXT, 200))})
    ),
    "two row groups": lambda: written(pa.table({"a": repeated(TEXT, 200)}), row_group_size=100),
    "compression": lambda: written(pa.table({"a": [TEXT * 200]}), **PLAIN),
    "compression of many": lambda: written(pa.table({"a": [TEXT] * 200}), **PLAIN),
    "beginnings": lambda: written(pa.table({"a": [TEXT] * 200}), column_encoding={"a": "DELTA_BYTE_ARRAY"}, **PLAIN),
    "second pages": lambda: written(pa.table({"a": repeated(TEXT, 200)}), data_page_version="2.0"),
    "NULLs": lambda: written(pa.table({"a": pa.nulls(2_000_000, pa.string())})),
    "numbers": lambda: written(pa.table({"a": pa.array([7] * 2_000_000)})),
    "long numbers": lambda: written(pa.table({"a": pa.array([b"x" * 1000] * 20_000, pa.binary(1000))})),
}


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
def test_few_bytes_that_mean_many_are_told_without_being_read(bomb: str) -> None:
    data = BOMBS[bomb]()
    assert len(data) < MIB
    before = pa.total_allocated_bytes()
    assert not fits(data, 10 * MIB)
    assert fits(data, 100 * MIB)
    assert pa.total_allocated_bytes() - before < MIB


texts = st.text(max_size=30) | st.sampled_from(["", "x" * 1000, "é" * 500])


rows_of_texts = st.lists(
    st.fixed_dictionaries({"path": texts, "stats": texts, "size": st.integers(0, 5)}), min_size=1, max_size=60
)


@pytest.mark.slow
@settings(suppress_health_check=SLOW, max_examples=examples(100, 20))
@given(
    rows=rows_of_texts,
    codec=st.sampled_from(["none", "snappy", "gzip", "zstd", "brotli"]),
    how=st.fixed_dictionaries(
        {
            "use_dictionary": st.booleans(),
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
            "row_group_size": st.integers(10, 60),
            "data_page_size": st.sampled_from([50, 1 << 20]),
        }
    ),
)
def test_what_fits_is_about_what_arrow_takes(rows: list[dict[str, Any]], codec: str, how: dict[str, Any]) -> None:
    """Never less than the texts have, and not much more than they and the file's own frames."""
    pairs = pa.array([[(row["path"], row["stats"])] for row in rows], pa.map_(pa.string(), pa.string()))
    data = written(pa.table({"a": pa.array(rows), "m": pairs}), compression=codec, **how)
    letters = sum(len(text.encode()) for row in rows for text in (row["path"], row["stats"])) * 2
    assert not letters or not fits(data, letters // 2)
    assert fits(data, 6 * letters + 4096 * (len(rows) + 4))


# -- tables ------------------------------------------------------------------------------------------------------------


def with_a_bomb(tmp_path: Path, *, alone: bool) -> World:
    """A table whose checkpoint has one long text in the statistics of each of its files."""
    world = World(table_path(tmp_path)).create([{"id": 0}])
    for number in range(1, 4):
        world.append({"id": number})
    found = world.log.snapshot(3)
    actions = [json.loads(line) for v in range(4) for line in Path(world.path, commit_name(v)).read_text().splitlines()]
    head = [{key: each[key]} for each in actions for key in ("protocol", "metaData") if key in each]
    adds = [each["add"] for each in actions if "add" in each]
    assert len(adds) == len(found.files)
    nothing = dict.fromkeys(("protocol", "metaData", "add"))
    stats = "{" + " " * (4 * MIB) + "}"
    rows = head + [{"add": {**add, "stats": stats, "partitionValues": None}} for add in adds]
    for row in rows:
        if "metaData" in row:
            row["metaData"] = {**row["metaData"], "configuration": None, "format": {"provider": "parquet"}}
    Path(world.path, checkpoint_name(3)).write_bytes(written(pa.Table.from_pylist([nothing | row for row in rows])))
    Path(world.path, LAST_CHECKPOINT).unlink(missing_ok=True)
    Path(world.path, checksum_name(3)).unlink(missing_ok=True)
    for number in range(3 if alone else 0):
        Path(world.path, commit_name(number)).unlink()
    forget()
    return world


def test_a_checkpoint_that_unfolds_too_far_is_named_with_its_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = with_a_bomb(tmp_path, alone=True)
    monkeypatch.setenv(MAX_CHECKPOINT_MEMORY, str(8 * MIB))
    for door in (lambda: anabranch.files(world.path), lambda: world.delete("id = 1"), world.rows):
        with pytest.raises(CorruptLog, match=MAX_CHECKPOINT_MEMORY) as refused:
            door()
        assert refused.value.file == checkpoint_name(3)
    monkeypatch.setenv(MAX_CHECKPOINT_MEMORY, str(64 * MIB))
    forget()
    assert len(anabranch.files(world.path)) == 4


def test_a_table_is_read_by_its_commits_where_they_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = with_a_bomb(tmp_path, alone=False)
    monkeypatch.setenv(MAX_CHECKPOINT_MEMORY, str(8 * MIB))
    assert [row["id"] for row in world.rows()] == [0, 1, 2, 3]


def test_by_default_a_file_may_take_what_is_much_for_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MAX_CHECKPOINT_MEMORY, raising=False)
    assert largest_unfolded_bytes(133_000) == 1 << 30
    assert largest_unfolded_bytes(100 * MIB) == 10_000 * MIB
    for value in ("0", "-1", "many", "1e9"):
        monkeypatch.setenv(MAX_CHECKPOINT_MEMORY, value)
        with pytest.raises(InvalidOption, match=MAX_CHECKPOINT_MEMORY):
            largest_unfolded_bytes(1)
