"""Transactions over several tables: which anomalies each way to commit them has, and that the page says so.

The search is exhaustive in each case; `docs/concepts/several-tables.md` shows what it finds.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

from laboratory import several_tables as model
from laboratory.group_oracle import FRACTURED, HALF_CRASHED, HALF_REFUSED, LONGER, LOST, SKEW, STALE, anomaly_of
from laboratory.group_steps import first_state, next_states
from laboratory.several_tables import Case, search
from laboratory.table_groups import Program, State

PAGE = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "several-tables.md"

SHOWN = {
    "one table after the other": {HALF_CRASHED, HALF_REFUSED, FRACTURED, SKEW},
    "intent log, readers do not know it": {HALF_CRASHED, FRACTURED, SKEW},
    "intent log, all know it": {SKEW},
    "intent log, another writer does not know it": {HALF_CRASHED, HALF_REFUSED},
    "groups, each table is read by itself": {FRACTURED, SKEW},
    "groups, all tables are read at one cut": {SKEW},
}
PREVENTED = {
    "intent log, all know it": {HALF_CRASHED, HALF_REFUSED, LOST, FRACTURED},
    "groups, each table is read by itself": {HALF_CRASHED, HALF_REFUSED, LOST},
    "groups, all tables are read at one cut": {HALF_CRASHED, HALF_REFUSED, LOST, FRACTURED},
}
BROUGHT_BACK = {
    "winners in tables that are only read are not judged": SKEW,
    "the catalog compares only tables that are written": SKEW,
    "the catalog compares nothing": LOST,
    "the catalog ratifies table by table": HALF_CRASHED,
    "rows that both mark are not judged": LOST,
    "rows that ours read and a winner removed are not judged": SKEW,
    "rows that a winner added are not judged": SKEW,
    "winners' changes are not carried over": LOST,
    "readers read each table by itself": FRACTURED,
    "writers read each table by itself": FRACTURED,
    "a cut may be an old one": STALE,
}
SMALL: tuple[Program, ...] = (
    (model.PAIR,),
    (model.PAIR, model.OBSERVER),
    (model.PAIR, model.PAIR),
    (model.PAIR, model.OFF_A),
    (model.PAIR, model.OFF_B),
    (model.PAIR, model.OTHER),
    (model.OFF_A, model.OFF_A),
    (model.OFF_A, model.OFF_B),
    (model.FIRST_A, model.FIRST_B),
)
BY_NAME = {case.name: case for cases in model.HEADS.values() for case in cases}
DESIGN = BY_NAME["groups with read sets"]


def on_small_programs(case: Case) -> Case:
    """The same with few programs, if it has those that every way has."""
    return replace(case, programs=SMALL) if case.programs is model.WITH_OBSERVER else case


def ended(program: Program, *dids: str, case: Case = DESIGN) -> State:
    """How a history of these steps ends."""
    state = first_state(program)
    for did in dids:
        state = dict(next_states(case.way, program, state))[did]
    return state


# -- the judge ---------------------------------------------------------------------------------------------------------


def test_transactions_that_run_one_after_the_other_have_a_serial_order() -> None:
    program = (model.PAIR, model.OBSERVER)
    steps = ("T1 reads A and B", "T1 is judged", "T1 is ratified for A and B", "R reads A and B")
    assert anomaly_of(DESIGN.way, program, ended(program, *steps)) is None


def test_a_reader_between_two_commits_of_one_transaction_has_none() -> None:
    case, program = BY_NAME["one table after the other"], (model.MOVE, model.OBSERVER)
    steps = ("T1 reads A", "T1 commits A", "R reads A", "R reads B", "T1 commits B")
    assert anomaly_of(case.way, program, ended(program, *steps, case=case)) == FRACTURED


def test_what_crashed_before_it_was_committed_needs_no_place_in_the_order() -> None:
    program = (model.PAIR, model.OTHER)
    steps = ("T1 reads A and B", "T1 crashes", "T2 reads A", "T2 is judged", "T2 is ratified for A")
    assert anomaly_of(DESIGN.way, program, ended(program, *steps)) is None


def test_a_read_of_what_was_there_before_an_ended_transaction_is_stale() -> None:
    case, program = BY_NAME["a cut may be an old one"], (model.PAIR, model.OBSERVER)
    steps = ("T1 reads A and B", "T1 is judged", "T1 is ratified for A and B", "R reads an old cut of A and B")
    assert anomaly_of(case.way, program, ended(program, *steps, case=case)) == STALE


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SHOWN if "readers do not know" not in name])
def test_every_way_that_all_know_is_right_for_transactions_of_one_table(name: str) -> None:
    programs = tuple(combinations_with_replacement((model.OTHER, model.ALL_TWO, model.APPEND), 3))
    assert not search(replace(BY_NAME[name], programs=programs)).anomalies


# -- the ways ----------------------------------------------------------------------------------------------------------


@pytest.mark.whole
@pytest.mark.parametrize("name", SHOWN)
def test_each_way_of_today_has_its_anomalies(name: str) -> None:
    assert search(on_small_programs(BY_NAME[name])).anomalies.keys() >= SHOWN[name]


def test_groups_with_read_sets_have_none_where_each_of_the_others_has_some() -> None:
    assert not search(on_small_programs(DESIGN)).anomalies


@pytest.mark.slow
@pytest.mark.parametrize("name", PREVENTED)
def test_what_a_way_prevents_is_in_none_of_its_histories(name: str) -> None:
    assert not search(BY_NAME[name]).anomalies.keys() & PREVENTED[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["groups with read sets", "groups with read sets, three writers"])
def test_no_history_of_groups_with_read_sets_is_without_a_serial_order(name: str) -> None:
    assert not search(BY_NAME[name]).anomalies


@pytest.mark.slow
def test_rows_are_judged_and_not_tables() -> None:
    rows, tables = search(DESIGN), search(BY_NAME["groups with read sets, judged by tables"])
    assert not tables.anomalies
    assert rows.by_rows > tables.by_rows == 0
    assert rows.refused < tables.refused


@pytest.mark.slow
def test_an_intent_log_that_all_know_is_a_catalog_of_groups_with_read_sets() -> None:
    assert not search(BY_NAME["intent log, all know it, with read sets"]).anomalies


@pytest.mark.slow
@pytest.mark.exhaustive(
    "tests/laboratory/test_several_tables.py::test_no_history_of_groups_with_read_sets_is_without_a_serial_order"
)
def test_more_kinds_of_writers_bring_none_either() -> None:
    writers = (*model.WRITERS, model.COPY, model.ALL_TWO)
    programs = tuple(combinations_with_replacement(writers, 3))
    assert not search(replace(DESIGN, programs=programs)).anomalies


# -- rules left out ----------------------------------------------------------------------------------------------------


def test_every_rule_that_is_left_out_is_said_to_bring_something_back() -> None:
    assert [case.name for case in model.MUTANTS] == list(BROUGHT_BACK)


@pytest.mark.whole
@pytest.mark.parametrize("name", BROUGHT_BACK)
def test_a_rule_that_is_left_out_brings_an_anomaly_back(name: str) -> None:
    assert BROUGHT_BACK[name] in search(on_small_programs(BY_NAME[name])).anomalies


@pytest.mark.slow
def test_blind_appends_are_passed_at_the_end_of_the_catalogs_log_only_and_if_it_compares_its_number() -> None:
    serializable, *weaker, rule = model.APPENDS
    assert not search(serializable).anomalies
    assert all(LONGER in search(case).anomalies for case in weaker)
    assert not search(rule).anomalies
    assert search(rule).refused < search(serializable).refused


# -- the page ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize("head", model.HEADS)
def test_the_page_has_the_tables_that_the_model_prints(head: str) -> None:
    assert model.table_of(head, model.HEADS[head]) in PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_history_on_the_page_is_one_that_the_model_prints() -> None:
    printed = model.page()
    shown = re.findall(r"^```text\n(.*?)\n```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert shown
    assert not [text for text in shown if text not in printed]
