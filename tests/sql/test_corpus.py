"""The corpus of SQL on Spark: every statement gives what its file says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import anabranch
from anabranch.errors import AnabranchError
from tests.support import corpus

pytestmark = pytest.mark.spark
FILES = sorted(corpus.FILES, key=lambda file: file.stem != "faults_found_outside")
"""Faults that were mended first: of these files `make test` takes one."""


def given(spark: SparkSession, entry: corpus.Entry, folder: Path) -> str:
    try:
        found = anabranch.sql(spark, corpus.placed(entry.statement, folder), entry.args).toArrow()
    except AnabranchError as error:
        nowhere = "" if "^" in str(error.facts.get("excerpt")) else ", which points at no word"
        return f"error {error.getCondition()}{nowhere}"
    except PySparkException as error:
        return f"error {error.getCondition()}"
    return corpus.outcome(entry.statement, found)


def differences(spark: SparkSession, file: Path, folder: Path) -> Iterator[str]:
    for entry in corpus.read(file):
        if (found := given(spark, entry, folder)) != entry.ours:
            yield f"{entry}: {entry.statement}\n  {found}\n  and not\n  {entry.ours}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_statement_gives_what_its_file_says(spark: SparkSession, file: Path, tmp_path: Path) -> None:
    assert not list(differences(spark, file, tmp_path))
    for table in sorted(tmp_path.iterdir()):
        report = anabranch.check(table)
        assert report.is_clean, str(report)
