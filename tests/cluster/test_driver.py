"""What a cluster's driver gathers: bitmaps and lists of files, and never rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import WHOLE_TEST

ROOT = Path(__file__).parents[2]
MIB = 1 << 20

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(2 * WHOLE_TEST)]


def test_a_merge_of_millions_of_rows_sends_no_row_to_the_driver(master: str, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYSPARK_PYTHON": "python3", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.cluster.large_merge", master, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    print(seen)
    assert (seen["files"], seen["with vectors"]) == (200, 200)
    assert seen["merge"]["gave"] == {"num_updated_rows": 494_845, "num_inserted_rows": 4_505_155}
    assert seen["rows"] == 1_000_000 - 10_310 + 4_505_155 + 6_000_000
    assert seen["clean"]
    assert seen["results"]["largest"] < 4 * MIB
    assert seen["merge"]["grew"] < 200 * MIB
    again = seen["write"]["gave"]
    assert len(again) == 2, "both files were staged again"
    assert seen["write"]["grew"] < 32 * MIB < again[0], "in pieces"
