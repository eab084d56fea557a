"""Writers of a table with identity columns: each value once, no conflict between them, gaps allowed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anabranch import errors
from anabranch._protocol.merges import SourceColumn
from anabranch._protocol.rules.identity import identities, identity_metadata
from anabranch._protocol.schema.types import Field, Struct
from anabranch._transaction.commit import commit
from anabranch._transaction.rebase_handler import NoRows
from anabranch._transaction.retry import Runtime, default_retry
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.ddl.create import Create, Replace
from anabranch.commands.ddl.rename_and_drop_columns import RenameColumn
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.identity_values import reservation, reserve
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.dml.write import Write
from anabranch.testing import at_phase
from tests.support.patience import started
from tests.support.tiers import examples
from tests.support.worlds import Clause, World, insert_all, table_path, update_all


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = created(tmp_path)
    yield made
    made.assert_clean()


def created(folder: Path, explicit: bool = False, start: int = 1, step: int = 1, **properties: str) -> World:
    number = Field("n", "long", True, identity_metadata(start, step, explicit=explicit))
    path = table_path(folder)
    Create(path, NewTable(Struct((Field("id", "long"), Field("x", "long"), number)), (), properties)).run()
    return World(path)


def numbers(world: World) -> dict[int, int]:
    return {row["id"]: row["n"] for row in world.rows()}


def test_an_append_counts_from_the_start_in_steps(tmp_path: Path) -> None:
    world = created(tmp_path, start=10, step=-5)
    world.append({"id": 1, "x": 1}, {"id": 2, "x": 2})
    world.append({"id": 3, "x": 3})
    assert numbers(world) == {1: 10, 2: 5, 3: 0}
    assert [each.mark for each in identities(world.log.snapshot().schema)] == [0]


def test_a_bulk_write_counts_on(world: World) -> None:
    world.append({"id": 1, "x": 1})
    Write(world.path, pa.table({"id": [2, 3], "x": [2, 3]}), "append").run(world.engine)
    assert numbers(world) == {1: 1, 2: 2, 3: 3}
    assert world.info()["isBlindAppend"] is True


def test_an_overwrite_counts_on_too(world: World) -> None:
    world.append({"id": 1, "x": 1})
    world.overwrite({"id": 2, "x": 2})
    assert numbers(world) == {2: 2}


@pytest.mark.slow
def test_a_merge_numbers_what_it_inserts_and_leaves_the_rest(world: World) -> None:
    world.append({"id": 1, "x": 1})
    rows = [{"id": 1, "x": 10}, {"id": 2, "x": 20}, {"id": 3, "x": 30}]
    world.merge(rows, update_all("x"), insert_all("id", "x"))
    found = numbers(world)
    assert found[1] == 1
    assert len({*found.values()}) == 3
    assert min(found[2], found[3]) > 1


def test_the_range_is_committed_before_its_values_are_used(world: World) -> None:
    def look() -> None:
        assert [each.mark for each in identities(world.log.snapshot().schema)] == [2]
        assert world.rows() == []

    with at_phase("staged", look):
        world.append({"id": 1, "x": 1}, {"id": 2, "x": 2})
    assert world.version == 2


@pytest.mark.parametrize("phase", ["checked", "put", "committed"])
def test_the_phases_of_a_command_are_its_own_and_not_those_of_its_reservation(world: World, phase: str) -> None:
    seen: list[int] = []
    with at_phase(phase, lambda: seen.append(world.version)):
        world.append({"id": 1, "x": 1})
    assert seen == [2 if phase == "committed" else 1]


def test_a_writer_that_fails_leaves_a_gap(world: World) -> None:
    class Stop(Exception):
        pass

    def stop() -> None:
        raise Stop

    with pytest.raises(Stop), at_phase("staged", stop):
        world.append({"id": 1, "x": 1})
    world.append({"id": 2, "x": 2})
    assert numbers(world) == {2: 2}


# -- at once -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_reservation_fails_no_writer_at_either_level(tmp_path: Path) -> None:
    for level in ("WriteSerializable", "Serializable"):
        world = created(tmp_path, **{"delta.isolationLevel": level})
        world.append({"id": 1, "x": 1}, {"id": 2, "x": 2})
        with at_phase("staged", lambda w=world: w.merge([{"id": 9, "x": 9}], insert_all("id", "x"))):
            world.update("id = 1", x=5)
        with at_phase("staged", lambda w=world: w.append({"id": 8, "x": 9})):
            world.delete("id = 2")
        assert numbers(world).keys() == {1, 9, 8}
        assert len({*numbers(world).values()}) == 3


@pytest.mark.slow
def test_a_reservation_does_not_bring_a_blind_append_before_me(world: World) -> None:
    """It has read no row: at WriteSerializable ours still stands before the append that follows it."""
    world.append({"id": 1, "x": 1})
    with at_phase("staged", lambda: world.append({"id": 2, "x": 1})):
        world.delete("x = 1")
    assert numbers(world).keys() == {2}


def marks(world: World) -> list[int | None]:
    return [each.mark for each in identities(world.log.snapshot().schema)]


def test_a_reservation_stands_behind_writers_that_it_has_not_seen(world: World) -> None:
    world.append({"id": 1, "x": 1})
    before = world.log.snapshot()
    world.update("id = 1", x=9)
    transaction = reservation(before, {"n": 50}, "w", Runtime())
    commit(transaction, world.log, NoRows(), default_retry(blind=False), Runtime())
    assert marks(world) == [50]


def test_a_change_of_metadata_keeps_the_farther_mark(world: World) -> None:
    world.append({"id": 1, "x": 1})
    with at_phase("staged", lambda: reserve(world.log, ["n"], 5, "another", Runtime())):
        SetProperties(world.path, {"delta.appendOnly": "true"}).run()
    assert marks(world) == [6]
    assert world.log.snapshot().properties.append_only


@pytest.mark.slow
def test_a_column_that_is_renamed_meanwhile_keeps_what_was_reserved_of_it(tmp_path: Path) -> None:
    world = created(tmp_path, **{"delta.columnMapping.mode": "name"})
    world.append({"id": 1, "x": 1})
    with at_phase("staged", lambda: reserve(world.log, ["n"], 5, "another", Runtime())):
        RenameColumn(world.path, ("n",), "number").run()
    assert marks(world) == [6]
    world.append({"id": 2, "x": 2})
    assert [row["number"] for row in world.rows()] == [1, 7]
    world.assert_clean()


def test_a_write_that_adds_a_column_keeps_the_values_that_it_reserved(world: World) -> None:
    world.append({"id": 1, "x": 1})
    rows = pa.table({"id": [2, 3], "x": [2, 3], "y": [7, 8]})
    with at_phase("staged", lambda: reserve(world.log, ["n"], 5, "another", Runtime())):
        Write(world.path, rows, "append", schema_change="merge").run(world.engine)
    assert [(row["n"], row["y"]) for row in world.rows()] == [(1, None), (2, 7), (3, 8)]
    assert marks(world) == [8]


@pytest.mark.parametrize(("start", "step", "first"), [(1, 1, 3), (1000, 1, 1000), (-1, -1, -1), (0, 5, 5)], ids=str)
def test_a_replaced_table_begins_behind_what_was_given_and_not_before_its_start(
    world: World, start: int, step: int, first: int
) -> None:
    world.append({"id": 1, "x": 1}, {"id": 2, "x": 1})
    other = Field("n", "long", True, identity_metadata(start, step, explicit=False))
    Replace(world.path, NewTable(Struct((Field("id", "long"), Field("x", "long"), other)))).run()
    world.append({"id": 3, "x": 2})
    assert numbers(world) == {3: first}


def test_a_table_that_is_replaced_goes_on_counting(world: World) -> None:
    world.append({"id": 1, "x": 1})
    Replace(world.path, NewTable(world.log.snapshot().schema)).run()
    world.append({"id": 2, "x": 2})
    assert numbers(world) == {2: 2}


def test_by_files_tables_with_identity_columns_conflict_as_documented(tmp_path: Path) -> None:
    world = created(tmp_path, **{"anabranch.conflictResolution": "file"})
    world.append({"id": 1, "x": 1})  # its own reservation is no conflict
    with (
        pytest.raises(errors.MetadataChangedException),
        at_phase("staged", lambda: world.append({"id": 3, "x": 1})),
    ):
        world.append({"id": 2, "x": 1})
    assert numbers(world).keys() == {1, 3}


@pytest.mark.slow
def test_threads_that_insert_at_once_never_get_one_value_twice(world: World) -> None:
    failed: list[BaseException] = []
    writers, rounds = examples(6, 4), examples(5, 2)

    def work(thread: int) -> None:
        try:
            for i in range(rounds):
                rows = [{"id": thread * 100 + i * 10 + k, "x": 0} for k in range(3)]
                if thread % 2:
                    Append(world.path, rows).run()
                else:
                    world.merge(rows, insert_all("id", "x"))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(writers)]
    started(*threads)
    assert failed == []
    found = [row["n"] for row in world.rows()]
    assert len(found) == len(set(found)) == 3 * rounds * writers


# -- what is refused ---------------------------------------------------------------------------------------------------


def refused(world: World) -> list[Any]:
    rows: list[dict[str, Any]] = [{"id": 1, "x": 1, "n": 7}]
    set_n = Clause("matched", "update", None, {"n": SourceColumn("n")})
    return [
        lambda: world.append(*rows),
        lambda: Write(world.path, pa.Table.from_pylist(rows), "append").run(world.engine),
        lambda: world.update("id = 1", n=5),
        lambda: world.merge(rows, set_n),
        lambda: world.merge(rows, insert_all("id", "x", "n")),
    ]


def test_values_that_only_the_table_gives_are_refused(world: World) -> None:
    world.append({"id": 1, "x": 1})
    version = world.version
    for command in refused(world):
        with pytest.raises(errors.IdentityColumnGiven) as error:
            command()
        assert error.value.facts["column"] == "n"
    assert world.version == version


def test_by_default_a_user_may_give_values_but_not_change_them(tmp_path: Path) -> None:
    world = created(tmp_path, explicit=True)
    world.append({"id": 1, "x": 1, "n": 70})
    world.append({"id": 2, "x": 1})
    assert numbers(world) == {1: 70, 2: 1}
    with pytest.raises(errors.IdentityColumnGiven):
        world.update("id = 1", n=5)


def test_a_merge_that_inserts_nothing_takes_no_numbers(world: World) -> None:
    world.append({"id": 1, "x": 1})
    world.merge([{"id": 1, "x": 5}, {"id": 2, "x": 5}], update_all("x"))
    assert numbers(world) == {1: 1}
    assert [each.mark for each in identities(world.log.snapshot().schema)] == [1]
