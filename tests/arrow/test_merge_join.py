"""What a join in Arrow leaves behind of rows with and without a match: addresses, clauses, new and old values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from anabranch._arrow import merge_join
from anabranch._arrow.marks import marks_of
from anabranch._arrow.merge_clauses import ActingClause
from anabranch._arrow.merge_join import AT, NUMBER, Join
from anabranch._arrow.merge_source import SourceColumns, SourceRows
from anabranch._arrow.pairs import NONE
from anabranch._arrow.site import site_without_spark
from anabranch._protocol.expressions.computation import Computation, computation_of_syntax
from anabranch._protocol.expressions.parser import parse_expression
from anabranch._protocol.expressions.resolving import Scope
from anabranch._protocol.expressions.tree import Column
from anabranch._protocol.layout.addresses import address_of
from anabranch._protocol.merges import NOTHING_MORE
from anabranch._protocol.unsupported import Unsupported
from anabranch._storage import open_store
from tests.spark.tables import numbered

ROWS = pa.table({"id": pa.array([1, 4], pa.int64()), "number": pa.array([0, 1], pa.int64())})
SOURCE = SourceRows(SourceColumns(("id",), ("long",)), ROWS)


@pytest.fixture
def join(tmp_path: Path) -> Join:
    """Rows 0 to 2 and 3 to 5 in two files, of which the row 5 is deleted."""
    files = numbered(tmp_path, {"b.parquet": 3, "a.parquet": 3}, {"a.parquet": [2]})
    return Join(site_without_spark(open_store(files.root)), files, SOURCE, address_of(files.schema))


def over_pairs(text: str) -> Computation:
    types = {"id": "long", "s": "string"}
    return computation_of_syntax(
        parse_expression(text),
        Scope(lambda parts: Column(({"t": "target", "g": "source"}[parts[0]], parts[1]), types[parts[1]])),
    )


def test_a_row_without_a_match_is_acted_on_by_the_first_clause_that_holds(join: Join) -> None:
    clauses = [ActingClause(3, over_pairs("t.id = 4 OR t.id = 0"), False, {}), ActingClause(5, NOTHING_MORE, False, {})]
    matched = marks_of(pa.chunked_array([["b.parquet"]]), pa.chunked_array([[1]]))
    found, acts = join.alone(clauses, matched)
    addresses = zip(*(found[name].to_pylist() for name in join.address), acts.tolist(), strict=True)
    assert list(addresses) == [("b.parquet", 0, 3), ("b.parquet", 2, 5), ("a.parquet", 0, 5), ("a.parquet", 1, 3)]
    assert found[NUMBER].null_count == len(found)


def test_rows_that_no_clause_acts_on_are_not_there(join: Join) -> None:
    found, acts = join.alone([ActingClause(0, over_pairs("t.id > 100"), False, {})], {})
    assert (len(found), len(acts)) == (0, 0)


def test_without_statistics_rows_are_counted_by_footers(join: Join) -> None:
    files = join.files.files
    without_counting = files.set_column(files.column_names.index("stats"), "stats", pa.nulls(len(files), pa.string()))
    every = [ActingClause(0, NOTHING_MORE, False, {})]
    found, _ = replace(join, files=replace(join.files, files=without_counting)).alone(every, {})
    assert found == join.alone(every, {})[0]


def test_too_many_rows_without_a_match_are_left_to_spark(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    every = [ActingClause(0, NOTHING_MORE, False, {})]
    monkeypatch.setattr(merge_join, "MOST_BYTES", 10)
    with pytest.raises(Unsupported):
        join.alone(every, {})


def test_new_and_old_values_stand_where_a_clause_acts(join: Join) -> None:
    found = pa.table(
        {
            join.address.path: ["b.parquet", "b.parquet", "a.parquet"],
            join.address.row: [0, 1, 1],
            AT: [0, 1, 2],
            NUMBER: pa.array([0, 0, 1], pa.int64()),
        }
    )
    update = ActingClause(2, NOTHING_MORE, True, {"s": over_pairs("concat(t.s, '-', CAST(g.id AS STRING))")})
    acts = np.array([2, NONE, 2], np.int32)
    left = join.left_behind([update], found, acts, images=True, recorded=True)
    assert left.to_pydict() == {
        "path": ["b.parquet", "b.parquet", "a.parquet"],
        "row": [0, 1, 1],
        "number": [0, 0, 1],
        "clause": [2, None, 2],
        "image0": [0, None, 4],
        "image1": ["0-1", None, "4-4"],
        "old0": [0, None, 4],
        "old1": ["0", None, "4"],
    }
    assert left.schema.field("clause").type == pa.int32()
    plain = join.left_behind([update], found, acts, images=False, recorded=False)
    assert plain.column_names == ["path", "row", "number", "clause"]
