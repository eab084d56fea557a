"""Transactions of several statements; `python -m laboratory.several_statements` runs twenty thousand histories, these
among them.
"""

from __future__ import annotations

import pytest

from laboratory.block_mutants import BLOCK_MUTANTS
from laboratory.block_plans import SHAPES, block_plan_for
from laboratory.blocks import Block, Tell
from laboratory.campaign import prepare
from laboratory.conditions import Missing, Put
from laboratory.in_arrow import InArrow
from laboratory.mutants import Mutant
from laboratory.plans import Plan, Script, Setup
from laboratory.runs import run
from laboratory.several_statements import Found, caught, found_in
from laboratory.shrinking import shrunk
from laboratory.statements import Append, Delete, Plus, Select, Test, Update
from laboratory.stories import story
from laboratory.verdicts import violations
from tests.support.tiers import examples

HISTORIES, PARTS = examples(600, 60), examples(3, 1)
FIRST = {
    "what changed no row has read nothing": 30,
    "an append that runs again is doubled": 25,
    "what runs again keeps what it had added": 70,
    "row ids that were assigned inside are kept": 170,
    "nobody hears the dials that are asked for": 130,
}
"""Caught after more histories than a few: from here on one is not far."""


@pytest.fixture(autouse=True)
def as_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gc.disable", lambda: None)
    prepare()


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.slow
def test_no_history_of_blocks_is_wrong(part: int) -> None:
    each = HISTORIES // PARTS
    found = found_in(range(part * each, (part + 1) * each))
    assert found.wrong == [], "python -m laboratory.several_statements --tell NUMBER tells the first of them"
    ends = {end for _, end in found.told}
    assert {"committed", "refused", "nothing"} <= ends
    assert ends <= {"committed", "refused", "nothing", "failed", "unknown", "killed"}
    assert {dial.partition(",")[0] for dial, _ in found.told} == {"file", "row", "redo"}


@pytest.mark.slow
def test_tables_without_spark_keep_the_same_promises() -> None:
    assert found_in(range(examples(60, 5)), InArrow()).wrong == []


@pytest.mark.parametrize("mutant", BLOCK_MUTANTS, ids=lambda mutant: mutant.name)
@pytest.mark.slow
def test_a_broken_rule_is_noticed(mutant: Mutant) -> None:
    first = FIRST.get(mutant.name, 0)
    with mutant.alive():
        assert caught(range(first, first + 300)) is not None


def test_plans_repeat_and_have_every_shape_of_blocks() -> None:
    plans = [block_plan_for(number) for number in range(200)]
    assert plans[:20] == [block_plan_for(number) for number in range(20)]
    blocks = [each for plan in plans for each in plan.statements if isinstance(each, Block)]
    assert {len(block.statements) for block in blocks} == {1, 2, 3, 4, 5}
    assert len(SHAPES) > 5
    assert any(block.isolation for block in blocks)
    assert {block.resolution for block in blocks} == {None, "file", "row", "redo"}


ONE = Update((Plus("x"),), Test("k", "=", 1))


def test_a_block_is_one_transaction_that_is_told() -> None:
    block = Block((Append(((9, 1, 0),)), ONE, Delete(Test("k", "=", 9))))
    history = run(Plan(Setup(files=(((1, 1, 0),),), feed=True), (block, Append(((7, 0, 0),))), Script(((12, 1),))))
    assert violations(history) == []
    assert history.acts[0].changed == (None, 1, 1)
    assert history.versions[-1].rows in (((1, 1, 1), (7, 0, 0)), ((7, 0, 0), (1, 1, 1)))
    assert "W0: BEGIN; INSERT (9, 1, 0)" in story(history)


def test_a_feed_is_the_net_difference_in_any_order_that_explains_what_was_seen() -> None:
    """Found by the number 203872: a block that precedes an append, where both orders give the same rows."""
    block = Block((Append(((13, 1, None),)), Tell(Missing("x")), Update((Put("p", 0),), Test("k", ">=", 15))))
    others = (Update((Plus("x"),), Test("x", "<>", 3)), Append(((17, 0, 0),)), Delete(Test("p", "=", 0)))
    setup = Setup(resolution="redo", files=(((1, 0, 0),),), feed=True)
    history = run(Plan(setup, (block, *others), Script(((15, 3), (17, 1), (54, 2)))))
    assert [act.told for act in history.acts] == ["committed"] * 4
    assert violations(history) == []


def test_a_number_that_a_single_statement_reported_inside_stays_true() -> None:
    """Found by the number 1184: a blind append, one who reads what it brought, and ours, redone on the new row."""
    setup = Setup(files=(((4, 1, 2),),))
    where = Test("p", "=", 1)
    others = (Append(((11, 1, 0),)), Select((Plus("p"),), where))
    plan = Plan(setup, (Block((Update((Plus("x"),), where),)), *others), Script(((12, 1), (26, 2))))
    assert violations(run(plan)) == []


def test_a_failing_block_is_made_small() -> None:
    broken = next(mutant for mutant in BLOCK_MUTANTS if mutant.name == "the first statement alone is committed")
    block = Block((Append(((9, 1, 0),)), ONE, Delete(Test("k", "=", 5))), goes_on=True)
    with broken.alive():
        history = run(Plan(Setup(files=(((1, 1, 0), (2, 1, 0)),)), (block, ONE)))
        small = shrunk(history.plan, history.turns, lambda plan: bool(violations(run(plan))))
    assert small.statements == (Block((Append(((9, 1, 0),)), ONE)),)


def test_what_was_found_adds_up() -> None:
    found, half = found_in(range(4)), found_in(range(2))
    half.add(found_in(range(2, 4)))
    assert half == found
    assert str(Found(histories=3, wrong=[(1, "order")])).startswith("3 histories, 0 transactions, 1 violations")
