"""A statement is cut into words once, and its condition read into a tree once, whoever asks; no JVM is needed."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from anabranch._catalog.table_names import path_in
from anabranch._expressions import Context
from anabranch._expressions import dialect as sql
from anabranch._expressions.dialect import TokenizedText
from anabranch._protocol.expressions import computation
from anabranch._protocol.schema.types import Field, Struct
from anabranch._sql import reading
from anabranch._sql.executor import row_statements

SCHEMA = Struct((Field("id", "long"), Field("s", "string"), Field("at", "timestamp")))
CONTEXT = Context("/t", SCHEMA, dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "UTC", lambda names: True)


class Counts:
    def __init__(self) -> None:
        self.tokenized: list[str] = []
        self.parsed: list[str] = []


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    """How often sqlglot's tokenizer is called, and the parser of conditions, by whomever."""
    found = Counts()
    tokenize, parse = sql.AnabranchSQL.Tokenizer.tokenize, computation.parse_expression

    def counted_tokenize(self: Any, text: str) -> Any:
        found.tokenized.append(text)
        return tokenize(self, text)

    def counted_parse(text: str, columns: frozenset[str]) -> Any:
        found.parsed.append(text)
        return parse(text, columns)

    monkeypatch.setattr(sql.AnabranchSQL.Tokenizer, "tokenize", counted_tokenize)
    monkeypatch.setattr(computation, "parse_expression", counted_parse)
    return found


def deleted(where: str, args: Any = None) -> Any:
    text = TokenizedText(f"DELETE FROM delta.`/t` AS t WHERE {where}")
    statement: Any = reading.statement(text, args, path_in)
    return row_statements.delete_command(statement, statement.where.source, CONTEXT).where


@pytest.mark.parametrize(
    "where",
    [
        "id > 3 AND s = 'x'",
        "t.id > 3 AND (t.s IN ('a', 'b') OR t.at < TIMESTAMP'2024-01-01 00:00:00')",
        "upper(s) = 'X' AND length(t.s) < 10L",
        "((((((((((((((((((((((id > 3))))))))))))))))))))))",
        "CAST(at AS DATE) >= '2020-01-02' AND year(at) = 2020",
    ],
)
def test_a_delete_cuts_its_text_into_words_once_and_reads_its_condition_once(where: str, counts: Counts) -> None:
    found = deleted(where)
    assert found.row_local
    assert found.columns
    assert len(counts.tokenized) == 1
    assert len(counts.parsed) == 1


@pytest.mark.parametrize(("where", "args"), [("id = :n", {"n": 3}), ("at < current_timestamp()", None)])
def test_where_a_value_comes_into_a_condition_that_is_cut_once_more(where: str, args: Any, counts: Counts) -> None:
    assert deleted(where, args).row_local
    assert len(counts.tokenized) == 2
    assert len(counts.parsed) == 1


def test_a_condition_with_a_subquery_is_left_to_spark(counts: Counts) -> None:
    assert deleted("id IN (SELECT 1)").asks
    assert len(counts.tokenized) == 1
    assert not counts.parsed


def test_arguments_with_words_between_them_are_read_at_once(counts: Counts) -> None:
    assert deleted("extract(YEAR FROM at) = 2020").columns == {"at"}
    assert len(counts.parsed) == 1


def test_parts_and_remains_of_a_text_have_the_tokens_that_they_would_be_cut_into() -> None:
    text = "a.b = 10L AND `c d` <> 'x' /* e */ OR a.b.f IS NOT NULL"
    whole = TokenizedText(text)

    def shown(given: TokenizedText) -> list[Any]:
        return [(each.token_type, each.text, each.start, each.end) for each in given.raw]

    for start, stop in ((0, 9), (6, 9), (14, len(text))):
        assert shown(whole.part(start, stop)) == shown(TokenizedText(text[start:stop]))
    at = text.index("a.b.f")
    remains = whole.without([(0, 2), (at, at + 4)])
    assert remains.text == "b = 10L AND `c d` <> 'x' /* e */ OR f IS NOT NULL"
    assert shown(remains) == shown(TokenizedText(remains.text))
