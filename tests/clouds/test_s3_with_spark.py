"""S3 with Spark: every verb on a bucket, whose rows Hadoop's own connector reads and writes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.clouds.running import SETTINGS, required, run_verbs
from tests.storage import moto_s3
from tools import connectors

pytestmark = [pytest.mark.clouds, pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """The environment of a server."""
    required("" if connectors.jars() else "Spark's connectors are not here; `make clouds` brings them")
    with moto_s3.serving() as environment:
        yield environment


def test_every_verb_runs_on_a_bucket(s3: dict[str, str]) -> None:
    settings = {
        **SETTINGS,
        "spark.jars": ",".join(map(str, connectors.jars())),
        "spark.hadoop.fs.s3a.endpoint": s3["AWS_ENDPOINT"],
        "spark.hadoop.fs.s3a.endpoint.region": s3["AWS_REGION"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": s3["AWS_ACCESS_KEY_ID"],
        "spark.hadoop.fs.s3a.secret.key": s3["AWS_SECRET_ACCESS_KEY"],
    }
    run_verbs("s3a://bucket/all verbs", json.dumps(settings), s3)
