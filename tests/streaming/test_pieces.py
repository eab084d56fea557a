"""Which action of a commit an index means: the one that it means to delta-spark, whose offsets lie inside commits."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from anabranch._log.file_names import checksum_name, commit_name
from anabranch._log.log import forget
from anabranch._protocol.change_feed import CHANGE_TYPE
from anabranch._streaming.offsets import BEFORE_FIRST, Offset, Position
from anabranch._streaming.reading import Limits, Tolerance
from tests.support.feeds import record_changes
from tests.support.streams import Stream
from tests.support.worlds import World, table_path


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Six rows in three partitions, whose changes are recorded."""
    world = World(table_path(tmp_path)).create([{"id": i, "g": i % 3} for i in range(6)], partition_by=("g",))
    record_changes(world.path)
    return world


def rewritten(world: World, order: Callable[[dict[str, Any]], Any]) -> list[tuple[str, dict[str, Any]]]:
    """Put the lines of the newest commit into another order; its files that state a change, in that order."""
    file = Path(world.path, commit_name(world.version))
    written = file.stat().st_mtime_ns
    actions = sorted(map(json.loads, file.read_text().splitlines()), key=order)
    file.write_text("".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions))
    os.utime(file, ns=(written, written))
    forget()
    found = [(kind, body) for action in actions for kind, body in action.items() if kind in ("add", "remove")]
    return [(kind, body) for kind, body in found if body["dataChange"]]


ORDERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "removes first": lambda action: "remove" not in action,
    "adds first": lambda action: "add" not in action,
    "by path": lambda action: [body.get("path", "") for body in action.values()],
}


def between(stream: Stream, version: int, index: int, behind: tuple[int, int]) -> Counter[str]:
    start, end = (Offset(stream.source.metadata.id, Position(*at)) for at in ((version, index), behind))
    return Counter(said(row) for row in stream.between(start, end))


def said(row: Mapping[str, Any]) -> str:
    return f"{row.get(CHANGE_TYPE, 'insert')} {row['id']} of {row['g']}"


@pytest.mark.parametrize("order", ORDERS)
def test_an_index_of_a_feed_counts_adds_and_removes_as_they_stand_in_the_commit(world: World, order: str) -> None:
    world.overwrite(*({"id": 10 + i, "g": i % 3} for i in range(6)))
    files = rewritten(world, ORDERS[order])
    stream = Stream(world.path, feed=True)
    for index, (kind, body) in enumerate(files):
        found = between(stream, 1, index - 1, (1, index))
        g = int(body["partitionValues"]["g"])
        change, ids = ("insert", (10 + g, 13 + g)) if kind == "add" else ("delete", (g, 3 + g))
        assert found == Counter(f"{change} {each} of {g}" for each in ids)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("feed", [True, False])
def test_wherever_an_offset_lies_inside_a_commit_each_row_comes_once(world: World, order: str, feed: bool) -> None:
    world.delete("id IN (0, 1)")
    files = rewritten(world, ORDERS[order])
    world.restore(0)
    again = rewritten(world, ORDERS[order])
    stream = Stream(world.path, feed=feed, tolerance=Tolerance(changes=not feed))
    for version, count in ((1, len(files)), (2, len(again))):
        count = count if feed else sum(kind == "add" for kind, _ in (files, again)[version - 1])
        everything = between(stream, version, BEFORE_FIRST, (version + 1, BEFORE_FIRST))
        for index in range(count):
            before = between(stream, version, BEFORE_FIRST, (version, index))
            behind = between(stream, version, index, (version + 1, BEFORE_FIRST))
            assert before + behind == everything


def test_a_file_that_was_added_again_has_an_index_also_where_it_gives_no_row(world: World) -> None:
    world.delete("id = 0")
    marked = Path(world.path, commit_name(1)).read_text().splitlines()
    world.append({"id": 20, "g": 0})
    own = Path(world.path, commit_name(2)).read_text().splitlines()
    for version in (1, 2):
        for name in (commit_name(version), checksum_name(version)):
            Path(world.path, name).unlink(missing_ok=True)
    files = [line for line in marked if json.loads(line).keys() & {"add", "remove"}]
    Path(world.path, commit_name(1)).write_text("".join(f"{line}\n" for line in [*files, *own]))
    forget()
    stream = Stream(world.path, tolerance=Tolerance(changes=True))
    assert not between(stream, 1, BEFORE_FIRST, (1, 0))
    assert between(stream, 1, 0, (2, BEFORE_FIRST)) == {"insert 20 of 0": 1}


def test_what_is_left_of_a_commit_of_a_feed_comes_in_one_batch(world: World) -> None:
    stream = Stream(world.path, feed=True)
    stream.batch()
    world.overwrite(*({"id": 10 + i, "g": i % 3} for i in range(6)))
    files = rewritten(world, ORDERS["removes first"])
    offset = {**json.loads(stream.ends[-1]), "reservoirVersion": 1, "index": 0}
    stream.ends.append(json.dumps({key: each for key, each in offset.items() if key not in ("began", "commit")}))
    assert len(stream.start().batch(Limits(1, None))) == 2 * (len(files) - 1)
    assert stream.batch(Limits(1, None)) == []
