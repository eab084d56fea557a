"""Values of the rows of a table that a condition selects, computed without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import anabranch
from anabranch._arrow.projection import project
from anabranch._arrow.site import site_without_spark
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.conditions import Condition
from anabranch._protocol.expressions.computation import Computation, computation_over
from anabranch._protocol.predicates import Unknown
from anabranch._protocol.unsupported import Unsupported
from anabranch.commands.opening import file_set, open_log

MOST = 1 << 20


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    path = str(tmp_path)
    anabranch.append(path, {"id": [1, 2, 3], "word": ["a", "b", None], "p": [0, 1, 0]}, partition_by="p")
    anabranch.table(path).delete("id = 1")
    return open_log(path).snapshot()


def computed(snapshot: Snapshot, *texts: str, where: str | None = None, most: int = MOST) -> pa.Table:
    values = [computation_over(text, snapshot.schema) for text in texts]
    condition = None if where is None else condition_of(computation_over(where, snapshot.schema), where)
    return project(site_without_spark(snapshot.store), file_set(snapshot), values, condition, most)


def condition_of(computation: Computation, text: str) -> Condition:
    return Condition(text, Unknown(), True, text, computation=computation)


def test_the_values_are_those_of_the_live_rows_that_the_condition_selects(snapshot: Snapshot) -> None:
    assert sorted(computed(snapshot, "id * 10", "upper(word)").to_pylist(), key=str) == [
        {"c0": 20, "c1": "B"},
        {"c0": 30, "c1": None},
    ]
    assert computed(snapshot, "p + id", where="word = 'b'").to_pydict() == {"c0": [3]}
    assert computed(snapshot, "id", where="id > 9").num_rows == 0


def test_rows_are_counted_where_no_value_reads_a_column(snapshot: Snapshot) -> None:
    assert computed(snapshot, "'x'").to_pydict() == {"c0": ["x", "x"]}


def test_what_only_spark_computes_is_refused_before_a_row_is_read(snapshot: Snapshot) -> None:
    with pytest.raises(Unsupported, match="uuid"):
        computed(snapshot, "uuid()")
    with pytest.raises(Unsupported, match="no type"):
        computed(snapshot, "NULL")


def test_more_bytes_than_are_allowed_are_refused(snapshot: Snapshot) -> None:
    with pytest.raises(Unsupported, match="too large"):
        computed(snapshot, "repeat('x', 100)", most=150)
