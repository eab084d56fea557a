"""Moves that nobody can follow for certain: a conflict, or left alone; never a wrong row, nor a nameless error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anabranch._protocol.layout.moves import TAG
from anabranch._transaction import rebase
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.dml.delete import Delete
from anabranch.commands.maintenance.fsck import Fsck
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.commands.rewriting import Rewrite
from anabranch.errors import ConcurrentWriteException, DeltaConcurrentModificationException
from anabranch.testing import at_phase
from tests.support.worlds import World, table_path

Body = dict[str, Any]
EVERY = [1, 2, 3, 4]


@pytest.fixture
def table(tmp_path: Path) -> World:
    made = World(table_path(tmp_path)).create([{"id": 1, "x": 1}, {"id": 2, "x": 2}])
    made.append({"id": 3, "x": 3}, {"id": 4, "x": 4})
    return made


def ids(table: World) -> list[int]:
    return [row["id"] for row in table.rows()]


def edited(table: World, change: Callable[[Body], object]) -> None:
    """Change the ``commitInfo`` of the newest version."""
    file = Path(table.path) / "_delta_log" / f"{table.version:020}.json"
    info, *others = file.read_text().splitlines()
    body = json.loads(info)
    change(body["commitInfo"])
    file.write_text("\n".join([json.dumps(body), *others, ""]))


def record(change: Callable[[Body], object]) -> Callable[[Body], object]:
    """A change of the record of moves."""

    def of_info(info: Body) -> None:
        groups = json.loads(info["tags"][TAG])
        change(groups)
        info["tags"][TAG] = json.dumps(groups)

    return of_info


def source(group: Body, number: int, place: int, value: object) -> None:
    group["groups"][0]["from"][number][place] = value


def counts(*numbers: int) -> Callable[[Body], object]:
    def change(body: Body) -> None:
        for place, number in enumerate(numbers):
            source(body, place, 1, number)

    return record(change)


DAMAGE: dict[str, Callable[[Body], object]] = {
    "tags are text": lambda info: info.update(tags="x"),
    "the record is a number": lambda info: info["tags"].update({TAG: 7}),
    "the record is no JSON": lambda info: info["tags"].update({TAG: "{"}),
    "rows without end": record(lambda body: source(body, 0, 1, 1e999)),
    "rows below zero": record(lambda body: source(body, 0, 1, -1)),
    "a vector that is none": record(lambda body: source(body, 0, 2, 5)),
    "a path that is none": record(lambda body: source(body, 0, 0, None)),
    "other counts than the log's": counts(1, 3),
    "more rows than there are": counts(5, 2),
    "a source in two groups": record(lambda body: body["groups"].append(body["groups"][0])),
    "origins that are none": record(lambda body: body["groups"][0]["to"][0].__setitem__(2, 7)),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("by", [(), ("x",)], ids=["pack", "zorder"])
def test_a_damaged_record_is_a_conflict(table: World, by: tuple[str, ...], damage: str) -> None:
    def meanwhile() -> None:
        table.optimize(*by)
        edited(table, DAMAGE[damage])

    with pytest.raises(DeltaConcurrentModificationException), at_phase("staged", meanwhile):
        table.delete("id IN (1, 3)")
    assert ids(table) == EVERY


def test_a_repair_does_not_take_away_rows_that_were_moved(table: World) -> None:
    def meanwhile() -> None:
        table.optimize()
        Vacuum(table.path, 0, check_retention=False).run()

    with pytest.raises(DeltaConcurrentModificationException), at_phase("read", meanwhile):
        Fsck(table.path, dry_run=False).run()
    assert ids(table) == EVERY


def test_who_rewrites_a_file_for_what_it_is_does_not_follow_its_rows(table: World) -> None:
    base = table.log.snapshot()
    rewriting = Rewrite(base, base.files.slice(0, 1))
    with pytest.raises(DeltaConcurrentModificationException), at_phase("staged", table.optimize):
        rewriting.run(table.engine, table.log, NEWEST)
    assert ids(table) == EVERY


def origins_are_lost(table: World) -> None:
    found = list(Path(table.path).rglob("_moves/**/*.parquet"))
    assert found
    for file in found:
        file.unlink()


def test_a_change_without_the_record_of_moves_is_a_conflict(table: World) -> None:
    def meanwhile() -> None:
        table.optimize("x")
        origins_are_lost(table)

    with pytest.raises(DeltaConcurrentModificationException) as refused, at_phase("staged", meanwhile):
        table.delete("id = 3")
    assert "the record of moved rows is not there" in str(refused.value)
    assert ids(table) == EVERY


def test_an_optimize_that_lost_its_record_leaves_changed_files_alone(table: World) -> None:
    def meanwhile() -> None:
        origins_are_lost(table)
        table.delete("id = 3")

    with at_phase("staged", meanwhile):
        done = table.optimize("x")
    assert (done.committed, done.batches) == (None, 0)
    assert ids(table) == [1, 2, 4]


def test_everything_is_taken_away_though_no_record_says_where_it_went(table: World) -> None:
    def meanwhile() -> None:
        table.optimize("x")
        origins_are_lost(table)

    with at_phase("staged", meanwhile):
        table.overwrite({"id": 9, "x": 9})
    assert ids(table) == [9]


def test_a_file_that_nobody_counted_is_followed_by_what_the_record_says(table: World) -> None:
    for version in (0, 1):  # before anyone reads it
        file = Path(table.path) / "_delta_log" / f"{version:020}.json"
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for action in actions:
            action.get("add", {}).pop("stats", None)
        file.write_text("".join(json.dumps(action) + "\n" for action in actions))
    with at_phase("staged", table.optimize):
        table.delete()
    assert ids(table) == []


@pytest.mark.slow
def test_what_following_costs_is_bounded(table: World, monkeypatch: pytest.MonkeyPatch) -> None:
    now, real, read = [0.0], rebase.origins_of, []

    def slow(*given: Any) -> Any:
        read.append(given)
        now[0] += 10_000
        return real(*given)

    def meanwhile() -> None:
        for n in range(3):
            table.optimize("x")
            table.append({"id": 10 + n, "x": 9})
        table.update("id = 1", x=5)
        monkeypatch.setattr(rebase, "origins_of", slow)

    where, runtime = table.condition("id = 3"), Runtime(seconds=lambda: now[0])
    with pytest.raises(ConcurrentWriteException) as refused, at_phase("staged", meanwhile):
        Delete(table.path, where).run(table.engine, RunContext(runtime=runtime))
    assert refused.value.getCondition() == "DELTA_CONCURRENT_WRITE.ALLOTTED_TIME_EXCEEDED"
    assert len(read) == 1


def test_an_optimize_says_what_it_did_and_not_what_it_had_meant_to_do(tmp_path: Path) -> None:
    rows = [{"id": n, "p": n % 2} for n in range(4)]
    table = World(table_path(tmp_path)).create(rows, partition_by=("p",))
    table.append(*({**row, "id": row["id"] + 10} for row in rows))
    with at_phase("staged", lambda: table.optimize(where="p = 0")):
        done = table.optimize()
    assert (len(done.removed), len(done.added), done.partitions, done.batches) == (2, 1, 1, 1)
    assert done.metrics["numRemovedFiles"] == 2
    assert done.metrics["numCopiedRows"] == 4
