"""Parquet files that this process writes say only what their readers may rely on."""

from __future__ import annotations

import io
from math import nan

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch.protocol.parquet_files import parquet_bytes

MAP = pa.map_(pa.string(), pa.float64())


def bounded(rows: pa.Table) -> dict[str, bool]:
    group = pq.read_metadata(io.BytesIO(parquet_bytes(rows))).row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    return {each.path_in_schema: each.is_stats_set for each in columns}


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.0, nan]),
        pa.array([1.0, nan], pa.float32()),
        pa.array([[1.0], [nan]]),
        pa.array([{"x": 1.0}, {"x": nan}]),
        pa.array([[("a", 1.0)], [("b", nan)]], MAP),
        pa.array([[{"x": [nan]}], None]),
    ],
    ids=lambda column: str(column.type),
)
def test_a_column_with_a_nan_has_no_bounds_in_the_footer_by_which_spark_would_skip_its_row(column: pa.Array) -> None:
    found = bounded(pa.table({"id": [1, 2], "x": column}))
    assert found.pop("id") is True
    found.pop("x.key_value.key", None)
    assert not any(found.values())


def test_a_nan_takes_no_bounds_from_the_other_members_of_its_struct() -> None:
    found = bounded(pa.table({"s": [{"x": 1.0, "y": 1.0, "deep": {"z": "a"}}, {"x": nan, "y": 2.0, "deep": None}]}))
    assert found == {"s.x": False, "s.y": True, "s.deep.z": True}


def test_every_other_column_has_bounds_at_any_depth() -> None:
    rows = pa.table(
        {
            "d": [1.0, None],
            "a.b": ["x", "y"],
            "list": [[1.0], [2.0]],
            "nested": [[{"x": 1.5, "y": [[1]]}], []],
            "map": pa.array([[("a", 1.0)], [("b", 2.0)]], MAP),
        }
    )
    assert all(bounded(rows).values())
