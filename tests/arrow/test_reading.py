"""Rows are read from buckets as from disks, and of a struct only the members that are asked for."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import anabranch
from anabranch.arrow import finding
from anabranch.arrow.site import alone
from anabranch.commands.opening import file_set, open_log
from anabranch.expressions import Context, condition

ROWS = [{"id": i, "s": {"a": i % 7, "b": f"text {i}" * 5}, "w": f"w{i % 3}"} for i in range(2_000)]

CONDITIONS: Mapping[str, Callable[[Any], bool]] = {
    "s.a = 5": lambda r: r["s"]["a"] == 5,
    "s.b LIKE '%99'": lambda r: r["s"]["b"].endswith("99"),
    "id < 10 AND s.a > 2": lambda r: r["id"] < 10 and r["s"]["a"] > 2,
    "w = 'w1'": lambda r: r["w"] == "w1",
    "w = 'w1' AND id = 4": lambda r: r["w"] == "w1" and r["id"] == 4,
}


@pytest.fixture(params=["memory", "disk"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a table of these rows lies."""
    found = f"memory://{uuid4()}/t" if request.param == "memory" else str(tmp_path / "t")
    anabranch.append(None, found, ROWS, partition_by="w")
    return found


@pytest.mark.parametrize("text", CONDITIONS)
def test_rows_are_found_wherever_they_lie(path: str, text: str) -> None:
    snapshot = open_log(path).snapshot()
    files = file_set(snapshot)
    context = Context(snapshot.table, snapshot.schema, dt.datetime.now(dt.UTC), "UTC", lambda _: True)
    found = finding.find(alone(snapshot.store), files, condition(text, context))
    assert sum(map(len, found.values())) == sum(map(CONDITIONS[text], ROWS))
