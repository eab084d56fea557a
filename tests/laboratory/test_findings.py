"""Histories that the laboratory found wrong once, as small as it could make them: they stay right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from laboratory.plan_generator import plan_for
from laboratory.plans import Dice, Failure, Plan, Script, Setup
from laboratory.runs import run
from laboratory.statements import Delete, Optimize, Plus, Put, Replace, Restore, Test, Update, Vacuum
from laboratory.stories import story
from laboratory.verdicts import violations


def told(plan: Plan) -> list[str]:
    """What the writers were told, after everything else was found in order."""
    history = run(plan)
    assert not violations(history), story(history)
    return [act.told for act in history.acts]


@pytest.mark.parametrize("isolation", ["WriteSerializable", "Serializable"])
def test_a_file_that_was_emptied_and_comes_back_brings_new_rows(isolation: str) -> None:
    """Ours read the file, stood behind the winner that emptied it, and lost its put to the one that restored it."""
    files = (((1, 1, 0), (2, 0, 0)), ((3, 1, 0),))
    plan = Plan(
        Setup(isolation, files=files, before=(Delete(Test("k", "=", 1)),)),
        (Update((Plus("x"),), Test("p", "=", 1)), Delete(Test("p", "=", 0)), Restore(2)),
        Script(((3, 1), (28, 2))),
    )
    assert told(plan) == ["refused", "committed", "committed"]


def test_a_history_repeats_exactly_whatever_ran_before_it() -> None:
    """Found by a seed that failed in a long run and not alone: what was kept of vectors changed the calls."""
    setup = Setup(files=(((1, 1, 0), (2, 0, 0)),), before=(Delete(Test("k", "=", 1)),))
    plan = Plan(setup, (Update((Put("x", 5),), Test("p", "=", 0)), Delete(Test("k", "=", 2))), Script(((4, 1),)))
    first, second = run(plan), run(plan)
    assert [(e.step, e.who, e.moment.split()[0]) for e in first.events] == [
        (e.step, e.who, e.moment.split()[0]) for e in second.events
    ]


def test_a_writer_that_could_not_read_where_rows_went_is_refused_and_no_other_is_excused() -> None:
    """The store of W1 failed while it read the record of moved rows: errors while deciding mean conflict."""
    plan = Plan(
        Setup(files=(((1, 0, 0), (2, 1, 0)),)),
        (Optimize(("x",)), Replace(Test("p", "=", 1), ())),
        Dice(60340, 0.5, 0.02),
        (Failure(1, 16, "disk full"),),
    )
    assert told(plan) == ["committed", "refused"]
    history = run(plan)
    for failed in ({}, {0: history.failed[1]}, {1: ["another call failed"]}):
        assert [each.kind for each in violations(replace(history, failed=failed))] == ["maintenance"]


@pytest.mark.slow
def test_no_other_engine_restores_what_a_vacuum_that_retains_nothing_may_remove() -> None:
    """No engine promises to survive that; ours looks for running VACUUMs."""
    plans = [plan_for(seed) for seed in (42997, *range(2_000))]
    among = [each for plan in plans if Vacuum in map(type, plan.statements) for each in plan.statements]
    restores = [each for each in among if isinstance(each, Restore)]
    assert len(restores) > 10
    assert all(each.ours for each in restores)
    assert any(isinstance(each, Restore) and not each.ours for plan in plans for each in plan.statements)
