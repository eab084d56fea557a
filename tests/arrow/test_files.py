"""What Arrow reads of data files, without Spark: no more of it at once than fits into memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch._arrow import files as arrow_files
from anabranch._arrow.files import live_batches, write_batches


def task_of(file: Path, table: pa.Table) -> dict[str, Any]:
    """What is told of one file whose rows are all live."""
    said = {"path": str(file), "deleted": None, "first_id": None, "version": None}
    wanted = table.schema.set(0, pa.field("v", pa.string()))
    return {"files": [said], "wanted": wanted, "hidden": None}


def repeated(length: int, count: int) -> pa.Table:
    """Rows of two long texts, which a file holds once each."""
    values = pa.array(["a" * length, "b" * length])
    return pa.table({"v": pa.DictionaryArray.from_arrays(pa.array([i % 2 for i in range(count)], pa.int32()), values)})


def distinct(length: int, count: int) -> pa.Table:
    return pa.table({"v": [str(i).zfill(length) for i in range(count)]})


@pytest.mark.parametrize("make", [repeated, distinct])
def test_long_values_are_read_a_few_rows_at_a_time(tmp_path: Path, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file may hold rows of many gigabytes: Spark reads it, and so may no process end of it."""
    monkeypatch.setattr(arrow_files, "BATCH_BYTES", 1 << 20)
    table = make(2_000, 5_000)
    pq.write_table(table, tmp_path / "a.parquet", store_schema=False)
    sizes = [(batch.nbytes, len(batch)) for batch in live_batches(task_of(tmp_path / "a.parquet", table))]
    assert max(size for size, _ in sizes) <= 1 << 20
    assert sum(count for _, count in sizes) == 5_000


def test_a_value_that_is_longer_than_all_rows_may_be_is_read_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_files, "BATCH_BYTES", 100)
    table = distinct(1_000, 3)
    pq.write_table(table, tmp_path / "a.parquet", store_schema=False)
    assert [len(batch) for batch in live_batches(task_of(tmp_path / "a.parquet", table))] == [1, 1, 1]


def test_short_values_are_read_many_rows_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And where there are few, nobody looks at the first ones by themselves: each look is a read of its own, and the
    rows that Arrow is asked for at once are noted.
    """
    asked = list[int]()
    real = pq.ParquetFile.iter_batches

    def watched(source: pq.ParquetFile, rows: int, **named: Any) -> Iterator[pa.RecordBatch]:
        asked.append(rows)
        return real(source, rows, **named)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched)
    for count, at_once in ((100, [arrow_files.BATCH_ROWS]), (1_000, [arrow_files.PROBED_ROWS, arrow_files.BATCH_ROWS])):
        table = distinct(10, count)
        pq.write_table(table, tmp_path / "a.parquet", store_schema=False)
        assert [len(batch) for batch in live_batches(task_of(tmp_path / "a.parquet", table))] == [count]
        assert asked == at_once
        asked.clear()


def test_a_row_group_ends_where_its_rows_take_as_many_bytes_as_one_is_to_have(tmp_path: Path) -> None:
    table = distinct(1_000, 10)
    task = {"wanted": table.schema, "codec": "snappy", "group_bytes": 2_500, "says": {}}
    batches = (table.slice(at, 1).to_batches()[0] for at in range(10))
    assert write_batches(str(tmp_path / "a.parquet"), task, batches) == 10
    found = pq.ParquetFile(tmp_path / "a.parquet").metadata
    assert [found.row_group(i).num_rows for i in range(found.num_row_groups)] == [3, 3, 3, 1]
