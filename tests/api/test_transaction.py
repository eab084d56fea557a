"""``anabranch.transaction``: several statements on one table as one version, or none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch import Table, errors
from anabranch._transaction.open_transaction import open_transaction
from anabranch.testing import at_phase

ROWS = [{"id": number, "n": 0} for number in range(4)]
Make = Callable[..., Table]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes the table, with these properties; underscores stand for dots."""

    def made(rows: Any = ROWS, **properties: str) -> Table:
        chosen = {name.replace("_", "."): value for name, value in properties.items()}
        anabranch.append(tmp_path / "t", rows, properties=chosen)
        return anabranch.table(tmp_path / "t")

    return made


def path_of(table: Table) -> Any:
    return table.detail()["location"].removeprefix("file://")


def numbers(table: Table, version: int | None = None) -> list[tuple[int, int]]:
    return sorted((row["id"], row["n"]) for row in table.to_arrow(version=version).to_pylist())


def add(table: Table, amount: int, where: str = "id = 1") -> Any:
    return table.update(where, {"n": f"n + {amount}"})


def elsewhere(work: Callable[[], Any]) -> Any:
    """Run work on another thread, which no transaction of this one covers."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def run(table: Table, *statements: Callable[[], Any], winner: Callable[[], Any]) -> None:
    """Run statements as one transaction, while a winner commits before it does."""
    with at_phase("staged", winner), anabranch.transaction(path_of(table)):
        for statement in statements:
            statement()


def files_of(table: Table) -> set[str]:
    root = Path(path_of(table))
    return {str(file.relative_to(root)) for file in root.rglob("*.parquet")}


# -- one version -------------------------------------------------------------------------------------------------------


def test_all_statements_are_one_version(make: Make) -> None:
    table = make()
    with anabranch.transaction(path_of(table)) as transaction:
        add(table, 1)
        table.append([{"id": 9, "n": 9}])
        table.delete("id = 0")
    assert transaction.result is not None
    assert transaction.result.version == 1
    assert numbers(table) == [(1, 1), (2, 0), (3, 0), (9, 9)]
    assert anabranch.check(path_of(table), deep=True).is_clean


def test_each_statement_sees_what_the_ones_before_have_done(make: Make) -> None:
    table = make()
    with anabranch.transaction(path_of(table)):
        table.append([{"id": 9, "n": 1}])
        add(table, 1, "n = 1")
        assert table.count("n = 2") == 1
        add(table, 1, "n = 2")
        merge = table.merge([{"id": 9, "n": 7}, {"id": 10, "n": 7}], "source.id = target.id")
        merge.when_matched_update({"n": "target.n + source.n"}).when_not_matched_insert_all().execute()
        table.delete("id = 10")
    assert numbers(table) == [(0, 0), (1, 0), (2, 0), (3, 0), (9, 10)]
    assert anabranch.check(path_of(table), deep=True).is_clean


def test_nothing_shows_outside_before_the_end(make: Make) -> None:
    table = make()
    with anabranch.transaction(path_of(table)):
        add(table, 1)
        assert elsewhere(lambda: numbers(table)) == [(0, 0), (1, 0), (2, 0), (3, 0)]
        assert elsewhere(lambda: len(table.history())) == 1
    assert elsewhere(lambda: numbers(table)) == [(0, 0), (1, 1), (2, 0), (3, 0)]


def test_others_commits_do_not_show_inside(make: Make) -> None:
    table = make()
    with anabranch.transaction(path_of(table)):
        elsewhere(lambda: table.append([{"id": 7, "n": 7}]))
        assert numbers(table) == [(0, 0), (1, 0), (2, 0), (3, 0)]
        add(table, 1)
    assert numbers(table) == [(0, 0), (1, 1), (2, 0), (3, 0), (7, 7)]


def test_an_older_version_can_be_read_inside(make: Make) -> None:
    table = make()
    add(table, 1)
    with anabranch.transaction(path_of(table)):
        add(table, 1)
        assert numbers(table, version=0)[1] == (1, 0)
        assert numbers(table, version=1)[1] == (1, 1)
        assert numbers(table)[1] == (1, 2)


def test_one_statement_is_committed_as_itself(make: Make) -> None:
    table = make()
    with anabranch.transaction(path_of(table)):
        add(table, 1)
    assert table.history(1)[0]["operation"] == "UPDATE"


def test_several_are_named_in_the_history(make: Make) -> None:
    table = make()
    with anabranch.transaction(path_of(table)):
        add(table, 1)
        table.append([{"id": 9, "n": 9}])
    newest = table.history(1)[0]
    assert newest["operation"] == "TRANSACTION"
    assert newest["operationParameters"] == {"statements": '["UPDATE", "WRITE"]'}
    assert newest["operationMetrics"]["numUpdatedRows"] == "1"
    assert newest["isBlindAppend"] is False


def test_appends_alone_are_a_blind_append(make: Make) -> None:
    table = make()
    with anabranch.transaction(path_of(table)):
        table.append([{"id": 8, "n": 8}])
        table.append([{"id": 9, "n": 9}])
    assert table.history(1)[0]["isBlindAppend"] is True


def test_a_transaction_without_changes_commits_nothing(make: Make) -> None:
    table = make()
    with anabranch.transaction(path_of(table)) as transaction:
        assert table.count() == 4
        table.delete("id = 77")
    assert transaction.result is None
    assert len(table.history()) == 1


def test_an_overwrite_replaces_what_was_written_inside(make: Make) -> None:
    table = make()
    with anabranch.transaction(path_of(table)):
        table.append([{"id": 9, "n": 9}])
        table.overwrite([{"id": 5, "n": 5}])
        table.append([{"id": 6, "n": 6}])
    assert numbers(table) == [(5, 5), (6, 6)]
    assert anabranch.check(path_of(table), deep=True).is_clean


# -- giving up ---------------------------------------------------------------------------------------------------------


def test_an_exception_gives_all_up(make: Make) -> None:
    table = make()
    before = files_of(table)

    def work() -> None:
        with anabranch.transaction(path_of(table)):
            add(table, 1)
            table.append([{"id": 9, "n": 9}])
            raise KeyError

    with pytest.raises(KeyError):
        work()
    assert numbers(table) == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert files_of(table) == before
    assert open_transaction() is None


def test_a_failed_statement_leaves_the_others(make: Make) -> None:
    table = make()
    with anabranch.transaction(path_of(table)):
        add(table, 1)
        with pytest.raises(errors.UnknownColumn):
            table.update("id = 2", {"missing": "1"})
        add(table, 1, "id = 2")
    assert numbers(table) == [(0, 0), (1, 1), (2, 1), (3, 0)]


def test_what_follows_a_rollback_in_the_block_stands_alone(make: Make) -> None:
    table = make()
    with anabranch.transaction(path_of(table)) as transaction:
        add(table, 1)
        transaction.roll_back()
        add(table, 1, "id = 2")
    assert numbers(table) == [(0, 0), (1, 0), (2, 1), (3, 0)]
    assert transaction.result is None


def test_files_that_came_and_went_are_removed(make: Make) -> None:
    table = make()
    with anabranch.transaction(path_of(table)):
        table.append([{"id": 9, "n": 9}])
        add(table, 1, "id = 9")
    live = set(anabranch.files(path_of(table))["path"].to_pylist())
    assert files_of(table) == live


# -- what may not stand inside -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "work",
    [
        lambda table: table.optimize().compact(),
        lambda table: table.restore(0),
        lambda table: table.vacuum(),
        lambda table: anabranch.append(f"{path_of(table)}-other", ROWS),
        lambda table: table.overwrite([{"id": 1, "n": 1, "m": 1}], schema_change="merge"),
    ],
)
def test_other_commands_are_refused_by_name(make: Make, work: Callable[[Table], Any]) -> None:
    table = make()
    table.append([{"id": 5, "n": 5}])
    with anabranch.transaction(path_of(table)):
        add(table, 1)
        with pytest.raises(errors.NotInTransaction):
            work(table)
    assert numbers(table)[1] == (1, 1)


def test_a_second_table_cannot_be_changed_inside(make: Make, tmp_path: Path) -> None:
    table = make()
    anabranch.append(tmp_path / "other", ROWS)
    with anabranch.transaction(path_of(table)):
        with pytest.raises(errors.NotInTransaction, match="covers one table"):
            anabranch.append(tmp_path / "other", ROWS)
        add(table, 1)
    assert anabranch.table(tmp_path / "other").count() == 4


def test_another_table_is_read_as_of_its_first_use(make: Make, tmp_path: Path) -> None:
    table = make()
    anabranch.append(tmp_path / "other", ROWS)
    other = anabranch.table(tmp_path / "other")
    with anabranch.transaction(path_of(table)):
        assert other.count() == 4
        elsewhere(lambda: other.append(ROWS))
        assert other.count() == 4
    assert other.count() == 8


def test_a_transaction_inside_a_transaction_is_refused(make: Make) -> None:
    table = make()
    with anabranch.transaction(path_of(table)):
        with pytest.raises(errors.NotInTransaction, match="open transaction"), anabranch.transaction(path_of(table)):
            pass
        add(table, 1)
    assert numbers(table)[1] == (1, 1)


def test_a_table_that_is_not_there_is_refused_at_the_beginning(tmp_path: Path) -> None:
    with pytest.raises(errors.NotATable), anabranch.transaction(tmp_path / "missing"):
        pass
    assert open_transaction() is None


# -- winners -----------------------------------------------------------------------------------------------------------


def test_others_may_change_other_rows_of_the_same_file(make: Make) -> None:
    table = make()
    with at_phase("staged", lambda: add(table, 10, "id = 3")), anabranch.transaction(path_of(table)):
        add(table, 1)
        add(table, 1, "id = 2")
    assert numbers(table) == [(0, 0), (1, 1), (2, 1), (3, 10)]


def test_a_winner_on_a_row_that_any_statement_changed_is_a_conflict(make: Make) -> None:
    table = make()
    before = files_of(table)
    with pytest.raises(errors.ConcurrentDeleteReadException):
        run(table, lambda: add(table, 1), lambda: add(table, 1, "id = 2"), winner=lambda: table.delete("id = 2"))
    assert numbers(table) == [(0, 0), (1, 0), (3, 0)]
    assert files_of(table) == before


def test_a_row_that_only_a_later_statement_would_have_changed_conflicts(make: Make) -> None:
    table = make()

    with pytest.raises(errors.ConcurrentAppendException):  # the winner's new image is one that is to be deleted
        run(table, lambda: add(table, 1), lambda: table.delete("n = 7"), winner=lambda: add(table, 7, "id = 3"))


def test_blind_appends_at_the_end_of_the_window_are_preceded(make: Make) -> None:
    table = make()
    with at_phase("staged", lambda: table.append([{"id": 1, "n": 50}])), anabranch.transaction(path_of(table)):
        add(table, 1)
        add(table, 1)
    assert numbers(table) == [(0, 0), (1, 2), (1, 50), (2, 0), (3, 0)]


def test_a_read_of_rows_that_a_winner_changed_is_a_conflict(make: Make) -> None:
    table = make()

    def copy() -> None:
        table.append(table.to_arrow(where="id = 3"))

    with pytest.raises(errors.DeltaConcurrentModificationException):
        run(table, copy, winner=lambda: add(table, 1, "id = 3"))


def test_an_optimize_moves_the_rows_and_the_transaction_follows(make: Make) -> None:
    table = make()
    table.append([{"id": 4, "n": 0}])
    with at_phase("staged", lambda: table.optimize().compact()), anabranch.transaction(path_of(table)):
        add(table, 1)
        add(table, 1, "id = 4")
        table.delete("id = 2")
    assert numbers(table) == [(0, 0), (1, 1), (3, 0), (4, 1)]
    assert anabranch.check(path_of(table), deep=True).is_clean


# -- redo --------------------------------------------------------------------------------------------------------------

REDO = {"anabranch_conflictResolution": "redo"}


def test_statements_run_again_under_redo(make: Make) -> None:
    table = make(**REDO)
    with at_phase("staged", lambda: add(table, 10)), anabranch.transaction(path_of(table)):
        add(table, 1)
        add(table, 1, "id = 2")
        table.append([{"id": 9, "n": 9}])
    assert numbers(table) == [(0, 0), (1, 11), (2, 1), (3, 0), (9, 9)]
    assert table.history(1)[0]["operationMetrics"]["numRedoneRuns"] == "1"
    assert files_of(table) >= set(anabranch.files(path_of(table))["path"].to_pylist())
    assert anabranch.check(path_of(table), deep=True).is_clean


def test_they_do_not_where_a_statement_would_report_other_numbers(make: Make) -> None:
    table = make(**REDO)
    with pytest.raises(errors.ConcurrentDeleteReadException):
        run(table, lambda: add(table, 1), lambda: add(table, 1, "id = 2"), winner=lambda: table.delete("id = 1"))
    assert numbers(table) == [(0, 0), (2, 0), (3, 0)]


@pytest.mark.parametrize("kind", [{"delta_isolationLevel": "WriteSerializable"}, REDO])
def test_a_number_of_rows_that_the_program_has_seen_stays_true(make: Make, kind: dict[str, str]) -> None:
    """With a single statement, too: alone it would be redone on the rows that others append, and then report them."""
    table = make(**kind)

    def winners() -> None:
        table.append([{"id": 1, "n": 50}])
        add(table, 1, "id = 3")

    with pytest.raises(errors.ConcurrentAppendException):
        run(table, lambda: add(table, 1), winner=lambda: elsewhere(winners))
    assert numbers(table) == [(0, 0), (1, 0), (1, 50), (2, 0), (3, 1)]


def test_they_do_not_where_the_program_has_read_rows(make: Make) -> None:
    table = make(**REDO)

    def count_up() -> None:
        seen = table.to_arrow(where="id = 1").to_pylist()[0]["n"]
        table.update("id = 1", {"n": str(seen + 1)})

    with pytest.raises(errors.DeltaConcurrentModificationException):
        run(table, count_up, winner=lambda: add(table, 10))
    assert numbers(table)[1] == (1, 10)


def test_retrying_runs_the_block_again(make: Make) -> None:
    table, winners = make(), [10]

    def work() -> None:
        with anabranch.transaction(path_of(table)) as transaction:
            seen = table.to_arrow(where="id = 1").to_pylist()[0]["n"]
            table.update("id = 1", {"n": str(seen + 1)})
            if winners:
                elsewhere(lambda: add(table, winners.pop()))
            transaction.commit()

    anabranch.retrying(work)
    assert numbers(table)[1] == (1, 11)


# -- kinds of tables ---------------------------------------------------------------------------------------------------


def feed(table: Table, version: int) -> list[tuple[str, int, int]]:
    rows = table.changes(version, version).to_pylist()
    return sorted((row["_change_type"], row["id"], row["n"]) for row in rows)


CDF = {"delta_enableChangeDataFeed": "true"}
KINDS = [CDF, {**CDF, "delta_enableDeletionVectors": "false"}, {**CDF, "delta_enableRowTracking": "true"}]


@pytest.mark.parametrize("kind", KINDS)
def test_the_feed_holds_no_row_that_came_and_went(make: Make, kind: dict[str, str]) -> None:
    table = make(**kind)
    with anabranch.transaction(path_of(table)):
        add(table, 1)
        add(table, 1)
        table.append([{"id": 8, "n": 8}, {"id": 9, "n": 9}])
        add(table, 1, "id = 9")
        table.delete("id = 8")
        add(table, 1, "id = 2")
        table.delete("id IN (2, 3)")
    assert feed(table, 1) == [
        ("delete", 2, 0),
        ("delete", 3, 0),
        ("insert", 9, 10),
        ("update_postimage", 1, 2),
        ("update_preimage", 1, 0),
    ]
    assert anabranch.check(path_of(table), deep=True).is_clean
    assert files_of(table) >= set(anabranch.files(path_of(table))["path"].to_pylist())


def test_a_feed_of_statements_apart_keeps_their_labels(make: Make) -> None:
    table = make(**CDF)
    with anabranch.transaction(path_of(table)):
        add(table, 1)
        table.append([{"id": 8, "n": 8}])
        table.delete("id = 3")
    assert feed(table, 1) == [
        ("delete", 3, 0),
        ("insert", 8, 8),
        ("update_postimage", 1, 1),
        ("update_preimage", 1, 0),
    ]


def test_rows_keep_their_ids_and_new_ones_get_ids_at_the_commit(make: Make) -> None:
    table = make(delta_enableRowTracking="true")
    with at_phase("staged", lambda: table.append([{"id": 7, "n": 7}])), anabranch.transaction(path_of(table)):
        table.append([{"id": 8, "n": 8}])
        add(table, 1, "id = 8")
        add(table, 1)
        add(table, 1)
    assert anabranch.check(path_of(table), deep=True).is_clean
    assert numbers(table) == [(0, 0), (1, 2), (2, 0), (3, 0), (7, 7), (8, 9)]


def test_a_query_is_judged_by_the_rows_that_it_selects(make: Make) -> None:
    table = make()

    def copy() -> None:
        assert table.count("id = 1") > 0
        table.append(table.to_arrow(where="id = 1").to_pylist())
        add(table, 1, "id = 0")

    run(table, copy, winner=lambda: add(table, 10, "id = 3"))  # in the same file, and with a new image
    assert numbers(table) == [(0, 1), (1, 0), (1, 0), (2, 0), (3, 10)]
    with pytest.raises(errors.ConcurrentAppendException):
        run(table, copy, winner=lambda: table.update("id = 3", {"id": "1"}))
    with pytest.raises(errors.ConcurrentDeleteReadException):
        run(table, copy, winner=lambda: table.delete("id = 1"))


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_merge_runs_again_though_it_copies_other_rows_then(make: Make, vectors: str) -> None:
    table = make(**REDO, delta_enableDeletionVectors=vectors)

    def merge() -> None:
        source = [{"id": 1, "n": 5}, {"id": 7, "n": 7}]
        table.merge(source, "source.id = target.id").when_matched_update_all().when_not_matched_insert_all().execute()

    run(table, merge, lambda: add(table, 1, "id = 7"), winner=lambda: table.delete("id = 3"))
    run(table, merge, lambda: add(table, 1, "id = 7"), winner=lambda: add(table, 1))
    assert numbers(table) == [(0, 0), (1, 5), (2, 0), (7, 8)]


def test_one_transaction_may_ask_for_a_stronger_level(make: Make) -> None:
    table = make()
    theirs = lambda: table.append([{"id": 1, "n": 50}])  # noqa: E731

    def work(level: str | None) -> None:
        block = anabranch.transaction(path_of(table), isolation_level=level)
        with at_phase("staged", theirs), block:
            add(table, 1)
            add(table, 1, "id = 2")

    work(None)
    with pytest.raises(errors.ConcurrentAppendException):
        work("Serializable")


def test_one_transaction_may_ask_for_redo(make: Make) -> None:
    table = make()
    block = anabranch.transaction(path_of(table), conflict_resolution="redo")
    with at_phase("staged", lambda: add(table, 10)), block:
        add(table, 1)
        add(table, 1, "id = 2")
    assert numbers(table) == [(0, 0), (1, 11), (2, 1), (3, 0)]
