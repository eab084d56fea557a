"""A dozen real writers die by SIGKILL, at any moment, and nobody notices; a product that breaks a promise is noticed.

`python -m laboratory.kills` kills hundreds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from laboratory.journals import IDLE, Told, read_journal
from laboratory.kills import run_kills
from laboratory.writers import BROKEN, id_of, transaction_of
from tests.support.tiers import examples

KILLS = examples(12, 4)


@pytest.mark.slow
def test_a_killed_writer_harms_nobody(tmp_path: Path) -> None:
    report = run_kills(KILLS, seed=1, folder=tmp_path)
    assert report.violations == ()
    assert sum(report.moments.values()) == report.kills == KILLS
    assert report.acknowledged > 0
    assert report.versions > KILLS


@pytest.mark.slow
def test_of_a_transaction_of_several_statements_all_or_nothing_outlives_its_writer(tmp_path: Path) -> None:
    report = run_kills(KILLS, seed=1, folder=tmp_path, in_blocks=True)
    assert report.violations == ()
    assert any("statements" in what for what, _ in report.moments)
    assert report.versions > KILLS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "kill_point", "said"),
    [
        ("commits are written in place", "half 0*.json", "CorruptLog"),
        ("files are written after their commit", "committed before its files", "its file is not there"),
        ("commits are acknowledged before the put", "acknowledged before the put", "lost: "),
    ],
)
def test_a_kill_brings_a_broken_promise_to_light(broken: str, kill_point: str, said: str, tmp_path: Path) -> None:
    tables = ((seed, tmp_path / str(seed)) for seed in range(8))  # on a slow machine a writer may die before its aim
    reports = (run_kills(4, seed=seed, folder=folder, aims=(kill_point,), broken=broken) for seed, folder in tables)
    assert any(said in violation for report in reports for violation in report.violations)


def test_every_broken_product_is_tried() -> None:
    named = test_a_kill_brings_a_broken_promise_to_light.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert {broken for broken, *_ in named} == set(BROKEN)


def test_a_transaction_is_known_by_its_name() -> None:
    assert transaction_of(str(id_of(7, 12, 1))) == (7, 12)


BEGUN = ["ready", "begin 1", "at phase read", "ack 1 4 2", "begin 2", "at list_from _delta_log/"]
PUT = ["at phase read", "at phase staged", "at phase put", "at put_if_absent _delta_log/00000000000000000005.json"]
LANDED = ["at phase committed", "at put_if_absent _delta_log/00000000000000000005.checkpoint.parquet"]


@pytest.mark.parametrize(
    ("lines", "stage"),
    [
        ([], IDLE),
        (BEGUN[:4], IDLE),
        (BEGUN, "read"),
        ([*BEGUN, *PUT[:1]], "write"),
        ([*BEGUN, *PUT[:2]], "judge"),
        ([*BEGUN, *PUT], "put"),
        ([*BEGUN, *PUT, *LANDED], "checkpoint"),
        ([*BEGUN, *PUT, *LANDED, "at done put _delta_log/_last_checkpoint"], "finish"),
        ([*BEGUN, *PUT, "refused 2 ConcurrentAppendException"], IDLE),
    ],
)
def test_a_journal_tells_where_its_writer_died(lines: list[str], stage: str, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.write_text("".join(f"{line}\n" for line in lines))
    assert read_journal(1, journal, interval=5).stage == stage


def test_a_journal_tells_what_each_transaction_was_told(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.write_text("\n".join([*BEGUN, "nothing 2", "begin 3", "refused 3 E", "begin 4", "warned of something", ""]))
    found = read_journal(1, journal, interval=5)
    assert found.told == {1: Told("ack", 4, 2), 2: Told("nothing"), 3: Told("refused", text="E")}
    journal.write_text("begin 1\nack 1 4 [1,null,2]\n")
    assert read_journal(1, journal, interval=5).told == {1: Told("ack", 4, (1, None, 2))}
    assert (found.begun, found.open, found.warnings) == (4, 4, ("of something",))
