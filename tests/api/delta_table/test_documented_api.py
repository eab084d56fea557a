"""The Python API that delta-spark documents, on ours: the same, or a difference that the documentation lists."""

from __future__ import annotations

import builtins
import importlib
import inspect
import re
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import pyspark.errors
from pyspark.sql import SparkSession

import anabranch
from anabranch import errors, tables
from tests.documented import MODULES
from tests.documented.differences import DIFFERENCES
from tests.documented.given import Given, observed, scenarios_of
from tests.documented.surface import PUBLIC
from tests.test_docs import DOCS, rows_of_table

SCENARIOS = scenarios_of(map(importlib.import_module, MODULES))
OURS = {where: value for each in DIFFERENCES for where, value in each.seen.items()}


def test_every_public_method_has_a_scenario() -> None:
    shown = {method for scenario in SCENARIOS.values() for method in scenario.documents}  # type: ignore[attr-defined]
    public = {f"{kind}.{name}" for kind, members in PUBLIC.items() for name in members}
    assert shown == public


@pytest.mark.parametrize("kind", PUBLIC)
def test_ours_has_every_public_method_with_its_parameters(kind: str) -> None:
    for name, wanted in PUBLIC[kind].items():
        member = getattr(getattr(tables, kind), name)
        found = [each for each in inspect.signature(member).parameters if each != "self"] if callable(member) else []
        assert found[: len(wanted)] == wanted, f"{kind}.{name}"


@pytest.mark.parametrize("module", MODULES)
def test_a_scenario_knows_nothing_of_ours(module: str) -> None:
    source = inspect.getsource(importlib.import_module(module))
    assert "anabranch" not in source


@pytest.mark.spark
@pytest.mark.parametrize("name", SCENARIOS)
def test_ours_gives_what_is_documented(spark: SparkSession, tmp_path: Path, name: str) -> None:
    given = Given(anabranch.install(spark), tables, tmp_path, name.replace(".", "_"))
    seen = observed(SCENARIOS[name], given)
    assert len({what for what, _, _ in seen}) == len(seen), "two things of one name"
    expected = {what: OURS.get(f"{name}: {what}", each) for what, _, each in seen}
    assert {what: found for what, found, _ in seen} == expected


def test_every_difference_is_of_something_that_is_seen() -> None:
    known = {where.partition(": ")[0] for each in DIFFERENCES for where in (*each.seen, *each.found)}
    assert known <= SCENARIOS.keys()


def test_the_documentation_lists_every_difference_and_no_other() -> None:
    stated = rows_of_table(DOCS / "concepts" / "differences.md", "method")
    assert stated == [[cell.replace("`", "") for cell in (e.method, e.theirs, e.ours, e.why)] for e in DIFFERENCES]


def test_errors_are_caught_by_the_classes_that_the_documentation_names() -> None:
    kinds = {**vars(builtins), **vars(pyspark.errors)}
    for cells in rows_of_table(DOCS / "concepts" / "differences.md", "class of PySpark or Python"):
        named = [word for word in re.findall(r"[A-Z]\w+", cells[1]) if hasattr(errors, word)]
        assert named, cells
        for kind in re.findall(r"\w+", cells[0]):
            assert all(issubclass(getattr(errors, word), kinds[kind]) for word in named), cells
