"""Many processes, one table, no lock: every acknowledged append is in exactly once, and none is refused."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from pathlib import Path

import pytest

import anabranch
from tests.support.tiers import examples
from tests.support.worlds import World

PROCESSES, APPENDS = examples(6, 2), examples(8, 5)


def append_many(path: str, writer: int, appends: int) -> list[int]:
    return [anabranch.append(None, path, [{"writer": writer, "number": n}]) for n in range(appends)]


@pytest.mark.slow
def test_appends_of_many_processes_all_land_once(tmp_path: Path) -> None:
    """They race to create the table as well: all first appends but one are staged again under the winner's metadata."""
    path = str(tmp_path / "table")
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        versions = pool.starmap(append_many, [(path, writer, APPENDS) for writer in range(PROCESSES)])
    world = World(path)
    acknowledged = Counter((w, n) for w in range(PROCESSES) for n in range(APPENDS))
    assert Counter((row["writer"], row["number"]) for row in world.rows()) == acknowledged
    assert sorted(v for each in versions for v in each) == list(range(PROCESSES * APPENDS))
    assert anabranch.check(path, deep=True).is_clean
