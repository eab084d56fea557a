"""REPLACE ON and REPLACE USING: real delta-spark and ours have the same rows, in each of the drawn cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documented import replacing
from tests.documented.given import scenarios_of
from tests.support.delta_spark import DeltaSpark

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("name", scenarios_of([replacing]))
def test_delta_spark_has_the_rows_of_the_model(delta_spark: DeltaSpark, tmp_path: Path, name: str) -> None:
    seen = delta_spark.seen(name, [replacing.__name__], tmp_path)
    assert [(what, found) for what, found, expected in seen if found != expected] == []
