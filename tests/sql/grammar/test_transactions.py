"""How SQL spells transactions of several statements, and which texts are none."""

from __future__ import annotations

import time

import pytest

from anabranch._sql.grammar.transactions import Atomic, Begin, Commit, RollBack, transaction_text
from anabranch.errors import NotBuilt, SqlSyntaxError


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("BEGIN TRANSACTION", Begin()),
        ("begin  transaction;", Begin()),
        ("-- now\nBEGIN /* all */ TRANSACTION", Begin()),
        ("COMMIT", Commit()),
        ("COMMIT WORK;", Commit()),
        ("ROLLBACK TRANSACTION", RollBack()),
        ("BEGIN ATOMIC DELETE FROM t; END", Atomic(("DELETE FROM t",))),
        ("BEGIN ATOMIC\n  DELETE FROM t WHERE s = ';';\n  -- the end; of it\n  SELECT 1;\nEND;", None),
        ("BEGIN ATOMIC END", Atomic(())),
    ],
)
def test_each_spelling_of_databricks_is_known(text: str, parsed: object) -> None:
    found = transaction_text(text)
    if parsed is None:
        assert isinstance(found, Atomic)
        assert [statement.split()[0] for statement in found.statements] == ["DELETE", "--"]
    else:
        assert found == parsed


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'COMMIT'",
        "SELECT commit FROM t",
        "DELETE FROM t WHERE s = 'BEGIN TRANSACTION'",
        "BEGIN SELECT 1; END",
        "COMMIT AND CHAIN",
        "BEGIN WORK",
        "SELECT 'COMMIT",
        "",
    ],
)
def test_other_texts_are_left_alone(text: str) -> None:
    assert transaction_text(text) is None


@pytest.mark.parametrize("text", ["BEGIN ATOMIC DELETE FROM t", "BEGIN ATOMIC DELETE FROM t; END x", "BEGIN ATOMIC"])
def test_a_block_without_its_end_is_refused(text: str) -> None:
    with pytest.raises(SqlSyntaxError):
        transaction_text(text)


def test_what_follows_the_end_of_a_block_is_refused_as_that() -> None:
    with pytest.raises(SqlSyntaxError, match="nothing follows the END"):
        transaction_text("BEGIN ATOMIC DELETE FROM t; END; SELECT 1")


@pytest.mark.parametrize("word", ["IF", "WHILE", "DECLARE", "FOR", "BEGIN"])
def test_a_block_does_not_decide_what_runs(word: str) -> None:
    with pytest.raises(NotBuilt, match=word):
        transaction_text(f"BEGIN ATOMIC {word} x; END")


def test_a_long_text_is_read_in_linear_time() -> None:
    began = time.process_time()
    transaction_text("BEGIN ATOMIC " + "DELETE FROM t WHERE s = ';' AND /* ; */ x; " * 2_000 + "END")
    assert time.process_time() - began < 5
