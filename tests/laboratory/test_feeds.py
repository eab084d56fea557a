"""Feeds and batches of streams in histories: what is right passes, and what is not is noticed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from laboratory.feed_verdicts import feed_faults
from laboratory.log_reader import Changes
from laboratory.plan_generator import plan_for
from laboratory.plans import Moments, Plan, Script, Setup
from laboratory.runs import History, run
from laboratory.statements import Append, Batch, Delete, Foreign, Optimize, Plus, Test, Update
from laboratory.verdicts import landed, violations

FILES = (((1, 1, 0), (2, 0, 0)), ((3, 1, 1),))
UPDATE, DELETE = Update((Plus("x"),), Test("p", "=", 1)), Delete(Test("k", "=", 2))
BATCH = Batch(((9, 1, 0),), query="query", number=1)


@pytest.fixture(scope="module")
def history() -> History:
    """The update stands behind a blind append, whose row it changes too; at the end rows are moved."""
    plan = Plan(
        Setup(files=FILES, feed=True),
        (UPDATE, Append(((4, 1, 2),)), DELETE, Optimize()),
        Moments(("read", "checked", "committed")),
    )
    return run(plan)


def faults(history: History) -> list[str]:
    return list(feed_faults(history, landed(history)))


def told_by_both(history: History, version: int, changes: Changes) -> History:
    """The history, if a version had these changes."""
    assert history.feeds is not None
    told = (*history.feeds.plain[:version], changes, *history.feeds.plain[version + 1 :])
    return replace(history, feeds=replace(history.feeds, plain=told, ours=told, part=()))


@pytest.mark.slow
def test_a_feed_has_both_images_of_each_row_also_of_those_that_came_in_meanwhile(history: History) -> None:
    assert not violations(history)
    assert history.feeds is not None
    version = next(act.version for act in history.acts if act.statement == UPDATE)
    assert version is not None
    changed = {row for change, row in history.feeds.ours[version] if change == "update_postimage"}
    assert changed == {(1, 1, 1), (3, 1, 2), (4, 1, 3)}


def test_an_image_that_is_missing_or_another_row_s_is_noticed(history: History) -> None:
    version = next(act.version for act in history.acts if act.statement == UPDATE)
    assert version is not None
    assert history.feeds is not None
    true = history.feeds.plain[version]
    for gone in range(len(true)):
        assert faults(told_by_both(history, version, true[:gone] + true[gone + 1 :]))
    other = (("update_preimage", (2, 0, 0)), ("update_postimage", (2, 0, 0)))
    assert faults(told_by_both(history, version, (*true, *other)))
    as_inserts = tuple((change.replace("update_postimage", "insert"), row) for change, row in true)
    assert faults(told_by_both(history, version, as_inserts))


def test_a_moved_row_that_the_feed_shows_is_noticed(history: History) -> None:
    version = next(act.version for act in history.acts if isinstance(act.statement, Optimize))
    assert version is not None
    row = history.versions[version].rows[0]
    assert faults(told_by_both(history, version, (("delete", row), ("insert", row))))


def test_where_both_readers_differ_it_is_said(history: History) -> None:
    assert history.feeds is not None
    ours = ((), *history.feeds.ours[1:])
    assert len(faults(replace(history, feeds=replace(history.feeds, ours=ours, part=())))) == 1


@pytest.mark.parametrize("turns", [(), ((3, 1),), ((7, 1), (12, 0))], ids=["one by one", "at once", "in turns"])
def test_a_batch_that_is_run_twice_lands_once(turns: tuple[tuple[int, int], ...]) -> None:
    history = run(Plan(Setup(files=FILES, feed=True), (BATCH, BATCH), Script(turns)))
    assert not violations(history)
    assert sorted(act.told for act in history.acts)[0] == "committed"
    assert sum(act.told == "committed" for act in history.acts) == 1
    assert history.versions[-1].rows.count((9, 1, 0)) == 1


def test_a_batch_that_landed_twice_or_was_called_written_before_it_was_is_noticed() -> None:
    twice = run(Plan(Setup(files=FILES), (BATCH, replace(BATCH, number=2))))
    first, second = twice.acts
    same = replace(twice, acts=(first, replace(second, statement=BATCH)))
    assert "twice" in {each.kind for each in violations(same)}
    alone = run(Plan(Setup(files=FILES), (DELETE, BATCH)))
    said = replace(alone.acts[1], who=5, told="nothing", statement=replace(BATCH, number=7))
    assert "lost" in {each.kind for each in violations(replace(alone, acts=(alone.acts[0], said)))}


def test_some_plans_have_a_feed_and_some_a_batch_that_is_run_twice() -> None:
    plans = [plan_for(seed) for seed in range(1_000)]
    assert 200 < sum(plan.setup.feed for plan in plans) < 300
    queries = [plan for plan in plans if any(isinstance(each, Batch) for each in plan.statements)]
    assert 60 < len(queries) < 150
    assert all(max(Counter(plan.statements).values()) > 1 for plan in queries)
    together = [plan for plan in plans if plan.setup.feed and any(isinstance(s, Foreign) for s in plan.statements)]
    assert together, "other engines' commits have feeds too"
