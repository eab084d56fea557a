"""What a Column prints is given as SQL that can be run, wherever it can mean one thing only."""

from __future__ import annotations

import datetime as dt

import pytest

from anabranch.expressions.printed_sql import sql_of

NAMES = {"id": "id", "c": "c", "b": "b", "s.x": "s.x", "arr": "arr", "m": "m", "a b": "`a b`", "t": "t"}
SQL = {
    "=(id, 3)": "(id = 3)",
    "==(id, 3)": "(id = 3)",
    "=(c, 'UA')": "(c = 'UA')",
    "=(c, 'O\\'Hara, (\\\\n`')": "(c = 'O\\'Hara, (\\\\n`')",
    "and(>(id, 1), in(c, 'a', 'b'))": "((id > 1) AND (c IN ('a', 'b')))",
    "or(!(b), <=>(id, -5))": "((NOT b) OR (id <=> -5))",
    "!(=(id, 3000000000L))": "(NOT (id = 3000000000L))",
    "=(a b, 1)": "(`a b` = 1)",
    "isNull(id)": "(id IS NULL)",
    "isNotNull(s.x)": "(s.x IS NOT NULL)",
    "like(c, 'a%')": "(c LIKE 'a%')",
    "=(upper(c), 'X')": "(upper(c) = 'X')",
    "=(substr(c, 1, 2), 'ab')": "(substr(c, 1, 2) = 'ab')",
    "=(arr[0], 1)": "(arr[0] = 1)",
    "=(m['k'], 1.50)": "(m['k'] = 1.50)",
    "=(CAST(+(id, 1) AS DECIMAL(10, 2)), NULL)": "(CAST((id + 1) AS DECIMAL(10, 2)) = NULL)",
    "=(CASE WHEN >(id, 1) THEN 'a' WHEN b THEN 'b' ELSE 'c' END, 'a')": (
        "(CASE WHEN (id > 1) THEN 'a' WHEN b THEN 'b' ELSE 'c' END = 'a')"
    ),
    "<(id, 2020-01-02)": "(id < DATE '2020-01-02')",
    "=(id, NaN)": "(id = double('NaN'))",
    "true": "true",
}
NOT_SURE = [
    "",
    "id = 3",
    "and(id = 3, b)",
    "=(id, [B@2832dd6b)",
    "=(unknown, 1)",
    "exists(arr, x_1 -> >(x_1, 1))",
    "=(id, 3",
    "=(id, 3))",
    "=(c, 'a)",
    "in(id)",
    "f(columnnodeexpression(List(id), None))",
    "!(" * 500 + "b" + ")" * 500,
]


@pytest.mark.parametrize("text", SQL)
def test_a_print_is_given_as_sql(text: str) -> None:
    assert sql_of(text, NAMES.get) == SQL[text]


@pytest.mark.parametrize("text", NOT_SURE)
def test_a_print_that_may_mean_something_else_gives_none(text: str) -> None:
    assert sql_of(text, NAMES.get) is None


def test_a_moment_is_given_with_its_offset_where_all_zones_agree() -> None:
    here = dt.datetime(2020, 1, 2, 3, 4, 5).astimezone()
    zone, other = dt.timezone(here.utcoffset() or dt.timedelta()), dt.timezone(dt.timedelta(hours=-13))
    assert sql_of("=(t, 2020-01-02 03:04:05.0)", NAMES.get, zone) == f"(t = TIMESTAMP '{here.isoformat(' ')}')"
    assert sql_of("=(t, 2020-01-02 03:04:05.0)", NAMES.get, other) is None


@pytest.mark.parametrize(("text", "sql"), [("==(id, 3)", "(id = 3)"), ("==(c, b)", None), ("==(c, 2020-01-02)", None)])
def test_where_texts_have_no_quotes_two_words_are_not_sure(text: str, sql: str | None) -> None:
    assert sql_of(text, NAMES.get, quotes=False) == sql
