"""A plugin of pytest that lets any library run on one engine, and writes down how each test ended.

Makes the changes that docs/moving.md documents, and no others, from outside: on Anabranch the names of `delta` are
those of `anabranch`, and each session that is built loses Delta's settings and is installed; on delta-spark each
session gets Delta's JARs from a folder in place of a download. Nothing of the library's files is changed.

The environment gives JOBS_ENGINE ("anabranch" or "delta-spark"), JOBS_JARS and JOBS_OUTCOMES.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
DOWNLOADS = ("spark.jars.packages", "spark.jars.excludes", "spark.jars.repositories")
SMALL = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.databricks.delta.snapshotPartitions": "2",
}
"""Settings for small tables, on both engines, where a library does not ask for others."""


def settings(asked: Mapping[str, Any], engine: str, jars: str) -> dict[str, Any]:
    """The settings that a session is built with, where a library asked for these."""
    kept = {name: value for name, value in asked.items() if name not in DOWNLOADS}
    if engine == "anabranch":
        kept = {name: value for name, value in kept.items() if DELTA.get(name) != value}
    else:
        kept = {**DELTA, **kept, "spark.jars": ",".join(filter(None, (kept.get("spark.jars"), jars)))}
    return {**SMALL, **kept}


def ending(reports: Mapping[str, str]) -> str:
    """How a test ended, whose phases ended so: a failure in any of them is the test's."""
    for worst in ("failed", "skipped"):
        if worst in reports.values():
            return worst
    return "passed"


def name_delta() -> None:
    """Give the modules of `delta` the names of ours, as a user does who changes the imports."""
    sys.modules["delta"] = None  # type: ignore[assignment]  # while ours is loaded, it must not find delta-spark's
    import anabranch
    import anabranch.errors
    import anabranch.tables

    package = ModuleType("delta")
    package.__path__ = []
    package.__spec__ = ModuleSpec("delta", None, is_package=True)
    helpers = ModuleType("delta.pip_utils")
    helpers.__dict__["configure_spark_with_delta_pip"] = lambda spark_session_builder, *_, **__: spark_session_builder
    package.__dict__.update(vars(helpers), DeltaTable=anabranch.tables.DeltaTable, __name__="delta")
    modules = {"tables": anabranch.tables, "exceptions": anabranch.errors, "pip_utils": helpers}
    package.__dict__.update(modules)
    sys.modules["delta"] = package
    sys.modules.update({f"delta.{name}": module for name, module in modules.items()})


def build_sessions(engine: str, jars: str) -> None:
    """Build each session of this process for the engine."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.Builder
    build = builder.getOrCreate

    def get_or_create(self: Any) -> Any:
        self._options = settings(self._options, engine, jars)
        session = build(self)
        if engine != "anabranch":
            return session
        import anabranch

        return anabranch.install(session)

    builder.getOrCreate = get_or_create


class Outcomes:
    """Writes a line for each phase of each test, so that those before a crash are kept."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.phases: dict[str, dict[str, str]] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        phases = self.phases.setdefault(report.nodeid, {})
        phases[report.when] = report.outcome
        self._write(report, ending(phases))

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._write(report, "failed")

    def _write(self, report: Any, outcome: str) -> None:
        crash = getattr(report.longrepr, "reprcrash", None)
        said = str(crash.message if crash else report.longrepr or "")[:2000]
        with self.path.open("a") as file:
            file.write(json.dumps({"test": report.nodeid, "outcome": outcome, "said": said}) + "\n")


def pytest_configure(config: Any) -> None:
    config.pluginmanager.register(Outcomes(Path(os.environ["JOBS_OUTCOMES"])))


if "JOBS_ENGINE" in os.environ:
    if os.environ["JOBS_ENGINE"] == "anabranch":
        name_delta()
    build_sessions(os.environ["JOBS_ENGINE"], os.environ["JOBS_JARS"])
