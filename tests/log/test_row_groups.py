"""Row groups: chosen as Arrow's own reading of the footer says, and never at the price of the process."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._log import row_groups
from anabranch._log.footers import footer_in
from anabranch._log.row_groups import RowGroups
from anabranch._storage.native import Span

COLUMNS = ("add", "protocol", "flag")


def file_of(rows: list[dict[str, Any]], per_group: int, **options: Any) -> bytes:
    add = pa.struct([("path", pa.string()), ("tags", pa.map_(pa.string(), pa.string())), ("size", pa.int64())])
    schema = pa.schema([("add", add), ("protocol", pa.struct([("version", pa.int32())])), ("flag", pa.bool_())])
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), sink, row_group_size=per_group, **options)
    return sink.getvalue()


def footer_of(data: bytes) -> pq.FileMetaData:
    return pq.ParquetFile(io.BytesIO(data)).metadata


def by_arrow(footer: pq.FileMetaData, columns: set[str]) -> list[int]:
    found = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        chunks = [group.column(i) for i in range(group.num_columns)]
        asked = [chunk for chunk in chunks if chunk.path_in_schema.partition(".")[0] in columns]
        if any(not chunk.is_stats_set or chunk.statistics.null_count != chunk.num_values for chunk in asked):
            found.append(number)
    return found


ADD = {"path": "a", "tags": {"k": "v"}, "size": -3}
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "add": st.sampled_from([None, ADD, {**ADD, "path": "long" * 300, "tags": {}}]),
            "protocol": st.sampled_from([None, None, {"version": 3}, {"version": None}]),
            "flag": st.sampled_from([None, True, False]),
        }
    ),
    max_size=60,
)


def test_a_footer_is_parsed_once_however_often_its_file_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed, original = list[int](), row_groups.struct
    monkeypatch.setattr(row_groups, "struct", lambda data, depth: parsed.append(depth) or original(data, depth))
    footer = footer_in(file_of([{"add": ADD}] * 3, 1), "a.parquet")
    for _ in range(3):
        RowGroups(bytes(footer), 3).check()
    assert len(parsed) == 1


def test_a_large_footer_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed, original = list[int](), row_groups.struct
    monkeypatch.setattr(row_groups, "struct", lambda data, depth: parsed.append(depth) or original(data, depth))
    footer = footer_in(file_of([{"add": ADD}] * 400, 1), "a.parquet")
    for _ in range(2):
        RowGroups(bytes(footer), 400).check()
    assert len(parsed) == 2


@pytest.mark.slow
@given(ROWS, st.integers(1, 20), st.sets(st.sampled_from(COLUMNS)), st.booleans())
def test_the_groups_are_those_of_arrow(
    rows: list[dict[str, Any]], per_group: int, columns: set[str], told: bool
) -> None:
    data = file_of(rows, per_group, write_statistics=told)
    footer = footer_of(data)
    expected = by_arrow(footer, columns) if footer.num_row_groups > 1 else [*range(footer.num_row_groups)]
    assert groups_of(data).holding(columns) == expected


def test_a_single_group_is_not_asked_about() -> None:
    assert groups_of(file_of([{"add": None}] * 5, 10)).holding({"add"}) == [0]


@given(st.data())
def test_whatever_is_garbled_is_a_value_error_or_an_answer(data: st.DataObject) -> None:
    whole = bytearray(footer_in(file_of([{"add": ADD, "flag": True}, {"protocol": {"version": 1}}] * 4, 2), "a file"))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    groups = RowGroups(bytes(whole[: data.draw(st.integers(1, len(whole)))]), 4)
    try:
        found = groups.holding({"add"})
        assert all(isinstance(span, Span) for span in groups.spans(found, ["add.path"]))
    except ValueError:
        return
    assert all(isinstance(number, int) for number in found)


@pytest.mark.parametrize("data", [b"", b"PAR1PAR1", b"PAR1" + b"x" * 20 + b"\xff\xff\x00\x00PAR1"])
def test_what_has_no_footer_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="a file has"):
        footer_in(data, "a file")


def groups_of(data: bytes) -> RowGroups:
    return RowGroups(footer_in(data, "a file"), footer_of(data).num_row_groups)
