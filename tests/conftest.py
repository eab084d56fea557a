"""What all tests share: one Spark for the whole run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ.pop(
    "COLUMNS", None
)  # pytest's workers inherit one, which would fix the width of what the command line prints


os.fsync = os.fstat  # type: ignore[assignment]
"""No power fails during a test, so nothing waits for the disk, which is a good part of the time. A bad descriptor is an
error still; what is made durable, and when, is asked in tests/storage/test_local_faults.py."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A local session as users get it, with two cores and everything that it leaves behind in a temporary folder."""
    from anabranch.spark.session import build  # here, so that tests without Spark need no pyspark

    folder = tmp_path_factory.mktemp("spark")
    conf = {
        # Each test runs a few small queries once: what a second compiler would win later is lost on compiling.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.memory": "3g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
    }
    session = build("tests", "local[2]", conf)
    yield session
    session.stop()
