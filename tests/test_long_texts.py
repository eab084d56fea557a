"""Whatever a stranger writes, the time that it takes grows as its length: each entry point is given texts of its own
words, ten times as many, and takes some ten times as long.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch._expressions import Context, assignment, condition, conjuncts
from anabranch._expressions.blocks import block_predicate
from anabranch._expressions.dialect import TokenizedText, tokenize
from anabranch._expressions.error_pointer import excerpt
from anabranch._expressions.printed_columns import check_assigned, column_condition, expression_text
from anabranch._expressions.sides import name_parts
from anabranch._protocol.layout import paths
from anabranch._protocol.layout.outside_files import locate_file
from anabranch._protocol.partitions import parse_hive_path, read_value
from anabranch._protocol.rules.allowed import read_check, read_default, read_generated
from anabranch._protocol.rules.table_rules import Check, Generated, columns_in_text, may_use
from anabranch._protocol.schema.keys import check_key
from anabranch._protocol.schema.leaves import column_list
from anabranch._protocol.schema.lengths import LENGTH, limits_of
from anabranch._protocol.schema.types import Field, Struct, parse_schema
from anabranch._sql import reading
from anabranch._sql.grammar import computed_names, scripts
from anabranch._sql.prefilter import TextFacts
from anabranch.errors import AnabranchError, InvalidOption, html
from anabranch.errors.rows import without_partitions
from anabranch.errors.secrets import is_ambiguous, without_secrets, without_user
from tests.support.growth import grows_with_its_text
from tests.support.tiers import examples, few_of

SCHEMA = Struct((Field("id", "long"), Field("s", "string"), Field("a", Struct((Field("x", "long"),)))))
CONTEXT = Context("/t", SCHEMA, dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "UTC", lambda names: True)
Work = Callable[[str], object]


@dataclass(frozen=True)
class Entry:
    """A way in: what is done with a text, the words that it is made of, and what may stand around them."""

    works: tuple[Work, ...]
    words: tuple[str, ...]
    before: tuple[str, ...] = ("",)
    behind: tuple[str, ...] = ("",)
    units: tuple[str, ...] = ()  # longer ones, that were at fault once
    little: int = 1000

    def is_steady(self, before: str, unit: str, behind: str, little: int = 0) -> bool:
        return grows_with_its_text(self.run, repeated(before, unit, behind), little or self.little)

    def run(self, text: str) -> None:
        for work in self.works:
            with suppress(AnabranchError, ValueError):
                work(text)


class Column:
    """What PySpark prints of a Column."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return f"Column<'{self.text}'>"


def delta(name: tuple[str, ...]) -> str | None:
    return name[1] if len(name) == 2 and name[0] == "delta" else None


def look(text: str) -> object:
    seen = TextFacts(text)
    return seen.is_ours, seen.is_computed, seen.reads, seen.takes_names, seen.may_name, seen.tables


def compute(text: str) -> None:
    tokens = tokenize(text)
    computed_names.is_script(tokens)
    computed_names.changes_any_name(tokens)
    computed_names.changes_names(tokens)
    computed_names.schemas_used(text, tokens)
    computed_names.immediates(text, tokens)
    for each in computed_names.clauses(text, tokens):
        computed_names.simple_name(each.said or "")
    computed_names.immediate(text, tokens)


def read(text: str) -> object:
    return reading.statement(text, None, delta)


def by_place(text: str) -> object:
    return reading.statement(text, list(range(text.count("?"))), delta)


def by_name(text: str) -> object:
    return reading.statement(text, {"p": 1, "q": "x"}, delta)


def show(text: str) -> None:
    error = InvalidOption(option="o", value=text, reason=text)
    assert str(error)


def declared(text: str) -> object:
    return limits_of(Field("s", "string", metadata={LENGTH: text}))


def in_json(text: str) -> object:
    column = {"name": text, "type": text, "nullable": True, "metadata": {"comment": text}}
    return parse_schema(json.dumps({"type": "struct", "fields": [column]}))


def words(text: str, *others: str) -> tuple[str, ...]:
    return (*text.split(), *others)


SHOWN = words(
    """<Token> </Token> <Token-1> <StringToSign> s3:/// s3://a:b@ s3:/x: // /// a:/ @ : ? & ; # = ' ` < > sig= %3F %26
    ?a= &a=b %3D x https:// file:/ file:/// user:pw@ [ ] { } ab. " ?sig=a [: day= day=1/ .""",
    " ",
    "\n",
    "\x1b",
)
SQL = words(
    """SELECT select FROM from JOIN WHERE USE INSERT IDENTIFIER( EXECUTE IMMEDIATE USING INTO TABLE WITH AS ( ) , . ; a
    `a` ` '' ' " -- /* */ {# ? :p = + - 1 1L [ ] { } < > :: CASE END BEGIN delta.`/t` ARRAY< IN NOT AND OR \\ |> VALUES
    EXCEPT LATERAL""",
    " ",
    "\n",
    "/* ",
    "a.",
    "USE a; ",
    "IDENTIFIER(x), ",
    "a AS (SELECT 1), ",
    "INSERT INTO a SELECT 1 ",
    "(SELECT * FROM delta.`/t` WHERE a IN ",
)
RULE = words(
    "id s a.x ( ) [ ] < > , . + - NOT CASE WHEN THEN END AND OR 'x' ' '' \" ` 1 1. \\ -> CAST AS array< ::", " "
)
PATH = words("a / // : :// @ % %2 %20 %2F = day= .. ./ ? # * [ { s3: s3:// file: \\ ` '", " ", "\n")
TYPE = words("array< map< struct< > , : ( ) char( varchar(9) decimal( 9 ` a:", " ")

ENTRIES = {
    "shown text": Entry(
        (without_secrets, without_user, is_ambiguous, without_partitions, html.text, show),
        SHOWN,
        ("", "s3://b/", "?a=", "//", '"', "s3://["),
        ("", "@", "/t?sig=1", "</Token>"),
        ("<Token>", "s3:///", "%3F"),
    ),
    "the line of an error": Entry(
        (lambda text: excerpt(text, 5, 9),),
        (*SHOWN, *words("fs. fs.a password option. '' \\'"), "password ", "fs.a = "),
        ("", "password '", "fs.a"),
        ("", "'"),
        ("fs.", "fs.a "),
    ),
    "a look at a statement": Entry(
        (look,),
        SQL,
        ("", "SELECT ", "SELECT 1 FROM t, ", "INSERT ", "( "),
        ("", "INSERT", " .a", "*/"),
        (" ", "/* ", "/*"),
    ),
    "a statement": Entry(
        (read, scripts.split),
        SQL,
        (
            "",
            "SELECT * FROM delta.`/t` WHERE ",
            "DELETE FROM delta.`/t` WHERE ",
            "INSERT INTO delta.`/t` ",
            "UPDATE delta.`/t` SET ",
            "MERGE INTO delta.`/t` USING ",
            "CREATE TABLE delta.`/t` (a ",
            "BEGIN ",
            "WITH ",
        ),
        ("", " FROM delta.`/t`", "; DROP TABLE x; END"),
        (
            "(SELECT * FROM delta.`/t` WHERE a IN ",
            "a AS (SELECT 1), ",
            "delta.`/t`.",
            "a = (SELECT 1 FROM delta.`/t`), ",
        ),
    ),
    "a statement that is computed": Entry(
        (compute,),
        SQL,
        ("", "BEGIN ", "BEGIN DROP TABLE ", "EXECUTE IMMEDIATE "),
        ("", " END", ")"),
        ("IDENTIFIER(x), ", "IDENTIFIER(IDENTIFIER("),
    ),
    "parameters by place": Entry(
        (by_place,),
        words("? , ( ) + id"),
        (
            "DELETE FROM delta.`/t` WHERE id IN (",
            "INSERT INTO delta.`/t` VALUES (",
            "SELECT * FROM delta.`/t` WHERE id IN (",
        ),
        ("1)", ")"),
        ("?, ", "?), (", "(SELECT ? FROM delta.`/t` WHERE x = ?), "),
        little=examples(1000, 120),
    ),
    "parameters by name": Entry(
        (by_name,),
        words(":p , ( ) + id : :q"),
        (
            "DELETE FROM delta.`/t` WHERE id IN (",
            "INSERT INTO delta.`/t` VALUES (",
            "SELECT * FROM delta.`/t` WHERE id IN (",
        ),
        ("1)", ")"),
        (":p, ", ":p), (", "(SELECT :p FROM delta.`/t` WHERE x = :q), "),
        little=examples(1000, 120),
    ),
    "a condition": Entry(
        (
            lambda text: condition(text, CONTEXT, queries=True, names=("t",)),
            lambda text: conjuncts(text, CONTEXT),
            lambda text: assignment(text, CONTEXT),
            lambda text: block_predicate(text, ("t",), CONTEXT, sole=True),
            name_parts,
        ),
        (*SQL, *RULE),
        ("", "id = 1 AND ", "id IN ("),
        ("", ")", " = 1"),
        ("id = 1 OR ", "1, ", "id::int::", '\\"', "\\'", '\\"x'),
    ),
    "a printed column": Entry(
        (
            lambda text: column_condition(Column(text), CONTEXT),
            lambda text: check_assigned(Column(text)),
            lambda text: expression_text(Column(text)),
        ),
        words("id ( ) , > = ' a a. [ ] : select subquery columnnodeexpression(UnresolvedAttribute(List( 1 ,None", " "),
        ("", "and(", "(["),
        ("", ")", "("),
        ("columnnodeexpression(UnresolvedAttribute(List(a),", "a", "( [a"),
    ),
    "a table's rule": Entry(
        (
            lambda text: read_check(Check("c", text), SCHEMA, "/t"),
            lambda text: read_generated(Generated("id", text), SCHEMA, "/t"),
            lambda text: read_default("id", text, "/t"),
            lambda text: columns_in_text(text, ["id", "a b", "x"]),
            lambda text: may_use(text, ["a", "x"]),
        ),
        RULE,
        ("", "id > ", "'", "CAST("),
        ("", "'", ")"),
        ("a.x + ", "(", "''"),
    ),
    "a path": Entry(
        (
            lambda text: locate_file("file:///t", text),
            lambda text: paths.decode(text),
            lambda text: paths.encode(text),
            lambda text: paths.quote_as_java(text),
            lambda text: paths.store_name("file:///t", text),
            lambda text: paths.absolute("s3://b/t", text),
            lambda text: paths.split_absolute(text),
            lambda text: paths.lies_in(text, "s3://b/t"),
            lambda text: paths.plain(text),
            lambda text: parse_hive_path(text, ["day"]),
        ),
        PATH,
        ("", "s3://", "file:///", "/"),
        ("", "@", "/x"),
    ),
    "a partition's value": Entry(
        tuple(
            lambda text, kind=kind: read_value(text, kind)
            for kind in ("long", "double", "date", "timestamp", "boolean", "decimal(10,2)")
        ),
        words("1 . e + - : 2020-01-01 T Z nan", " "),
        ("", "1", "-"),
        ("", "x"),
        ("1", "1."),
    ),
    "a type": Entry((declared,), TYPE, ("", "array<", "char("), ("", ">", ")")),
    "a schema": Entry(
        (in_json, column_list, lambda text: check_key("anabranch.constraint.k", text)),
        (*TYPE, *words("PRIMARY KEY ( FOREIGN KEY REFERENCES RELY `` . a"), "a, ", "`a`, "),
        ("", "PRIMARY KEY (", "FOREIGN KEY (a) REFERENCES "),
        ("", ")", "`"),
    ),
}
for _name in (
    "a statement",
    "a statement that is computed",
    "a condition",
    "a table's rule",
):  # by Python, word by word
    ENTRIES[_name] = replace(ENTRIES[_name], little=examples(300, 120))
each_entry = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
pytestmark = pytest.mark.whole


def repeated(before: str, unit: str, behind: str) -> Callable[[int], str]:
    return lambda length: before + unit * (length // len(unit)) + behind


def texts_of(entry: Entry) -> Iterator[tuple[str, str, str]]:
    """Each word by itself, of many some in a short run, and what was at fault once between all beginnings and ends."""
    yield from ((entry.before[0], unit, entry.behind[0]) for unit in few_of(entry.words, 40))
    yield from ((before, unit, behind) for before in entry.before for unit in entry.units for behind in entry.behind)


@pytest.mark.slow
@each_entry
def test_ten_times_a_word_takes_some_ten_times_as_long(entry: Entry) -> None:
    slow = [parts for parts in texts_of(entry) if not entry.is_steady(*parts)]
    assert not slow


@pytest.mark.exhaustive("tests/test_long_texts.py::test_ten_times_a_word_takes_some_ten_times_as_long")
@pytest.mark.slow
@each_entry
@settings(max_examples=300)
@given(data=st.data())
def test_ten_times_some_words_take_some_ten_times_as_long(entry: Entry, data: Any) -> None:
    unit = "".join(data.draw(st.lists(st.sampled_from(entry.words), min_size=1, max_size=3)))
    before = data.draw(st.sampled_from(entry.before)) + "".join(
        data.draw(st.lists(st.sampled_from(entry.words), max_size=2))
    )
    assert entry.is_steady(before, unit, data.draw(st.sampled_from(entry.behind)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "parts"),
    [
        ("shown text", ("", "<Token>", "</x>")),
        ("shown text", ('"', "s3:///", "")),
        ("shown text", ('"a@b ', "x@s3:/a:", "")),
        ("shown text", ("'x@", "s3:///a:", "")),
        ("shown text", ("s3://b/", "%3F", "")),
        ("the line of an error", ("", "fs.", "")),
        ("a look at a statement", ("", " ", "INSERT INTO t VALUES (1)")),
        ("a look at a statement", ("SELECT 1 FROM t ", "/* ", "")),
        ("a look at a statement", ("SELECT 1 FROM t ", " ", ".a")),
        ("parameters by place", ("INSERT INTO delta.`/t` VALUES (", "?, ", "1)")),
        ("parameters by place", ("SELECT * FROM delta.`/t` WHERE id IN (", "?, ", "1)")),
        ("parameters by name", ("SELECT * FROM delta.`/t` WHERE id IN (", ":p, ", "1)")),
    ],
)
def test_what_was_found_takes_some_ten_times_as_long_for_ten_times_as_much(
    entry: str, parts: tuple[str, str, str]
) -> None:
    assert ENTRIES[entry].is_steady(*parts, little=5_000)


def test_a_script_of_many_uses_names_each_schema_once() -> None:
    text = "BEGIN " + "USE a; USE b; " * 500 + "END"
    assert computed_names.schemas_used(text, tokenize(text)) == [
        (),
        ("a",),
        ("b",),
        ("a", "b"),
        ("a", "a"),
        ("b", "a"),
        ("b", "b"),
    ]


def test_a_script_whose_names_may_lie_anywhere_is_no_statement() -> None:
    text = "BEGIN " + "".join(f"USE s{i}; " for i in range(1000)) + "DROP TABLE t; END"
    with pytest.raises(AnabranchError, match="BEGIN"):
        reading.statement(text, None, lambda name: None)


def test_conditions_in_conditions_are_analysed_for_a_bounded_length() -> None:
    depth = 2000
    text = "SELECT * FROM delta.`/t` WHERE a IN (" * depth + "1" + ")" * depth
    found: Any = reading.statement(TokenizedText(text), None, delta)
    assert len(found.references) == depth
    assert 0 < sum(len(each.where or "") for each in found.references) <= 32 * len(text)
