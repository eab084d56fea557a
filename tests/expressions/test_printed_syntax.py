"""What a Column prints is read as the text that means the same, wherever it can mean one thing only."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from anabranch._expressions.printed_syntax import parts_of, syntax_of
from anabranch._protocol.expressions.parser import parse_expression
from anabranch._protocol.expressions.spelling import to_sql

NAMES = {name: parts_of(name) for name in ("id", "c", "b", "s.x", "arr", "m", "a b", "t", "`s.x`")}
SQL = {
    "=(id, 3)": "id = 3",
    "==(id, 3)": "id = 3",
    "=(c, 'UA')": "c = 'UA'",
    "and(>(id, 1), in(c, 'a', 'b'))": "id > 1 AND c IN ('a', 'b')",
    "or(!(b), <=>(id, -5))": "(NOT b) OR id <=> -5",
    "!(=(id, 3000000000L))": "NOT (id = 3000000000L)",
    "=(a b, 1)": "`a b` = 1",
    "=(`s.x`, s.x)": "`s.x` = s.x",
    "isNull(id)": "id IS NULL",
    "isNotNull(s.x)": "s.x IS NOT NULL",
    "like(c, 'a%')": "c LIKE 'a%'",
    "=(upper(c), 'X')": "upper(c) = 'X'",
    "=(substr(c, 1, 2), 'ab')": "substr(c, 1, 2) = 'ab'",
    "=(arr[0], 1)": "arr[0] = 1",
    "=(m['k'], 1.50)": "m['k'] = 1.50",
    "-(*(+(id, 1), 2), %(/(b, 3), 4))": "((id + 1) * 2) - ((b / 3) % 4)",
    "=(CAST(+(id, 1) AS DECIMAL(10, 2)), NULL)": "CAST((id + 1) AS DECIMAL(10, 2)) = NULL",
    "=(TRY_CAST(c AS INT), -1)": "TRY_CAST(c AS INT) = -1",
    "=(CASE WHEN >(id, 1) THEN 'a' WHEN b THEN 'b' ELSE 'c' END, 'a')": (
        "CASE WHEN id > 1 THEN 'a' WHEN b THEN 'b' ELSE 'c' END = 'a'"
    ),
    "<(id, 2020-01-02)": "id < DATE '2020-01-02'",
    "=(id, NaN)": "id = double('NaN')",
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
    "=(c, 'it''s')",
    "+(id, 1) AS q",
    "+(id, 1, 2)",
    "negative(id",
    "in(id)",
    "f(columnnodeexpression(List(id), None))",
    "!(" * 500 + "b" + ")" * 500,
]


@pytest.mark.parametrize("text", SQL)
def test_a_print_is_read_as_the_text_that_means_the_same(text: str) -> None:
    found = syntax_of(text, NAMES.get)
    assert found is not None
    assert to_sql(found) == to_sql(parse_expression(SQL[text]))


@pytest.mark.parametrize("text", NOT_SURE)
def test_a_print_that_may_mean_something_else_is_not_read(text: str) -> None:
    assert syntax_of(text, NAMES.get) is None


def test_a_text_with_a_backslash_is_not_certain() -> None:
    found = syntax_of("=(c, 'O\\'Hara, (\\\\n`')", NAMES.get)
    assert found is not None
    assert to_sql(found) == "(`c` = 'O\\'Hara, (\\\\n`')"
    assert not found.operands[1].is_certain  # type: ignore[union-attr]


@pytest.mark.parametrize("word", ["true", "NULL", "NaN", "2020-01-02"])
def test_a_word_that_is_the_name_of_a_column_too_is_read_as_neither(word: str) -> None:
    known = {"id": ("id",), word: (word,)}.get
    assert syntax_of(f"=(id, {word})", known) is None


def test_a_moment_is_read_where_all_zones_agree() -> None:
    here = dt.datetime(2020, 1, 2, 3, 4, 5).astimezone()
    zone, other = dt.timezone(here.utcoffset() or dt.timedelta()), dt.timezone(dt.timedelta(hours=-13))
    found, moment = syntax_of("=(t, 2020-01-02 03:04:05.0)", NAMES.get, zone), here.astimezone(dt.UTC)
    assert found is not None
    assert to_sql(found) == f"(`t` = TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f} UTC')"
    assert syntax_of("=(t, 2020-01-02 03:04:05.0)", NAMES.get, other) is None


def test_a_moment_of_an_hour_that_clocks_repeat_is_not_sure() -> None:
    assert syntax_of("=(t, 2020-10-25 02:30:00.0)", NAMES.get, ZoneInfo("Europe/Berlin")) is None


@pytest.mark.parametrize(("text", "sql"), [("==(id, 3)", "id = 3"), ("==(c, b)", None), ("==(c, 2020-01-02)", None)])
def test_where_texts_have_no_quotes_two_words_are_not_sure(text: str, sql: str | None) -> None:
    found = syntax_of(text, NAMES.get, quotes=False)
    assert (found and to_sql(found)) == (sql and to_sql(parse_expression(sql)))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a", ("a",)),
        ("a.b c", ("a", "b c")),
        ("`a.b`.c", ("a.b", "c")),
        ("`a``b`", ("a`b",)),
        ("", None),
        ("a.", None),
        (".a", None),
        ("a..b", None),
    ],
)
def test_a_printed_name_has_parts(name: str, parts: tuple[str, ...] | None) -> None:
    assert parts_of(name) == parts
