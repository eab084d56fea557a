"""Texts of all signs come back from a table as they were written, whichever statement and parameter brought them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from tests.support.connect_scripts import run_on_connect
from tests.support.drawing import wanted
from tests.support.literals import lost, random_texts
from tests.support.tiers import examples

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EXAMPLES = wanted(0)
"""How many more lists of texts are taken through every door, in every way to say them."""
SEED = 1 << 16
"""That of a list that is taken through fewer; no seed of the others."""


@pytest.fixture
def installed(spark: SparkSession) -> Iterator[SparkSession]:
    yield anabranch.install(spark)
    anabranch.uninstall(spark)


def test_every_text_comes_back_from_every_statement_as_it_was_written(installed: SparkSession, tmp_path: Path) -> None:
    assert lost(installed, tmp_path, random_texts(SEED, examples(24, 2)), 0) == {}


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_so_do_more_texts_in_every_way_to_say_them(installed: SparkSession, tmp_path: Path, seed: int) -> None:
    assert lost(installed, tmp_path, random_texts(seed, 60)) == {}


@pytest.mark.exhaustive("tests/system/test_connect.py::test_every_door_works_on_a_session_of_spark_connect")
def test_every_text_comes_back_on_spark_connect(tmp_path: Path) -> None:
    found = run_on_connect("tests.support.literals", tmp_path, SEED, 24, 1)
    assert found == {"session": "pyspark.sql.connect.session", "lost": {}}
