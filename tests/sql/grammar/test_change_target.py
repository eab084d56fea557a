"""The table or view whose rows a statement changes, found without knowing whether it is one of ours."""

from __future__ import annotations

import pytest

from anabranch._expressions.dialect import TokenizedText
from anabranch._sql.grammar.change_target import find_change_target


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM a.`b c` WHERE x = 1",
        "update a.`b c` SET x = 1",
        "MERGE INTO a.`b c` USING s ON TRUE WHEN MATCHED THEN DELETE",
        "MERGE WITH SCHEMA EVOLUTION INTO a.`b c` USING s ON TRUE WHEN MATCHED THEN DELETE",
        "INSERT OVERWRITE TABLE a.`b c` VALUES (1)",
        "INSERT WITH SCHEMA EVOLUTION INTO a.`b c` SELECT 1",
        "TRUNCATE TABLE a.`b c`",
        "EXPLAIN FORMATTED DELETE FROM a.`b c`",
        "WITH s AS (SELECT 1) INSERT INTO a.`b c` SELECT * FROM s",
        "EXPLAIN WITH s AS (SELECT 1) INSERT INTO a.`b c` SELECT * FROM s",
    ],
)
def test_the_target_of_a_change_is_found_where_it_stands(text: str) -> None:
    target = find_change_target(TokenizedText(text))
    assert target is not None
    assert target.name == ("a", "b c")
    assert text[slice(*target.span)] == "a.`b c`"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t",
        "SELECT delete FROM t",
        "WITH s AS (SELECT 1) SELECT update FROM s",
        "EXPLAIN SELECT * FROM t WHERE a = 'DELETE FROM t'",
        "DELETE FROM",
        "DELETE FROM t WHERE a = 'open",
    ],
)
def test_a_statement_that_changes_no_rows_has_no_target(text: str) -> None:
    assert find_change_target(TokenizedText(text)) is None
