"""A level or a conflict resolution for one session, command or block, by what becomes of real conflicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch import Table, errors
from anabranch._protocol.dials import Dials
from anabranch._protocol.session_settings import SessionSettings, apply_settings, use_dials
from anabranch._transaction.phases import listen, unlisten
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.dml.append import Append
from anabranch.testing import at_phase

ROWS = [{"id": number, "n": 0} for number in range(4)]
STRICT = {"delta.isolationLevel": "Serializable"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    anabranch.append(tmp_path / "t", ROWS)
    return str(tmp_path / "t")


def add(table: Table, amount: int, where: str = "id = 1") -> Any:
    return table.update(where, {"n": f"n + {amount}"})


def numbers(path: str) -> list[tuple[int, int]]:
    return sorted((row["id"], row["n"]) for row in anabranch.table(path).to_arrow().to_pylist())


def newest(path: str) -> dict[str, Any]:
    return anabranch.history(path, 1)[0]


def files(path: str) -> set[Path]:
    return {file for file in Path(path).rglob("*") if file.is_file()}


def bring(path: str) -> None:
    anabranch.append(path, [{"id": 9, "n": 0}])


def test_a_serializable_update_conflicts_with_an_insert_as_no_other_update_of_the_table_does(path: str) -> None:
    mine, theirs = anabranch.table(path, isolation_level="Serializable"), anabranch.table(path)
    with pytest.raises(errors.ConcurrentAppendException) as refused, at_phase("staged", lambda: bring(path)):
        add(mine, 1, "id > 2")
    assert "This transaction is at Serializable" in str(refused.value)
    with at_phase("staged", lambda: bring(path)):
        add(theirs, 1, "id > 2")
    add(mine, 10, "id = 0")
    assert [each["isolationLevel"] for each in anabranch.history(path)] == [
        "Serializable",
        *["WriteSerializable"] * 4,
    ]


def test_an_update_redoes_itself_under_its_own_dials_on_a_table_whose_other_updates_do_not(path: str) -> None:
    mine = anabranch.table(path, isolation_level="Serializable", conflict_resolution="redo")
    theirs = anabranch.table(path)
    with at_phase("staged", lambda: add(theirs, 10)):
        add(mine, 1)
    assert newest(path)["operationMetrics"]["numRedoneRuns"] == "1"
    assert newest(path)["isolationLevel"] == "Serializable"
    with pytest.raises(errors.ConcurrentDeleteReadException), at_phase("staged", lambda: add(mine, 100)):
        add(theirs, 1000)
    assert numbers(path) == [(0, 0), (1, 111), (2, 0), (3, 0)]


@pytest.mark.parametrize("dial", ["row", "file"])
def test_an_update_may_be_judged_by_files_on_a_table_by_rows_and_the_other_way_round(path: str, dial: str) -> None:
    SetProperties(path, {"anabranch.conflictResolution": dial}).run()
    by_file, by_row = (anabranch.table(path, conflict_resolution=each) for each in ("file", "row"))
    with at_phase("staged", lambda: add(by_file, 1)):
        add(by_row, 1, "id = 2")
    anabranch.restore(path, 1)
    with pytest.raises(errors.DeltaConcurrentModificationException), at_phase("staged", lambda: add(by_row, 1)):
        add(by_file, 1, "id = 2")
    assert numbers(path) == [(0, 0), (1, 1), (2, 0), (3, 0)]


def test_a_delete_without_vectors_may_redo_itself(tmp_path: Path) -> None:
    path = str(tmp_path / "bare")
    anabranch.append(path, ROWS, properties={"delta.enableDeletionVectors": "false"})
    with at_phase("staged", lambda: anabranch.table(path).delete("id = 0")):
        anabranch.table(path, conflict_resolution="redo").delete("id = 3")
    assert numbers(path) == [(1, 0), (2, 0)]


def test_the_bounds_of_a_redo_stay_the_tables(tmp_path: Path) -> None:
    path = str(tmp_path / "bound")
    anabranch.append(path, ROWS, properties={"anabranch.redoRuns": "0"})
    mine = anabranch.table(path, conflict_resolution="redo")
    with pytest.raises(errors.ConcurrentDeleteReadException), at_phase("staged", lambda: add(mine, 10)):
        add(mine, 1)


def test_a_weaker_level_is_refused_where_the_table_is_opened_and_where_it_became_strict_since(path: str) -> None:
    mine = anabranch.table(path, isolation_level="WriteSerializable")
    add(mine, 1)
    SetProperties(path, STRICT).run()
    before, reached = files(path), list[str]()
    listen(listener := reached.append)
    for act in (
        lambda: anabranch.table(path, isolation_level="WriteSerializable"),
        lambda: add(mine, 1),
        lambda: mine.delete(),
        lambda: mine.append(ROWS),
        lambda: mine.overwrite(ROWS),
        lambda: mine.merge(ROWS, "source.id = target.id").when_matched_delete().execute(),
        lambda: mine.optimize().compact(),
    ):
        with pytest.raises(errors.InvalidOption, match=r"anabranch\.isolationLevel cannot be WriteSerializable"):
            act()
    unlisten(listener)
    assert (files(path), reached) == (before, []), "no row was looked for"
    assert mine.count() == 4  # reading asks for no level
    add(anabranch.table(path, isolation_level="Serializable"), 1)
    assert newest(path)["isolationLevel"] == "Serializable"


def test_a_new_table_holds_the_command_that_makes_it_to_its_level(tmp_path: Path) -> None:
    with use_dials(Dials("WriteSerializable")), pytest.raises(errors.InvalidOption, match=r"anabranch\.isolationLevel"):
        anabranch.append(tmp_path / "new", ROWS, properties=STRICT)
    assert not (tmp_path / "new").exists()


def test_an_unknown_value_is_refused_by_the_name_of_its_argument(path: str) -> None:
    with pytest.raises(errors.InvalidArgument, match="isolation_level cannot be Snapshot: it takes WriteSerializable"):
        anabranch.table(path, isolation_level="Snapshot")
    with pytest.raises(errors.InvalidArgument, match="conflict_resolution cannot be column: it takes file or row"):
        anabranch.table(path, conflict_resolution="column")


def test_what_a_session_asks_for_counts_unless_the_command_asks_for_something_else(path: str) -> None:
    mine = anabranch.table(path)
    with apply_settings(SessionSettings(dials=Dials("Serializable", "redo"))):
        with at_phase("staged", lambda: add(mine, 10)):
            add(mine, 1)
        assert (newest(path)["isolationLevel"], numbers(path)[1]) == ("Serializable", (1, 11))
        mine = anabranch.table(path, isolation_level="WriteSerializable", conflict_resolution="row")
        add(mine, 1)
        assert newest(path)["isolationLevel"] == "WriteSerializable"
        with pytest.raises(errors.ConcurrentDeleteReadException), at_phase("staged", lambda: add(mine, 10)):
            add(mine, 1)


def test_two_appends_that_make_a_table_conflict_where_one_asks_for_files(tmp_path: Path) -> None:
    def race(name: str, dials: Dials) -> None:
        where = str(tmp_path / name)
        with use_dials(dials), at_phase("staged", lambda: anabranch.append(where, ROWS)):
            Append(where, ROWS).run()

    race("rows", Dials())
    with pytest.raises(errors.ProtocolChangedException):
        race("files", Dials(conflict_resolution="file"))


def test_what_happens_at_a_phase_is_no_part_of_the_transaction_and_has_dials_of_its_own(path: str) -> None:
    mine = anabranch.table(path, isolation_level="Serializable")
    with at_phase("staged", lambda: anabranch.table(path).delete("id = 3")):
        add(mine, 1, "id = 0")
    assert [each["isolationLevel"] for each in anabranch.history(path, 2)] == ["Serializable", "WriteSerializable"]
