"""Sites of sessions: rules of a table are held without Spark just as the session means them, and asked about once."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from anabranch._arrow.site import site_without_spark
from anabranch._protocol.actions import empty_files
from anabranch._protocol.expressions.resolving import ALTERING
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.row_rules import enforce_rules
from anabranch._protocol.rules.table_rules import Check, Rules
from anabranch._protocol.schema.types import Field, Struct, to_arrow
from anabranch._spark.columns import rule_columns
from anabranch._spark.writing import sites
from anabranch._spark.writing.sites import writing_site
from anabranch._storage import open_store
from anabranch.errors import NotBuilt

SCHEMA = Struct((Field("n", "decimal(10,2)"), Field("s", "string")))
ROWS = pa.table([pa.array([Decimal("6.00")], pa.decimal128(10, 2)), pa.array(["x"])], schema=to_arrow(SCHEMA))


def files_of(*checks: str) -> FileSet:
    rules = Rules(checks=tuple(Check(f"c{i}", text, frozenset(SCHEMA.names)) for i, text in enumerate(checks)))
    return FileSet("/t", SCHEMA, (), empty_files(), {}, rules)


def session(**said: str) -> Any:
    usual = {name: each.usual for name, each in ALTERING.items()}
    return SimpleNamespace(conf=SimpleNamespace(get={**usual, **said}.__getitem__), version="4.1.0")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions that the catalog is asked about."""
    found: list[str] = []

    def are_builtin(spark: Any, names: Iterable[str]) -> bool:
        found.extend(names)
        return True

    monkeypatch.setattr(rule_columns, "are_builtin", are_builtin)
    monkeypatch.setattr(sites, "site_of", lambda spark, root: site_without_spark(open_store("/t")))
    return found


def held(files: FileSet, **said: str) -> pa.Table:
    """The rows as the table's rules want them, in a session that says so."""
    altered = writing_site(session(**said), files).altered
    return enforce_rules(files.root, ROWS, files.schema, files.rules, frozenset({"n"}), altered)


def test_each_function_is_looked_up_once_for_all_rules(asked: list[str]) -> None:
    assert held(files_of("abs(n) > 0", "abs(n) < 9 AND length(s) = 1")).num_rows == 1
    assert sorted(asked) == ["abs", "length"]


def test_a_rule_that_a_setting_alters_is_left_to_spark(asked: list[str]) -> None:
    files = files_of("n / 3 = 2")
    assert held(files).num_rows == 1
    with pytest.raises(NotBuilt):
        held(files, **{"spark.sql.legacy.literal.pickMinimumPrecision": "false"})


def test_of_rows_that_are_copied_no_rule_is_looked_at(asked: list[str]) -> None:
    site = writing_site(
        session(**{"spark.sql.legacy.literal.pickMinimumPrecision": "false"}), files_of("abs(n) > 0"), obeys=False
    )
    assert (site.altered, asked) == (frozenset(), [])
