"""Which texts are computed without Spark in a session, and which could mean something else to it."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pyarrow as pa
import pytest

from anabranch._expressions import assignment, condition
from anabranch._expressions.computations import HIDDEN
from anabranch._expressions.context import Context
from anabranch._protocol.schema.types import Field, Struct

SCHEMA = Struct(
    (
        Field("x", "long"),
        Field("two words", "double"),
        Field("user", "string"),
        Field("s", Struct((Field("x", "long"),))),
        Field("code", "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}),
        Field("name", "string", metadata={"__COLLATIONS": {"name": "spark.UNICODE_CI"}}),
    )
)
CONTEXT = Context("t", SCHEMA, dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "UTC", lambda names: True)
ROWS = pa.RecordBatch.from_pydict({"x": [1, None], "two words": [0.5, 1.5], "user": ["a", "b"]})


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("current_date()", [dt.date(2024, 1, 1)] * 2),
        ("current_timestamp()", [CONTEXT.now] * 2),
        ("TIMESTAMP '2024-01-01 00:00:00'", [CONTEXT.now] * 2),
        ("`two words` + x", [1.5, None]),
        ("upper(`user`)", ["A", "B"]),
    ],
)
def test_a_value_is_computed_with_the_clock_of_the_command(text: str, values: list[object]) -> None:
    found = assignment(text, CONTEXT)
    assert found.computation.values(ROWS).to_pylist() == values


def test_the_tables_alias_says_nothing() -> None:
    found = assignment("t.x + 1", CONTEXT, ("t",))
    assert found.computation.values(ROWS).to_pylist() == [2, None]


@pytest.mark.parametrize(
    "text",
    [
        *("1e3", "x + 1e3", "5 {# foo #}", "user", "session_user", "x y", "'it\\'s'", '"x"', "x + '1'"),
        *("TIMESTAMPTZ '2020-01-01 00:00:00'", "TIMESTAMP(3) '2020-01-01 00:00:00'", "TIMESTAMP WITH TIME ZONE '2020'"),
        *("CAST('2020-01-01 00:00:00' AS TIMESTAMP)", "'2020-01-01 00:00:00Z'::timestamp", "rand()", "uuid()", "+'a'"),
        *("CAST('2020-01-01' AS DATE DEFAULT 1 ON CONVERSION ERROR)", "CAST('2020-01-01' AS DATE FORMAT 'x')"),
        *("code", "code = 'a'", "lower(name)", "name = 'x'", "input_file_name()", "some.function(x)", "`user`(x)"),
    ],
)
def test_what_a_setting_or_a_name_decides_is_left_to_spark(text: str) -> None:
    assert assignment(text, CONTEXT).computation.reason is not None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *(("lcase(`user`)", "lcase"), ("ucase(`user`)", "ucase"), ("date(current_date())", "date"), ("int(x)", "int")),
        *(("x BETWEEN 1 AND 2", "between"), ("NOT (x > 1)", "not"), ("to_date(current_date())", "to_date")),
        *(("extract(YEAR FROM current_date())", "extract"), ("if(x > 1, 1, 2)", "if"), ("string('a')", "string")),
    ],
)
def test_the_name_that_is_called_is_asked_for_and_no_other(text: str, name: str) -> None:
    asked: list[frozenset[str]] = []
    assignment(text, replace(CONTEXT, is_builtin=lambda names: asked.append(names) or True))
    assert asked == [frozenset({name})]
    assert assignment(text, replace(CONTEXT, is_builtin=lambda names: False)).computation is HIDDEN


def test_a_function_that_the_user_registered_is_sparks() -> None:
    asked: list[frozenset[str]] = []

    def is_builtin(names: frozenset[str]) -> bool:
        asked.append(names)
        return "lower" not in names

    context = replace(CONTEXT, is_builtin=is_builtin)
    assert assignment("lower(`user`)", context).computation is HIDDEN
    assert assignment("upper(`user`)", context).computation.reason is None
    assert assignment("`user` || 'x'", context).computation.reason is None
    assert frozenset({"upper"}) in asked


@pytest.mark.parametrize("text", ["TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59'"])
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles"])
def test_a_moment_that_python_has_not_in_every_zone_is_no_error(text: str, zone: str) -> None:
    assert assignment(text, replace(CONTEXT, zone=zone)).expression


def test_a_condition_says_why_spark_is_asked() -> None:
    found = condition("x > 1 AND soundex(`user`) = 'a' AND lower(`user`) = 'b'", CONTEXT)
    assert found.computation is not None
    assert found.computation.reason == "`soundex` is not in the table of functions"
    assert not found.computation.is_condition
