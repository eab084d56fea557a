"""Parquet files that this process writes say only what their readers may rely on."""

from __future__ import annotations

import io
from math import nan

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch._protocol.parquet_files import parquet_bytes

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


def encodings(rows: pa.Table) -> dict[str, bool]:
    """For each leaf whether its file holds a dictionary of its values."""
    group = pq.read_metadata(io.BytesIO(parquet_bytes(rows))).row_group(0)
    found = [group.column(i) for i in range(group.num_columns)]
    return {each.path_in_schema: "RLE_DICTIONARY" in each.encodings for each in found}


def test_only_values_that_are_there_more_than_once_are_put_into_a_dictionary() -> None:
    many = range(20_000)
    rows = pa.table(
        {
            "id": pa.array(many),
            "kind": [f"kind {each % 900}" for each in many],
            "s": [{"unique": f"{each}", "same": 7} for each in many],
            "l": [[each % 5, 3] for each in many],
        }
    )
    found = {"id": False, "kind": True, "s.unique": False, "s.same": True, "l.list.element": True}
    assert encodings(rows) == found
    pieces = pa.concat_tables([rows.slice(0, 10), rows.slice(10), rows.slice(0, 1), rows.slice(0, 0)])
    assert encodings(pieces) == found, "by most of the values, however they come"


def test_a_few_values_are_put_into_a_dictionary_whatever_they_are() -> None:
    assert encodings(pa.table({"id": [1, 2, 3], "x": pa.nulls(3, pa.int64())})) == {"id": True, "x": True}
    assert parquet_bytes(pa.table({"id": pa.array([], pa.int64())}))
