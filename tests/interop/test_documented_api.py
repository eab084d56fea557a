"""The same scenarios as in `tests/api/delta_table/test_documented_api.py`, unchanged, on real delta-spark."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.documented import MODULES
from tests.documented.differences import DIFFERENCES
from tests.documented.given import scenarios_of
from tests.documented.surface import PUBLIC
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.interop

SCENARIOS = scenarios_of(map(importlib.import_module, MODULES))
THEIRS = {where: value for each in DIFFERENCES for where, value in each.found.items()}


def test_delta_spark_has_the_surface_that_is_tested(delta_spark: DeltaSpark) -> None:
    assert delta_spark.public() == PUBLIC


@pytest.mark.parametrize("name", SCENARIOS)
def test_delta_spark_gives_what_is_documented(delta_spark: DeltaSpark, tmp_path: Path, name: str) -> None:
    seen = delta_spark.seen(name, MODULES, tmp_path)
    expected = {what: THEIRS.get(f"{name}: {what}", each) for what, _, each in seen}
    assert {what: found for what, found, _ in seen} == expected
