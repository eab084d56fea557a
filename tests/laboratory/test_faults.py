"""Every call of the store fails once, in every way, and nothing acknowledged is lost, nothing refused is there."""

from __future__ import annotations

import logging

import pytest

from anabranch.commands.maintenance.check import check
from anabranch.commands.opening import open_log
from laboratory.plans import Plan, Script, Setup
from laboratory.runs import WAYS, History, reopened, run
from laboratory.statements import Append, Delete, Overwrite, Plus, Statement, Test, Update
from laboratory.stories import story
from laboratory.sweeping import sweep
from laboratory.verdicts import violations
from tests.support.tiers import examples

ROWS = (((1, 0, 0), (2, 1, 0), (3, 1, None)), ((4, 0, 2), (5, 1, 1)))
MARKED = Setup(files=ROWS, before=(Delete(Test("k", "=", 2)),), checkpoints=4)
WHOLE_FILES = Setup(files=ROWS, vectors=False, checkpoints=4)
UPDATE = Update((Plus("x"),), Test("p", "=", 1))
STATEMENTS: dict[str, Statement] = {
    "append": Append(((9, 1, 1),)),
    "bulk append": Append(((9, 1, 1), (10, 0, None)), bulk=True),
    "update": UPDATE,
    "delete": Delete(Test("x", "=", 1)),
    "delete of a file": Delete(Test("k", ">=", 4)),
    "overwrite": Overwrite(((9, 1, 1),)),
}


STEP = examples(1, 12)
"""Of the faults of each way each so manieth is tried."""


def faults_of(history: History) -> list[Plan]:
    """The sweep, or in a short run a choice that has each way to fail, each beginning at another call."""
    ways: dict[str, list[Plan]] = {}
    for plan in sweep(history):
        ways.setdefault(plan.failures[0].how, []).append(plan)
    return [plan for i, plans in enumerate(ways.values()) for plan in plans[i % min(STEP, len(plans)) :: STEP]]


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Hundreds of faults are logged, as they should be."""
    caplog.set_level(logging.CRITICAL, logger="anabranch")


_clean: set[frozenset[tuple[str, bytes]]] = set()
"""What versions consist of that were found to be clean: most of them are the same after every fault."""


def assert_right(history: History) -> None:
    assert not violations(history), story(history)
    with reopened(history) as location:
        log = open_log(location)
        for version in range(log.snapshot().version + 1):
            if (known := consists_of(history, version)) not in _clean:
                report = check(log.snapshot(version), deep=True)
                assert report.is_clean, f"{story(history)}\n{report}"
                _clean.add(known)


def consists_of(history: History, version: int) -> frozenset[tuple[str, bytes]]:
    """All that a version's check may read: the log up to it, and every file that is named there."""
    of_log = {name: kept.data for name, kept in history.kept.items() if is_of_log(name, version)}
    said = b"".join(of_log.values())
    beside = {name: kept.data for name, kept in history.kept.items() if not name.startswith("_delta_log/")}
    unnamed = {name for name in beside if name.endswith(".parquet") and name.rpartition("/")[2].encode() not in said}
    return frozenset({**of_log, **{name: data for name, data in beside.items() if name not in unnamed}}.items())


def is_of_log(name: str, version: int) -> bool:
    """Whether a file is in the log, and of no later version."""
    number = name.removeprefix("_delta_log/")[:20]
    return name.startswith("_delta_log/") and not (number.isdigit() and int(number) > version)


@pytest.mark.slow
@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("setup", [MARKED, WHOLE_FILES], ids=["vectors", "whole files"])
def test_a_statement_alone_survives_each_fault(setup: Setup, name: str) -> None:
    plan = Plan(setup, (STATEMENTS[name],))
    plans = faults_of(run(plan))
    assert len({p.failures[0].how for p in plans}) == len(WAYS)
    for faulty in plans:
        assert_right(run(faulty))


@pytest.mark.parametrize("name", ["append", "update", "delete", "overwrite"])
@pytest.mark.slow
def test_a_statement_that_loses_its_first_put_survives_each_fault(name: str) -> None:
    """Writer 1 commits while writer 0 has staged: the faults meet looking, judging and carrying over too."""
    alone = run(Plan(MARKED, (STATEMENTS[name],)))
    put = next(event.step for event in alone.events if event.moment == "put")
    plan = Plan(MARKED, (STATEMENTS[name], Append(((20, 1, 0),))), Script(((put, 1),)))
    history = run(plan)
    assert [act.told for act in history.acts] == ["committed", "committed"]
    assert history.acts[0].version == 4
    for faulty in faults_of(history):
        assert_right(run(faulty))


@pytest.mark.slow
def test_a_lost_reply_is_no_failure_and_commits_once() -> None:
    history = run(Plan(MARKED, (UPDATE,)))
    put = next(call for call in history.calls[0] if call.is_commit)
    outcomes = {}
    for plan in sweep(history):
        if plan.failures[0].call == put.number:
            faulty = run(plan)
            landed = sum(version.info["operation"] == "UPDATE" for version in faulty.versions)
            outcomes[plan.failures[0].how] = (faulty.acts[0].told, landed)
    assert outcomes == {
        "request lost": ("committed", 1),
        "reply lost": ("committed", 1),
        "disk full": ("failed", 0),
        "permission denied": ("failed", 0),
        "hangs, request lost": ("unknown", 0),
        "hangs, reply lost": ("unknown", 1),
        "cut off": ("unknown", 0),
        "cut off, reply lost": ("unknown", 1),
        "killed": ("killed", 0),
        "killed after": ("killed", 1),
    }
