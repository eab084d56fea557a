"""The doors on Spark Connect, with its real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.connect_scripts import run_on_connect
from tests.support.tiers import examples, is_short

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_every_door_works_on_a_session_of_spark_connect(tmp_path: Path) -> None:
    failing, starts = examples(99, 3), examples(2, 1)
    assert run_on_connect("tests.support.on_connect", tmp_path, failing, starts, int(not is_short())) == {
        "session": "pyspark.sql.connect.session",
        "merged with itself": [2, 1],
        "moved": 1,
        "cloned": True,
        "sums and counts": [[9505, 100], [9505, 100], [20, 5]],
        "history": ["OPTIMIZE", "MERGE", "UPDATE", "DELETE", "WRITE"],
        "clean": True,
        "joined, view and named": [[11], [9], [12]],
        "left": ["b"],
        "done once": True,
        "note": "a note",
        "refused": True,
        "not refused": [],
        "rows shown": [],
        "secrets shown": [],
        "streamed": [*range(starts)],
        "skipped": [25, 25, 25, 25],
        "batches": ["STREAMING UPDATE"] * starts,
    }
