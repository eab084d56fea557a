"""The corpus of SQL on real delta-spark: it gives the same, or what the file says that it gives instead, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import corpus
from tests.support.delta_spark import DeltaSpark, DeltaSparkError
from tests.support.patience import WHOLE_TEST

pytestmark = [pytest.mark.interop, pytest.mark.timeout(2 * WHOLE_TEST)]


def given(theirs: DeltaSpark, entry: corpus.Entry, folder: Path) -> str:
    try:
        return corpus.outcome(entry.statement, theirs.query(corpus.placed(entry.statement, folder), entry.args))
    except DeltaSparkError as error:
        return f"error {error.condition}"


@pytest.mark.parametrize("file", corpus.FILES, ids=lambda file: file.stem)
def test_delta_spark_gives_what_the_file_says(delta_spark: DeltaSpark, file: Path, tmp_path: Path) -> None:
    wrong = []
    for entry in corpus.read(file):
        expected = entry.ours if entry.theirs is None else entry.theirs
        if (found := given(delta_spark, entry, tmp_path)) != expected:
            wrong.append(f"{entry}: {entry.statement}\n  {found}\n  and not\n  {expected}")
    assert not wrong


@pytest.mark.parametrize("file", corpus.FILES, ids=lambda file: file.stem)
def test_every_difference_has_a_reason(file: Path) -> None:
    assert not [str(entry) for entry in corpus.read(file) if entry.theirs is not None and not entry.reason]
