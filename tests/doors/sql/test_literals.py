"""Texts of all signs come back from a table as they were written, whichever statement and parameter brought them."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from tests.support.literals import lost, random_texts

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[3]
EXAMPLES = int(os.environ.get("ANABRANCH_EXAMPLES", "0"))
"""How many more lists of texts are taken through every door, in every way to say them."""


@pytest.fixture
def installed(spark: SparkSession) -> Iterator[SparkSession]:
    yield anabranch.install(spark)
    anabranch.uninstall(spark)


def test_every_text_comes_back_from_every_statement_as_it_was_written(installed: SparkSession, tmp_path: Path) -> None:
    assert lost(installed, tmp_path, random_texts(random.randrange(2**32), 24), 0) == {}


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_so_do_more_texts_in_every_way_to_say_them(installed: SparkSession, tmp_path: Path, seed: int) -> None:
    assert lost(installed, tmp_path, random_texts(seed, 60)) == {}


def test_every_text_comes_back_on_spark_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect's client needs grpcio")
    seed = str(random.randrange(2**32))
    ran = subprocess.run(
        [sys.executable, "-m", "tests.support.literals", str(tmp_path), seed, "24", "1"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert json.loads(ran.stdout.splitlines()[-1]) == {"session": "pyspark.sql.connect.session", "lost": {}}, seed
