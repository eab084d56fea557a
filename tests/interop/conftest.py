"""What the tests against other engines share: one delta-spark for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.delta_spark import REQUIRED, DeltaSpark, why_absent


@pytest.fixture(scope="session")
def delta_spark() -> Iterator[DeltaSpark]:
    """Real delta-spark, where it was asked for; then a test fails if it is absent, and else it is skipped."""
    if reason := why_absent():
        (pytest.fail if REQUIRED else pytest.skip)(reason)
    with DeltaSpark() as theirs:
        yield theirs
