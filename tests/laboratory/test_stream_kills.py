"""Streams that are killed and begun again; `make lab` kills them a hundred times."""

from __future__ import annotations

from pathlib import Path

import pytest

from laboratory.stream_kills import run_rounds
from tests.support.tiers import examples


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(examples(0, 1) == 1, reason="make test-all; a round takes a minute, whatever it streams")
def test_queries_that_are_killed_write_each_row_once(tmp_path: Path) -> None:
    assert run_rounds(rounds=2, files=8, seed=7, folder=tmp_path) == []
