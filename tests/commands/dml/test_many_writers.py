"""Many processes, one table, no lock: every acknowledged append is in exactly once, and none is refused."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from pathlib import Path

import pytest

import anabranch
from tests.support.tiers import examples
from tests.support.worlds import World

PROCESSES, APPENDS = examples(6, 3), examples(8, 4)


@pytest.mark.slow
def test_appends_of_many_processes_all_land_once(tmp_path: Path) -> None:
    """They race to create the table as well: all first appends but one are staged again under the winner's metadata."""
    path = str(tmp_path / "table")
    rows = [{"writer": writer, "number": number} for writer in range(PROCESSES) for number in range(APPENDS)]
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["anabranch"])
    with processes.Pool(PROCESSES) as pool:
        versions = pool.starmap(anabranch.append, [(None, path, [row]) for row in rows], chunksize=APPENDS)
    world = World(path)
    acknowledged = Counter((row["writer"], row["number"]) for row in rows)
    assert Counter((row["writer"], row["number"]) for row in world.rows()) == acknowledged
    assert sorted(versions) == list(range(PROCESSES * APPENDS))
    assert anabranch.check(path, deep=True).is_clean
