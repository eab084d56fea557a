"""Where statements compute names and texts."""

from __future__ import annotations

import pytest

from anabranch import errors
from anabranch._expressions.dialect import tokenize
from anabranch._sql import reading
from anabranch._sql.grammar import computed_names


def clauses(text: str) -> list[tuple[str, str | None]]:
    found = computed_names.clauses(text, tokenize(text))
    return [(text[slice(*each.inner)], each.said) for each in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DROP VIEW IDENTIFIER('v')", [("'v'", "v")]),
        ("drop view identifier /* ) */ ('v' || f(1, ')'))", [("'v' || f(1, ')')", None)]),
        ("SELECT IDENTIFIER('a').IDENTIFIER(:b) FROM IDENTIFIER(x)", [("'a'", "a"), (":b", None), ("x", None)]),
        ("DROP VIEW IDENTIFIER(IDENTIFIER('v'))", [("IDENTIFIER('v')", None)]),
        ("SELECT `identifier`(1), 'IDENTIFIER(x)' -- IDENTIFIER(y)", []),
        ("INSERT INTO identifier (a, b) VALUES (1, 2)", []),
        ("DROP VIEW IDENTIFIER('a\\'b')", [("'a\\'b'", None)]),
    ],
)
def test_each_computed_name_is_found(text: str, expected: list[tuple[str, str | None]]) -> None:
    assert computed_names.may_be_computed(text)
    assert clauses(text) == expected


@pytest.mark.parametrize("said", ["v m", "v/*x*/m", "", "a..b", "`a", "a-b", " vm", "vm/* x */"])
def test_a_name_that_is_not_plain_is_read_by_spark(said: str) -> None:
    assert computed_names.simple_name(said) is None


def test_a_plain_name_is_read_here() -> None:
    assert computed_names.simple_name("a.`b``.c`._d1") == ("a", "b`.c", "_d1")


def test_execute_immediate_is_taken_apart() -> None:
    text = "EXECUTE IMMEDIATE 'a' || b INTO x, s.y USING (1 + 2 AS p, (3) q, v)"
    found = computed_names.immediate(text, tokenize(text))
    assert found is not None
    assert text[slice(*found.text)] == "'a' || b"
    assert found.into is not None
    assert text[slice(*found.into)] == "x, s.y"
    assert [(text[start:stop], name) for start, stop, name in found.using] == [
        ("1 + 2", "p"),
        ("(3)", "q"),
        ("v", None),
    ]
    text = "EXECUTE IMMEDIATE 'SELECT 1' USING (1), (2)"
    found = computed_names.immediate(text, tokenize(text))
    assert found is not None
    assert (found.said, [text[start:stop] for start, stop, _ in found.using]) == ("SELECT 1", ["(1)", "(2)"])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("BEGIN DROP VIEW t; END", True),
        ("BEGIN USE db; DROP VIEW t; END", True),
        ("BEGIN USE CATALOG c; USE db; DROP VIEW t; END", True),
        ("BEGIN DROP VIEW hidden; END", True),
        ("BEGIN SELECT * FROM hidden; END", False),
        ("BEGIN DROP VIEW other; SELECT replace('t', 'x', 'y'); END", False),
    ],
)
def test_a_script_is_refused_where_it_names_a_table_wherever_it_has_gone_before(text: str, names: bool) -> None:
    tables = {("t",)} if "USE" not in text else {("db", "t"), ("c", "db", "t")}

    def located(name: tuple[str, ...]) -> str | None:
        return "/t" if name in tables else None

    def kept(name: tuple[str, ...]) -> str | None:
        return "/t" if name == ("hidden",) else located(name)

    if names:
        with pytest.raises(errors.TransactionStatement):
            reading.statement(text, None, located, None, kept)
    else:
        assert reading.statement(text, None, located, None, kept) is None
