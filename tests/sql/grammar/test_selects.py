"""Which queries select values of the rows of one table, and do nothing else."""

from __future__ import annotations

import pytest

from anabranch._expressions.dialect import TokenizedText
from anabranch._sql.grammar.parts import Query
from anabranch._sql.grammar.reader import Reader
from anabranch._sql.grammar.selects import SelectRows, rows_of_one_table

SIMPLE = {
    "SELECT * FROM t": (["*"], None),
    "select a, b + 1 AS c FROM t": (["a", "b + 1"], None),
    "SELECT q.a FROM t AS q WHERE q.a > 1 AND b IN (1, 2)": (["q.a"], "q.a > 1 AND b IN (1, 2)"),
    "SELECT * FROM (SELECT lower(a) low FROM t VERSION AS OF 3 WHERE a LIKE 'x%') AS s": (
        ["lower(a)"],
        "a LIKE 'x%'",
    ),
    "SELECT * FROM (SELECT * FROM t)": (["*"], None),
    "SELECT a FROM t -- all of them": (["a"], None),
}
OTHERS = (
    "SELECT DISTINCT a FROM t",
    "SELECT ALL a FROM t",
    "SELECT count(*) FROM t",
    "SELECT a FROM t LIMIT 1",
    "SELECT a FROM t WHERE a > 1 ORDER BY a",
    "SELECT a FROM t GROUP BY a",
    "SELECT a FROM t, t",
    "SELECT a FROM t JOIN u ON true",
    "SELECT a FROM t LEFT JOIN u USING (a)",
    "SELECT a FROM t q(a, b)",
    "SELECT a FROM t TABLESAMPLE (10 PERCENT)",
    "SELECT a FROM t PIVOT (max(a) FOR b IN (1))",
    "SELECT a FROM t LATERAL VIEW explode(b) x AS y",
    "SELECT a FROM t WHERE a IN (SELECT b FROM u)",
    "SELECT a, (SELECT 1) FROM t",
    "SELECT row_number() OVER (ORDER BY a) FROM t",
    "SELECT * EXCEPT (a) FROM t",
    "SELECT _metadata.file_name FROM t",
    "SELECT a FROM t UNION SELECT 1",
    "SELECT a, FROM t",
    "SELECT a FROM t WHERE",
    "SELECT * FROM (SELECT a FROM t) s WHERE a > 1",
    "SELECT * FROM (SELECT a FROM t) s(b)",
    "SELECT * FROM (SELECT a FROM t) s JOIN u",
    "SELECT b FROM (SELECT a AS b FROM t) s",
    "SELECT * FROM (SELECT * FROM (SELECT a FROM t))",
    "WITH c AS (SELECT 1) SELECT a FROM t",
    "FROM t SELECT a",
    "FROM t",
    "TABLE t",
    "VALUES (1)",
)


def parsed(text: str) -> SelectRows | None:
    return rows_of_one_table(query_of(text))


def query_of(text: str) -> Query:
    locate = {"t": "/data/t", "u": "/data/u"}
    return Reader(TokenizedText(text), None, lambda name: locate.get(name[-1])).query()


@pytest.mark.parametrize("text", SIMPLE)
def test_a_query_of_one_tables_rows_has_its_values_and_its_condition(text: str) -> None:
    found = parsed(text)
    assert found is not None
    values, where = SIMPLE[text]
    assert [item.value.text if item.value else "*" for item in found.selected] == values
    assert (found.where and found.where.text) == where
    assert found.table.location == "/data/t"
    assert found.is_whole == (values == ["*"] and where is None)


@pytest.mark.parametrize("text", OTHERS)
def test_any_other_query_is_none(text: str) -> None:
    assert parsed(text) is None


def test_a_query_with_parameters_is_none() -> None:
    text = "SELECT a FROM t WHERE a > :least"
    assert rows_of_one_table(Reader(TokenizedText(text), {"least": 1}, lambda name: "/data/t").query()) is None
