"""A file that is named again as it is changes no sum, whatever else its commit says."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from anabranch._log.checksum import read_checksum
from anabranch._log.file_names import checksum_version, first_name
from anabranch._log.log import Log, forget
from anabranch._storage import open_store
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.ddl.drop_feature import DropFeature
from anabranch.errors import AnabranchError
from tests.support.raw_logs import add, info, put_commit
from tests.support.worlds import World

TRACKED = {"delta_enableRowTracking": "true"}


def wrong_sums(world: World) -> list[str]:
    """What the checksum files of all versions say that is not true."""
    forget()
    names = (entry.name for entry in world.log.store.list_from(first_name(0)))
    found = []
    for version in (v for name in names if (v := checksum_version(name)) is not None):
        stated = read_checksum(world.log.store, version)
        assert stated is not None
        (Path(world.path) / f"_delta_log/{version:020d}.crc").unlink()  # what it is held against may not ask it
        found += [f"version {version}: {each}" for each in stated.differs(world.log.snapshot(version).checksum())]
    return found


@pytest.mark.slow
def test_a_restore_across_the_end_of_row_tracking_sums_up_right(tmp_path: Path) -> None:
    """The checkpoint at version 8 begins the sums anew, so that the RESTORE, at version 9, has some to go on from."""
    world = World(str(tmp_path / "t")).create([{"id": 1, "x": 1}], **TRACKED, delta_checkpointInterval="4")
    for i in range(2, 5):
        world.append({"id": i, "x": i})
    version = world.version
    world.append({"id": 9, "x": 9})
    DropFeature(world.path, "rowTracking").run(world.engine)
    world.append({"id": 10, "x": 10})
    assert world.version == 8
    world.restore(version)
    world.append({"id": 11, "x": 11})
    assert [v for v in (8, 9, 10) if read_checksum(world.log.store, v) is not None] == [8, 9, 10]
    assert wrong_sums(world) == []


STEPS: list[Callable[[World, random.Random], object]] = [
    lambda world, dice: world.append({"id": dice.randrange(1000), "x": 1}),
    lambda world, dice: world.append({"id": dice.randrange(1000), "x": 2}, {"id": dice.randrange(1000), "x": 3}),
    lambda world, dice: world.delete(f"id < {dice.randrange(400)}"),
    lambda world, dice: world.update("x = 1", x=5),
    lambda world, dice: world.optimize(),
    lambda world, dice: world.reorg(),
    lambda world, dice: world.restore(dice.randrange(max(world.version, 1))),
    lambda world, dice: world.restore(dice.randrange(max(world.version, 1))),
    lambda world, dice: DropFeature(world.path, "rowTracking").run(world.engine),
    lambda world, dice: SetProperties(world.path, {"delta.enableRowTracking": "true"}).run(),
    lambda world, dice: restated(world, dice),
    lambda world, dice: put_commit(Path(world.path), world.version + 1, info()),
]


def restated(world: World, dice: random.Random) -> None:
    """Another engine's commit that names a live file again, as when it computes statistics."""
    row = next(iter(world.log.snapshot().files.slice(0, 1).to_pylist()), None)
    if row is None:
        return  # every file is gone just now
    kept = {name: row[name] for name in ("size", "deletionVector", "baseRowId", "defaultRowCommitVersion", "stats")}
    body = add(row["path"], **{name: value for name, value in kept.items() if value is not None})["add"]
    put_commit(Path(world.path), world.version + 1, info(), {"add": {**body, "dataChange": dice.random() < 0.2}})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_every_checksum_of_a_random_history_is_right(seed: int, tmp_path: Path) -> None:
    dice = random.Random(f"sums {seed}")
    world = World(str(tmp_path / "t")).create([{"id": i, "x": i % 3} for i in range(6)], **TRACKED)
    for _ in range(25):
        try:
            dice.choice(STEPS)(world, dice)
        except AnabranchError:
            continue  # it may not be asked for here
    assert Log(open_store(world.path)).snapshot().version > 8
    assert wrong_sums(world) == []
