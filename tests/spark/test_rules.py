"""Rules of a table are held without Spark just as the session means them, and asked about once."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from anabranch.errors import NotBuilt
from anabranch.protocol.actions import empty_files
from anabranch.protocol.expressions.resolving import ALTERING
from anabranch.protocol.layout.file_sets import FileSet
from anabranch.protocol.rules.table_rules import Check, Rules
from anabranch.protocol.schema.types import Field, Struct, to_arrow
from anabranch.spark import rule_columns
from anabranch.spark.rules import obeying_here

SCHEMA = Struct((Field("n", "decimal(10,2)"), Field("s", "string")))
ROWS = pa.table([pa.array([Decimal("6.00")], pa.decimal128(10, 2)), pa.array(["x"])], schema=to_arrow(SCHEMA))


def files_of(*checks: str) -> FileSet:
    rules = Rules(checks=tuple(Check(f"c{i}", text, frozenset(SCHEMA.names)) for i, text in enumerate(checks)))
    return FileSet("/t", SCHEMA, (), empty_files(), {}, rules)


def session(**said: str) -> Any:
    usual = {name: each.usual for name, each in ALTERING.items()}
    return SimpleNamespace(conf=SimpleNamespace(get={**usual, **said}.__getitem__))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions that the catalog is asked about."""
    found: list[str] = []

    def are_builtin(spark: Any, names: Iterable[str]) -> bool:
        found.extend(names)
        return True

    monkeypatch.setattr(rule_columns, "are_builtin", are_builtin)
    return found


def test_each_function_is_looked_up_once_for_all_rules_and_clauses(asked: list[str]) -> None:
    files = files_of("abs(n) > 0", "abs(n) < 9 AND length(s) = 1")
    several = [(ROWS, frozenset({"n"})), (ROWS, frozenset({"s"}))]
    assert obeying_here(session(), several, files).num_rows == 2
    assert sorted(asked) == ["abs", "length"]


def test_a_rule_that_a_setting_alters_is_left_to_spark(asked: list[str]) -> None:
    rows, files = [(ROWS, frozenset({"n"}))], files_of("n / 3 = 2")
    assert obeying_here(session(), rows, files).num_rows == 1
    with pytest.raises(NotBuilt):
        obeying_here(session(**{"spark.sql.legacy.literal.pickMinimumPrecision": "false"}), rows, files)
