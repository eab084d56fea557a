"""A failing plan is made small, and told so that a person can read it."""

from __future__ import annotations

import logging
from functools import cache

import pytest

from laboratory.mutants import MUTANTS
from laboratory.plan_generator import plan_for
from laboratory.plans import Plan, Script
from laboratory.runs import History, run
from laboratory.shrinking import shrunk
from laboratory.statements import Select
from laboratory.stories import as_test, story
from laboratory.verdicts import violations

SKIPS = next(mutant for mutant in MUTANTS if mutant.name == "every blind winner is skipped")
SEED = 358


@pytest.fixture(autouse=True)
def broken(caplog: pytest.LogCaptureFixture) -> object:
    caplog.set_level(logging.CRITICAL, logger="anabranch")
    with SKIPS.alive():
        yield


@cache
def failing() -> History:
    for seed in range(SEED, SEED + 50):
        plan = plan_for(seed)
        if any(isinstance(each, Select) for each in plan.statements):
            continue  # one who reads the table before he begins shows it with fewer statements
        history = run(plan)
        if violations(history):
            return history
    raise AssertionError("the mutant is caught by none of these seeds any more: choose others")


@cache
def small() -> Plan:
    history = failing()
    return shrunk(history.plan, history.turns, fails)


def fails(plan: Plan) -> bool:
    return any(each.kind == "order" for each in violations(run(plan)))


@pytest.mark.slow
def test_a_failing_plan_becomes_the_known_counterexample() -> None:
    found = small()
    assert fails(found)
    assert isinstance(found.schedule, Script)
    assert len(found.statements) == 3, "mine, a blind append, and one who reads what it brought"
    assert sum(map(len, found.setup.files)) <= 2
    assert len(found.schedule.turns) <= 4


@pytest.mark.slow
def test_the_source_of_a_plan_gives_the_plan_again() -> None:
    from laboratory import statements
    from laboratory.plans import Setup

    names = {**vars(statements), "Plan": Plan, "Setup": Setup, "Script": Script}
    again = eval(as_test(small()), names)
    assert (again.setup, again.statements, again.schedule) == (small().setup, small().statements, small().schedule)


@pytest.mark.slow
def test_a_story_tells_who_did_what_and_what_is_wrong() -> None:
    history = failing()
    text = story(history)
    for act in history.acts:
        assert f"W{act.who}: {act.statement}" in text
    assert "<begins>" in text
    assert "put_if_absent" in text
    assert "has no serial order at" in text


@pytest.mark.slow
def test_a_plan_that_its_switches_do_not_repeat_is_left_whole() -> None:
    plan = failing().plan
    assert shrunk(plan, (), lambda candidate: False) is plan
