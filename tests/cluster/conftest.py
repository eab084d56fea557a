"""A standalone cluster, and a session on it, for the tests of this folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from tests.support.spark_options import QUICK_JAVA
from tests.support.spark_servers import cluster, missing, required

EAGER_TO_SPECULATE = {
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.task.duration.threshold": "5s",  # for a stage of one task, which has no other to compare with
}


@pytest.fixture(scope="session")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the cluster."""
    required("ANABRANCH_CLUSTER", missing("cluster"))
    with cluster(tmp_path_factory.mktemp("cluster")) as address:
        yield address


@pytest.fixture(scope="module")
def session(master: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on it, which is quick to start a task a second time."""
    folder = tmp_path_factory.mktemp("driver")
    with pytest.MonkeyPatch.context() as patch:
        # Each machine runs the python3 of its own PATH: the driver this one, the workers theirs.
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        patch.setenv("PYSPARK_PYTHON", "python3")
        settings = {
            **EAGER_TO_SPECULATE,
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": QUICK_JAVA,
            "spark.executor.memory": "768m",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
        }
        spark = anabranch.install(anabranch.session("cluster", master, **settings))
        yield spark
        spark.stop()
