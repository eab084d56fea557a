"""The cut is right: every small history that it lets through has a serial order, and each weaker rule is caught.

Knows the model (`cut_model`) and the page that proves it, and nothing of the product's code. What is enumerated: every
choice of statements, of the versions that they read, and of the moments at which they looked at the log. Longer
histories are tried where `CUT_MODEL_LENGTH` says how many transactions they are to have; those of four begin with each
of the tables where `ANABRANCH_GRID` is `whole`, as in `make lab`, and else with one.
"""

from __future__ import annotations

import os
from functools import cache
from itertools import permutations
from pathlib import Path

import pytest

from tests.support.tiers import examples
from tests.transaction import cut_model as model
from tests.transaction.cut_model import Log, Row, Rows, Rule, Statement, Writer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "the-cut.md"
LONGER = int(os.environ.get("CUT_MODEL_LENGTH", "0"))

THE_RULE = Rule()
SERIALIZABLE = Rule(serializable=True)


def p_is_1(row: Row) -> bool:
    return row[0] == 1


def x_is_0(row: Row) -> bool:
    return row[1] == 0


def x_is_1(row: Row) -> bool:
    return row[1] == 1


APPEND = model.append((1, 0))
UPDATE = model.update("UPDATE SET x = 1 WHERE p = 1", p_is_1, lambda row: (row[0], 1))
COPY = model.insert_select("INSERT SELECT 2, x WHERE p = 1", p_is_1, lambda read: tuple((2, x) for _, x in read))
COUNT = model.insert_select("INSERT SELECT 1, count(*) % 2 WHERE x = 0", x_is_0, lambda read: ((1, len(read) % 2),))
UNDO = model.update("UPDATE SET x = 0 WHERE x = 1", x_is_1, lambda row: (row[0], 0))
DELETE = model.delete("DELETE WHERE p = 1 AND x = 1", lambda row: row == (1, 1))

ALPHABET = (
    APPEND,
    model.append((1, 1)),
    model.append((2, 0)),
    UPDATE,
    UNDO,
    model.update("UPDATE SET p = 2 WHERE p = 1 AND x = 0", lambda row: row == (1, 0), lambda row: (2, 0)),
    model.update("UPDATE SET p = 1, x = 1 WHERE p = 2", lambda row: row[0] == 2, lambda row: (1, 1)),
    DELETE,
    model.delete("DELETE WHERE x = 0", x_is_0),
    model.overwrite((1, 1)),
    COPY,
    COUNT,
)
SHORT = (APPEND, UPDATE, UNDO, DELETE, COPY, COUNT)
STARTS: tuple[Rows, ...] = (((1, 0),), ((1, 0), (2, 1)), ((1, 1), (2, 0)))


def in_words(log: Log) -> str:
    return "\n".join(" | ".join(cells) for cells in model.told(log))


@cache
def assert_in_order(rule: Rule, alphabet: tuple[Statement, ...], length: int, starts: tuple[Rows, ...] = STARTS) -> int:
    """Every history has an order, and the one of the proof is among them; gives how many there were."""
    seen = 0
    for start in starts:
        for log in model.logs(start, alphabet, length, rule):
            seen += 1
            assert model.constructed_order(log) in log[-1].orders, in_words(log)
    return seen


# -- the theorem -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_history_of_three_transactions_has_the_order_of_the_proof() -> None:
    assert assert_in_order(THE_RULE, ALPHABET, 3) > 10_000


@pytest.mark.slow
@pytest.mark.exhaustive(
    "tests/transaction/test_cut.py::test_every_history_of_three_transactions_has_the_order_of_the_proof"
)
def test_every_history_of_four_transactions_has_the_order_of_the_proof() -> None:
    starts = STARTS if os.environ.get("ANABRANCH_GRID") == "whole" else STARTS[1:2]
    assert assert_in_order(THE_RULE, ALPHABET, 4, starts) > 100_000 * len(starts)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.skipif(not LONGER, reason="CUT_MODEL_LENGTH says how long")
@pytest.mark.parametrize("rule", [THE_RULE, SERIALIZABLE, Rule(jumps="cut")], ids=["the cut", "all", "jumps"])
def test_every_longer_history_has_the_order_of_the_proof(rule: Rule) -> None:
    assert assert_in_order(rule, SHORT, LONGER)


@pytest.mark.slow
def test_at_serializable_the_order_is_that_of_the_log() -> None:
    for alphabet, length in ((ALPHABET, 3), (SHORT, examples(4, 3))):
        for start in STARTS:
            for log in model.logs(start, alphabet, length, SERIALIZABLE):
                in_the_log = tuple(range(1, len(log)))
                assert model.constructed_order(log) == in_the_log
                assert in_the_log in log[-1].orders, in_words(log)


@pytest.mark.slow
def test_whoever_reads_at_serializable_keeps_its_place_whatever_the_level_of_others() -> None:
    """By its cut it may also be one at the other level that had nothing to stand before."""
    kept = 0
    for alphabet, length in ((ALPHABET, 3), (SHORT, examples(4, 3))):
        for start in STARTS:
            for log in model.logs(start, alphabet, length, THE_RULE, SERIALIZABLE):
                order = model.constructed_order(log)
                assert order in log[-1].orders, in_words(log)
                for number, version in enumerate(log[1:], start=1):
                    if version.cut == number - 1 and not version.is_blind:
                        assert set(order[: order.index(number)]) == set(range(1, number)), in_words(log)
                        kept += order != tuple(range(1, len(log)))
    assert kept > 1_000, "beside others that have jumped"


def test_at_write_serializable_the_order_is_not_always_that_of_the_log() -> None:
    shortest = next(
        log for log in model.logs(STARTS[0], ALPHABET, 2, THE_RULE) if tuple(range(1, len(log))) not in log[-1].orders
    )
    assert shortest[1].is_blind
    assert model.constructed_order(shortest) == (2, 1)


@pytest.mark.slow
def test_how_often_a_transaction_looks_does_not_change_what_it_lands_as() -> None:
    seen = 0
    for start in STARTS:
        for log in model.logs(start, SHORT, 3, THE_RULE):
            for statement in SHORT:
                found = model.outcomes(statement, log, 0, THE_RULE)
                assert len(found) <= 1, in_words(log)
                seen += len(found)
    assert seen > 1_000


def test_the_rule_lets_something_be_redone_and_something_jump() -> None:
    """Else the searches above would hold of a rule that refuses everything."""
    start = model.new_log(((1, 0),))
    log = model.landed(model.staged(APPEND, start, 0), start)
    (jumped,) = model.outcomes(UPDATE, log, 0, THE_RULE)
    assert (jumped.rebased_to, jumped.adds) == (0, ((1, 1),))

    log = model.landed(model.staged(COPY, log, 1), log)
    (redone,) = model.outcomes(UPDATE, log, 0, THE_RULE)
    assert (redone.rebased_to, redone.adds) == (2, ((1, 1), (1, 1)))


# -- weaker rules ------------------------------------------------------------------------------------------------------


def history_on_the_page(heading: str) -> list[tuple[str, ...]]:
    """The first table below a heading of the page, without its head."""
    below = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2]
    lines = below[below.index("| version |") :].partition("\n\n")[0].splitlines()[2:]
    return [tuple(cell.strip().replace("`", "") for cell in line.strip("|").split("|")) for line in lines]


@pytest.mark.parametrize(
    ("rule", "heading"),
    [
        (Rule(skips_blind=True), "Skip every blind winner"),
        (Rule(jumps="unchecked"), "Precede a winner that reads nothing of ours"),
    ],
    ids=["skip", "jump"],
)
def test_the_first_history_that_a_weaker_rule_gets_wrong_is_the_one_on_the_page(rule: Rule, heading: str) -> None:
    found = model.counterexample(STARTS, ALPHABET, 3, rule)
    assert found is not None
    assert len(found) - 1 == 3, "none of two transactions is wrong"
    assert model.told(found) == history_on_the_page(heading)


@pytest.mark.slow
def test_comparing_a_winners_cut_with_my_base_is_not_enough() -> None:
    """Four transactions are needed: the winner that ours would precede must itself precede one that ours is behind."""
    starts, alphabet = STARTS[1:2], (COUNT, DELETE, COPY, UNDO)
    assert model.counterexample(starts, alphabet, 3, Rule(jumps="base")) is None
    found = model.counterexample(starts, alphabet, 4, Rule(jumps="base"))
    assert found is not None
    assert model.told(found) == history_on_the_page("Compare its cut with our base")


@pytest.mark.slow
def test_comparing_a_winners_cut_with_mine_is_enough_for_every_small_history() -> None:
    assert assert_in_order(Rule(jumps="cut"), ALPHABET, 3) > assert_in_order(THE_RULE, ALPHABET, 3)
    assert assert_in_order(Rule(jumps="cut"), SHORT, examples(4, 3))


@pytest.mark.parametrize(
    ("rule", "transactions"),
    [
        (Rule(c1=False), 2),
        (Rule(c1=False, serializable=True), 2),
        (Rule(c2=False), 2),
        (Rule(c2=False, serializable=True), 2),
        (Rule(redo=False), 3),
    ],
    ids=["C1", "C1 at Serializable", "C2", "C2 at Serializable", "redo"],
)
def test_no_part_of_the_rule_can_be_left_out(rule: Rule, transactions: int) -> None:
    found = model.counterexample(STARTS, ALPHABET, 3, rule)
    assert found is not None
    assert len(found) - 1 == transactions


def test_a_command_that_selects_no_row_has_no_place_in_the_order() -> None:
    """It counts as a reader, and one may see the append without the UPDATE, which stands before the append."""
    start = model.new_log(((1, 0),))
    log = model.landed(model.staged(APPEND, start, 0), start)
    assert not model.outcomes(DELETE, log, 1, THE_RULE)
    (ours,) = model.outcomes(UPDATE, log, 0, THE_RULE)
    log = model.landed(ours, log)
    assert log[-1].orders == {(2, 1)}

    with_delete = [order for order in permutations((APPEND, UPDATE, DELETE)) if explains(order, log)]
    assert with_delete == [(DELETE, UPDATE, APPEND)], "it would have to stand before the append that it saw"


def explains(order: tuple[Statement, ...], log: Log) -> bool:
    return model.replay(model.bag(log[0].rows), order) == model.bag(log[-1].rows)


# -- progress ----------------------------------------------------------------------------------------------------------

WRITERS = (Writer("read"),) * 3


def test_in_no_state_does_a_writer_wait_for_another() -> None:
    """So one that stops for ever, at any moment, holds up nobody."""
    for state, steps in model.reachable([WRITERS], model.optimistic).items():
        assert {step.who for step in steps} == set(range(len(state)))


@pytest.mark.slow
def test_no_schedule_goes_on_for_ever_without_a_commit() -> None:
    everything = model.reachable([WRITERS], model.optimistic)
    assert model.has_circle(everything), "writers that begin anew go on for ever"
    assert not model.has_circle(model.reachable(everything, model.optimistic, but=["committed"]))


@pytest.mark.slow
def test_between_two_lost_puts_of_one_writer_another_commits() -> None:
    steps = [step for steps in model.reachable([WRITERS], model.optimistic).values() for step in steps]
    for who, state in {(step.who, step.to) for step in steps if step.what == "lost"}:
        without_commits = model.reachable([state], model.optimistic, but=["committed"])
        assert not [
            step for steps in without_commits.values() for step in steps if (step.who, step.what) == (who, "lost")
        ]


def test_a_refusal_needs_a_commit_of_another_too() -> None:
    alone = model.reachable([WRITERS], model.optimistic, but=["committed"])
    assert not [step for steps in alone.values() for step in steps if step.what in ("refused", "lost")]


def test_one_writer_may_lose_for_as_long_as_others_commit() -> None:
    """Nothing is fair about it: only patience ends this."""
    others_only = model.reachable([WRITERS], lambda state: unless_it_commits(state, who=0))
    assert model.has_circle(others_only)
    assert [step for steps in others_only.values() for step in steps if (step.who, step.what) == (0, "lost")]


def unless_it_commits(state: model.Writers, who: int) -> list[model.Step]:
    return [step for step in model.optimistic(state) if (step.who, step.what) != (who, "committed")]


def test_locks_taken_in_two_orders_are_noticed_as_a_dead_end() -> None:
    assert not model.dead_ends(model.reachable([(Writer(""),)], model.with_two_locks))
    assert model.dead_ends(model.reachable([(Writer(""), Writer(""))], model.with_two_locks))


def test_a_look_that_misses_the_newest_commit_is_noticed_as_a_circle() -> None:
    everything = model.reachable([WRITERS], model.with_a_stale_look)
    assert model.has_circle(model.reachable(everything, model.with_a_stale_look, but=["committed"]))
