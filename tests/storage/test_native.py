"""What Arrow's threads read is Arrow's own memory, and of a stored file only the bytes that were asked for."""

from __future__ import annotations

import io
import random
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch._log.footers import footer_in
from anabranch._log.row_groups import RowGroups
from anabranch._storage.native import Span, file_with, native_file
from anabranch.errors import NotFound
from anabranch.testing import DictStore, ObservedStore
from tests.support.tiers import examples

DATA = random.Random(7).randbytes(1 << 20)
OFFSETS = st.integers(0, len(DATA))


def stored(data: bytes) -> ObservedStore:
    store = DictStore("memory://native")
    store.put("a file", data)
    return ObservedStore(store)


class Asked(DictStore):
    """A store that remembers which ranges it was asked for."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.ranges: list[tuple[int, int]] = []

    def read_range(self, name: str, start: int, length: int) -> bytes:
        self.ranges.append((start, length))
        return super().read_range(name, start, length)


@pytest.mark.parametrize("size", [0, 1, 5000, len(DATA)])
def test_a_native_file_is_the_bytes_and_holds_none_of_pythons(size: int) -> None:
    data = bytes(bytearray(DATA[:size]))
    held_before = sys.getrefcount(data)
    file = native_file(data)
    assert sys.getrefcount(data) == held_before
    assert file.read() == data


def test_what_arrow_would_make_of_the_bytes_by_itself_holds_them() -> None:
    """The premise: were it not so, nothing here would be needed."""
    data = bytes(bytearray(DATA))
    held_before = sys.getrefcount(data)
    file = pa.BufferReader(data)
    assert sys.getrefcount(data) > held_before
    assert file.size() == len(data)


@settings(max_examples=examples(50, 10))
@given(st.lists(st.tuples(OFFSETS, st.integers(0, 300_000)), max_size=6))
def test_every_byte_that_was_asked_for_is_there(asked: list[tuple[int, int]]) -> None:
    spans = [Span(start, start + length) for start, length in asked]
    file = file_with(stored(DATA), "a file", len(DATA), spans)
    assert file.size() == len(DATA)
    for start, end in spans:
        file.seek(start)
        assert file.read(end - start) == DATA[start:end]


def test_spans_near_to_each_other_are_one_request_and_far_ones_are_not_joined() -> None:
    store = Asked("memory://native")
    store.put("a file", DATA)
    file_with(store, "a file", len(DATA), [Span(500_000, 500_010), Span(200_010, 200_020), Span(200_000, 200_005)])
    assert sorted(store.ranges) == [(200_000, 20), (500_000, 10)]


def test_nothing_asked_for_is_no_request() -> None:
    store = stored(DATA)
    assert file_with(store, "a file", len(DATA), []).size() == len(DATA)
    assert store.calls == []


def test_a_file_that_became_shorter_has_what_is_left_of_it_and_one_that_vanished_is_not_found() -> None:
    shorter = file_with(stored(DATA[:100]), "a file", 200, [Span(0, 200)])
    assert (shorter.size(), shorter.read(100)) == (200, DATA[:100])
    with pytest.raises(NotFound):
        file_with(stored(DATA), "another", 200, [Span(0, 200)])


@pytest.mark.slow
@settings(max_examples=examples(50, 10))
@given(st.data())
def test_arrow_reads_columns_from_their_spans_alone(data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 400))
    some = random.Random(data.draw(st.integers(0, 99)))
    table = pa.table(
        {
            "s": [{"x": some.choice([None, i]), "xy": "text " * some.randrange(9)} for i in range(rows)],
            "x": pa.array([some.choice(["few", "values", None]) for _ in range(rows)], pa.string()),
            "many": [some.randbytes(50).hex() for _ in range(rows)],
        },
        schema=pa.schema(
            [("s", pa.struct([("x", pa.int64()), ("xy", pa.string())])), ("x", pa.string()), ("many", pa.string())]
        ),
    )
    sink = io.BytesIO()
    compression = data.draw(st.sampled_from(["none", "snappy"]))
    pq.write_table(
        table,
        sink,
        row_group_size=data.draw(st.integers(1, 500)),
        use_dictionary=data.draw(st.booleans()),
        data_page_version=data.draw(st.sampled_from(["1.0", "2.0"])),
        compression=compression,
    )
    whole = sink.getvalue()
    footer = pq.read_metadata(io.BytesIO(whole))
    groups = [number for number in range(footer.num_row_groups) if some.random() < 0.7]
    columns = data.draw(st.lists(st.sampled_from(["s.x", "s.xy", "s", "x", "many"]), min_size=1, unique=True))
    spans = RowGroups(footer_in(whole, "a file"), footer.num_row_groups).spans(groups, columns)
    part = file_with(stored(whole), "a file", len(whole), spans)
    expected = pq.ParquetFile(io.BytesIO(whole)).read_row_groups(groups, columns=columns)
    assert pq.ParquetFile(part, metadata=footer).read_row_groups(groups, columns=columns).equals(expected)
