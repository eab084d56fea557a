"""The condition by which new rows select rows to replace: which side its names belong to, and what is equal."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from anabranch import errors
from anabranch._expressions import Context, MergeColumns
from anabranch._expressions.replacing import replace_on, replace_using
from anabranch._protocol.merges import NOTHING_MORE, Clause
from anabranch._protocol.predicates import And, Compare, Unknown
from anabranch._protocol.schema.types import Field, Struct

TABLE = Struct(
    (Field("id", "long"), Field("day", "date"), Field("a b", "string"), Field("st", Struct((Field("m", "long"),))))
)
ROWS = ("day", "id", "other", "st")
CONTEXT = Context("/t", TABLE, dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "UTC", lambda names: True)


def sides(target: str | None = None, source: str | None = None, rows: tuple[str, ...] = ROWS) -> MergeColumns:
    return MergeColumns(TABLE, rows, target, source)


def refused(on: str, target: str | None = None, source: str | None = None) -> errors.InvalidCondition:
    with pytest.raises(errors.InvalidCondition) as error:
        replace_on(on, sides(target, source), CONTEXT)
    return error.value


def test_the_plan_deletes_what_matches_and_does_nothing_else() -> None:
    where, plan = replace_on("t.id = s.id", sides("t", "s"), CONTEXT)
    assert plan.clauses == (Clause("matched", "delete"),)
    assert (plan.keys, plan.rest) == ((("id", "id"),), NOTHING_MORE)
    assert where.text == "t.id = s.id"


def test_a_part_on_the_table_alone_spares_files() -> None:
    where, _ = replace_on("t.id = s.id AND t.id > 5", sides("t", "s"), CONTEXT)
    assert where.predicate == And((Unknown(), Compare("id", ">", 5)))


@pytest.mark.parametrize("on", ["true", "id_of(other)", "other = 1", "`a b` = other", "current_date = other"])
def test_each_name_may_belong_to_either_side_alone(on: str) -> None:
    assert replace_on(on, sides(), CONTEXT)[0].text == on


@pytest.mark.parametrize(
    ("on", "columns"),
    [
        ("id = other", "`id`"),
        ("id = id", "`id`"),
        ("t.id = s.id AND day = s.day", "`day`"),
        ("st.m = 1", "`st`.`m`"),
        ("day = 1 OR id = 1", "`day`, `id`"),
    ],
)
def test_a_name_that_both_sides_have_is_refused(on: str, columns: str) -> None:
    error = refused(on, "t", "s")
    assert error.getCondition() == "DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION"
    assert (error.facts["columns"], error.getSqlState()) == (columns, "42702")


def test_one_alias_of_both_sides_is_ambiguous() -> None:
    assert refused("s.id = 1", "s", "s").facts["columns"] == "`s`.`id`"


@pytest.mark.parametrize(("on", "columns"), [("t.id = s.id", "`t`.`id`, `s`.`id`"), ("none = 1", "`none`")])
def test_a_name_that_no_side_has_is_refused(on: str, columns: str) -> None:
    error = refused(on)
    assert error.getCondition() == "DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION"
    assert (error.facts["columns"], error.getSqlState()) == (columns, "42703")


def using(*names: str, by_position: bool = False, rows: tuple[str, ...] = ROWS) -> Any:
    return replace_using(names, sides("t", "s", rows), CONTEXT, by_position=by_position)


def test_using_requires_equality_of_the_named_columns() -> None:
    where, plan = using("ID", "day", "ID")
    assert (plan.keys, plan.rest) == ((("id", "id"), ("day", "day")), NOTHING_MORE)
    assert where.text == "USING (ID, day, ID)"


def test_using_takes_columns_of_any_name_but_no_members() -> None:
    assert using("a b", rows=("a b",))[1].keys == (("a b", "a b"),)
    with pytest.raises(errors.UnknownUsingColumn):
        using("st.m")


@pytest.mark.parametrize(
    ("name", "side", "columns"),
    [("other", "table", "`a b`, `day`, `id`, `st`"), ("a b", "query", "`day`, `id`, `other`, `st`")],
)
def test_a_column_that_a_side_lacks_is_named_with_those_that_it_has(name: str, side: str, columns: str) -> None:
    with pytest.raises(errors.UnknownUsingColumn) as error:
        using(name)
    assert error.value.getCondition() == "UNRESOLVED_INSERT_REPLACE_USING_COLUMN"
    assert (error.value.facts["side"], error.value.facts["columns"]) == (side, columns)


def test_columns_that_are_stored_by_position_must_be_at_the_same_place() -> None:
    assert using("st", by_position=True)[1].keys == (("st", "st"),)
    with pytest.raises(errors.MisalignedUsingColumns) as error:
        using("id", "st", "day", by_position=True)
    assert error.value.getCondition() == "INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS"
    assert error.value.facts["columns"] == "`id`, `day`"
