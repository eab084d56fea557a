"""The laboratory can fail: each broken rule is noticed."""

from __future__ import annotations

import pytest

from laboratory.campaign import caught, prepare
from laboratory.mutants import MUTANTS, Mutant

FIRST = {
    "a dynamic overwrite looks for no file": 16_000,
    "own commit not known again": 6_500,
    "files that are gone count as known": 14_900,
    "a MERGE does not withdraw what it inserted": 3_900,
    "blind winners' rows are not redone": 2_000,
    "a MERGE looks for the rows it would change only": 1_600,
}
"""Caught after many histories only: by `make lab`, and here from a seed on that is not far from showing it."""


@pytest.fixture(autouse=True)
def as_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gc.disable", lambda: None)
    prepare()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_rule_is_noticed(mutant: Mutant) -> None:
    first = FIRST.get(mutant.name, 0)
    with mutant.alive():
        assert caught(range(first, first + 2500)) is not None


def test_the_product_comes_out_of_a_mutant_whole() -> None:
    for mutant in MUTANTS:
        before = [getattr(module, name) for module, name, _ in mutant.patches]
        with mutant.alive():
            assert [getattr(module, name) for module, name, _ in mutant.patches] != before
        assert [getattr(module, name) for module, name, _ in mutant.patches] == before
    assert caught(range(20)) is None
