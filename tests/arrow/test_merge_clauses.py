"""Clauses whose parts are all known are computed without Spark; where a part is not, no clause of the kind is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anabranch._arrow.merge_clauses import ActingClause, columns_of, resolve_clauses
from anabranch._arrow.merge_source import SourceColumns
from anabranch._protocol.expressions.computation import Computation, computation_of_syntax
from anabranch._protocol.expressions.parser import parse_expression
from anabranch._protocol.expressions.resolving import Scope
from anabranch._protocol.expressions.tree import Column, Constant
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.merges import NOTHING_MORE, Clause, MergePlan, ReservedIdentity, SourceColumn
from anabranch._protocol.rules.table_rules import Rules
from anabranch._protocol.schema.assignments import Members
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import Field, Struct
from anabranch._protocol.store_assignment import ComputedExpression
from anabranch._protocol.unsupported import Unsupported
from tests.spark.tables import file_set

SOURCE = SourceColumns(("id", "s", "padded", "list", "Two", "two"), ("integer", "string", None, None, "long", "long"))
TYPES = {"id": "integer", "s": "string", "padded": "string", "two": "long"}


@pytest.fixture
def files(tmp_path: Path) -> FileSet:
    short = Field("short", "string", metadata={LENGTH: "varchar(2)"})
    return file_set(tmp_path, [], Struct((Field("id", "long"), Field("s", "string"), short, Field("day", "date"))))


def over_source(text: str) -> ComputedExpression:
    return ComputedExpression(
        text,
        computation_of_syntax(parse_expression(text), Scope(lambda parts: Column(("source", *parts), TYPES[parts[0]]))),
    )


def update(files: FileSet, condition: Any = None, **values: Any) -> ActingClause | None:
    matching = MergePlan(None, (Clause("matched", "update", condition, values),))
    try:
        (found,) = resolve_clauses(matching, "matched", files, SOURCE)
    except Unsupported:
        return None
    return found


def test_values_are_brought_to_the_columns_types(files: FileSet) -> None:
    found = update(files, over_source("id > 5"), ID=SourceColumn("id"), s=over_source("lower(s)"))
    assert found is not None
    assert {name: value.tree.type for name, value in found.values.items()} == {"id": "long", "s": "string"}
    assert found.updates
    assert found.condition.is_condition


def test_a_clause_without_a_condition_acts_always(files: FileSet) -> None:
    found = update(files, s=SourceColumn("s"))
    assert found is not None
    assert found.condition == NOTHING_MORE
    assert found.values == {"s": Computation(Column(("source", "s"), "string"))}


@pytest.mark.parametrize(
    "value",
    [
        SourceColumn("id", ("a",)),
        SourceColumn("padded"),
        SourceColumn("list"),
        SourceColumn("two"),
        SourceColumn("nope"),
        over_source("padded"),
        over_source("two + 1"),
        over_source("rand()"),
        ReservedIdentity(range(3)),
        Members({"a": SourceColumn("s")}),
        "text of the engine",
    ],
    ids=str,
)
def test_what_only_spark_computes_leaves_all_clauses_of_the_kind_to_it(files: FileSet, value: Any) -> None:
    assert update(files, s=value) is None
    assert update(files, value, s=SourceColumn("s")) is None


def test_what_spark_looks_at_when_it_stores_it_is_left_to_it(files: FileSet) -> None:
    assert update(files, short=SourceColumn("s")) is None
    assert update(files, short=over_source("s")) is None
    assert update(files, day=over_source("id")) is None
    assert update(files, over_source("id + 1"), s=SourceColumn("s")) is None, "a number is no condition"


def test_an_insert_stores_null_in_what_it_does_not_name_unless_that_has_a_default(files: FileSet) -> None:
    matching = MergePlan(None, (Clause("not matched", "insert", None, {"id": SourceColumn("id")}),))
    found = resolve_clauses(matching, "not matched", files, SOURCE)
    assert {name for name, value in found[0].values.items() if isinstance(value.tree, Constant)} == {
        "s",
        "short",
        "day",
    }
    given = replace(files, rules=Rules(defaults={"s": "'x'"}))
    with pytest.raises(Unsupported, match="s is computed by Spark"):
        resolve_clauses(matching, "not matched", given, SOURCE)


def test_only_the_clauses_of_one_kind_are_asked_for(files: FileSet) -> None:
    kinds = MergePlan(None, (Clause("not matched by source", "delete", "rand() < 1"), Clause("matched", "delete")))
    assert resolve_clauses(kinds, "matched", files, SOURCE) == [ActingClause(1, NOTHING_MORE, False, {})]
    assert resolve_clauses(kinds, "not matched", files, SOURCE) == []


def test_the_tables_columns_that_computations_read_are_known_by_name() -> None:
    one = Computation(Column(("target", "b", "member"), "long"))
    assert columns_of([one, Computation(Column(("source", "c"), "long")), NOTHING_MORE]) == ["b"]
