"""Each anomaly by name, on each kind of table: what becomes of its script, and that the page tells just that.

Knows what every session of every script has to be told. Every run is also held against the oracle's serial orders of
its statements, and the table that it leaves behind against the check and other engines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from anabranch._transaction import conflicts
from laboratory.statements import Rows
from tests.support.tiers import few_of
from tests.support.worlds import World, table_path
from tests.transaction import anomalies
from tests.transaction.anomalies import APPLICATIONS, PAGE, SCRIPTS, TABLES, TRANSACTIONS
from tests.transaction.scripted import LEVELS, Run, Script, Table, interleavings, play

SAME_ROW = {"row": "ConcurrentDeleteReadException", "file": "ConcurrentAppendException"}
"""What stops a change of a row that was changed: by rows the mark, by files the new file comes first."""

LAYOUTS = ((True, True), (True, False), (False, True), (False, False))
"""With vectors or without, and all rows in one file or each in its own."""

Played = Callable[[str], Run]


@pytest.fixture(params=TABLES, ids=str)
def any_table(request: pytest.FixtureRequest) -> Table:
    table: Table = request.param
    return table


@pytest.fixture
def path(tmp_path: Path) -> str:
    return table_path(tmp_path)


@pytest.fixture
def played(any_table: Table, path: str) -> Iterator[Played]:
    """Plays a script by its name, on one table; the table is looked at when the test is over."""

    def play_it(name: str) -> Run:
        run = play(SCRIPTS[name], any_table, path)
        assert not run.faults
        assert run.every_statement_has_its_place
        return run

    yield play_it
    World(path).assert_clean()


# -- one transaction for each session ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_of_two_dirty_writes_the_one_that_ends_last_is_refused(played: Played) -> None:
    run = played("G0")
    assert run.told == (SAME_ROW[run.table.dial], "committed")
    assert run.rows == ((1, 1, 12), (2, 2, 12))


def test_nobody_reads_what_an_aborted_statement_wrote(played: Played) -> None:
    run = played("G1a")
    before: Rows = ((1, 1, 10),)
    assert run.told == ("aborted", "read", "read")
    assert (run.saw(2), run.saw(3)) == ([before, before], [before])
    assert len(run.versions) == 1


def test_nobody_reads_the_midst_of_an_overwrite(played: Played) -> None:
    run = played("G1b")
    before, after = ((1, 1, 10), (2, 2, 20)), ((1, 1, 11), (2, 2, 22))
    assert run.told == ("committed", "read", "read")
    assert (run.saw(2), run.saw(3)) == ([before, before], [after])


def test_of_two_statements_that_act_on_what_the_other_wrote_the_second_is_refused(played: Played) -> None:
    run = played("G1c")
    assert run.told == ("committed", "ConcurrentAppendException")
    assert run.rows == ((1, 1, 11), (2, 2, 20))


def test_a_transaction_of_which_a_reader_saw_a_part_does_not_vanish(played: Played) -> None:
    run = played("OTV")
    assert run.told == ("committed", "committed", "read")
    assert run.saw(3) == [((1, 1, 11),), ((2, 2, 11),)]


def test_two_conditions_on_one_snapshot_fit_one_state(played: Played) -> None:
    run = played("PMP")
    assert run.told == ("read", "committed")
    assert run.saw(1) == [(), ()]


def test_a_delete_whose_condition_fits_other_rows_by_now_is_refused_and_right_when_run_again(
    played: Played, path: str
) -> None:
    run = played("PMP, writing")
    assert run.told == ("committed", SAME_ROW[run.table.dial])
    assert run.rows == ((1, 1, 20), (2, 2, 30))
    World(path).delete("x = 20")
    assert World(path).rows() == [{"k": 2, "p": 2, "x": 30}]


def test_of_two_increments_of_one_row_the_second_is_refused_and_none_is_lost(played: Played) -> None:
    run = played("P4")
    assert run.told == (SAME_ROW[run.table.dial], "committed")
    assert run.rows == ((1, 1, 11), (2, 2, 20))


def test_two_reads_of_one_snapshot_lie_on_one_side_of_a_transaction(played: Played) -> None:
    run = played("G-single")
    assert run.told == ("read", "committed")
    assert run.saw(1) == [((1, 1, 10),), ((2, 2, 20),)]


def test_of_two_statements_that_skew_each_other_the_second_is_refused(played: Played) -> None:
    run = played("G2-item")
    assert run.told == ("committed", "ConcurrentAppendException")
    assert run.rows == ((1, 0, 20), (2, 20, 15))


def test_of_two_statements_that_bring_rows_under_the_conditions_of_each_other_the_second_is_refused(
    played: Played,
) -> None:
    run = played("G2")
    assert run.told == ("committed", "ConcurrentAppendException")
    assert run.rows == ((1, 2, 10), (2, 2, 20))


def test_an_insert_comes_behind_a_delete_at_write_serializable_and_stops_it_at_serializable(played: Played) -> None:
    run = played("G2, inserting")
    if run.table.level == "WriteSerializable":
        assert run.told == ("committed", "committed")
        assert run.orders == [(1, 2)], "the delete first, though its version is the later one"
        assert run.rows == ((3, 3, 30),)
    else:
        assert run.told == ("ConcurrentAppendException", "committed")


def test_a_reader_sees_an_order_that_is_not_the_serial_one_at_write_serializable_only(played: Played) -> None:
    """A long DELETE of every row, an INSERT that is committed meanwhile, and somebody who reads between the two."""
    run = played("G2, with a reader")
    assert run.saw(3) == [((1, 1, 10), (2, 2, 20), (3, 3, 30))]
    if run.table.level == "WriteSerializable":
        assert run.told == ("committed", "committed", "read")
        assert run.orders == [], "no order has a place for the reader"
    else:
        assert run.told == ("ConcurrentAppendException", "committed", "read")
        assert run.orders == [(2, 3)]


# -- several transactions for each session -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", [each.name for each in APPLICATIONS if " in two " in each.name])
def test_what_an_application_does_in_two_transactions_is_not_isolated_as_one(played: Played, name: str) -> None:
    run = played(name)
    assert not [told for told in run.told if told.endswith("Exception")], "nobody is told"
    assert run.orders == []


@pytest.mark.slow
def test_an_update_is_lost_between_a_read_and_a_write_of_the_application(played: Played) -> None:
    run = played("P4 in two statements")
    assert run.told == ("committed", "committed")
    assert run.rows == ((1, 1, 12), (2, 2, 20)), "the 11 is gone"


def test_an_update_that_repeats_the_value_read_is_not_lost(played: Played) -> None:
    run = played("P4 with the value in the condition")
    assert run.told == ("committed", "gave up")
    assert run.rows == ((1, 1, 11), (2, 2, 20))
    assert run.orders == [(1,)]


def test_a_number_of_its_own_in_the_condition_tells_a_writer_whether_its_update_changed_a_row(path: str) -> None:
    table = World(path).create([{"k": 1, "x": 10}, {"k": 2, "x": 20}])
    for number, value in ((4711, 11), (4712, 12)):
        table.update(f"k = 1 AND x = 10 AND k <> -{number}", x=value)
    (predicate,) = [table.info(version)["operationParameters"]["predicate"] for version in range(1, table.version + 1)]
    assert "4711" in predicate
    assert table.rows() == [{"k": 1, "x": 11}, {"k": 2, "x": 20}]


# -- redo --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=lambda script: script.name)
def test_under_redo_at_serializable_every_statement_is_committed_and_has_its_place(script: Script) -> None:
    for layout in few_of(LAYOUTS, 2):
        run = anomalies.played(script, Table("Serializable", "redo", *layout))
        assert not any(fate.refused for fate in run.fates.values())
        assert run.every_statement_has_its_place
        assert not run.faults


@pytest.mark.slow
@pytest.mark.parametrize("script", TRANSACTIONS, ids=lambda script: script.name)
def test_under_redo_at_serializable_each_anomaly_of_one_statement_is_prevented(script: Script) -> None:
    assert anomalies.played(script, Table("Serializable", "redo")).verdict == "prevented"


# -- no other way ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=lambda script: script.name)
def test_the_verdict_depends_neither_on_vectors_nor_on_which_rows_share_a_file(script: Script) -> None:
    for table in few_of(TABLES, 2):
        runs = [anomalies.played(script, Table(table.level, table.dial, *layout)) for layout in few_of(LAYOUTS, 2)]
        assert len({run.verdict for run in runs}) == 1
        assert all(run.every_statement_has_its_place and not run.faults for run in runs)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=lambda script: script.name)
@pytest.mark.parametrize("level", LEVELS)
def test_without_vectors_a_table_does_as_with_the_dial_file(script: Script, level: str) -> None:
    without = anomalies.played(script, Table(level, "row", vectors=False))
    assert without.told == anomalies.played(script, Table(level, "file")).told


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", [*TRANSACTIONS, SCRIPTS["P4 with the value in the condition"]], ids=lambda script: script.name
)
def test_what_is_prevented_is_so_in_every_order_of_the_steps(script: Script, any_table: Table) -> None:
    if anomalies.played(script, any_table).verdict == "possible":
        assert (script.name, any_table.level) == ("G2, with a reader", "WriteSerializable")
        return
    for other in few_of(list(interleavings(script)), 3):
        run = play(other, any_table)
        assert run.verdict == "prevented", other.steps
        assert run.every_statement_has_its_place, other.steps


def test_every_order_of_the_steps_is_tried() -> None:
    orders = list(interleavings(SCRIPTS["P4"]))
    assert len(orders) == len(set(orders)) == 6, "two statements, each cut in two"
    assert len(list(interleavings(SCRIPTS["OTV"]))) == 90


@pytest.mark.parametrize("name", ["G1c", "P4", "G2-item", "G2"])
def test_without_the_row_rules_a_script_does_bring_its_anomaly_about(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the script would come near nothing. (Where a whole file is taken, an assertion stands behind the rules.)"""
    monkeypatch.setattr(conflicts, "ROW_RULES", ())
    run = play(SCRIPTS[name], Table("Serializable", "row"))
    assert run.told == ("committed", "committed")
    assert run.verdict == "possible"


# -- the page ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_tells_what_the_runs_give() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert anomalies.renewed(page) == page, "write it anew: python -m tests.transaction.anomalies"
    wrong = page
    for here, instead in (("| possible |", "| prevented |"), ("T1 refused", "T1 committed"), ("x = 11", "x = 12")):
        assert here in wrong
        wrong = wrong.replace(here, instead, 1)
    assert anomalies.renewed(wrong) == page, "a verdict or an ending that is wrong on the page is noticed"


def test_the_page_has_both_tables_and_every_anomaly_with_its_script() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "\n| anomaly |" in page
    assert "\n| in the application |" in page
    assert not [script.name for script in TRANSACTIONS if f"```text\n{script.name}: " not in page]
