"""The same histories by the backend of tables without Spark, judged by the same oracle; `make lab` runs thousands."""

from __future__ import annotations

import pytest

from laboratory.campaign import prepare
from laboratory.in_arrow import wrong_in_arrow
from laboratory.mutants import MUTANTS
from tests.support.tiers import examples


@pytest.fixture(autouse=True)
def as_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gc.disable", lambda: None)
    prepare()


@pytest.mark.slow
def test_no_history_is_wrong_without_spark() -> None:
    assert wrong_in_arrow(range(examples(600, 60))) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["C1 dropped", "C2 dropped", "blind winners' rows are not redone"])
def test_a_broken_rule_is_noticed_without_spark(name: str) -> None:
    (mutant,) = (each for each in MUTANTS if each.name == name)
    with mutant.alive():
        assert any(wrong_in_arrow([seed]) for seed in range(600))
