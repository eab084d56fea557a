"""Skipping on functions of columns never changes which rows a condition finds, in any time zone."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.expressions import condition
from anabranch.protocol.stats.skipping import could_match
from tests.support import random_terms
from tests.support.drawing import wanted
from tests.support.random_terms import SCHEMA, Condition, Rows, check, context_in, files_of, stats_of, truth
from tests.support.tiers import examples

ZONES = ["UTC", "Europe/Paris", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "Australia/Lord_Howe"]


@pytest.mark.slow
@settings(max_examples=wanted(examples(120, 8)))
@given(st.integers(0, 2**32), st.sampled_from(ZONES))
def test_skipping_and_filtering_is_filtering(seed: int, zone: str) -> None:
    runtime = random.Random(seed)
    files: list[Rows] = [[random_terms.row(runtime) for _ in range(runtime.randint(1, 3))] for _ in range(6)]
    stated = files_of([stats_of(rows, runtime) for rows in files])
    for _ in range(4):
        wanted = random_terms.condition(runtime)
        check(wanted, files, stated, zone, lambda each, row: truth(each, row, ZoneInfo(zone)))
        unsaid = Condition("NOT", parts=(wanted,))
        check(unsaid, files, stated, zone, lambda each, row: truth(each, row, ZoneInfo(zone)))


ROWS: dict[str, Mapping[str, Any]] = {
    str(day): {"t": dt.datetime(2020, 1, day, 12, tzinfo=dt.UTC), "d": dt.date(2020, 1, day)} for day in (1, 10, 20)
}


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris"])
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("CAST(t AS DATE) = '2020-01-10'", ["10"]),
        ("to_date(t) < DATE '2020-01-10'", ["1"]),
        ("t >= '2020-01-15'", ["20"]),
        ("t BETWEEN DATE '2020-01-09' AND DATE '2020-01-12'", ["10"]),
        ("NOT t >= '2020-01-05'", ["1"]),
        ("date_trunc('DAY', t) > TIMESTAMP '2020-01-12 00:00:00'", ["20"]),
        ("year(t) = 2021", []),
        ("year(d) != 2020", []),
        ("trunc(d, 'WEEK') = '2020-01-06'", ["10"]),
        ("d > TIMESTAMP '2020-01-13 00:00:00'", ["20"]),
        ("CAST(t AS DATE) IN (DATE '2020-01-01', DATE '2020-01-20')", ["1", "20"]),
        ("year(CAST(t AS DATE)) IS NULL", []),
    ],
)
def test_files_of_other_days_are_left_out(text: str, kept: list[str], zone: str) -> None:
    runtime = random.Random(0)
    every = [stats_of([{**random_terms.row(runtime), **row}], random.Random(1)) for row in ROWS.values()]
    predicate = condition(text, context_in(zone)).predicate
    found = could_match(predicate, files_of(every), SCHEMA, []).to_pylist()
    assert [name for name, may in zip(ROWS, found, strict=True) if may] == kept
