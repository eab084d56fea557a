"""The leaves of Arrow columns, and their paths in Parquet files."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._protocol.nested_arrays import leaf_arrays


def test_the_paths_are_those_of_the_file_that_arrow_writes() -> None:
    inner = pa.struct({"n": pa.int64(), "deep": pa.list_(pa.struct({"x": pa.float64()}))})
    schema = pa.schema({"a": pa.string(), "s": inner, "m": pa.map_(pa.string(), pa.list_(pa.int32()))})
    rows = pa.table({name: pa.array([None], schema.field(name).type) for name in schema.names}, schema)
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    stored = pq.ParquetFile(io.BytesIO(sink.getvalue())).schema
    found = [path for name in rows.column_names for path, _ in leaf_arrays(rows[name].chunk(0), name)]
    assert found == [stored.column(i).path for i in range(len(stored))]


def test_each_value_stands_in_one_leaf() -> None:
    column = pa.array([{"a": [1, 2], "b": {"c": 3}}, {"a": [4], "b": {"c": 5}}])
    assert {path: leaf.to_pylist() for path, leaf in leaf_arrays(column, "s")} == {
        "s.a.list.element": [1, 2, 4],
        "s.b.c": [3, 5],
    }
