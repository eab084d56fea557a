"""The session of Spark Connect that the tests of the doors run on in `make connect`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def connect_session(folder: Path, settings: Mapping[str, str]) -> Iterator[object]:
    """A session on a server of its own, which has these settings."""
    from pyspark.sql import SparkSession  # here, so that tests without Spark need no pyspark

    from tests.support.spark_servers import connect_server, missing, required

    required("ANABRANCH_CONNECT", missing("connect"))
    os.environ["PYSPARK_PYTHON"] = "python3"
    with connect_server(folder, settings) as address:
        session = SparkSession.builder.remote(address).getOrCreate()
        yield session
        session.stop()
