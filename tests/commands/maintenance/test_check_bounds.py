"""Bounds that Python has no value for, or that are no text, stop no check."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch import append
from anabranch._log.log import forget
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.maintenance.check import check_table
from anabranch.commands.maintenance.check_bounds import bounds_of_footer, bounds_of_rows
from anabranch.commands.maintenance.check_files import Finding
from tests.support.raw_logs import PROTOCOL, add, info, metadata, put_commit

FAR = {
    "date": pa.array(np.array([3_000_000, None, 100_000_000], dtype=object), pa.int32()).cast(pa.date32()),
    "timestamp": pa.array([300_000_000_000_000_000, None, 253_402_300_800_000_000], pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.array([300_000_000_000_000_000, None, -99_999_999_999_999_999], pa.timestamp("us")),
}


def found(path: Path, data_type: str, rows: pa.Table, stats: dict[str, Any], data: bytes = b"") -> tuple[Finding, ...]:
    """What the deep check finds of a table of one file."""
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    path.mkdir(exist_ok=True)
    data = data or sink.getvalue()
    (path / "f.parquet").write_bytes(data)
    protocol = PROTOCOL
    if data_type == "timestamp_ntz":
        lists = {"readerFeatures": ["timestampNtz"], "writerFeatures": ["timestampNtz"]}
        protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **lists}}
    schema = Struct((Field("d", data_type),))
    action = add("f.parquet", size=len(data), stats=json.dumps({"numRecords": len(rows), **stats}))
    put_commit(path, 0, info(), protocol, metadata(schema), action)
    forget()
    return check_table(str(path), deep=True).findings


def stated(low: str, high: str, nulls: int) -> dict[str, Any]:
    return {"minValues": {"d": low}, "maxValues": {"d": high}, "nullCount": {"d": nulls}}


@pytest.mark.parametrize("data_type", list(FAR))
def test_dates_and_moments_after_the_year_9999_end_no_check(tmp_path: Path, data_type: str) -> None:
    rows = pa.table({"d": FAR[data_type]})
    assert found(tmp_path, data_type, rows, {}) == ()
    assert found(tmp_path, data_type, rows, stated("+10183-10-05", "+275760-09-13", 1)) == ()


@pytest.mark.parametrize("data_type", list(FAR))
def test_what_can_be_known_of_such_a_column_is_still_held(tmp_path: Path, data_type: str) -> None:
    rows = pa.table({"d": FAR[data_type]})
    findings = found(tmp_path, data_type, rows, stated("+10183-10-05", "+275760-09-13", 0))
    assert {finding.problem for finding in findings} == {"d holds 1 NULLs, not the stated 0"}


def test_a_bound_of_a_footer_that_is_no_text_is_not_known_and_the_rows_are_asked(tmp_path: Path) -> None:
    rows = pa.table({"d": ["zebra", "yak", None]})
    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="zstd", use_dictionary=False)
    data, footer = sink.getvalue(), len(sink.getvalue()) - 8 - int.from_bytes(sink.getvalue()[-8:-4], "little")
    garbled = data[:footer] + data[footer:].replace(b"zebra", b"\xffebra")
    assert garbled != data
    assert bounds_of_footer(pq.read_metadata(io.BytesIO(garbled)))["d"] == ("yak", None, 1)
    assert found(tmp_path, "string", rows, stated("yak", "zebra", 1), garbled) == ()
    (finding,) = found(tmp_path, "string", rows, stated("yak", "yeti", 1), garbled)
    assert "the greatest d is 'zebra'" in finding.problem


def test_a_footer_whose_chunks_are_of_another_type_than_its_columns_ends_no_process(tmp_path: Path) -> None:
    """Arrow ends it, where it is asked of such a chunk."""
    rows = pa.table({"d": ["zebra", "yak", None], "n": [1, 2, 3]})
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    data = sink.getvalue()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    number, text = b"\x15\x04", b"\x15\x0c"  # the field `type` of a chunk or column: INT64, BYTE_ARRAY
    places = [at for at in range(start, len(data)) if data[at : at + 2] == number]
    garbled = [data[:at] + text + data[at + 2 :] for at in places]
    found_there = [found(tmp_path / str(i), "string", rows, {}, each) for i, each in enumerate(garbled)]
    assert any("of another type" in finding.problem for findings in found_there for finding in findings)


def test_spans_whose_order_arrow_does_not_know_end_no_check(tmp_path: Path) -> None:
    path = tmp_path / "t"
    append(path, {"d": pa.array([3, None, -5], pa.duration("us"))})
    assert check_table(path, deep=True).is_clean
    commit = path / "_delta_log" / f"{0:020}.json"
    commit.write_text(commit.read_text().replace('nullCount\\":{\\"d\\":1', 'nullCount\\":{\\"d\\":2'))
    forget()
    assert any("NULL" in finding.problem for finding in check_table(path, deep=True).findings)


def test_bounds_of_footer_and_rows_are_the_same() -> None:
    rows = pa.table({"i": [3, None, 1], "s": ["b", "a", None], "nothing": pa.array([None] * 3, pa.int32())})
    sink = io.BytesIO()
    pq.write_table(rows, sink, row_group_size=2)
    wanted = {"i": (1, 3, 1), "s": ("a", "b", 1), "nothing": (None, None, 3)}
    assert bounds_of_rows(rows) == wanted
    assert bounds_of_footer(pq.read_metadata(io.BytesIO(sink.getvalue()))) == wanted
