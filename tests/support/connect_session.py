"""The session of Spark Connect that the tests of the doors run on in `make connect`."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ON_CONNECT = "ANABRANCH_CONNECT" in os.environ
"""Whether the tests run there."""


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
        _stop_all(type(session))


def _stop_all(kind: type) -> None:
    """Stop each session: one that tests have made beside the first would look for the server as the process ends."""
    for each in gc.get_objects():
        if type(each) is kind:
            each.stop()
