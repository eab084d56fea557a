"""All commands are called in one way."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import pytest

from anabranch import commands, errors
from anabranch._log.snapshot import Snapshot
from anabranch._transaction.retry import RetryPolicy, default_retry
from anabranch.commands import NEWEST, Append, Command, Delete, RunContext
from tests.support.worlds import World

COMMANDS = sorted(
    name
    for name in commands.__all__
    if inspect.isclass(kind := getattr(commands, name)) and hasattr(kind, "run") and kind is not Command
)
WITHOUT_RUN = {"Command", "DROPPED", "Engine", "NEWEST", "NewColumn", "NewTable", "RunContext"}


def arguments(kind: type) -> list[tuple[str, Any, Any]]:
    found = inspect.signature(kind.run).parameters.values()  # type: ignore[attr-defined]
    return [(each.name, each.annotation, each.default) for each in found]


def test_all_that_is_exported_is_a_command_or_says_how_they_are_called() -> None:
    assert set(commands.__all__) == set(COMMANDS) | WITHOUT_RUN
    assert len(COMMANDS) == 36


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_a_frozen_value_called_by_engine_and_context(name: str) -> None:
    kind = getattr(commands, name)
    assert arguments(kind) == arguments(Command)
    assert [each for _, _, each in arguments(kind)][1:] == [None, NEWEST]
    assert kind.__dataclass_params__.frozen


def test_every_command_that_is_defined_is_exported() -> None:
    root = Path(commands.__file__).parent
    lines = [line for path in root.rglob("*.py") for line in path.read_text().splitlines()]
    runs = [line for line in lines if line.startswith("    def run(self, engine: Engine | None = None,")]
    assert len(runs) == len(COMMANDS) + 1, "all of them, and the protocol"


def test_a_command_that_looks_at_rows_needs_an_engine(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t")).create([{"id": 1}])
    with pytest.raises(errors.InvalidOption, match="Delete looks at rows"):
        Delete(world.path).run()


def test_a_command_runs_at_the_version_of_its_context(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t")).create([{"id": 1}])
    old = world.log.snapshot()
    world.append({"id": 2})
    context = RunContext(at=old)
    assert (context.snapshot(world.log).version, NEWEST.snapshot(world.log).version) == (0, 1)
    assert isinstance(context.snapshot_if_any(world.log), Snapshot)
    assert NEWEST.snapshot_if_any(World(str(tmp_path / "none")).log) is None
    assert commands.Read(world.path).run(context=context).files.num_rows == 1


def test_a_context_without_bounds_has_those_that_suit_the_commit() -> None:
    ours = RetryPolicy(attempts=3)
    assert dataclasses.replace(NEWEST, retry=ours).policy(blind=True) is ours
    for blind in (True, False):
        assert NEWEST.policy(blind=blind) == default_retry(blind=blind)


def test_rows_are_no_part_of_what_a_command_shows(tmp_path: Path) -> None:
    assert "secret" not in repr(Append(tmp_path, [{"id": "secret"}]))
