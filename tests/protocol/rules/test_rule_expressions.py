"""What a table may ask Spark to evaluate: a text is spelled anew, word by word, or refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from anabranch._protocol.expressions.cursor import MOST_NESTED
from anabranch._protocol.expressions.lexer import ParseError
from anabranch._protocol.rules.allowed import check_allowed, check_name
from anabranch._protocol.rules.functions import CLOCKS, FUNCTIONS
from anabranch._protocol.rules.rule_expressions import read
from anabranch._protocol.rules.table_rules import Check, Generated, Rules
from anabranch._protocol.schema.types import Array, Field, Map, Struct
from anabranch.errors import InvalidConstraintName, RuleRefused, UnreadableExpression

N = Struct((Field("arr", Array("integer")), Field("m", Map("string", "integer")), Field("x", Array(Struct()))))
COLUMNS = Struct(
    (
        Field("a", "long"),
        Field("s", "string"),
        Field("n", N),
        Field("ts", "timestamp"),
        Field("day", "date"),
        Field("Select", "string"),
        Field("2020_x", "long"),
        Field("${user}", "string"),
        Field("o`k", "long"),
    )
)


def spelled(text: str) -> str:
    return read(text, COLUMNS, clock=True).text


def plain(text: str) -> str:
    return text.lower().replace(" ", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A > abs(-1)", "(`a` > abs(-1))"),
        ("s LIKE ANY ('a%','b%')", "(`s` LIKE ANY ('a%', 'b%'))"),
        ("ts >= ts - INTERVAL 1 HOUR - (ts - ts) / 2", "(`ts` >= ((`ts` - INTERVAL 1 HOUR) - ((`ts` - `ts`) / 2)))"),
        ("ts + INTERVAL 1 DAY - INTERVAL 1 HOUR > ts", "(((`ts` + INTERVAL 1 DAY) - INTERVAL 1 HOUR) > `ts`)"),
        ("INTERVAL 1 DAY -2 HOURS + ts > ts", "((INTERVAL 1 DAY - 2 HOURS + `ts`) > `ts`)"),
        ("a / -(3) > 0", "((`a` / (- (3))) > 0)"),
        ("s NOT LIKE ALL ('a%','b%')", "(`s` NOT LIKE ALL ('a%', 'b%'))"),
        ("s not ilike some ('a%','b%')", "(`s` NOT ILIKE ANY ('a%', 'b%'))"),
        ("to_json(struct(A, N.Arr, A + 1)) > ''", "(to_json(struct(`A`, `n`.`Arr`, (`a` + 1))) > '')"),
        ("size(arrays_zip(n.ARR, array(A))) > 0", "(size(arrays_zip(`n`.`ARR`, array(`a`))) > 0)"),
        ("n.ARR[0]=1", "(`n`.`arr`[0] = 1)"),
        ("n.m['x']>0", "(`n`.`m`['x'] > 0)"),
        ("cast(ts as date)", "CAST(`ts` AS DATE)"),
        ("array_size(array_compact(n.arr)) > 0", "(array_size(array_compact(`n`.`arr`)) > 0)"),
        (
            "timestampdiff(DAY, TIMESTAMP'2020-01-01 00:00:00', ts)",
            "timestampdiff(DAY , TIMESTAMP '2020-01-01 00:00:00' , `ts`)",
        ),
        ("date_trunc('MONTH', ts)::date", "CAST(date_trunc('MONTH', `ts`) AS DATE)"),
        ("exists(n.arr, A -> a > 2)", "exists(`n`.`arr`, `A` -> (`a` > 2))"),
        ("aggregate(n.arr, 0, (x, y) -> x + y)", "aggregate(`n`.`arr`, 0, (`x`, `y`) -> (`x` + `y`))"),
        ("trim(both from s)", "trim(BOTH FROM `s`)"),
        ("substring(s from 1 for 2)", "substring(`s` FROM 1 FOR 2)"),
        ("position('b' in s)", "position('b' IN `s`)"),
        ("SELECT = 'x'", "(`Select` = 'x')"),
        ("2020_x > 1L", "(`2020_x` > 1L)"),
        ("date_add(day, 1)", "date_add(`day`, 1)"),
        ("date_add(day, 1, ts)", "date_add(DAY , 1 , `ts`)"),
        ("case a when 1 then 2 else 3 end", "CASE `a` WHEN 1 THEN 2 ELSE 3 END"),
        ("a IS NOT DISTINCT FROM 3", "(`a` <=> 3)"),
        ("current_date > day", "(current_date() > `day`)"),
        ("cast(a as map<string,array<struct<x:int,y:decimal(3,2)>>>)", None),
        ("ts + interval '1-2' year to month > ts", None),
        ("`o``k` > 0", "(`o``k` > 0)"),
        ('s = "it\'s"', "(`s` = CAST(X'69742773' AS STRING))"),
        ('s = "plain"', "(`s` = 'plain')"),
        ("s = 'it''s'", "(`s` = 'it''s')"),
        ("s rlike r'\\d'", "(`s` RLIKE r'\\d')"),
        ("s = '${env:HOME}'", "(`s` = CAST(X'247b656e763a484f4d457d' AS STRING))"),
        ("from_json(s, 'a INT').a > 1", "((from_json(`s`, 'a INT')).`a` > 1)"),
    ],
)
def test_what_is_allowed_is_spelled_so_that_it_can_be_read_in_one_way(text: str, expected: str | None) -> None:
    if expected is not None:
        assert spelled(text) == expected
    assert plain(spelled(spelled(text))) == plain(spelled(text))


HOSTILE = [
    # Spark's XML parser loads a document type from wherever it is told, and XPath knows the system's properties.
    """xpath_string(concat('<!DOCTYPE a SYSTEM "http://127.0.0.1/?row=', s, '"><a/>'), '/a') = '1'""",
    "xpath_string('<a/>', 'system-property(\"user.home\")') = ''",
    "reflect('java.lang.System', 'exit', 1) = ''",
    "`reflect`('x')",
    "`abs`(a) > 1",
    "java_method('x', 'y')",
    "try_reflect('x', 'y')",
    "system.builtin.reflect('x')",
    "builtin.abs(1)",
    "session.udf(1)",
    "IDENTIFIER('reflect')('x')",
    "{fn reflect('x')}",
    "(SELECT 1)",
    "a IN (SELECT 1)",
    "exists(select 1)",
    "exists(FROM x)",
    "(TABLE x)",
    "(VALUES (1))",
    "a = (WITH q AS (SELECT 1) SELECT * FROM q)",
    "some_variable",
    "session.some_variable",
    "a.b",
    "n.none",
    "exists(n.arr, q -> q > 1) AND q > 1",
    "1) FROM x --",
    "a > 0 /* reflect('x') */",
    "a > 0 -- x",
    "abs(1",
    "abs(1))",
    "a > 0; DROP TABLE x",
    'from_json(s, \'{"type":"struct","fields":[]}\')',
    "from_json(s, s)",
    "from_csv(s, 'a INT' '{')",
    "max(a) > 1",
    "max(a) OVER () > 1",
    "explode(n.arr)",
    "range(3)",
    "rand() > 0",
    "uuid() = s",
    "current_user() = s",
    "current_user",
    "user()",
    "version() = s",
    "input_file_name() = s",
    "raise_error(s)",
    "my_udf(a)",
    "?",
    ":a",
    "${env:HOME}",
    "s = '\\${env:HOME}'",
    "s:x",
    "s COLLATE UNICODE",
    "abs(a => 1)",
    "null(1)",
    "and(true, true)",
    "not_a_function (a)",
    "n.arr(0)",
    "'reflect'('x')",
    "\"reflect\"('x')",
    "a b",
    "a AS b",
    "count(*)",
    "timestampdiff(a, ts, ts)",
    "s li\u212ae 'x'",
    "a\u00a0> 0",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_else_a_text_holds_it_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        read(text, COLUMNS, clock=True)


def test_the_functions_that_a_text_calls_are_named_those_of_the_grammar_too() -> None:
    reading = read("not (a between 1 and 2) and extract(day from ts) = cast(s as int)", COLUMNS, clock=False)
    assert reading.functions == {"not", "between", "extract"}


@pytest.mark.parametrize("text", ["now()", "current_timestamp", "current_date()", "unix_timestamp()"])
def test_a_generated_column_does_not_look_at_the_clock(text: str) -> None:
    assert read(text, COLUMNS, clock=True)
    with pytest.raises(ParseError, match="clock"):
        read(text, COLUMNS, clock=False)


CLOCK_TEXTS = [
    "ts > timestamp'now'",
    "day = date 'today'",
    'day <= DATE"  Yesterday "',
    "day = r'tomorrow'",
    "day > 'yesterday'",
    "day IN (DATE'2020-01-01', 'today')",
    "coalesce(day, 'n' 'ow') IS NOT NULL",
    "CAST('today' AS DATE) > DATE'2020-01-01'",
    "('\\u006eow')::timestamp IS NOT NULL",
    "to_date('tomorrow Europe/Paris') > DATE'2020-01-01'",
    "date_add('today+01:00', 1) > DATE'2020-01-01'",
    "timestamp('12:30') IS NOT NULL",
    "CAST((' T12:30:00') AS TIMESTAMP) IS NOT NULL",
    "ts < timestamp_ntz'23:59'",
]


@pytest.mark.parametrize("text", CLOCK_TEXTS)
def test_a_text_that_spark_reads_as_a_clock_is_refused(text: str) -> None:
    for clock in (True, False):
        with pytest.raises(ParseError, match="clock"):
            read(text, COLUMNS, clock=clock)
    assert read(text, COLUMNS, clock=True, clock_texts=True)
    with pytest.raises(ParseError, match="clock"):
        read("'today'", COLUMNS, clock=False, gives_moment=True)


@pytest.mark.parametrize(
    "text",
    [
        "s IN ('now', 'today', 'later')",
        "s = 'nowhere' AND day > DATE'epoch'",
        "ts = timestamp'epoch'",
        "day > 'nowadays it is so'",
        "date_format(ts, 'HH:mm') > '09:00'",
        "cast('now' as string) = s",
        "to_timestamp(s, 'HH:mm') IS NOT NULL",
    ],
)
def test_a_text_that_is_the_same_at_all_times_is_taken(text: str) -> None:
    assert read(text, COLUMNS, clock=False)


@pytest.mark.slow
def test_long_texts_are_read_and_deep_ones_refused() -> None:
    assert read(" OR ".join(f"a = {i}" for i in range(10_000)), COLUMNS, clock=True)
    assert read("a IN (" + ",".join(map(str, range(10_000))) + ")", COLUMNS, clock=True)
    assert read("(" * MOST_NESTED + "a > 0" + ")" * MOST_NESTED, COLUMNS, clock=True)
    for deep in ("(" * 1000 + "a > 0" + ")" * 1000, "NOT " * 1000 + "a > 0", "abs(" * 1000 + "a" + ")" * 1000):
        with pytest.raises(ParseError, match="too deep"):
            read(deep, COLUMNS, clock=True)


def test_no_function_of_the_list_runs_code_or_looks_around() -> None:
    words = "reflect|java_method|rand|uuid|user|catalog|schema$|database|version|input_file|raise_error|avro|protobuf"
    found = {name for name in FUNCTIONS | CLOCKS if re.search(words, name)}
    assert found == set()


def test_the_error_names_the_rule_the_expression_and_what_is_wrong_with_it() -> None:
    rules = [
        (Rules(checks=(Check("c", "reflect('x') = 1"),)), "constraint c", "the function reflect"),
        (Rules(generated=(Generated("a", "now()"),)), "generated column a", "the function now"),
        (Rules(defaults={"a": "s"}), "default of a", "the name s"),
    ]
    for each, rule, found in rules:
        with pytest.raises(RuleRefused) as caught:
            check_allowed(each, COLUMNS, "/t")
        assert (caught.value.rule, caught.value.found, caught.value.table) == (rule, found, "/t")
    with pytest.raises(UnreadableExpression):
        check_allowed(Rules(checks=(Check("c", "a <"),)), COLUMNS, "/t")


def test_names_that_delta_uses_itself_are_no_names_of_constraints() -> None:
    check_name(Check("fine", "true"), "/t")
    with pytest.raises(InvalidConstraintName):
        check_name(Check("__char_varchar_string_length_check__", "true"), "/t")


def test_the_page_shows_the_very_functions_of_the_list() -> None:
    page = (Path(__file__).parents[3] / "docs/concepts/constraints.md").read_text(encoding="utf-8")
    section = page.split("## Expressions in rules\n")[1].split("\n## ")[0]
    lists = section.partition("### ")[2]
    assert set(re.findall(r"`(\w+)`", lists)) == FUNCTIONS | CLOCKS
