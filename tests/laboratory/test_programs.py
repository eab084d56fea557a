"""Sequential programs that hold what they have read; `make lab` runs twenty thousand histories, these among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from anabranch.commands import sources
from laboratory import programs
from laboratory.campaign import prepare
from laboratory.held_rows import Bring
from laboratory.runs import run
from laboratory.verdicts import violations
from tests.support.tiers import examples

HISTORIES, PARTS = examples(400, 60), examples(2, 1)


@pytest.fixture(autouse=True)
def as_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gc.disable", lambda: None)
    prepare()


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.slow
def test_every_history_of_programs_has_an_order_that_sequential_programs_allow(part: int) -> None:
    each = HISTORIES // PARTS
    found = programs.found_in(range(part * each, (part + 1) * each))
    assert found.wrong == [], "python -m laboratory.programs --tell NUMBER tells the first of them"
    assert found.told["Bring", "committed"] >= each / 4, "refusing everybody proves nothing"
    assert found.told["Bring", "refused"] >= each / 4, "nobody was in the way"


def test_a_program_that_is_alone_is_never_refused() -> None:
    plans = [plan for plan in map(programs.plan_of, range(60)) if len(set(plan.programs)) == 1]
    acts = [act for plan in plans for act in run(plan).acts]
    assert any(isinstance(act.statement, Bring) or act.told == "committed" for act in acts)
    assert {act.told for act in acts} <= {"committed", "nothing"}


BROKEN: dict[str, Callable[..., Any]] = {
    "every commit is the program's own": lambda commit, table, since: True,
    "no commit is the program's own": lambda commit, table, since: False,
}


@pytest.mark.parametrize("name", list(BROKEN))
@pytest.mark.slow
def test_a_rule_that_takes_others_for_the_program_or_the_program_for_others_is_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "is_own", BROKEN[name])
    assert programs.caught(range(20)) is not None


def test_the_story_of_a_program_names_what_it_held() -> None:
    history = next(run(plan) for plan in map(programs.plan_of, range(20)) if Bring in map(type, plan.statements))
    assert violations(history) == []
    assert "FROM frame" in " ".join(map(str, history.plan.statements))
