"""What tests of stores with Spark share: a session's settings, and the run of `tests.clouds.verbs`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

from tests.support.spark_options import QUICK_JAVA
from tools import connectors

SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.ui.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}


def required(reason: str) -> None:
    """Skip a test for this reason, if there is one; where it was asked for, let it fail."""
    if reason:
        (pytest.fail if os.environ.get("ANABRANCH_CLOUDS") == "required" else pytest.skip)(reason)


def run_verbs(url: str, master: str, settings: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Run every verb below a URL, in a process of its own."""
    run_script("tests.clouds.verbs", (url, master, json.dumps(settings)), environment)


def run_script(module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a script that says at its end that all is done."""
    command = [sys.executable, "-m", module, *arguments]
    own = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK_"))}
    done = subprocess.run(command, env={**own, **environment}, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["all done"], done.stdout[-2000:] + done.stderr[-4000:]


def s3_settings(s3: Mapping[str, str]) -> dict[str, str]:
    """A session's settings by which Spark reaches the server."""
    return {
        **SETTINGS,
        "spark.driver.memory": "1g",
        "spark.jars": ",".join(map(str, connectors.jars())),
        "spark.hadoop.fs.s3a.endpoint": s3["AWS_ENDPOINT"],
        "spark.hadoop.fs.s3a.endpoint.region": s3["AWS_REGION"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": s3["AWS_ACCESS_KEY_ID"],
        "spark.hadoop.fs.s3a.secret.key": s3["AWS_SECRET_ACCESS_KEY"],
    }


def s3_copy(s3: Mapping[str, str], table: str, folder: Path) -> Path:
    """The files of a table of the bucket, in a folder."""
    bucket = S3Store("bucket", config={key.lower(): value for key, value in s3.items() if key != "AWS_ALLOW_HTTP"},
                     client_options={"allow_http": True})  # fmt: skip
    for page in obstore.list(bucket, table):
        for meta in page:
            to = folder / meta["path"]
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(obstore.get(bucket, meta["path"]).bytes().to_bytes())
    return folder / table
