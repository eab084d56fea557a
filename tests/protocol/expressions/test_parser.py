"""A text is read as Spark reads it, or not at all."""

from __future__ import annotations

import random

import pytest

from anabranch._protocol.expressions.lexer import ParseError
from anabranch._protocol.expressions.parser import parse_expression
from anabranch._protocol.expressions.spelling import to_sql
from anabranch._protocol.expressions.syntax import all_parts
from tests.protocol.expressions.drawn_texts import drawn_text
from tests.support.tiers import examples

COLUMNS = frozenset({"a", "b", "date", "end", "year", "day", "interval"})


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a OR b AND c", "(`a` OR (`b` AND `c`))"),
        ("NOT a = 1 AND b", "((NOT (`a` = 1)) AND `b`)"),
        ("a = b IS NOT NULL", "((`a` = `b`) IS NOT NULL)"),
        ("a < b = c", "((`a` < `b`) = `c`)"),
        ("a - b - c", "((`a` - `b`) - `c`)"),
        ("a + b * c % d", "(`a` + ((`b` * `c`) % `d`))"),
        ("a || b + c", "((`a` || `b`) + `c`)"),
        ("a | b ^ c & d << 1", "(`a` | (`b` ^ (`c` & (`d` << 1))))"),
        ("-a * b", "((- `a`) * `b`)"),
        ("- -1", "(- -1)"),
        ("a -1", "(`a` - 1)"),
        ("-1::int", "CAST(-1 AS INT)"),
        ("-a::int", "(- CAST(`a` AS INT))"),
        ("a::interval day + 1", "(CAST(`a` AS INTERVAL DAY) + 1)"),
        ("cast(a AS array<interval year to month>)", "CAST(`a` AS ARRAY < INTERVAL YEAR TO MONTH >)"),
        ("a BETWEEN 1 AND 2 AND b", "((`a` BETWEEN 1 AND 2) AND `b`)"),
        ("a NOT IN (1, 2)", "(NOT (`a` IN (1, 2)))"),
        ("a NOT LIKE 'x%' ESCAPE '!'", "(NOT (`a` LIKE 'x%' ESCAPE '!'))"),
        ("a <> 1 OR b == 2", "((`a` != 1) OR (`b` = 2))"),
        ("CASE (a) WHEN 1 THEN 2 END", "CASE `a` WHEN 1 THEN 2 END"),
        ("case when end > 1 then end else 0 end", "CASE WHEN (`end` > 1) THEN `end` ELSE 0 END"),
        ("date > DATE '2020-01-01'", "(`date` > DATE '2020-01-01')"),
        ("interval > 1", "(`interval` > 1)"),
        ("(select = 1)", "(`select` = 1)"),
        ("a.`b c`.d[0].e", "(`a`.`b c`.`d`[0]).`e`"),
        ("'a' 'b'", "'a' 'b'"),
        ("(a, 1) IN ((b, 1), (2, 1))", "((`a`, 1) IN ((`b`, 1), (2, 1)))"),
        ("concat('it''s', r'\\d')", "concat('it''s', r'\\d')"),
    ],
)
def test_operators_bind_as_in_spark(text: str, read: str) -> None:
    assert to_sql(parse_expression(text, COLUMNS)) == read


@pytest.mark.parametrize(
    "text",
    [
        *("", "a b", "a =", "(a", "a)", "a AND", "a IS 1", "a NOT 1", "NOT", "1 2", "a..b", "f(", "f(a,)", "CASE END"),
        *(
            "a IN ()",
            "a IN (SELECT 1)",
            "(SELECT 1)",
            "exists(SELECT 1)",
            "exists(FROM t)",
            "(TABLE t)",
            "(VALUES (1))",
        ),
        *(
            "max(a) OVER ()",
            "a = NOT b",
            "NOT a = 1 = 2 IS NULL = 3",
            "a IS NULL = TRUE",
            "a LIKE ANY ('x') = b",
        ),
        *(
            "left = 1",
            "a | Left",
            "a | left(b, 1)",
            "cast(a AS interval)",
            "cast(a AS interval month to day)",
            "cast(a AS nothing)",
            "cast(a)",
            ":p",
            "?",
            "a -- b",
            "a /* b */",
        ),
        *("f(x => 1)", "schema.f(1)", "a;b", "a := 1", "{a}", "a COLLATE x", "interval", "timestampdiff(1, a, b)"),
        *("a /* b */", "a LIKE ANY ('x') = b"),
        *(
            "date_add(DAY, a IS NULL, b)",
            "date_add(day, a::struct<x int, y int>)",
            "'a",
            "`a",
            '"a',
            "a[1",
            "a::",
            "count(DISTINCT a)",
        ),
    ],
)
def test_what_is_not_read_is_said(text: str) -> None:
    with pytest.raises(ParseError) as error:
        parse_expression(text, frozenset({"a", "b"}))
    assert error.value.found
    assert error.value.reason


def test_what_is_nested_without_end_is_refused_and_what_is_joined_is_read() -> None:
    for deep in ("(" * 5000 + "a" + ")" * 5000, "NOT " * 5000 + "a", "a" + "::int" * 5000, "- " * 5000 + "a"):
        with pytest.raises(ParseError, match="nested too deep"):
            parse_expression(deep)
    with pytest.raises(ParseError, match="nested too deep"):
        parse_expression(" + ".join(["a"] * 5000))
    assert len(list(all_parts(parse_expression(" AND ".join(["a"] * 5000))))) == 5001


def test_each_part_knows_where_it_stands() -> None:
    text = "a > 1 AND lower( b ) IN ('x', 'y') OR NOT c"
    shown = {text[part.start : part.stop] for part in all_parts(parse_expression(text))}
    assert {"a > 1", "lower( b )", "c", "'y'", "NOT c", text} <= shown


def test_what_is_spelled_is_read_as_the_same() -> None:
    draw, count = random.Random(1), 0
    for _ in range(examples(4000, 400)):
        try:
            syntax = parse_expression(drawn_text(draw, draw.randint(1, 4)), COLUMNS)
        except ParseError:
            continue
        count += 1
        assert to_sql(parse_expression(to_sql(syntax))) == to_sql(syntax)
    assert count > 100
