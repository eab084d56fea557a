"""Streams that are killed and begun again; `make lab` kills them a hundred times."""

from __future__ import annotations

from pathlib import Path

import pytest

from laboratory.stream_kills import run_rounds


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.exhaustive(
    "tests/streaming/test_streams.py::test_a_batch_that_was_committed_before_the_process_died_is_not_written_again"
)
def test_queries_that_are_killed_write_each_row_once(tmp_path: Path) -> None:
    assert run_rounds(rounds=2, files=8, seed=7, folder=tmp_path) == []
