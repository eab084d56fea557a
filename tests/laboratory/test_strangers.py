"""Other engines' commits against every order of ours; `make lab` plays twenty thousand of them, these among them."""

from __future__ import annotations

from collections import Counter

import pytest

from laboratory import strangers
from laboratory.campaign import prepare
from laboratory.mutants import MUTANTS
from laboratory.plans import START, Moments
from laboratory.runs import run
from laboratory.statements import Foreign
from tests.support.tiers import examples

PLANS, PARTS = examples(80, 8), examples(2, 1)
BROKEN = ("isBlindAppend is believed whatever was done", "a reservation is believed by its tag")
FIRST = 10
"""No plan before this one shows either."""


@pytest.fixture(autouse=True)
def as_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gc.disable", lambda: None)
    prepare()


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.slow
def test_no_commit_of_another_engine_makes_a_history_wrong(part: int) -> None:
    each = PLANS // PARTS
    found = strangers.found_in(range(part * each, (part + 1) * each))
    assert found.wrong == [], "python -m laboratory.strangers --tell NUMBER tells the first of them"
    assert found.winners >= found.plans == each
    assert found.landed > found.histories / 10, "refusing everybody proves nothing"


def test_strangers_write_in_every_manner() -> None:
    plans = [strangers.plan_of(number) for number in range(300)]
    manners = [each.manner for plan in plans for each in plan.statements if isinstance(each, Foreign)]
    for name in ("info", "flag", "tags", "vectors", "change", "churns", "stats", "extended", "txn"):
        seen = Counter(repr(getattr(each, name)) for each in manners)
        assert len(seen) > 1, name
        assert min(seen.values()) >= 10, (name, seen)


def test_every_order_is_tried_and_the_others_stand_where_it_says() -> None:
    plan = next(each for each in map(strangers.plan_of, range(50)) if len(each.statements) == 3)
    orders = list(strangers.orders_of(plan))
    assert len(orders) == len({each.schedule for each in orders}) == 11
    history = run(next(each for each in orders if each.schedule == Moments(("read", "put"))))
    moments = [(event.who, event.moment) for event in sorted(history.events, key=lambda each: each.step)]
    assert moments.index((0, "begins")) < moments.index((1, "begins")) < moments.index((2, "begins"))
    first = run(next(each for each in orders if each.schedule == Moments((START, START))))
    assert [act.who for act in sorted(first.acts, key=lambda act: act.began)] == [1, 2, 0]


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.slow
def test_a_rule_that_believes_too_much_is_noticed(name: str) -> None:
    (mutant,) = (each for each in MUTANTS if each.name == name)
    with mutant.alive():
        assert strangers.caught(range(FIRST, 50)) is not None
