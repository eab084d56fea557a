"""What UPDATE, DELETE and MERGE ask of S3: Anabranch's own client about as seldom as deltalake, which does it all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from tests.clouds.counted_changes import OURS
from tests.clouds.running import required, s3_settings
from tests.storage import minio_s3
from tools import connectors

pytestmark = [pytest.mark.clouds, pytest.mark.spark]


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[int, int, int]]:
    """Of each verb: the requests of Anabranch's client, of Spark's, and of deltalake; they are printed."""
    required("" if connectors.jars() else "Spark's connectors are not here; `make clouds` brings them")
    required(minio_s3.why_absent())
    with minio_s3.serving(tmp_path_factory.mktemp("minio")) as s3:
        asked = [json.dumps(s3), json.dumps(s3_settings(s3))]
        command = [sys.executable, "-m", "tests.clouds.counted_changes", *asked]
        own = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK_"))}
        done = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, tuple[int, int, int]] = json.loads(done.stdout.splitlines()[-1])
    print("\n| verb, after 5 commits | Anabranch | Spark | deltalake |\n|---|---|---|---|")
    for verb, (ours, sparks, theirs) in found.items():
        print(f"| {verb} | {ours} | {sparks} | {theirs} |")
    return found


MORE = {"MERGE of two rows": 2}
"""So many more are let: a source that may be evaluated only once is kept in the table's folder, and read from there."""


@pytest.mark.parametrize("verb", OURS)
def test_our_client_asks_no_more_often_than_deltalake(counts: Mapping[str, tuple[int, int, int]], verb: str) -> None:
    ours, _, theirs = counts[verb]
    assert 0 < ours <= theirs + MORE.get(verb, 0)
