"""Statements stand in one registry, and nothing else lists them."""

from __future__ import annotations

import inspect

import pytest

from anabranch._catalog.table_names import path_in
from anabranch._sql import reading
from anabranch._sql.grammar import row_values, view_values
from anabranch._sql.grammar import statement_values as v
from anabranch._sql.grammar.first_words import KNOWN
from anabranch._sql.grammar.parts import Query, Statement
from anabranch._sql.prefilter import TextFacts
from anabranch._sql.registry import DELTA_ONLY, ENTRIES, entry_of


def test_every_value_has_an_entry_and_every_entry_its_functions() -> None:
    known = [each for module in (v, row_values, view_values) for each in vars(module).values()]
    values = {each for each in known if inspect.isclass(each) and issubclass(each, Statement)}
    assert values - {Statement, Query} == {each.value for each in ENTRIES} - {None}
    of_names = {v.DropTable, v.RenameTable, None}
    assert all((each.run is None) == (each.value in of_names) for each in ENTRIES)


def test_the_first_word_of_every_entry_is_known_as_one_with_which_a_statement_begins() -> None:
    assert {word for each in ENTRIES for word in each.first} <= KNOWN


def test_of_statements_that_begin_alike_the_longer_words_come_first() -> None:
    words = [each.words.split() for each in ENTRIES if "…" not in each.words]
    for i, first in enumerate(words):
        assert not [later for later in words[i + 1 :] if len(later) > len(first) and later[: len(first)] == first]


@pytest.mark.parametrize("word", sorted(DELTA_ONLY))
def test_what_only_delta_has_is_ours_by_its_first_word(word: str) -> None:
    assert TextFacts(f" {word.lower()} something").is_ours


@pytest.mark.parametrize(
    ("text", "value", "verb", "reshapes"),
    [
        ("DELETE FROM @T", row_values.DeleteRows, "DELETE", False),
        ("create or replace table @T (a int)", v.CreateTable, "CREATE", False),
        ("CREATE TABLE @T CLONE delta.`/s`", v.CloneTable, "CLONE", False),
        ("CREATE OR REPLACE GLOBAL TEMP VIEW x AS SELECT * FROM @T", view_values.CreateTempView, None, False),
        ("CACHE TABLE @T", v.CacheTable, None, False),
        ("CACHE LAZY TABLE x AS SELECT * FROM @T", view_values.CacheView, None, False),
        ("ALTER TABLE @T CHANGE a COMMENT 'x'", v.ChangeTableColumn, "ALTER", True),
        ("ALTER TABLE @T ALTER COLUMN a SYNC IDENTITY", v.SyncTableIdentity, "SYNC IDENTITY", False),
        ("ALTER TABLE @T ADD COLUMN a INT", v.AddTableColumns, "ALTER", True),
        ("DESC HISTORY @T", v.DescribeHistory, None, False),
        ("DESCRIBE @T", v.DescribeTable, None, False),
        ("RESTORE @T VERSION AS OF 1", v.RestoreTable, "RESTORE", True),
    ],
)
def test_an_entry_says_what_depends_on_the_kind_of_a_statement(
    text: str, value: type, verb: str | None, reshapes: bool
) -> None:
    found = reading.statement(text.replace("@T", "delta.`/t`"), None, path_in)
    assert isinstance(found, value)
    entry = entry_of(found)
    assert (entry.value, entry.verb, entry.reshapes) == (value, verb, reshapes)
