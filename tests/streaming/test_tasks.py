"""How the files of a batch are divided among tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch._streaming.reading import Splits
from anabranch._streaming.tasks import tasks_of
from tests.support.streams import ALL, Stream
from tests.support.worlds import World, table_path


def files_of_tasks(world: World, splits: Splits) -> list[int]:
    """How many files each task reads."""
    stream = Stream(world.path, splits=splits)
    source = stream.source
    tasks = tasks_of(source.read, source.log.store, source.pieces(stream.at, source.latest(stream.at, ALL)))
    return [len(task["files"]) for task in tasks]


@pytest.mark.parametrize(
    ("files_and_openings", "expected"),
    [((4, 3), [4, 4]), ((4, 2), [3, 3, 2]), ((1, 0), [1] * 8), ((8, 7), [8])],
)
def test_a_task_reads_as_many_files_as_spark_lets_it_where_opening_the_last_one_is_free(
    tmp_path: Path, files_and_openings: tuple[int, int], expected: list[int]
) -> None:
    world = World(table_path(tmp_path)).create([{"id": 0}])
    for _ in range(7):
        world.append({"id": 0})
    (size,) = set(world.log.snapshot().files["size"].to_pylist())
    open_bytes = size // 10
    files, openings = files_and_openings
    splits = Splits(most_bytes=files * size + openings * open_bytes, open_bytes=open_bytes)
    assert files_of_tasks(world, splits) == expected
