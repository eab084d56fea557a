"""What benchmarks ask of delta-spark: statements of several threads at once, and a scan whose rows nobody keeps."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import anabranch
from benchmarks.one_file import PROOF, one_more
from tests.support.delta_spark import DeltaSpark, DeltaSparkError

pytestmark = [pytest.mark.interop, pytest.mark.spark]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    anabranch.append(tmp_path / "t", pa.table({"id": [0, 1, 2], "x": [0, 0, 0]}))
    return tmp_path / "t"


def test_who_loses_to_another_thread_tries_again_until_each_statement_is_in_once(
    delta_spark: DeltaSpark, table: Path
) -> None:
    update = one_more(1).text.format(f"delta.`{table}`")
    calls = delta_spark.together([[update, update], [update]])
    assert PROOF(table) == (3, 3, 9, 3)
    assert len(calls) == 3
    assert all(call["ended"] > call["began"] and call["refused"] >= 0 for call in calls)


def test_a_statement_that_is_wrong_is_not_tried_again(delta_spark: DeltaSpark, table: Path) -> None:
    with pytest.raises(DeltaSparkError):
        delta_spark.together([[f"UPDATE delta.`{table}` SET y = 1"]])


def test_a_scan_takes_a_table_with_marked_rows(delta_spark: DeltaSpark, table: Path) -> None:
    anabranch.append(table, pa.table({"id": [3, 4], "x": [0, 0]}))
    delta_spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 3")
    delta_spark.scan(f"SELECT * FROM delta.`{table}`")
    assert PROOF(table)[0] == 4
