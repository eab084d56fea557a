"""A table's folder is put back from a backup while a writer is at work: what it had staged is gone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anabranch import errors
from anabranch.testing import at_phase
from tests.support.worlds import World, table_path

COMMANDS: dict[str, Callable[[World], Any]] = {
    "append": lambda world: world.append({"id": 3, "x": 30}),
    "update": lambda world: world.update("id = 1", x=11),
    "delete": lambda world: world.delete("id = 1"),
    "merge": lambda world: world.merge([{"id": 1, "x": 12}, {"id": 4, "x": 40}]),
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(table_path(tmp_path)).create([{"id": 1, "x": 10}, {"id": 2, "x": 20}])


def put_back(path: str) -> None:
    """As it was when the writer began, in place: each file that is there again is the same one still."""
    for each in Path(path).rglob("*"):
        if each.is_file() and not (Path(f"{path}.bak") / each.relative_to(path)).exists():
            each.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["staged", "checked"])
@pytest.mark.parametrize("command", list(COMMANDS))
def test_nothing_is_acknowledged_whose_files_are_gone(world: World, command: str, phase: str) -> None:
    shutil.copytree(world.path, f"{world.path}.bak")
    refused = False
    try:
        with at_phase(phase, lambda: put_back(world.path)):
            COMMANDS[command](world)
    except errors.StagedFilesVacuumed as error:
        refused = error.retryable
    assert world.version == (0 if refused else 1)
    assert len(world.rows()) == len({row["id"] for row in world.rows()})
    world.assert_clean()
    if refused:
        COMMANDS[command](world)
        assert world.version == 1


def test_an_append_that_has_its_rows_still_stages_them_again(world: World) -> None:
    shutil.copytree(world.path, f"{world.path}.bak")
    with at_phase("checked", lambda: put_back(world.path)):
        world.append({"id": 3, "x": 30})
    assert [row["id"] for row in world.rows()] == [1, 2, 3]
