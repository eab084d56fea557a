"""Some hundreds of random histories, without a violation; `make lab` runs two hundred thousand, these among them."""

from __future__ import annotations

import pytest

from laboratory.campaign import Tally, prepare, tally
from laboratory.report import Caught, page
from tests.support.tiers import examples

HISTORIES = examples(1_600, 60)
PARTS = examples(4, 1)
FIRST = examples(0, 350)
"""From here on a few histories have every verb."""
VERBS = (
    "Append",
    "Batch",
    "Configure",
    "Copy",
    "Delete",
    "Dynamic",
    "Foreign",
    "Merge",
    "Optimize",
    "Overwrite",
    "Replace",
    "Restore",
    "Select",
    "Update",
    "Upgrade",
)
PER_PART = HISTORIES // PARTS


@pytest.fixture(autouse=True)
def as_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """As quick as in a campaign, but with this process's collector left alone."""
    monkeypatch.setattr("gc.disable", lambda: None)
    prepare()


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.slow
def test_no_history_is_wrong(part: int) -> None:
    found = tally(range(FIRST + part * PER_PART, FIRST + (part + 1) * PER_PART))
    assert found.histories == PER_PART
    assert found.wrong == [], "python -m laboratory --seed SEED tells the first of them"
    verbs = {verb for verb, outcome in found.told if outcome == "committed"}
    assert verbs == set(VERBS)
    assert found.refused.total() > PER_PART / 10, "histories in which nobody meets prove nothing"


@pytest.mark.slow
def test_tallies_add_up() -> None:
    half = examples(30, 2)
    whole, halves = tally(range(2 * half)), tally(range(half))
    halves.add(tally(range(half, 2 * half)))
    assert halves == whole


def test_the_report_says_what_was_found() -> None:
    wrong = Tally(histories=2, wrong=[(7, "order: version 3 has no serial order at Serializable")])
    text = page(wrong, [Caught("C1 dropped", 11), Caught("C2 dropped", None)], first=0, seconds=60, jobs=2)
    assert "**1 violations**" in text
    assert "seed 7: order: version 3" in text
    assert "| C1 dropped | 11 |" in text
    assert "| C2 dropped | **not caught** |" in text
