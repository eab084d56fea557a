"""What the print of a Column lets one know, as PySpark 4 prints them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import errors
from anabranch._expressions import Context, check_assigned, column_condition, column_value
from anabranch._expressions.printed_columns import expression_text
from anabranch._protocol.conditions import Condition
from anabranch._protocol.predicates import And, Compare, In, IsNull, Not, Or, Predicate, StartsWith, Unknown
from anabranch._protocol.schema.types import Field, Struct
from tests.support.tiers import examples

SCHEMA = Struct(
    (
        Field("id", "long"),
        Field("x", "byte"),
        Field("name", "string"),
        Field("price", "double"),
        Field("40", "long"),
        Field("true", "long"),
    )
)
CONTEXT = Context("t", SCHEMA, dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "UTC", lambda names: True)
ID1 = Compare("id", "=", 1)


@dataclass(frozen=True)
class Printed:
    """A Column as far as its print goes."""

    text: str

    def __str__(self) -> str:
        return f"Column<'{self.text}'>"


def said_of(text: str) -> Condition:
    return column_condition(Printed(text), CONTEXT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("=(id, 1)", ID1),
        ("=(ID, 1)", ID1),
        ("==(id, 1)", ID1),
        ("not(==(id, 1))", Not(ID1)),
        ("=(id, -5)", Compare("id", "=", -5)),
        ("=(id, -40)", Compare("id", "=", -40)),
        ("=(id, 401)", Compare("id", "=", 401)),
        ("=(id, 1099511627776L)", Compare("id", "=", 1 << 40)),
        ("<=>(id, 1)", Compare("id", "<=>", 1)),
        ("and(>(id, 1), <=(x, 2))", And((Compare("id", ">", 1), Compare("x", "<=", 2)))),
        ("or(=(id, 1), !(=(x, 2)))", Or((ID1, Not(Compare("x", "=", 2))))),
        ("and(=(id, 1), isNull(name))", And((ID1, IsNull("name")))),
        ("=(1, id)", ID1),
        ("=(id, NULL)", Compare("id", "=", None)),
        ("=(price, 1)", Compare("price", "=", 1.0)),
        ("in(id, 1, 2)", In("id", (1, 2))),
        ("=(name, 'a')", Compare("name", "=", "a")),
        ("like(name, 'a%')", StartsWith("name", "a")),
        ("and(=(id, 1), >(price, 0.5))", And((ID1, Compare("price", ">", 0.5)))),
        ("and(=(id, 1), >(x, 0.5))", And((ID1, Unknown()))),
        ("and(=(id, 1), =(name, x))", And((ID1, Unknown()))),
        ("=(__anabranch_0123456789abcdef_v8.id, 1)", ID1),
        ("=(__anabranch_0123456789abcdef_v8_at0123456789abcdef.id, 1)", ID1),
        ("=(__anabranch_0123456789abcdef_asof0.id, 1)", ID1),
        ("=(id, '1')", ID1),
    ],
)
def test_whole_numbers_against_integer_columns_are_understood(text: str, expected: Predicate) -> None:
    assert said_of(text).predicate == expected


@pytest.mark.parametrize(
    "text",
    [
        "=(id, '01')",
        "=(id, 1.0)",
        "=(id, 2020-01-01)",
        "=(id, true)",
        "=(id, x)",
        "=(name, 1)",
        "=(nope, 1)",
        "=(s.id, 1)",
        "=(__anabranch_row.id, 1)",
        "=(a b, 1)",
        "=(40, 1)",
        "=(true, 1)",
        "=(id, 1, 2)",
        "=(id 1)",
        "=(id, 1) AS y",
        "id = 1",
        "CASE WHEN =(id, 1) THEN true ELSE false END",
        "+(id, 1)",
        "true",
        "=",
        "(",
        ")",
        "=(id, 1",
        "=(id, ٥)",
        "=(id, 1)=(id, 2)",
        "",
        "=(id, 40)",
        "and(=(id, 1), =(x, 40))",
    ],
)
def test_of_anything_else_nothing_is_said(text: str) -> None:
    assert said_of(text).predicate == Unknown()


INJECTED = [
    "a), >(id, 0",
    "1), =(id, 1",
    "1",
    "x, 1), or(=(id, 1), =(id, 2",
    "a)) or (=(id, 1",
    "!(=(id, 1))",
    "and(=(id, 1), =(id, 1))",
    ",",
    ")(",
]


@pytest.mark.parametrize("literal", INJECTED)
@pytest.mark.parametrize(
    "around", ["=(name, {})", "!(=(name, {}))", "or(=(name, {}), >(id, 5))", "and(>(id, 5), =(name, {}))"]
)
def test_a_text_that_looks_like_operators_is_not_taken_for_them(around: str, literal: str) -> None:
    """A version that prints literals without quotes must not make us skip or delete by what stands in one."""
    found = said_of(around.format(literal)).predicate
    allowed = {
        "=(name, {})": [Unknown()],
        "!(=(name, {}))": [Unknown(), Not(Unknown())],
        "or(=(name, {}), >(id, 5))": [Unknown(), Or((Unknown(), Compare("id", ">", 5)))],
        "and(>(id, 5), =(name, {}))": [Unknown(), And((Compare("id", ">", 5), Unknown()))],
    }[around]
    assert found in allowed


@settings(max_examples=examples(200, 20))
@given(st.lists(st.sampled_from(["=(", ")", ", ", "id", "1", "or(", "and(", "!(", ">(", "x"]), max_size=12))
def test_no_text_at_all_is_taken_for_operators(parts: list[str]) -> None:
    literal = "".join(parts)
    assert said_of(f"or(=(name, {literal}), >(id, 5))").predicate in (
        Unknown(),
        Or((Unknown(), Compare("id", ">", 5))),
    )


@pytest.mark.parametrize("name", ["=(id, 1)", "1", "-1", "1L", "1, 1), or(x", "a), =(id, 1", "b.1"])
@pytest.mark.parametrize("text", ["{}", "and({}, >(id, 5))", "=(id, {})", "!({})"])
@pytest.mark.parametrize("nested", [False, True])
def test_the_name_of_a_column_is_not_taken_for_operators_or_numbers(text: str, name: str, *, nested: bool) -> None:
    field = Field(name, "long")
    schema = Struct((*SCHEMA.fields, Field("s", Struct((field,))) if nested else field))
    printed = text.format(f"s.{name}" if nested else name)
    found = column_condition(Printed(printed), Context("t", schema, CONTEXT.now, "UTC", lambda names: True))
    assert found.predicate == Unknown()


# -- row by row --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "=(id, 1)",
        "and(>(id, 1), like(name, 'a%'))",
        "in(id, 1, 2)",
        "isNull(id)",
        "=(CAST(id AS STRING), '1')",
        "CASE WHEN =(id, 1) THEN true ELSE false END",
        "=(arr[0], 1)",
        "=(m['k'], 1)",
        "id = 1 OR x = 2",
        "=(name, 'please select one')",
        "=(name, 'it exists')",
    ],
)
def test_operators_over_columns_and_literals_are_row_local(text: str) -> None:
    assert said_of(text).row_local


@pytest.mark.parametrize(
    "text",
    [
        "<(rand(5214779717743532774L), 0.5)",
        "=(sqrt(id), 1)",
        "my_udf(id)",
        "my.udf(id)",
        "rand () < 0.5",
        "`rand`() < 0.5",
        "`my udf`(id) = 1",
        "rand/**/() < 0.5",
        "rand -- x\n() < 0.5",
        "=(ts, current_timestamp())",
        "current_user = name",
        "=(day, 'today')",
        "=(id, 'now')",
        "exists(arr, x_1 -> >(x_1, 1))",
        "=(_metadata.row_index, 1)",
    ],
)
def test_whatever_could_be_a_call_or_a_moment_is_not_row_local(text: str) -> None:
    assert not said_of(text).row_local


def test_functions_that_are_known_are_row_local_as_long_as_they_are_sparks_own() -> None:
    for text in (
        "=(abs(id), 1)",
        "=(lower(name), 'a')",
        "CASE WHEN isNull(name) THEN false ELSE =(length(name), 3) END",
    ):
        assert said_of(text).row_local
        replaced = column_condition(Printed(text), replace(CONTEXT, is_builtin=lambda names: False))
        assert not replaced.row_local


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "+(id, 1)",
        "concat(name, '!')",
        "CASE WHEN >(id, 5) THEN *(price, 0.9) ELSE price END",
        "CAST(id AS STRING)",
        "coalesce(name, 'it\u00e9')",
        "upper(t.name)",
        "lpad(name, 5, '0')",
    ],
)
def test_a_value_is_computed_by_what_its_column_prints(text: str) -> None:
    assert column_value(Printed(text), CONTEXT, "t").reason is None


@pytest.mark.parametrize(
    "text",
    [
        "*(x, 0.9)",
        "lower(columnnodeexpression(UnresolvedAttribute(List(name),None,None)))",
        "concat(name, 'a\\'b')",
        "a + 1",
        "+(id, 1) AS q",
        "rand(5L)",
        "upper(nope)",
        "upper(u.name)",
        "+(1E5, id)",
        "sum(id)",
    ],
)
def test_a_value_that_may_mean_two_things_is_left_to_the_engine(text: str) -> None:
    assert column_value(Printed(text), CONTEXT, "t").reason is not None


class TestWithoutQuotes:
    """As Spark Connect prints a Column, where ``x`` may be a name or a text."""

    Printed = type("Printed", (Printed,), {"__module__": "pyspark.sql.connect.column"})

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("==(id, 1)", ID1),
            ("and(==(id, 1), not(>(x, 2)))", And((ID1, Not(Compare("x", ">", 2))))),
            ("==(name, x)", Unknown()),
            ("==(lower(name), 5)", Unknown()),
            ("==(price, 1.5)", Unknown()),
            ("in(id, 1)", Unknown()),
            ("==(name, 2020-01-01)", Unknown()),
            ("isNull(name)", Unknown()),
        ],
    )
    def test_only_names_against_whole_numbers_are_sure(self, text: str, expected: Predicate) -> None:
        assert column_condition(self.Printed(text), CONTEXT).predicate == expected


def test_a_print_of_another_form_says_nothing() -> None:
    class Odd:
        def __str__(self) -> str:
            return "a column"

    found = column_condition(Odd(), CONTEXT)
    assert not found.row_local
    assert found.predicate == Unknown()
    assert isinstance(found.expression, Odd)


@pytest.mark.parametrize(
    "text",
    [
        "=(id, ([max(id): bigint]))",
        "EXISTS ([id: bigint])",
        "(id) IN ([id: bigint])",
        "id IN (SELECT 1)",
        "id in (\nselect id from t)",
        "id IN (FROM t SELECT id)",
        "id IN (TABLE t)",
        "id IN (VALUES (1))",
        "name = \"it's\" OR id IN (SELECT 1) OR name = 'x'",
        "name = r'a\\' OR id IN (SELECT 1) OR name = 'x'",
        "id = 1 -- '\n OR id IN (SELECT 1) OR name = 'x'",
    ],
)
def test_a_subquery_is_refused(text: str) -> None:
    with pytest.raises(errors.NotBuilt, match="subquery"):
        said_of(text)


@pytest.mark.parametrize(
    "text", ["+(select, 1)", "=(table, 1)", "=(values, select)", "=([0], 1)", "select", "=(t.select, 1)"]
)
def test_a_column_with_a_word_of_a_query_for_a_name_is_none(text: str) -> None:
    assert not said_of(text).asks


@pytest.mark.parametrize("text", ["=(id, ([max(id): bigint]))", "sum(x) OVER (PARTITION BY id)"])
def test_a_value_to_be_assigned_may_not_depend_on_other_rows(text: str) -> None:
    with pytest.raises(errors.NotBuilt):
        check_assigned(Printed(text))


def test_a_value_to_be_assigned_may_be_anything_of_its_own_row() -> None:
    for text in ("+(x, 1)", "concat(name, 'select it over')", "arr[0]", "rand()"):
        check_assigned(Printed(text))


def test_the_alias_of_a_table_is_no_part_of_its_columns_names() -> None:
    assert column_condition(Printed("=(t.id, 1)"), CONTEXT, "T").predicate == ID1
    assert column_condition(Printed("=(id, 1)"), CONTEXT, "T").predicate == ID1
    assert column_condition(Printed("=(u.id, 1)"), CONTEXT, "T").predicate == Unknown()
    assert column_condition(Printed("=(t.id, 1)"), CONTEXT).predicate == Unknown()


def test_a_column_that_is_called_like_an_alias_and_a_column_is_not_taken_for_one() -> None:
    schema = Struct((*SCHEMA.fields, Field("T.id", "long")))
    assert column_condition(Printed("=(t.id, 1)"), replace(CONTEXT, schema=schema), "t").predicate == Unknown()


ARGUMENT = (
    "columnnodeexpression(UnresolvedAttribute(List({}),None,false,Origin(None,None,None,None,None,None,None,"
    "Some([Ljava.lang.StackTraceElement;@41a25ba1),None,None)))"
)


def test_a_function_of_python_is_shown_with_the_names_of_its_arguments() -> None:
    found = said_of(f"<(<lambda>({ARGUMENT.format('id')}, {ARGUMENT.format('t, x')}), 20)")
    assert found.text == "<(<lambda>(id, t.x), 20)"
    assert expression_text(Printed(f"f({ARGUMENT.format('id')})")) == "f(id)"


def test_a_function_of_python_with_the_name_of_one_of_sparks_is_not_taken_for_that() -> None:
    found = said_of(f"isnull({ARGUMENT.format('id')})")
    assert (found.text, found.row_local, found.predicate) == ("isnull(id)", False, Unknown())


def test_a_moment_is_left_to_the_engine_since_it_is_printed_in_the_zone_of_the_jvm() -> None:
    schema = Struct((*SCHEMA.fields, Field("at", "timestamp"), Field("day", "date")))
    context = replace(CONTEXT, schema=schema)
    assert column_condition(Printed("=(at, 2020-01-01 02:03:04.0)"), context).predicate == Unknown()
    assert column_value(Printed("2020-01-01 02:03:04.0"), context).reason is not None
    expected = Compare("day", "=", dt.date(2020, 1, 1))
    assert column_condition(Printed("=(day, 2020-01-01)"), context).predicate == expected
