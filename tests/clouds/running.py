"""What tests of stores with Spark share: a session's settings, and the run of `tests.clouds.verbs`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from tests.support.spark_options import QUICK_JAVA

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


def run_verbs(url: str, settings: str, environment: Mapping[str, str]) -> None:
    """Run every verb below a URL, in a process of its own."""
    command = [sys.executable, "-m", "tests.clouds.verbs", url, settings]
    own = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK_"))}
    done = subprocess.run(command, env={**own, **environment}, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["all done"], done.stdout[-2000:] + done.stderr[-4000:]
