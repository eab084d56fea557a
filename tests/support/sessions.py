"""The Spark session of the tests, one for each process: it starts in some seconds, and is started once.

Where ``ANABRANCH_CONNECT`` is set it is a session of Spark Connect, and tests about a classic one are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.connect_session import ON_CONNECT, connect_session
from tests.support.spark_options import QUICK_JAVA

# Room for young objects: with Spark's default a twentieth of the time of small queries goes to collecting garbage.
JVM = {
    "spark.driver.extraJavaOptions": f"{QUICK_JAVA} -Xmn1g",
    "spark.driver.memory": "3g",
    "spark.ui.showConsoleProgress": "false",
}


def pytest_configure(config: pytest.Config) -> None:
    """Let the JVMs of commands and scripts that tests run start as quickly, where they say nothing else."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JAVA)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip on Spark Connect what is about a classic session alone."""
    if ON_CONNECT and (classic := item.get_closest_marker("classic")) is not None:
        pytest.skip(f"not on Spark Connect: {classic.args[0]}")


@pytest.fixture
def compiled(spark: Any) -> Iterator[str]:
    """Queries are compiled for a test, as for users: Spark's interpreter cannot run a few of them."""
    yield from setting(spark, "spark.sql.codegen.factoryMode", "FALLBACK")


@pytest.fixture
def adaptive(spark: Any) -> Iterator[str]:
    """Queries are planned again while they run, as for users."""
    yield from setting(spark, "spark.sql.adaptive.enabled", "true")


def setting(spark: Any, name: str, value: str) -> Iterator[str]:
    """For a fixture: the session has this setting during a test."""
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    yield value
    spark.conf.set(name, before)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[object]:
    """A local session as users get it, with two cores and everything that it leaves behind in a temporary folder.

    In a short tier Spark compiles no query, which is lost on one that runs once, plans none of them again while it
    runs, and does not ask at each use of a column in which line of Python that is, for which PySpark calls the JVM
    eight times.
    """
    from anabranch._spark.sessions.session import build  # here, so that tests without Spark need no pyspark

    folder = tmp_path_factory.mktemp("spark")
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.retainedJobs": "100000",  # tests count jobs, of which Spark forgets the oldest of a thousand
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
    }
    if pytestconfig.getoption("--tier") != "all":
        conf |= {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
        conf |= {"spark.sql.adaptive.enabled": "false", "spark.sql.ui.explainMode": "simple"}
        conf["spark.python.sql.dataFrameDebugging.enabled"] = "false"
    if ON_CONNECT:
        with connect_session(folder, conf) as session:
            yield session
        return
    session = build("tests", "local[2]", {**conf, **JVM})
    yield session
    session.stop()
