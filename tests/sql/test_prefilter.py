"""A glance at a query: it never misses a table that a full reading finds, and is not misled by texts and comments."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch._expressions.dialect import tokenize
from anabranch._sql.grammar.tables_read import tables_read
from anabranch._sql.prefilter import text_facts
from anabranch.errors import SqlSyntaxError
from tests.support import corpus
from tests.support.tiers import examples

WORDS = st.sampled_from(
    """SELECT FROM WHERE JOIN LEFT USING ON WITH AS ( ) ( ) , , a b `c d` `x``y` . t.u s.`v w` VALUES TABLE INTO INSERT
    OVERWRITE GROUP BY UNION LATERAL VIEW explode( IN EXISTS 1 'FROM z' "q, r" -- /*e*/ a.group t.where |> , DISTINCT
    LIMIT window 'x\\'' r'\\' v 10L 1.5 tbl = ; \n PIVOT EXCEPT min( extract(year""".split(" ")  # noqa: SIM905
)


def closes_only_what_is_open(words: list[str]) -> bool:
    """Else it is no SQL, and Spark reads nothing."""
    depths = [sum(word.count("(") - word.count(")") for word in words[: i + 1]) for i in range(len(words))]
    return min(depths, default=0) >= 0


def read_in_full(text: str) -> set[tuple[str, ...]]:
    return {each.parts for each in tables_read(tokenize(text))}


@settings(max_examples=examples(400, 40))
@given(st.lists(WORDS, max_size=40).filter(closes_only_what_is_open))
def test_every_table_of_a_full_reading_is_seen_at_a_glance(words: list[str]) -> None:
    text = " ".join(["SELECT x FROM", *words])
    try:
        found = read_in_full(text)
    except SqlSyntaxError:
        return
    seen = text_facts(text).tables
    assert seen is None or found <= seen


@pytest.mark.slow
def test_every_table_of_the_corpus_is_seen_at_a_glance() -> None:
    texts = [corpus.placed(entry.statement, Path("/x")) for file in corpus.FILES for entry in corpus.read(file)]
    seen = {text: text_facts(text).tables for text in texts}
    told = {text: names for text, names in seen.items() if names is not None}
    assert len(told) > 30
    assert not [text for text, names in told.items() if not read_in_full(text) <= names]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT 1", set()),
        ("select a from t;", {"t"}),
        ("SELECT a, b, c FROM t, u AS v, (w) WHERE a IN (SELECT x, y FROM z)", {"t", "u", "w", "z"}),
        ("SELECT x FROM (SELECT a, b FROM u WHERE y) s, v", {"u", "v"}),
        ("SELECT 'FROM x', \"FROM y\" FROM t -- FROM z\n/* FROM q, r */ WHERE s = 'it''s, from w'", {"t"}),
        ("SELECT `FROM x` FROM `a.b` . `c``d`", {"a.b/c`d"}),
        ("SELECT * FROM range(10), t", {"t"}),
        ("WITH c AS (SELECT 1) INSERT OVERWRITE t SELECT * FROM c", {"c", "t"}),
        (r"SELECT '\'' AS x FROM t -- don't", {"t"}),
        (r"SELECT '\'' /* ' */ FROM t WHERE x = '\\'", {"t"}),
        (r"""SELECT r'\', "\\\"", R"\" FROM t, u WHERE s = 'it\'s, from w' """, {"t", "u"}),
        ("SELECT 1 -- don't\rFROM t", {"t"}),
        ("SELECT 1 -- as \\\n it's\n FROM t WHERE x = 'y'", {"t"}),
        ("SELECT * FROM VALUES (1, 'a'), (2, 'b') AS v (a, b), t", {"t"}),
        ("SELECT * FROM VALUES 1, 2 v, t", {"t"}),
        ("SELECT * FROM u AS values, t AS\n                                     window, w", {"t", "u", "w"}),
        ("SELECT t.from, u . where FROM t JOIN u ON t.limit = u.limit, v", {"t", "u", "v"}),
    ],
)
def test_names_stand_where_tables_may(text: str, names: set[str]) -> None:
    assert {"/".join(name) for name in text_facts(text).tables or ()} == names
    assert text_facts(text).tables is not None


@pytest.mark.parametrize("text", ["DROP VIEW v", "-- why\rALTER TABLE t", " /* it's */ -- SELECT\n\tdrop TABLE t"])
def test_what_takes_a_name_away_may_have_a_comment_before_it(text: str) -> None:
    assert text_facts(text).takes_names
    assert not text_facts("/* DROP */ SELECT 1 -- drop").takes_names


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM t",
        "EXPLAIN UPDATE t SET a = 1",
        "SELECT 1; SELECT * FROM t",
        "SELECT 'open FROM t",
        r"SELECT 'open\' FROM t",
        "SELECT 'open FROM t\\",
        'SELECT "open FROM t',
        "SELECT /* /* */ */ 1 FROM t",
        "SELECT ` FROM t",
        "SELECT \ue0000\ue001 FROM t",
        "SELECT 'x' FROM İ",
        "SELECT x FROM t . 1",
        "SELECT x FROM table_changes('a.t', 0)",
    ],
)
def test_what_a_glance_does_not_tell_is_left_to_a_full_reading(text: str) -> None:
    assert text_facts(text).tables is None
