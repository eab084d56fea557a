"""Histories that the laboratory found wrong once, as small as it could make them: they stay right."""

from __future__ import annotations

import pytest

from laboratory.plans import Plan, Script, Setup
from laboratory.runs import run
from laboratory.statements import Delete, Plus, Put, Restore, Test, Update
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
