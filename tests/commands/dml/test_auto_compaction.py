"""Automatic compaction: behind a writer's own commit, where the table wishes for it and many small files are there."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import anabranch
from anabranch._protocol.layout import packing
from anabranch.commands.dml.write import StreamBatch, Write
from anabranch.commands.moving import Move
from anabranch.testing import at_phase
from tests.support.worlds import World, table_path

WISH = "delta_autoOptimize.autoCompact"


@pytest.fixture(autouse=True)
def three_files_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing.bins_due, "__defaults__", (3,))


def world(folder: Path, **properties: str) -> World:
    made = World(table_path(folder)).create([{"id": 1, "p": 0}], partition_by=("p",), **properties)
    made.append({"id": 2, "p": 0})
    made.append({"id": 3, "p": 1})
    return made


def write(made: World, *rows: dict[str, int]) -> int:
    committed = Write(made.path, pa.Table.from_pylist(list(rows)), "append").run(made.engine)
    assert committed is not None
    return committed.version


def files(made: World) -> int:
    return len(made.log.snapshot().files)


@pytest.mark.slow
@pytest.mark.parametrize("wish", ["true", "auto", "legacy"])
def test_a_write_puts_the_small_files_of_its_partitions_together(tmp_path: Path, wish: str) -> None:
    made = world(tmp_path, **{WISH: wish})
    assert write(made, {"id": 4, "p": 0}) == 3
    assert (made.version, files(made)) == (4, 2)
    assert made.info()["operation"] == "OPTIMIZE"
    assert made.info()["operationParameters"]["auto"] == "true"
    assert [row["id"] for row in made.rows()] == [1, 2, 3, 4]
    made.assert_clean()


@pytest.mark.slow
def test_the_batches_of_a_stream_do_so_too(tmp_path: Path) -> None:
    made = world(tmp_path, **{WISH: "true"})
    for number in range(7):
        rows = pa.Table.from_pylist([{"id": number + 10, "p": 0}])
        Write(made.path, rows, "append", batch=StreamBatch("query", number, "append")).run(made.engine)
    assert files(made) < 5
    assert [row["id"] for row in made.rows()] == [1, 2, 3, *range(10, 17)]


def test_partitions_that_were_not_written_to_are_left_alone(tmp_path: Path) -> None:
    made = world(tmp_path, **{WISH: "true"})
    made.append({"id": 4, "p": 0})  # without an engine nothing can be compacted
    write(made, {"id": 5, "p": 1})
    assert (made.version, files(made)) == (4, 5)


def test_a_table_that_does_not_wish_for_it_is_left_alone(tmp_path: Path) -> None:
    made = world(tmp_path)
    write(made, {"id": 4, "p": 0})
    assert (made.version, files(made)) == (3, 4)


@pytest.mark.slow
@pytest.mark.parametrize("change", ["update", "delete", "merge"])
def test_each_change_of_rows_does_so_too(tmp_path: Path, change: str) -> None:
    made = world(tmp_path, **{WISH: "true"})
    made.append({"id": 4, "p": 0}, {"id": 5, "p": 0})
    if change == "update":
        made.update("id = 4", p=0)
    elif change == "delete":
        made.delete("id = 4")
    else:
        made.merge([{"id": 9, "p": 0}])
    assert made.info()["operation"] == "OPTIMIZE"
    assert made.log.snapshot().files["deletionVector"].null_count == files(made) == 2
    made.assert_clean()


@pytest.mark.slow
def test_a_compaction_behind_a_command_that_ran_again_did_not_run_again_itself(tmp_path: Path) -> None:
    made = world(tmp_path, **{WISH: "true", "anabranch_conflictResolution": "redo"})
    made.append({"id": 4, "p": 0}, {"id": 5, "p": 0})
    made.append({"id": 6, "p": 0})
    with at_phase("staged", lambda: anabranch.table(made.path).update("id > 2", {"p": "1"})):
        made.update("id > 2", p=0)
    compacted, updated = anabranch.history(made.path, 2)
    assert (compacted["operation"], updated["operation"]) == ("OPTIMIZE", "UPDATE")
    assert updated["operationMetrics"]["numRedoneRuns"] == "1"
    assert "numRedoneRuns" not in compacted["operationMetrics"]


def test_a_compaction_that_fails_leaves_the_write_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = world(tmp_path, **{WISH: "true"})

    def fails(*anything: object, **more: object) -> None:
        raise RuntimeError("no room")

    monkeypatch.setattr(Move, "run", fails)
    assert write(made, {"id": 4, "p": 0}) == 3
    assert (made.version, files(made)) == (3, 4)
    assert "small files are left to a later compaction: no room" in caplog.text
