"""A table becomes another one, which names its files or copies them; neither ever notices what becomes of the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

from anabranch import errors
from anabranch.commands.alter import AddConstraint, SetProperties, UnsetProperties
from anabranch.commands.append import Append
from anabranch.commands.check import check
from anabranch.commands.clone import Clone
from anabranch.commands.columns import RenameColumn
from anabranch.commands.create import Create
from anabranch.commands.insert import NewTable, application
from anabranch.log.log import forget
from anabranch.log.vectors import vector_of
from anabranch.protocol.actions import AppTransaction
from anabranch.protocol.identity import identity_metadata
from anabranch.protocol.paths import is_absolute
from anabranch.protocol.schema import Field, Struct
from anabranch.storage import open_store
from anabranch.storage.open import mounted
from anabranch.testing import DictStore, Watched, at_phase
from anabranch.transaction.commit import Committed
from tests.support.changes import ROWS
from tests.support.our_tables import OURS
from tests.support.raw_logs import listing
from tests.support.readers import same_rows
from tests.support.worlds import World

both = pytest.mark.parametrize("shallow", [True, False], ids=["shallow", "deep"])


@pytest.fixture
def origin(tmp_path: Path) -> World:
    """A table with partitions, several files, and rows deleted in two of them, at a path that is hard to spell."""
    world = World(str(tmp_path / "an origin é 50%"))
    world.create([{"id": i, "day": f"d {i % 2}/%", "x": float(i)} for i in range(10)], partition_by=("day",))
    world.append({"id": 10, "day": None, "x": 1.0})
    world.delete("id IN (3, 4)")
    return world


@pytest.fixture
def target(tmp_path: Path) -> World:
    return World(str(tmp_path / "the clone ü #1"))


def clone(origin: World, target: World, shallow: bool, **more: Any) -> Committed:
    return Clone(origin.path, target.path, shallow, **more).run()


def metrics(world: World) -> dict[str, int]:
    return {name: int(value) for name, value in world.info()["operationMetrics"].items()}


def files(world: World) -> list[dict[str, Any]]:
    return list(world.log.snapshot().files.to_pylist())


def assert_sound(world: World) -> None:
    """At every version; other engines are asked where they can read files outside a table's folder."""
    for version in range(world.version + 1):
        report = check(world.log.snapshot(version), deep=True)
        assert report.is_clean, str(report)


# -- what comes out ----------------------------------------------------------------------------------------------------


@both
def test_a_clone_has_the_rows_of_its_source(origin: World, target: World, shallow: bool) -> None:
    before = listing(origin.path)
    assert clone(origin, target, shallow).version == 0
    assert target.rows() == origin.rows()
    assert listing(origin.path) == before
    assert_sound(target)


def test_a_shallow_clone_holds_nothing_but_a_log(origin: World, target: World) -> None:
    clone(origin, target, True)
    assert all(name.startswith("_delta_log/") for name in listing(target.path))
    assert all(is_absolute(row["path"]) for row in files(target))


def test_a_deep_clone_needs_its_source_no_more(origin: World, target: World) -> None:
    import shutil

    expected = origin.rows()
    clone(origin, target, False)
    shutil.rmtree(origin.path)
    forget()
    assert target.rows() == expected
    target.assert_clean()
