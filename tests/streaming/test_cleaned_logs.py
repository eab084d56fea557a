"""Streams of a log whose first commits were cleaned up: some of those that are left cannot be rebuilt."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from anabranch._log.file_names import checksum_name, commit_name
from anabranch._log.log import forget
from anabranch._streaming.offsets import Position
from anabranch._streaming.reading import LATEST, Limits, Tolerance
from anabranch._streaming.source import Source
from anabranch.commands.opening import open_log
from anabranch.errors import StreamChanges, StreamVersionsLost
from tests.support.streams import Stream, stream_read
from tests.support.worlds import World, table_path

LETS = Tolerance(lost_versions=True)


def lose(world: World, first: int, checkpoint: int) -> None:
    """The versions before the first are gone, and a later one has a checkpoint."""
    world.log.write_checkpoint(world.log.snapshot(checkpoint), now_ms=0)
    for version in range(first):
        (Path(world.path) / commit_name(version)).unlink()
        (Path(world.path) / checksum_name(version)).unlink(missing_ok=True)
    forget()


def test_a_stream_begins_at_a_moment_with_a_commit_that_cannot_be_rebuilt(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 0}])
    for number in range(1, 7):
        time.sleep(0.01)
        world.append({"id": number})
    moments = [open_log(world.path).snapshot(version).timestamp for version in range(7)]
    lose(world, 2, 4)
    assert Stream(world.path, start=2).ids() == [2, 3, 4, 5, 6]
    assert Stream(world.path, start_timestamp=moments[2]).ids() == [2, 3, 4, 5, 6]
    assert Stream(world.path, start_timestamp=moments[0]).ids() == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("feed", [True, False], ids=["feed", "rows"])
@pytest.mark.parametrize("restarts", [True, False], ids=["restarted", "running"])
def test_versions_that_are_lost_are_left_out_if_an_option_lets_it(tmp_path: Path, feed: bool, restarts: bool) -> None:
    world = World(table_path(tmp_path)).create([{"id": 0}], delta_enableChangeDataFeed="true")
    lenient, strict = Stream(world.path, feed=feed, tolerance=LETS), Stream(world.path, feed=feed)
    assert lenient.ids() == strict.ids() == [0]
    for number in range(1, 7):
        world.append({"id": number})
    lose(world, 3, 5)
    assert (lenient.start() if restarts else lenient).ids() == [3, 4, 5, 6]
    with pytest.raises(StreamVersionsLost):
        (strict.start() if restarts else strict).ids()


def test_a_feed_from_the_newest_version_on_goes_on_where_it_stood(tmp_path: Path) -> None:
    """Where Spark does not say from where on: PySpark 4.0 and 4.1."""
    world = World(table_path(tmp_path)).create([{"id": 0}], delta_enableChangeDataFeed="true")
    read = stream_read(world.path, start=LATEST, feed=True, beyond=True)
    first = Source(read)
    stands = first.behind_newest()
    assert (stands.position, first.pieces(first.initial(), stands)) == (Position(1), [])
    world.append({"id": 1})
    second = Source(read)
    end = second.behind_newest()
    assert (end.position, len(second.pieces(stands, end))) == (Position(2), 1)


def test_rows_that_a_restore_brings_back_stop_a_stream_that_lets_deletes(tmp_path: Path) -> None:
    rows = [{"id": number} for number in range(4)]
    world = World(table_path(tmp_path)).create(rows, delta_enableDeletionVectors="true")
    stream = Stream(world.path, tolerance=Tolerance(deletes=True))
    assert stream.ids() == [0, 1, 2, 3]
    world.delete("id IN (1, 2)")
    assert stream.ids() == []
    world.restore(0)
    with pytest.raises(StreamChanges):
        stream.ids()


def test_a_commit_of_a_feed_that_does_not_fit_waits_for_a_batch_of_its_own(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(
        [{"id": 0, "p": 0}], partition_by=["p"], delta_enableChangeDataFeed="true"
    )
    stream = Stream(world.path, feed=True, start=0)
    world.append(*({"id": number, "p": number} for number in range(1, 21)))
    assert stream.ids(Limits(2, None)) == [0]
    assert len(stream.ids(Limits(2, None))) == 20
