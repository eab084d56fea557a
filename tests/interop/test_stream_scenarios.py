"""The streams of delta-spark's own suites on both engines: the same outcome, or a difference that is listed."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import tables
from anabranch._log.log import forget
from tests.documented.given import Given, observed, scenarios_of
from tests.interop.streams import MODULES
from tests.interop.streams.differences import DIFFERENCES
from tests.interop.streams.not_played import NOT_PLAYED
from tests.support.delta_spark import DeltaSpark
from tests.test_docs import DOCS, rows_of_table

SCENARIOS = scenarios_of(map(importlib.import_module, MODULES))
OURS = {where: value for each in DIFFERENCES for where, value in each.seen.items()}


@pytest.mark.interop
@pytest.mark.spark
@pytest.mark.parametrize("name", SCENARIOS)
def test_both_engines_play_a_stream_alike(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, name: str
) -> None:
    for folder in ("theirs", "ours"):
        (tmp_path / folder).mkdir()
    forget()
    given = Given(anabranch.install(spark), tables, tmp_path / "ours", name.replace(".", "_"))
    theirs = {what: found for what, found, _ in delta_spark.seen(name, MODULES, tmp_path / "theirs")}
    ours = {what: found for what, found, _ in observed(SCENARIOS[name], given)}
    listed = {where.partition(": ")[2]: value for where, value in OURS.items() if where.startswith(f"{name}: ")}
    assert ours == theirs | listed
    assert all(theirs[what] != value for what, value in listed.items()), "listed, though it is no difference"


@pytest.mark.parametrize("module", MODULES)
def test_a_scenario_knows_nothing_of_ours(module: str) -> None:
    assert "anabranch" not in inspect.getsource(importlib.import_module(module))


def test_every_difference_is_of_a_scenario() -> None:
    assert {where.partition(": ")[0] for where in OURS} <= SCENARIOS.keys()
    assert sum(len(each.seen) for each in DIFFERENCES) == len(OURS), "one answer has one reason"


def test_a_case_is_played_or_is_said_not_to_be() -> None:
    played = {case for scenario in SCENARIOS.values() for case in scenario.documents}  # type: ignore[attr-defined]
    assert not played & NOT_PLAYED.keys()


def test_the_documentation_lists_every_difference_and_no_other() -> None:
    stated = rows_of_table(DOCS / "concepts" / "differences.md", "stream")
    assert stated == [[cell.replace("`", "") for cell in (e.what, e.theirs, e.ours, e.why)] for e in DIFFERENCES]
