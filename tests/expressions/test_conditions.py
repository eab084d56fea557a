"""What is said of a condition in SQL holds whatever Spark makes of it; where that is not sure, nothing is said."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import errors
from anabranch._expressions import Context, condition
from anabranch._protocol.conditions import Condition
from anabranch._protocol.predicates import (
    Always,
    And,
    Compare,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
    Unknown,
    holds,
)
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import Array, Field, Map, Struct
from tests.support.tiers import examples

SCHEMA = Struct(
    (
        Field("id", "long"),
        Field("x", "integer"),
        Field("flag", "boolean"),
        Field("name", "string"),
        Field("day", "date"),
        Field("ts", "timestamp"),
        Field("ntz", "timestamp_ntz"),
        Field("price", "double"),
        Field("amount", "decimal(10,2)"),
        Field("s", Struct((Field("a", "integer"),))),
        Field("arr", Array("integer", True)),
        Field("a b", "string"),
        Field('a"b', "string"),
        Field("a\\b", "string"),
        Field("unknown", "string"),
        Field("date", "date"),
        Field("user", "string"),
        Field("values", "integer"),
    )
)
NOW = dt.datetime(2026, 3, 1, 23, 30, 15, 123456, tzinfo=dt.UTC)
UTC = dt.UTC


def said_of(
    text: str, zone: str = "UTC", is_builtin: Callable[[frozenset[str]], bool] = lambda names: True
) -> Condition:
    return condition(text, Context("t", SCHEMA, NOW, zone, is_builtin))


def predicate(text: str, zone: str = "UTC") -> Predicate:
    return said_of(text, zone).predicate


# -- what skipping may use ---------------------------------------------------------------------------------------------

ID1 = Compare("id", "=", 1)
UNKNOWN = Unknown()

UNDERSTOOD: list[tuple[str, Predicate]] = [
    ("id = 1", ID1),
    ("ID == 1", ID1),
    ("`id` = 1", ID1),
    ("`a\"b` = 'x' AND id = 1", And((Compare('a"b', "=", "x"), ID1))),
    ("`a\\b` = 'x'", Compare("a\\b", "=", "x")),
    ('`a"b` = "x"', UNKNOWN),
    ('id = 1 /* ` */ OR "x" = name /* ` */', Or((ID1, UNKNOWN))),
    ("(((id))) = ((1))", ID1),
    ("1 = id", ID1),
    ("id <=> 1", Compare("id", "<=>", 1)),
    ("name <=> 'a'", Compare("name", "<=>", "a")),
    ("day <=> NULL", Compare("day", "<=>", None)),
    ("day <=> DATE '2020-01-31'", Compare("day", "<=>", dt.date(2020, 1, 31))),
    ("id IS NOT DISTINCT FROM 1", Compare("id", "<=>", 1)),
    ("id != 1", Compare("id", "!=", 1)),
    ("id <> 1", Compare("id", "!=", 1)),
    ("id < 1", Compare("id", "<", 1)),
    ("1 < id", Compare("id", ">", 1)),
    ("1 <= id", Compare("id", ">=", 1)),
    ("1 > id", Compare("id", "<", 1)),
    ("1 >= id", Compare("id", "<=", 1)),
    ("id = -1", Compare("id", "=", -1)),
    ("id = - - 1", Compare("id", "=", 1)),
    ("id = NULL", Compare("id", "=", None)),
    ("id = 9223372036854775808", Unknown()),
    ("amount = 1.50", Compare("amount", "=", Decimal("1.50"))),
    ("amount = .5", Compare("amount", "=", Decimal(".5"))),
    ("amount = 5.", Compare("amount", "=", Decimal("5."))),
    ("price = 1e3", Compare("price", "=", 1000.0)),
    ("price = -2.5E-1", Compare("price", "=", -0.25)),
    ("name = 'a'", Compare("name", "=", "a")),
    ("name = ''", Compare("name", "=", "")),
    ("name = 'é😀'", Compare("name", "=", "é😀")),
    ("`a b` = 'x'", Compare("a b", "=", "x")),
    ("name = '-- no comment'", Compare("name", "=", "-- no comment")),
    ("name = '/* none */'", Compare("name", "=", "/* none */")),
    ("name = 'id = 2) OR (id = 3'", Compare("name", "=", "id = 2) OR (id = 3")),
    ("flag = true", Compare("flag", "=", True)),
    ("TRUE", Always(True)),
    ("false", Always(False)),
    ("day = DATE '2020-01-31'", Compare("day", "=", dt.date(2020, 1, 31))),
    ("day = CAST('2020-01-31' AS DATE)", Compare("day", "=", dt.date(2020, 1, 31))),
    ("ts = TIMESTAMP '2020-01-31 10:00:00'", Compare("ts", "=", dt.datetime(2020, 1, 31, 10, tzinfo=UTC))),
    ("ts = TIMESTAMP '2020-01-31T10:00:00.5Z'", Compare("ts", "=", dt.datetime(2020, 1, 31, 10, 0, 0, 500000, UTC))),
    ("date = DATE '2020-01-31'", Compare("date", "=", dt.date(2020, 1, 31))),
    ("id IN (1, 2, NULL)", In("id", (1, 2, None))),
    ("id IN (-1)", In("id", (-1,))),
    ("id NOT IN (1)", Not(In("id", (1,)))),
    ("id IS NULL", IsNull("id")),
    ("id IS NOT NULL", Not(IsNull("id"))),
    ("s IS NULL", UNKNOWN),
    ("id BETWEEN 1 AND 3", And((Compare("id", ">=", 1), Compare("id", "<=", 3)))),
    ("id NOT BETWEEN 1 AND 3", Not(And((Compare("id", ">=", 1), Compare("id", "<=", 3))))),
    ("id BETWEEN 1 AND x", And((Compare("id", ">=", 1), UNKNOWN))),
    ("name LIKE 'ab%'", StartsWith("name", "ab")),
    ("id = 1 AND x = 2 OR NOT x = 3", Or((And((ID1, Compare("x", "=", 2))), Not(Compare("x", "=", 3))))),
    ("id = 1 AND (x = 2 OR x = 3)", And((ID1, Or((Compare("x", "=", 2), Compare("x", "=", 3)))))),
    ("NOT (id = 1 AND flag)", Not(And((ID1, Compare("flag", "=", True))))),
    ("flag", Compare("flag", "=", True)),
    ("s.A = 1", Compare(("s", "a"), "=", 1)),
    ("s.a IS NULL", IsNull(("s", "a"))),
    ("arr IS NOT NULL", Not(IsNull("arr"))),
    ("id IS DISTINCT FROM 1", Not(Compare("id", "<=>", 1))),
    ("name LIKE 'ab'", Compare("name", "=", "ab")),
    ("name LIKE 'ab%%'", StartsWith("name", "ab")),
    ("name LIKE 'a_b%'", And((StartsWith("name", "a"), UNKNOWN))),
    ("name LIKE 'a%b'", And((StartsWith("name", "a"), UNKNOWN))),
    ("startswith(name, 'a_')", StartsWith("name", "a_")),
    ("ts = TIMESTAMP '2020-01-31'", Compare("ts", "=", dt.datetime(2020, 1, 31, tzinfo=UTC))),
    ("ntz > TIMESTAMP_NTZ '2020-01-31 10:00:00'", Compare("ntz", ">", dt.datetime(2020, 1, 31, 10))),
    ("ts >= DATE '2020-01-31'", Compare("ts", ">=", dt.datetime(2020, 1, 31, tzinfo=UTC))),
    ("ntz < DATE '2020-01-31'", Compare("ntz", "<", dt.datetime(2020, 1, 31))),
    ("CAST(x AS BIGINT) = '5'", Compare("x", "=", 5)),
    ("ts = '2020-01-31T10:00:00Z'", Compare("ts", "=", dt.datetime(2020, 1, 31, 10, tzinfo=UTC))),
    (
        "ts >= TIMESTAMP '2020-01-31 10:00:00Z' - INTERVAL 7 DAYS",
        Compare("ts", ">=", dt.datetime(2020, 1, 24, 10, tzinfo=UTC)),
    ),
    ("day >= TIMESTAMP '2020-01-31 10:00:00'", Compare("day", ">=", dt.date(2020, 2, 1))),
    ("CAST(x AS BIGINT) = 5", Compare("x", "=", 5)),
    ("TRY_CAST(x AS DOUBLE) < 2.5", Compare("x", "<", 2.5)),
    ("CAST(ts AS DATE) >= '2020-01-31'", Compare("ts", ">=", dt.datetime(2020, 1, 31, tzinfo=UTC))),
    ("to_date(ts) > DATE '2020-01-31'", Compare("ts", ">=", dt.datetime(2020, 2, 1, tzinfo=UTC))),
    ("date(ntz) < DATE '2020-01-31'", Not(Compare("ntz", ">=", dt.datetime(2020, 1, 31)))),
    ("year(day) >= 2020", Compare("day", ">=", dt.date(2020, 1, 1))),
    ("year(ts) > 2019.5", Compare("ts", ">=", dt.datetime(2020, 1, 1, tzinfo=UTC))),
    ("year(ts) IS NULL", IsNull("ts")),
    ("trunc(day, 'CENTURY') > '2020-01-01'", UNKNOWN),
    ("trunc(day, 'QUARTER') >= '2020-01-02'", Compare("day", ">=", dt.date(2020, 4, 1))),
    ("date_trunc('WEEK', ts) > TIMESTAMP '2020-01-01'", Compare("ts", ">=", dt.datetime(2020, 1, 6, tzinfo=UTC))),
    ("NOT NOT id = 1", Not(Not(ID1))),
    ("! id = 1", Not(ID1)),
    ("!flag = true", Not(Compare("flag", "=", True))),
    ("id = 1 AND rand() < 0.5", And((ID1, UNKNOWN))),
    ("id = 1 -- AND id = 2", ID1),
    ("id = 1 /* AND id = 2 /* nested */ OR id = 3 */", ID1),
    ("-- first\nid = 1\n", ID1),
    ("id\n=\t1", ID1),
    ("id = 1 -- and \\\n OR id = 2", ID1),
    # literals of one type in every session, and what is computed of such
    ("id = 1L", ID1),
    ("id = 1S", ID1),
    ("price = 1D", Compare("price", "=", 1.0)),
    ("amount = 1.0BD", Compare("amount", "=", Decimal("1.0"))),
    ("name = 'a' 'b'", Compare("name", "=", "ab")),
    ("name = r'ab'", Compare("name", "=", "ab")),
    ("name = 'a' || 'b'", Compare("name", "=", "ab")),
    ("id = CAST('1' AS INT)", ID1),
    ("id = abs(-1)", ID1),
    ("x = 1 + 1", Compare("x", "=", 2)),
    ("day > date_sub(DATE '2020-01-31', 7)", Compare("day", ">", dt.date(2020, 1, 24))),
    ("1 = 2 OR id = 1", Or((Always(False), ID1))),
    ("day <=> '2020-01-01'", Compare("day", "<=>", dt.date(2020, 1, 1))),
    ("price <=> 1", Compare("price", "<=>", 1)),
    ("amount <=> 1.5", Compare("amount", "<=>", Decimal("1.5"))),
    ("flag IS TRUE", Compare("flag", "<=>", True)),
    ("flag IS NOT FALSE", Not(Compare("flag", "<=>", False))),
    ("flag IS UNKNOWN", IsNull("flag")),
    ("extract(YEAR FROM day) >= 2020", Compare("day", ">=", dt.date(2020, 1, 1))),
    ("id BETWEEN 1 AND 5 = true", And((Compare("id", ">=", 1), UNKNOWN))),
]


@pytest.mark.slow
@pytest.mark.parametrize(("text", "expected"), UNDERSTOOD, ids=[text for text, _ in UNDERSTOOD])
def test_what_is_understood(text: str, expected: Predicate) -> None:
    assert predicate(text) == expected


NOT_SURE = [
    # a name or a call that could be anything
    "nope = 1",
    "t.id = 1",
    "arr[0] = 1",
    "abs(id) = 1",
    "id = x",
    "id = :p",
    "id = ?",
    "id = (SELECT_1)",
    # literals that a session's settings change
    'name = "a"',
    '"id" = 1',
    r"name = 'a\nb'",
    r"name = r'a\nb'",
    "name = 'it''s'",
    "name = ''''",
    # literals of other kinds
    "price = 1F",
    "name = X'1F'",
    "day = DATE '2020-1-31'",
    "day = DATE '2020-02-30'",
    "day = DATE 'today'",
    "ts = TIMESTAMP 'now'",
    "ts = TIMESTAMP '2020-01-31 25:00:00'",
    "ts = TIMESTAMP '2020-01-31 10:00:00 Europe/Paris'",
    "id = INTERVAL 1 DAY",
    "id = -true",
    # functions that fall, that are no built-in ones, and casts that round or that read a text
    "month(day) = 1",
    "to_date(name) = DATE '2020-01-01'",
    "to_date(ts, 'yyyy') = DATE '2020-01-01'",
    "CAST(name AS DATE) = DATE '2020-01-01'",
    "CAST(ts AS STRING) = '2020-01-01'",
    "CAST(id AS INT) = 1",
    "CAST(id AS FLOAT) = 1",
    "CAST(price AS BIGINT) = 1",
    "CAST(amount AS DECIMAL(10,1)) = 1",
    "CAST(x AS BIGINT) = '05'",
    "year(ts) = '2020 '",
    "year(ts) = 10000",
    "ts IN ('2020-01-31')",
    "ts = '2020-1-31'",
    "ts = '2020-01-31T10:00:00 +1'",
    "ts = 'today'",
    "starts_with(name, 'a')",
    "s.b = 1",
    "s.a.b = 1",
    "arr.a = 1",
    "s IS NULL",
    # without ANSI rules a text that is no date becomes NULL, and NULL <=> NULL
    "day <=> 'no date'",
    "id <=> 'one'",
    "id = - '1'",
    # patterns with more than a prefix
    "name LIKE '%ab'",
    "name LIKE '%'",
    "name LIKE 'a!%' ESCAPE '!'",
    "name ILIKE 'ab%'",
    "name RLIKE 'ab'",
    "name LIKE ANY ('ab%', 'cd%')",
    "name LIKE ALL ('ab%')",
    "name NOT LIKE ANY ('ab%')",
    # where other parsers than Spark's bind differently
    "id = 1 IS NULL",
    "id = 1 IS TRUE",
    "id = x IS NULL",
    "id < 1 = flag",
    "1 < id < 5",
    "id = 1 = true",
    "true = id BETWEEN 1 AND 5",
    "name LIKE 'a%' = true",
    "flag = id IN (1, 2)",
    "id = 1 & 3",
    "id & 3 = 1",
    "id = 1 | 2",
    "id = 1 ^ 2",
    "id = 1 || 2",
    "id !< 1",
    "id !> 1",
    "(id, x) = (1, 2)",
    "(id, x) IN ((1, 2))",
    "id IN (1, x)",
    "id IN (1, 2) IS NULL",
    "id BETWEEN SYMMETRIC 3 AND 1",
    "CASE WHEN id = 1 THEN true ELSE false END",
    "id = 1 COLLATE UTF8_LCASE",
    "name = 'a' COLLATE UTF8_LCASE",
    "name COLLATE UTF8_LCASE = 'a'",
    "id::int = 1",
    "s:a = 1",
    # no conditions
    "id = 1 y",
    "id = 1, x = 2",
    "id = 1) OR (id = 2",
    "id = 1)",
    "(id = 1",
    "id = 1 GROUP BY id",
    "id = 1 LIMIT 5",
    "id = 1 ORDER BY id",
    "id = 1 UNION",
    "DELETE",
    "*",
    "id =",
    "= 1",
    "NULL",
    "1",
    "'id = 1'",
]


def is_nothing(found: Predicate) -> bool:
    """Whether a predicate says nothing of any row; its negation says nothing either."""
    if isinstance(found, And | Or):
        return all(is_nothing(part) for part in found.ps)
    return is_nothing(found.p) if isinstance(found, Not) else isinstance(found, Unknown)


@pytest.mark.parametrize("text", NOT_SURE)
def test_where_it_is_not_sure_nothing_is_said(text: str) -> None:
    try:
        found = predicate(text)
    except errors.InputError:
        return
    assert is_nothing(found), found


@pytest.mark.parametrize("text", ["year(ts) = 2020", "date(ts) = DATE '2020-01-01'", "ts > date('2020-01-01')"])
def test_a_function_of_the_users_own_name_is_not_understood(text: str) -> None:
    assert said_of(text, is_builtin=lambda names: False).predicate == UNKNOWN
    both = said_of(f"{text} AND id = 1", is_builtin=lambda names: False).predicate
    assert both == And((UNKNOWN, ID1))


@pytest.mark.parametrize("text", ["CAST(ts AS DATE) = '2020-01-31'", "ts > '2020-01-31'", "year(ts) = 2020"])
@pytest.mark.parametrize("zone", ["Europe/Paris", "Nowhere/Known"])
def test_where_clocks_change_a_bound_is_possible_and_another_certain(text: str, zone: str) -> None:
    found = repr(said_of(text, zone).predicate)
    assert "Unknown" in found
    assert "Compare" in found


@pytest.mark.parametrize("text", ["id = 1 AND name = 'a\\' OR id = 2 -- '", "id = 1 AND name = 'a\\b'"])
def test_where_a_literal_may_end_elsewhere_nothing_is_said(text: str) -> None:
    """By a setting a backslash is a letter like others."""
    assert predicate(text) == UNKNOWN


@pytest.mark.parametrize(("zone", "hour"), [("UTC", 10), ("+02:00", 8), ("GMT-3", 13), ("UTC+1", 9)])
def test_a_timestamp_is_read_in_the_sessions_zone(zone: str, hour: int) -> None:
    found = predicate("ts > TIMESTAMP '2020-01-31 10:00:00'", zone)
    assert found == Compare("ts", ">", dt.datetime(2020, 1, 31, hour, tzinfo=UTC))


def truths(predicate: Predicate, ts: dt.datetime) -> set[bool]:
    """What a predicate may be for a row, whatever its unknown parts are."""
    match predicate:
        case Unknown():
            return {True, False}
        case Not(inner):
            return {not each for each in truths(inner, ts)}
        case And(parts) | Or(parts):
            joined = all if isinstance(predicate, And) else any
            return {joined(each) for each in product(*(truths(part, ts) for part in parts))}
    return {bool(holds(predicate, {"ts": ts}))}


@pytest.mark.parametrize(
    ("text", "zone", "spark"),
    [
        ("1960-06-01 00:00:00", "EST5EDT", -302472000),
        ("1935-07-01 00:00:00", "Europe/Amsterdam", -1088902800),
        ("2020-10-25 02:30:00", "Europe/Paris", 1603585800),
        ("2020-03-29 02:30:00", "Europe/Paris", 1585445400),
        ("2020-01-31 10:00:00", "Asia/Kolkata", 1580445000),
    ],
)
def test_in_a_zone_whose_clocks_change_two_editions_of_its_rules_may_differ(text: str, zone: str, spark: int) -> None:
    """What Spark takes the text for, by the rules of its own Java, is possible; what is far from it is certain."""
    moment, hour = dt.datetime.fromtimestamp(spark, UTC), dt.timedelta(hours=1)
    found = predicate(f"ts = TIMESTAMP '{text}'", zone)
    assert said_of(f"ts = TIMESTAMP '{text}'", zone).computation.reason is not None  # type: ignore[union-attr]
    assert True in truths(found, moment)
    assert truths(found, moment - 6 * hour) == truths(found, moment + 6 * hour) == {False}
    assert predicate(f"ts = TIMESTAMP '{text} UTC'", zone) == predicate(f"ts = TIMESTAMP '{text}'", "UTC")


@pytest.mark.parametrize("zone", ["Nowhere/Land", "", "+25:99:99", "CET-ish"])
def test_in_a_zone_that_is_unknown_here_nothing_is_said(zone: str) -> None:
    assert predicate("ts > TIMESTAMP '2020-01-31 10:00:00'", zone) == UNKNOWN
    assert "current_date" in str(said_of("day = current_date()", zone).expression)


@settings(max_examples=examples(150, 20))
@given(st.text(st.sampled_from("idx=1' \"\\()-/*\n;ORANDNT<>!%,.`0"), max_size=14))
def test_whatever_is_written_there_is_an_answer_or_a_refusal(text: str) -> None:
    try:
        said_of(text)
    except errors.InputError:
        return


@settings(max_examples=examples(100, 20))
@given(st.text(st.characters(codec="utf-8", exclude_characters="'\\\""), max_size=8))
def test_any_plain_text_in_quotes_is_itself_and_nothing_else(text: str) -> None:
    assert predicate(f"name = '{text}'") in (Compare("name", "=", text), UNKNOWN)
    assert predicate(f"id = 1 OR name = '{text}'") in (Or((ID1, Compare("name", "=", text))), UNKNOWN)


# -- what is decided row by row ----------------------------------------------------------------------------------------

ROW_LOCAL = [
    "id = 1",
    "id + x * 2 > 5 AND NOT flag",
    "abs(id) = 1",
    "lower(name) LIKE 'a%'",
    "s.a = 1",
    "arr[0] = 1",
    "CASE WHEN id = 1 THEN true ELSE flag END",
    "CAST(name AS INT) = 1",
    "id IN (1, 2)",
    "date_add(day, 1) > current_date()",
    "ts < current_timestamp()",
    "ts < now()",
    "unix_timestamp(ts) > 5",
    "id -- rand()\n= 1",
    "name = 'rand()'",
    "name = 'select'",
    "coalesce(x, id) = if(flag, 1, 2)",
    "exists(arr, y -> y > 1)",
    "filter(arr, y -> y > 1)[0] = 1",
    '"a" = name',
]
NOT_ROW_LOCAL = [
    "rand() < 0.5",
    "RAND (1) < 0.5",
    "`rand`() < 0.5",
    "rand /* x */ () < 0.5",
    "uuid() = name",
    "monotonically_increasing_id() = 1",
    "input_file_name() = name",
    "my_udf(id)",
    "spark_catalog.default.abs(id) = 1",
    "default.abs(id) = 1",
    "count(*) > 1",
    "row_number() OVER (ORDER BY id) = 1",
    "sum(x) OVER () > 1",
    "current_user() = name",
    "current_user = name",
    "session_user = name",
    "localtimestamp > ntz",
    "current_time() > name",
    "unix_timestamp() > id",
    "current_timestamp(3) > ts",
    "ts > TIMESTAMP 'now'",
    "day = DATE 'today'",
    "day = 'Yesterday'",
    "day = CAST(' tomorrow' AS DATE)",
    "day = to_date('today UTC')",
    "exists(arr, y -> y > rand())",
    "_metadata.row_index = 1",
    "nope = 1",
    "id = nope.field",
    "name = concat_ws(',', shuffle(arr))",
    "id = 1) OR (rand() < 0.5",
]


@pytest.mark.parametrize("text", ROW_LOCAL)
def test_a_condition_of_columns_literals_and_listed_functions_is_row_local(text: str) -> None:
    assert said_of(text).row_local


@pytest.mark.parametrize("text", NOT_ROW_LOCAL)
def test_what_may_differ_from_time_to_time_or_read_other_rows_is_not_row_local(text: str) -> None:
    try:
        assert not said_of(text).row_local
    except errors.NotBuilt:
        return


def test_a_shadowed_built_in_is_not_trusted() -> None:
    """A user may have registered a function of that name."""
    asked: list[frozenset[str]] = []
    found = said_of("abs(id) = 1 AND lower(name) = 'a'", is_builtin=lambda names: asked.append(names) or False)
    assert not found.row_local
    assert asked == [frozenset({"abs", "lower"})]


def test_without_calls_nobody_is_asked() -> None:
    assert said_of("id = 1", is_builtin=lambda names: pytest.fail("there is nothing to ask")).row_local


# -- columns -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("ID = 1 AND lower(Name) = 'a'", {"id", "name"}),
        ("s.a = 1", {"s"}),
        ("true", set()),
        ("nope = 1", None),
        ("arr[x] = 1", {"arr", "x"}),
        ("date = DATE '2020-01-01'", {"date"}),
        ("unknown = 'x'", {"unknown"}),
    ],
)
def test_the_columns_that_are_read_are_named_in_the_schemas_spelling(text: str, columns: set[str] | None) -> None:
    found = said_of(text).columns
    assert found == (None if columns is None else frozenset(columns))


@pytest.mark.parametrize("text", ["user = 'x'", "USER = 'x'", "id = unknown", "length(user) = 1", "values = 5"])
def test_no_column_is_overlooked_that_sqlglot_takes_for_a_word(text: str) -> None:
    """Spark looks for a column first. A column that is not named would not be read."""
    found = said_of(text)
    named = {name for name in ("user", "unknown", "values") if name in text.lower()}
    assert found.columns is None or named <= found.columns
    said = (Compare("user", "=", "x"), Compare("values", "=", 5))
    assert is_nothing(found.predicate) or found.predicate in said


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "id = (SELECT max(id) FROM t)",
        "id IN (SELECT id FROM t)",
        "EXISTS (SELECT 1 FROM t)",
        "id IN (FROM t SELECT id)",
        "id IN (TABLE t)",
        "id IN (VALUES (1), (2))",
        "id IN (WITH c AS (SELECT 1) SELECT * FROM c)",
        "id IN ( /* x */ select id from t)",
        "NOT EXISTS(select 1)",
        "id = 1 OR x = ((SELECT 1))",
        "id IN (MAP id USING 'script' FROM t)",
        "id IN (REDUCE (id) USING 'script' FROM t)",
    ],
)
def test_a_subquery_is_refused(text: str) -> None:
    with pytest.raises(errors.NotBuilt, match="subquery"):
        said_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "coalesce(element_at(map('a', 'b'), name), name) = 'b'",
        "to_json(map('a', 1)) = name",
        "abs(reduce(array(1), 0, (a, x) -> a + x)) = id",
        "(map('a', 1))['a'] = id",
    ],
)
def test_functions_that_are_called_as_a_query_begins_are_no_subquery(text: str) -> None:
    assert said_of(text).expression == text


@pytest.mark.parametrize("text", ["", " \n", "-- only a comment", "id = 1; DROP TABLE t", "id = 1;", ";", "id = 'open"])
def test_what_is_no_single_condition_is_refused(text: str) -> None:
    with pytest.raises(errors.InvalidCondition):
        said_of(text)


# -- the clock ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("ts < current_timestamp()", "ts < TIMESTAMP '2026-03-01 23:30:15.123456 UTC'"),
        ("ts < CURRENT_TIMESTAMP", "ts < TIMESTAMP '2026-03-01 23:30:15.123456 UTC'"),
        ("ts < Now ( )", "ts < TIMESTAMP '2026-03-01 23:30:15.123456 UTC'"),
        ("day = current_date OR day = curdate()", "day = DATE '2026-03-01' OR day = DATE '2026-03-01'"),
        ("name = 'é😀' AND day = current_date()", "name = 'é😀' AND day = DATE '2026-03-01'"),
        ("name = 'current_date()'", "name = 'current_date()'"),
        ("-- current_date()\nid = 1", "-- current_date()\nid = 1"),
        ("`current_date` = 1", "`current_date` = 1"),
        ("s.current_date = 1", "s.current_date = 1"),
        ("ts < current_timestamp(3)", "ts < current_timestamp(3)"),
        ("now = 1", "now = 1"),
    ],
)
def test_the_clock_is_fixed_when_a_command_starts(text: str, fixed: str) -> None:
    found = said_of(text)
    assert found.expression == fixed
    assert found.text == text


def test_today_is_the_sessions_today() -> None:
    assert predicate("day = current_date()", "Asia/Tokyo") == Compare("day", "=", dt.date(2026, 3, 2))
    assert predicate("day = current_date()", "America/New_York") == Compare("day", "=", dt.date(2026, 3, 1))
    assert predicate("day = current_date()", "+05:30") == Compare("day", "=", dt.date(2026, 3, 2))


def test_a_column_called_like_a_clock_is_a_column() -> None:
    schema = Struct((Field("current_date", "date"), Field("id", "long")))
    found: Any = condition("current_date = DATE '2020-01-01'", Context("t", schema, NOW, "UTC", lambda names: True))
    assert found.expression == "current_date = DATE '2020-01-01'"
    assert found.columns is None or "current_date" in found.columns
    assert is_nothing(found.predicate) or found.predicate == Compare("current_date", "=", dt.date(2020, 1, 1))


# -- nested columns and what is not of the row -------------------------------------------------------------------------

NESTED = Struct(
    (
        Field("id", "long"),
        Field("s", Struct((Field("a", "integer"), Field("list", Array(Struct((Field("a", "integer"),)), True))))),
        Field("tags", Array("integer", True)),
        Field("m", Map("string", "integer", True)),
    )
)


def is_row_local(text: str) -> bool:
    return condition(text, Context("t", NESTED, NOW, "UTC", lambda names: True)).row_local


@pytest.mark.parametrize(
    "text",
    [
        *(
            "s.a = 1",
            "s.a IS NULL",
            "tags[0] = 1",
            "m['k'] = 1",
            "s.list[0].a = 1",
            "s IS NOT NULL",
            "id = 1 AND s.a = 1",
        ),
        *("array_contains(tags, 1)", "size(m) > 0", "exists(tags, e -> e > 1)", "s = named_struct('a', 1)"),
        *("tags = array(1)", "element_at(m, 'k') = 1", "from_json(to_json(s), 'a INT').a = 1"),
    ],
)
def test_what_is_nested_is_of_the_row(text: str) -> None:
    assert is_row_local(text)


@pytest.mark.parametrize(
    "text",
    [
        "rand() < 0.5",
        "uuid() = 'a'",
        "shuffle(tags)[0] = 1",
        "current_user() = 'ada'",
        "my_function(id) = 1",
        "input_file_name() = 'a'",
        "_metadata.row_index = 1",
        "monotonically_increasing_id() = 1",
        "id = 1 AND rand() < 0.5",
        "exists(tags, e -> e > rand())",
    ],
)
def test_what_is_not_of_the_row_goes_by_files(text: str) -> None:
    assert not is_row_local(text)


@pytest.mark.parametrize(
    "text",
    [
        "id IN (SELECT 1)",
        "id = (SELECT max(id) FROM t)",
        "EXISTS (SELECT 1 FROM u WHERE u.id = id)",
        "s.a IN (TABLE u)",
    ],
)
def test_subqueries_are_refused_until_they_are_built(text: str) -> None:
    with pytest.raises(errors.NotBuilt):
        is_row_local(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c = 'x'", And((Compare("c", ">=", "x"), Compare("c", "<=", "x  "), Unknown()))),
        ("'x ' <=> c", And((Compare("c", ">=", "x"), Compare("c", "<=", "x  "), Unknown()))),
        ("c IN ('x')", Or((And((Compare("c", ">=", "x"), Compare("c", "<=", "x  "), Unknown())),))),
        ("c = 'long'", Unknown()),
        ("c != 'x'", Unknown()),
        ("c < 'x'", Unknown()),
        ("c LIKE 'x%'", Unknown()),
        ("c = i", Unknown()),
        ("c IS NULL", IsNull("c")),
    ],
)
def test_of_a_char_only_what_holds_padded_or_not_is_known(text: str, expected: Predicate) -> None:
    schema = Struct((Field("c", "string", metadata={LENGTH: "char(3)"}), Field("i", "string")))
    assert condition(text, Context("t", schema, NOW, "UTC", lambda names: True)).predicate == expected
