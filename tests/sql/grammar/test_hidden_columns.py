"""A query that asks for ``_metadata`` is told apart from others, and its stars from other stars."""

from __future__ import annotations

import pytest

from anabranch._catalog.table_names import path_in
from anabranch._expressions.dialect import tokenize
from anabranch._sql import reading
from anabranch._sql.grammar import hidden_columns
from anabranch._sql.grammar.parts import Query


def query(text: str) -> Query:
    found = reading.statement(text, None, path_in)
    assert isinstance(found, Query)
    return found


@pytest.mark.parametrize(
    ("text", "stars"),
    [
        ("SELECT * FROM t", 1),
        ("SELECT DISTINCT *, a FROM t", 1),
        ("SELECT a, t.* FROM t", 1),
        ("SELECT struct(*) FROM t", 1),
        ("SELECT count(*), a * b, (a + b) * 2 FROM t", 0),
    ],
)
def test_a_star_for_columns_is_no_product_and_no_count(text: str, stars: int) -> None:
    assert len(hidden_columns.stars(tokenize(text))) == stars


def test_a_query_says_where_its_stars_are() -> None:
    found = query("SELECT *, _metadata.file_name FROM delta.`/t`")
    assert [found.text[:place] for place in found.stars] == ["SELECT *"]
    assert found.references[0].asks_metadata
    assert found.refused is None


def test_other_queries_say_nothing_of_it() -> None:
    for text in ("SELECT * FROM delta.`/t`", "SELECT '_metadata' FROM delta.`/t` NATURAL JOIN u"):
        found = query(text)
        assert not found.references[0].asks_metadata
        assert (found.stars, found.refused) == ((), None)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, _metadata.file_name FROM delta.`/t` NATURAL JOIN u",
        "SELECT * FROM (SELECT a, _metadata.file_name FROM delta.`/t`)",
        "SELECT *, t._metadata FROM delta.`/t` AS t JOIN delta.`/u` AS u ON t.a = u.a",
        "SELECT * EXCEPT (a), _metadata FROM delta.`/t`",
        "FROM delta.`/t` |> WHERE _metadata.file_name = 'a'",
    ],
)
def test_where_more_than_a_star_means_all_columns_it_says_so(text: str) -> None:
    refused = query(text).refused
    assert refused is not None
    assert refused.startswith("_metadata ")
