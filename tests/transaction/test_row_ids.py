"""Row ids in random histories of concurrent writers: unique, kept, and never below what was given before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anabranch.testing import DictStore
from laboratory.places import InMemory
from laboratory.plan_generator import plan_for
from laboratory.plans import Plan
from laboratory.runs import History, run
from laboratory.statements import Configure, Copy, Foreign, Restore, Select, Statement, Upgrade, Vacuum
from laboratory.verdicts import violations
from tests.support.row_ids import wrong_ids
from tests.support.tiers import examples

PARTS, PER_PART = examples(10, 2), examples(150, 12)
TRACKED = InMemory({"delta.enableRowTracking": "true"})
OTHER_ENGINES = (Copy, Foreign, Restore, Configure, Upgrade)
"""Statements that the laboratory plays as another engine, which knows nothing of row ids."""


def is_ours(statement: Statement) -> bool:
    """Whether the product plays it, leaves the files of all versions, which are read here, and brings no old id."""
    return isinstance(statement, Select) or not isinstance(statement, (*OTHER_ENGINES, Vacuum))


def plan_without_others(seed: int) -> Plan | None:
    plan = plan_for(seed)
    ours = tuple(each for each in plan.statements if is_ours(each))
    return replace(plan, statements=ours) if len(ours) > 1 else None


def what_is_wrong(history: History) -> list[str]:
    store = DictStore("memory://row-ids", history.kept)
    return [*map(str, violations(history)), *wrong_ids(store)]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_rows_keep_their_ids_whatever_happens_at_once(part: int) -> None:
    seeds = range(part * PER_PART, (part + 1) * PER_PART)
    plans = [plan for seed in seeds if (plan := plan_without_others(seed)) is not None]
    wrong = {plan.seed: found for plan in plans if (found := what_is_wrong(run(plan, TRACKED)))}
    assert not wrong
