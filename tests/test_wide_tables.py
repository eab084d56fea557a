"""However many columns a stranger's table has, the time that it takes grows as their number: work on ten times the
columns takes some ten times as long.
"""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch._arrow.files import check_file, rows_at_once
from anabranch._arrow.merge_source import source_columns
from anabranch._expressions import Context
from anabranch._expressions.sides import MergeColumns, resolve_assignments
from anabranch._protocol.schema.parquet_columns import columns_of
from anabranch._protocol.schema.types import Struct, from_arrow
from anabranch._protocol.stats.statistics import stats_columns
from anabranch.commands.dml.new_table import check_columns
from tests.support.growth import MOST_TIMES, times_more

pytestmark = [pytest.mark.slow]
Wide = tuple[pa.Table, Struct, pq.ParquetFile]
"""Rows, their columns, and the same rows in a file."""


def wide(columns: int) -> Wide:
    rows, sink = pa.table({f"c{i}": [1] for i in range(columns)}), io.BytesIO()
    pq.write_table(rows, sink)
    return rows, from_arrow(rows.schema), pq.ParquetFile(io.BytesIO(sink.getvalue()))


def read_statistics(table: Wide) -> object:
    _, columns, _ = table
    bounds = dict.fromkeys(columns.names, 1)
    texts = [json.dumps({"numRecords": 1, "minValues": bounds, "maxValues": bounds, "nullCount": bounds})]
    return stats_columns(pa.array(texts), columns, columns.names)


def merge_all(table: Wide) -> object:
    _, columns, _ = table
    context = Context("/t", columns, dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "UTC", lambda names: True)
    sides = MergeColumns(columns, columns.names, "t", "s", described=columns)
    return [sides.column(["s", name], ("source",)) for name in resolve_assignments(None, "set", sides, context)]


def find_all(table: Wide) -> object:
    found = source_columns(table[0].schema)
    return [found.type_of(name) for name in table[1].names]


WORKS: dict[str, Callable[[Wide], object]] = {
    "the columns of a footer": lambda table: columns_of(table[2].metadata),
    "what a new table may have": lambda table: check_columns(table[1], ()),
    "what Arrow may read": lambda table: check_file(table[2], table[0].schema),
    "how much is read at once": lambda table: rows_at_once(table[2], 0, {name: [name] for name in table[1].names}),
    "statistics": read_statistics,
    "a MERGE of all columns": merge_all,
    "the source of a MERGE": find_all,
}


@pytest.mark.parametrize("work", WORKS)
def test_ten_times_the_columns_take_ten_times_as_long(work: str) -> None:
    little, much = wide(400), wide(4000)
    assert times_more(lambda: WORKS[work](little), lambda: WORKS[work](much)) < MOST_TIMES
