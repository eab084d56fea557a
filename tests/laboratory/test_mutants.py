"""The laboratory can fail: each broken rule is noticed."""

from __future__ import annotations

import pytest

from laboratory.campaign import caught, prepare
from laboratory.mutants import MUTANTS, Mutant

RARE = ("own commit not known again", "files that are gone count as known")
"""Caught after thousands of histories only: by `make lab`, and here from a seed on that is not far from showing it."""

FIRST = {RARE[0]: 7_500, RARE[1]: 3_000}


@pytest.fixture(autouse=True)
def as_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gc.disable", lambda: None)
    prepare()


@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m.name not in RARE], ids=lambda mutant: mutant.name)
def test_a_broken_rule_is_noticed(mutant: Mutant) -> None:
    with mutant.alive():
        assert caught(range(2500)) is not None


@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m.name in RARE], ids=lambda mutant: mutant.name)
def test_a_rarely_broken_rule_is_noticed_too(mutant: Mutant) -> None:
    with mutant.alive():
        assert caught(range(FIRST[mutant.name], 20_000)) is not None


def test_the_product_comes_out_of_a_mutant_whole() -> None:
    for mutant in MUTANTS:
        before = [getattr(module, name) for module, name, _ in mutant.patches]
        with mutant.alive():
            assert [getattr(module, name) for module, name, _ in mutant.patches] != before
        assert [getattr(module, name) for module, name, _ in mutant.patches] == before
    assert caught(range(20)) is None
