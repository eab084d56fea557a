"""A session that names delta-spark's classes: with its JARs `delta` stays its own, without them `install` says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch._spark.sessions.known_sessions import formats_of
from tests.support.delta_spark import REQUIRED, why_absent
from tests.support.session_with_delta import CATALOG, EXTENSION
from tools import interop

pytestmark = [pytest.mark.spark, pytest.mark.classic("it starts a JVM with JARs of its own")]

NO_JARS = (
    "The session's setting spark.sql.catalog.spark_catalog is org.apache.spark.sql.delta.catalog.DeltaCatalog, a "
    "class of delta-spark, whose JARs are not there, so Spark can open no table: start the session without "
    "spark.sql.catalog.spark_catalog and spark.sql.extensions, or add the JARs again."
)


def told(jars: str, folder: Path) -> list[dict[str, Any]]:
    """What a process says of a session with the extension alone, and of one with the catalog, too."""
    command = [sys.executable, "-m", "tests.support.session_with_delta", jars, str(folder)]
    own = {key: value for key, value in os.environ.items() if not key.startswith("SPARK_")}
    done = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.exhaustive(
    "tests/spark/test_own_delta.py::test_a_catalog_whose_jars_are_not_there_is_refused_in_a_sentence",
    "tests/spark/test_own_delta.py::test_an_extension_that_stayed_without_the_jars_is_passed_over",
)
def test_settings_that_stayed_without_the_jars_are_passed_over_or_refused_in_a_sentence(tmp_path: Path) -> None:
    with_extension, with_catalog = told("", tmp_path)
    assert with_extension == {"formats": ["anabranch", "delta"], "rows": 3}
    assert with_catalog["error"] == "MissingDeltaJars"
    assert with_catalog["message"].endswith(NO_JARS)


def test_a_catalog_whose_jars_are_not_there_is_refused_in_a_sentence(spark: SparkSession) -> None:
    beside = anabranch.uninstall(spark.newSession())
    beside.conf.set("spark.sql.catalog.spark_catalog", CATALOG)
    with pytest.raises(anabranch.errors.MissingDeltaJars) as refused:
        anabranch.install(beside)
    assert refused.value.message.endswith(NO_JARS)
    assert not formats_of(beside)


def test_an_extension_that_stayed_without_the_jars_is_passed_over(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark lets nobody name one once it has started, so the session only says that it has one."""
    beside = anabranch.uninstall(spark.newSession())
    plain = type(beside.conf).get

    def with_extension(conf: Any, name: str, *default: Any) -> Any:
        return EXTENSION if name == "spark.sql.extensions" else plain(conf, name, *default)

    monkeypatch.setattr(type(beside.conf), "get", with_extension)
    try:
        anabranch.install(anabranch.install(beside))
        assert sorted(formats_of(beside)) == ["anabranch", "delta"]
        beside.range(3).write.format("delta").save(str(tmp_path))
        assert beside.read.format("delta").load(str(tmp_path)).count() == 3
    finally:
        anabranch.uninstall(beside)


@pytest.mark.interop
@pytest.mark.slow
def test_with_the_jars_delta_stays_delta_sparks_and_ours_is_anabranch(tmp_path: Path) -> None:
    if reason := why_absent():
        (pytest.fail if REQUIRED else pytest.skip)(reason)
    jars = ",".join(map(str, sorted(interop.jars().glob("*.jar"))))
    assert told(jars, tmp_path) == [{"formats": ["anabranch"], "rows": 3}] * 2
