"""Which VACUUMs may still be deleting, by what the log says of them: any doubt makes one more."""

from __future__ import annotations

import pytest

from anabranch._transaction.running_vacuums import DEAD_AFTER_MS, MARGIN_MS, Event, event_of, under_way

HOUR = 3_600_000
WEEK = 7 * 24 * HOUR


def start(version: int, at: int, retention: int | None) -> Event:
    return Event(version, at, True, retention)


def end(version: int, at: int) -> Event:
    return Event(version, at, False)


def test_other_commits_say_nothing_of_vacuums() -> None:
    assert event_of(1, 0, {"operation": "WRITE"}) is None
    assert event_of(1, 0, {}) is None


@pytest.mark.parametrize(
    ("parameters", "retention"),
    [
        ({"specifiedRetentionMillis": 0, "defaultRetentionMillis": WEEK}, 0),
        ({"specifiedRetentionMillis": None, "defaultRetentionMillis": str(WEEK)}, WEEK),
        ({"defaultRetentionMillis": "soon"}, None),
        ({}, None),
        (None, None),
        ("all", None),
    ],
)
def test_a_start_says_its_retention_or_nothing_is_spared(parameters: object, retention: int | None) -> None:
    found = event_of(3, 9, {"operation": "VACUUM START", "operationParameters": parameters})
    assert found == start(3, 9, retention)
    assert retention is not None or found.may_delete(9 + WEEK)


def test_what_was_removed_within_the_retention_is_spared_with_a_margin_for_clocks() -> None:
    vacuum = start(3, 2 * WEEK, WEEK)
    assert not vacuum.may_delete(WEEK + MARGIN_MS + 1)
    assert vacuum.may_delete(WEEK + MARGIN_MS)
    assert vacuum.may_delete(WEEK - 1)
    assert vacuum.may_delete(None), "nobody knows when it was removed"


def test_a_vacuum_runs_from_its_start_to_its_end() -> None:
    first = start(3, 0, 0)
    assert under_way([first], HOUR) == (first,)
    assert under_way([first, end(4, 1)], HOUR) == ()
    assert under_way([end(2, 0), first], HOUR) == (first,), "an end without a start ends nothing that comes later"


@pytest.mark.parametrize("severe", [0, None])
def test_an_end_that_names_nobody_is_taken_for_that_of_the_mildest(severe: int | None) -> None:
    mild, hard = start(3, 0, WEEK), start(4, 1, severe)
    assert under_way([mild, hard, end(5, 2)], HOUR) == (hard,)
    assert under_way([hard, mild, end(5, 2)], HOUR) == (hard,)
    assert under_way([mild, hard, end(5, 2), end(6, 3)], HOUR) == ()


def test_one_that_has_said_no_end_for_a_week_is_dead() -> None:
    lost = start(3, 0, 0)
    assert under_way([lost], DEAD_AFTER_MS) == (lost,)
    assert under_way([lost], DEAD_AFTER_MS + 1) == ()


def test_a_start_of_ours_says_up_to_when_it_deletes_by_its_own_clock() -> None:
    said = {"defaultRetentionMillis": WEEK}
    info = {
        "operation": "VACUUM START",
        "operationParameters": said,
        "tags": {"anabranch.removesBefore": str(WEEK + 5)},
    }
    found = event_of(3, 2 * WEEK - HOUR, info)
    assert found is not None
    assert found.may_delete(WEEK + 5 + MARGIN_MS)
    assert not found.may_delete(WEEK + 6 + MARGIN_MS)
