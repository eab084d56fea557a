"""Phrases that jobs look for stand in the errors of real delta-spark, as in ours (`tests/api/test_texts.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documented import texts
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("family", texts.FAMILIES)
def test_delta_sparks_errors_hold_the_phrases(delta_spark: DeltaSpark, tmp_path: Path, family: str) -> None:
    seen = delta_spark.seen(f"texts.{family}", [texts.__name__], tmp_path)
    assert [found for _, found, expected in seen if found != expected] == []
