"""HDFS with Spark: every verb on Hadoop's own NameNode and DataNode."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.clouds.running import SETTINGS, required, run_verbs
from tests.storage import mini_hdfs

pytestmark = [pytest.mark.clouds, pytest.mark.spark, pytest.mark.timeout(900)]


def test_every_verb_runs_on_hdfs(tmp_path: Path) -> None:
    required(mini_hdfs.why_absent())
    with mini_hdfs.serving(tmp_path / "hdfs") as url:
        run_verbs(f"{url}/all verbs", json.dumps(SETTINGS), {})
