"""The doors on Spark Connect, with its real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]


def test_every_door_works_on_a_session_of_spark_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect's client needs grpcio")
    script = str(ROOT / "tests" / "support" / "on_connect.py")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, script, str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert json.loads(ran.stdout.splitlines()[-1]) == {
        "session": "pyspark.sql.connect.session",
        "merged": [2, 1],
        "by itself": 100,
        "statement": 1,
        "moved": 1,
        "sum": 9590,
        "count": 99,
        "then": 5,
        "history": ["OPTIMIZE", "DELETE", "MERGE", "MERGE", "UPDATE", "DELETE", "CREATE TABLE AS SELECT"],
        "clean": True,
        "joined": 11,
        "view": 9,
        "named": 12,
        "left": ["b"],
        "done once": True,
        "note": "a note",
        "refused": True,
        "not refused": [],
        "rows shown": [],
        "secrets shown": [],
        "streamed": [0, 1],
        "batches": ["STREAMING UPDATE", "STREAMING UPDATE"],
    }
