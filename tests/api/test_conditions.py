"""Conditions and values that speak of a table's columns by its alias. No JVM is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import anabranch
from anabranch import errors
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.predicates import Compare
from anabranch._sql.conditions import resolve_condition, resolve_values
from anabranch.commands.opening import open_log


class Engine:
    """An engine as far as texts are understood by it."""

    spark = None  # asked only for texts with ${…}

    def settings(self) -> dict[str, str]:
        return {"spark.sql.session.timeZone": "UTC"}

    def has_usual_quotes(self) -> bool:
        return True

    def are_builtin(self, functions: Any) -> bool:
        return True


ENGINE: Any = Engine()


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    anabranch.append(tmp_path / "t", [{"id": 1, "s": {"id": 5}}])
    return open_log(tmp_path / "t").snapshot()


@pytest.mark.parametrize("text", ["t.id = 1", "T.id = 1", "`t`.id = 1", "id = 1"])
def test_a_condition_by_the_alias_skips_files_as_one_without(snapshot: Snapshot, text: str) -> None:
    found = resolve_condition(text, snapshot, ENGINE, alias="t")
    assert (found.predicate, found.row_local) == (Compare("id", "=", 1), True)
    assert found.expression == "id = 1"


def test_a_subquery_keeps_its_words_and_the_alias(snapshot: Snapshot) -> None:
    text = "EXISTS (SELECT 1 FROM v AS t WHERE t.id = 2)"
    found = resolve_condition(text, snapshot, ENGINE, queries=True, alias="t")
    assert (found.expression, found.alias, found.asks) == (text, "t", True)


def test_values_speak_by_the_alias(snapshot: Snapshot) -> None:
    found = resolve_values({"t.id": "t.id + 1"}, snapshot, ENGINE, "t")
    assert {name: str(value) for name, value in found.items()} == {"id": "id + 1"}


def test_an_alias_that_is_a_column_too_is_refused_where_it_could_mean_both(snapshot: Snapshot) -> None:
    assert resolve_condition("id = 1", snapshot, ENGINE, alias="s").predicate == Compare("id", "=", 1)
    with pytest.raises(errors.InvalidCondition, match="choose another alias"):
        resolve_condition("s.id = 5", snapshot, ENGINE, alias="S")
    with pytest.raises(errors.InvalidCondition, match="choose another alias"):
        resolve_values({"id": "`s`.id"}, snapshot, ENGINE, "s")


@pytest.mark.parametrize("given", [5, True, ["id = 1"]])
def test_what_is_no_condition_is_caught_as_a_type_error_and_a_value_error(snapshot: Snapshot, given: Any) -> None:
    for kind in (TypeError, ValueError, errors.InvalidOption):
        with pytest.raises(kind, match="SQL text or a Column"):
            resolve_condition(given, snapshot, ENGINE)
