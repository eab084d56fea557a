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

from anabranch._expressions import condition
from anabranch._protocol.expressions.computation import computation_over
from anabranch._protocol.expressions.skipping import called_functions, predicate_of
from anabranch._protocol.expressions.tree import Column
from anabranch._protocol.predicates import And, Compare, Not, Or, Predicate, Unknown
from anabranch._protocol.schema.types import Field, Struct
from anabranch._protocol.stats.skipping import could_match
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
        wanted = random_terms.condition(runtime, wraps=True)
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
        ("unix_seconds(t) < 1578614400", ["1"]),
        ("CAST(t AS BIGINT) > 1578700800", ["20"]),
        ("unix_micros(t) BETWEEN 1578614400000000 AND 1578700800000000", ["10"]),
        ("unix_date(d) = 18271", ["10"]),
    ],
)
def test_files_of_other_days_are_left_out(text: str, kept: list[str], zone: str) -> None:
    runtime = random.Random(0)
    every = [stats_of([{**random_terms.row(runtime), **row}], random.Random(1)) for row in ROWS.values()]
    predicate = condition(text, context_in(zone)).predicate
    found = could_match(predicate, files_of(every), SCHEMA, []).to_pylist()
    assert [name for name, may in zip(ROWS, found, strict=True) if may] == kept


# -- whole numbers -----------------------------------------------------------------------------------------------------

MOST = 2**31 - 1
WHOLE = {
    "few": (1, 5),
    "some": (10, 20),
    "many": (1000, 2000),
    "least": (-(2**31), -(2**31) + 9),
    "most": (MOST - 9, MOST),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("i + 1 > 2000", ["many", "most"]),
        ("i + 10 > 2000", ["many", "most"]),
        ("2 + i < 13", ["few", "some", "least", "most"]),
        ("i - 3 = 2", ["few", "least"]),
        ("100 - i >= 95", ["few", "least"]),
        ("-i < -15", ["some", "many", "least", "most"]),
        ("- i > 2147483600", ["least"]),
        ("i * 2 = 31", ["some", "least", "most"]),
        ("i * 3 BETWEEN 30 AND 60", ["some", "least", "most"]),
        ("i * -2 > -11", ["few", "least", "most"]),
        ("i * 0 = 1", ["few", "some", "many", "least", "most"]),
        ("CAST(i AS BIGINT) + 1 > 2147483647", ["most"]),
        ("i + 1L > 2147483647", ["most"]),
        ("CAST(i AS BIGINT) * 2 + 1 <= 11", ["few", "least"]),
        ("i + 1 IN (6, 7)", ["few", "most"]),
        ("i + 1 IS NULL", []),
        ("i + 1.5 > 2000", ["few", "some", "many", "least", "most"]),
        ("abs(i) > 5000", ["few", "some", "many", "least", "most"]),
    ],
)
def test_arithmetic_leaves_files_out_unless_some_number_may_wrap(text: str, kept: list[str]) -> None:
    runtime = random.Random(0)
    rows = [[{**random_terms.row(runtime), "i": each} for each in pair] for pair in WHOLE.values()]
    stated = files_of([stats_of(each, random.Random(1)) for each in rows])
    found = could_match(condition(text, context_in("UTC")).predicate, stated, SCHEMA, []).to_pylist()
    assert [name for name, may in zip(WHOLE, found, strict=True) if may] == kept


def test_what_cannot_wrap_is_said_as_it_is() -> None:
    assert said("CAST(i AS BIGINT) + 1 > 5") == Compare("i", ">", 4)
    assert said("- CAST(i AS BIGINT) >= 2.5") == Not(Compare("i", ">", -3))
    inside = And((Compare("d", ">=", dt.date.min), Not(Compare("d", ">", dt.date.max))))
    moved = And((Compare("d", ">", dt.date(2020, 1, 1)), inside))
    assert said("date_add(d, 7) > DATE '2020-01-08'") == Or((moved, And((Not(inside), Unknown()))))


# -- whose columns, and whose functions --------------------------------------------------------------------------------


def said(text: str, **others: Any) -> Predicate:
    return predicate_of(computation_over(text, SCHEMA).tree, dt.UTC, **others)


@pytest.mark.parametrize("text", ["lower(s) = 'a'", "i = length(s)", "month(d) = 1", "i % 2 = 1", "upper(s) LIKE 'A%'"])
def test_what_does_not_keep_the_order_of_values_says_nothing(text: str) -> None:
    assert said(text) == Unknown()


def test_a_column_is_the_tables_by_the_name_that_it_has_there() -> None:
    def named(column: Column) -> str | None:
        return "x" if column.name == "i" else None

    assert said("i > 1 AND d > DATE '2020-01-01' AND b AND s IS NULL", named=named) == And(
        (Compare("x", ">", 1), Unknown(), Unknown(), Unknown())
    )


def test_where_a_function_may_be_another_one_nothing_is_said_of_it() -> None:
    text = "year(d) > 2019 AND i > abs(1) AND i < 5 AND to_timestamp(d) > TIMESTAMP '2020-01-01'"
    assert called_functions(computation_over(text, SCHEMA).tree) == {"year", "abs", "to_timestamp"}
    assert said(text, calls=False) == And((Unknown(), Unknown(), Compare("i", "<", 5), Unknown()))


ROUNDED = Struct(
    (
        *(Field("l", "long"), Field("i", "integer"), Field("dec", "decimal(10,5)"), Field("dk", "decimal(38,20)")),
        *(Field("n", "timestamp_ntz"), Field("d", "date"), Field("s", "string"), Field("t", "timestamp")),
    )
)


@pytest.mark.parametrize(
    "text",
    [
        "dec = CAST(1 AS DECIMAL(38,0))",
        "dec IN (CAST(1 AS DECIMAL(38,0)))",
        "dk IN (1L)",
        "dk = CAST(1 AS BIGINT)",
        "i = CAST(16777216 AS FLOAT)",
        "l <= float(16777216) * float(4)",
        "+ l = 0.99999999999999999999",
        "l + 1 = 0.00000000000000000000000000000000000001",
        "- l IN (12345678901234567890123456789012345678, -0.5)",
        "l + 1 IN (9007199254740993, 1e0)",
        *("l < 9223372036854775808", "l <= 9223372036854775808", "9223372036854775808 > l", "l > -9223372036854775809"),
        *("i <= 12345678901234567890", "l + 1 < 9223372036854775808"),
        "s LIKE CAST(NULL AS STRING)",
    ],
)
def test_what_spark_rounds_or_compares_by_a_rule_of_its_own_rules_out_no_file(text: str) -> None:
    found = computation_over(text, ROUNDED)
    for zone in (ZoneInfo("Europe/Paris"), dt.UTC):
        assert predicate_of(found.tree, zone) == Unknown()
        assert predicate_of(computation_over(f"NOT ({text})", ROUNDED).tree, zone) == Not(Unknown())
    assert found.reason is not None


def test_casts_between_moments_that_are_nested_deep_say_nothing() -> None:
    text = "t"
    for _ in range(20):
        text = f"CAST(CAST({text} AS TIMESTAMP_NTZ) AS TIMESTAMP_LTZ)"
    tree = computation_over(f"{text} = TIMESTAMP '2020-01-01 00:00:00'", ROUNDED).tree
    assert predicate_of(tree, ZoneInfo("Europe/Paris")) == Unknown()


# -- moments of zones whose clocks change ------------------------------------------------------------------------------

LOCAL = Struct((Field("s", "string"), Field("ts", "timestamp"), Field("tn", "timestamp_ntz"), Field("da", "date")))


@pytest.mark.parametrize("zone", [ZoneInfo("Europe/Berlin"), dt.UTC, None])
@pytest.mark.parametrize(
    "text",
    [
        "s = CAST('2020-01-01' AS TIMESTAMP_LTZ)",
        "s IN (CAST('2020-01-01' AS TIMESTAMP_LTZ))",
        "s > CAST('2020-1-1' AS TIMESTAMP_LTZ)",
        "ts < TIMESTAMP_LTZ '2020-01-01 00:00:00Z' - INTERVAL 1000000 DAYS",
        "ts < TIMESTAMP_LTZ '9999-12-31 23:00:00Z' + INTERVAL 1 DAY",
        "da < CAST('0000-01-01' AS DATE)",
    ],
)
def test_of_a_moment_that_is_no_constant_here_nothing_is_said(text: str, zone: dt.tzinfo | None) -> None:
    fixed = zone if zone is dt.UTC else None
    assert predicate_of(computation_over(text, LOCAL, fixed).tree, zone) in (Unknown(), Or((Unknown(),)))


def test_a_local_time_in_the_gap_of_the_clocks_rules_out_no_later_one() -> None:
    text = "tn BETWEEN TIMESTAMP_NTZ'2023-03-01 00:00:00' AND CAST('2023-03-26 02:30:00' AS TIMESTAMP_LTZ)"
    found = predicate_of(computation_over(text, LOCAL).tree, ZoneInfo("Europe/Berlin"))
    later = '"tn":"2023-03-26T03:15:00.000"'
    stats = f'{{"numRecords":1,"minValues":{{{later}}},"maxValues":{{{later}}},"nullCount":{{"tn":0}}}}'
    assert could_match(found, files_of([stats]), LOCAL, []).to_pylist() == [True]
