"""Every verb on a cluster whose workers have nothing of ours, both ends of a stream among them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.clouds.verbs import Verbs

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


def test_every_verb_runs_on_a_cluster(session: SparkSession, tmp_path: Path) -> None:
    verbs = Verbs(session, str(tmp_path))
    for verb in (verbs.rows, verbs.merge, verbs.upkeep, verbs.versions, verbs.copies, verbs.changes, verbs.streams):
        verb()
