"""What is said of a MERGE's expressions holds whatever the source is; where that is not sure, nothing is said."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import errors
from anabranch._expressions import Context, MergeColumns, analyze_merge, parameters_of
from anabranch._expressions.computations import HIDDEN
from anabranch._protocol.conditions import Condition
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.expressions.tree import names_of
from anabranch._protocol.merges import NOTHING_MORE, Clause, MergePlan, SourceColumn
from anabranch._protocol.predicates import Always, And, Compare, In, IsNull, Name, Not, Or, Predicate, Unknown, holds
from anabranch._protocol.schema.types import Field, Struct
from tests.support.tiers import examples

SCHEMA = Struct(
    (
        Field("id", "long"),
        Field("day", "date"),
        Field("name", "string"),
        Field("only_t", "integer"),
        Field("seen", "timestamp"),
        Field("a b", "string"),
        Field("st", Struct((Field("only_t", "integer"), Field("id", "long")))),
        Field("s", "string"),
    )
)
SOURCE = ("id", "day", "name", "only_s", "t2", "nested")
NOW = dt.datetime(2026, 3, 1, 23, 30, tzinfo=dt.UTC)
MOMENT = "TIMESTAMP '2026-03-01 23:30:00.000000 UTC'"


@dataclass(frozen=True)
class Printed:
    """A Column as far as its print goes."""

    text: str

    def __str__(self) -> str:
        return f"Column<'{self.text}'>"


def merged(
    on: Any,
    *clauses: Clause,
    target: str | None = "t",
    source: str | None = "src",
    columns: tuple[str, ...] = SOURCE,
    is_builtin: Callable[[frozenset[str]], bool] = lambda names: True,
) -> tuple[Condition, MergePlan]:
    context = Context("table", SCHEMA, NOW, "UTC", is_builtin)
    return analyze_merge(on, clauses, MergeColumns(SCHEMA, columns, target, source), context)


def said_of(on: Any, **sides: Any) -> Predicate:
    return merged(on, **sides)[0].predicate


def is_row_local(on: Any, *clauses: Clause, **sides: Any) -> bool:
    return merged(on, *clauses, **sides)[0].row_local


# -- what skipping may use ---------------------------------------------------------------------------------------------

DAY = Compare("day", "=", dt.date(2026, 1, 1))
ONLY_T = Compare("only_t", ">", 5)
NO = Unknown()


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        ("t.id = src.id", NO),
        ("t.id = src.id AND t.day = DATE '2026-01-01'", And((NO, DAY))),
        ("T.ID = SRC.id AND T.`Day` = DATE '2026-01-01'", And((NO, DAY))),
        ("t.day = DATE '2026-01-01' AND t.id = src.id AND only_t > 5", And((DAY, NO, ONLY_T))),
        ("(t.id = src.id) AND (5 < t.only_t)", And((NO, ONLY_T))),
        ("t.id = src.id AND (t.only_t > 5 OR src.only_s = 1)", And((NO, Or((ONLY_T, NO))))),
        ("t.id = src.id AND t.name IN ('a', 'b')", And((NO, In("name", ("a", "b"))))),
        ("t.id = src.id AND t.day IS NOT NULL", And((NO, Not(IsNull("day"))))),
        ("t.id = src.id AND t.`a b` = 'x'", And((NO, Compare("a b", "=", "x")))),
        ("t.id = src.id AND t.st.only_t > 5", And((NO, Compare(("st", "only_t"), ">", 5)))),
        ("t.id = src.id AND st.only_t > 5", And((NO, Compare(("st", "only_t"), ">", 5)))),
        ("true", Always(True)),
        ("false", Always(False)),
    ],
)
def test_parts_that_concern_the_table_alone_are_understood(on: str, expected: Predicate) -> None:
    assert said_of(on) == expected


@pytest.mark.parametrize(
    "part",
    [
        "src.only_s > 5",
        "only_s > 5",
        "id > 5",
        "src.id > 5",
        "t.nope > 5",
        "u.only_t > 5",
        "x.t.only_t > 5",
        "nested.only_t > 5",
        "t.only_t > src.only_s",
        "abs(t.only_t) > 5",
        "NOT (src.only_s > 5)",
        't.name = "x"',
        "t.name = '\\\\x'",
    ],
)
def test_of_anything_else_nothing_is_said(part: str) -> None:
    found = said_of(f"t.id = src.id AND {part}")
    assert found in (NO, And((NO, NO)), And((NO, Not(NO))))


@pytest.mark.parametrize(
    ("on", "sides"),
    [
        ("same.id = 5", {"target": "same", "source": "same"}),
        ("t.id = 5", {"target": None}),
        ("t2.id = 5", {"target": "t2"}),  # the source has a column of that name, and this may be a member of it
        ("st.id = 5", {"target": "st"}),  # the table has
    ],
)
def test_an_alias_that_may_mean_something_else_says_nothing(on: str, sides: dict[str, Any]) -> None:
    assert said_of(on, **sides) == NO


def test_an_alias_may_be_called_like_a_column_without_members() -> None:
    assert said_of("s.id = 5", target="s") == Compare("id", "=", 5)


def test_without_aliases_names_that_only_the_table_has_are_understood() -> None:
    assert said_of("only_t > 5 AND id = only_s", target=None, source=None) == And((ONLY_T, NO))


def test_a_name_that_the_source_has_too_is_never_taken_for_the_tables() -> None:
    assert said_of("only_t > 5", columns=(*SOURCE, "ONLY_T")) == NO


PARTS = [
    "t.only_t > 3",
    "src.only_s > 3",
    "t.only_t = src.only_s",
    "t.id < 2",
    "id = 1",
    "only_t IS NULL",
    "NOT t.id = 1",
]


@pytest.mark.slow
@settings(max_examples=examples(200, 20))
@given(
    st.recursive(
        st.sampled_from([part for part in PARTS if part != "id = 1"]),
        lambda inner: st.tuples(inner, st.sampled_from([" AND ", " OR "]), inner).map(
            lambda parts: "(" + "".join(parts) + ")"
        ),
        max_leaves=6,
    ),
    st.sampled_from([None, 0, 1, 5]),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([None, 3, 5]),
)
def test_the_predicate_holds_for_every_row_that_can_match(on: str, only_t: Any, id_: Any, only_s: Any) -> None:
    row = {"only_t": only_t, "id": id_}
    facts = {
        "t.only_t > 3": Compare("only_t", ">", 3),
        "src.only_s > 3": Compare("only_s", ">", 3),
        "t.only_t = src.only_s": Compare("only_t", "=", only_s),
        "t.id < 2": Compare("id", "<", 2),
        "only_t IS NULL": IsNull("only_t"),
        "NOT t.id = 1": Not(Compare("id", "=", 1)),
    }
    assert may_hold(said_of(on), row) or truth(on, facts, {**row, "only_s": only_s}) is not True


def truth(on: str, facts: dict[str, Any], row: dict[str, Any]) -> bool | None:
    """The truth of a text built of PARTS, with Python's own reading of the words between them."""
    text = on
    for i, part in enumerate(facts):
        text = text.replace(part, f"f{i}")
    names = {f"f{i}": Three(holds(fact, row)) for i, fact in enumerate(facts.values())}
    found: Three = eval(text.replace(" AND ", " & ").replace(" OR ", " | "), {}, names)
    return found.value


@dataclass(frozen=True)
class Three:
    """A truth value of SQL."""

    value: bool | None

    def __and__(self, other: Three) -> Three:
        values = {self.value, other.value}
        return Three(False if False in values else None if None in values else True)

    def __or__(self, other: Three) -> Three:
        values = {self.value, other.value}
        return Three(True if True in values else None if None in values else False)


def may_hold(predicate: Predicate, row: dict[str, Any]) -> bool:
    """Whether it is TRUE for some values of what is unknown: those are independent, and may be anything."""
    match predicate:
        case Unknown() | Not(Unknown()):
            return True
        case And(parts):
            return all(may_hold(part, row) for part in parts)
        case Or(parts):
            return any(may_hold(part, row) for part in parts)
    return holds(predicate, row) is True


# -- row by row --------------------------------------------------------------------------------------------------------

INSERT = Clause("not matched", "insert", "src.only_s > 1", {"id": SourceColumn("id"), "name": "upper(src.name)"})


@pytest.mark.parametrize(
    "on",
    [
        "t.id = src.id",
        "t.id <=> src.id AND upper(t.name) = lower(src.name)",
        "only_t = only_s",
        "t.st.only_t = src.nested.x",
        "st.id = nested.id",
        "t.id = src.id AND t.seen < current_timestamp()",
    ],
)
def test_built_in_functions_of_both_sides_columns_are_row_local(on: str) -> None:
    assert is_row_local(on, INSERT)


@pytest.mark.parametrize(
    "expression",
    ["rand() > 0.5", "my_udf(src.id)", "t._metadata.row_index = 1", "some_variable = 1", "u.id = 1", "t.nope = 1"],
)
def test_one_expression_that_is_not_decided_by_its_rows_makes_the_whole_merge_so(expression: str) -> None:
    assert not is_row_local(f"t.id = src.id AND {expression}", INSERT)
    assert not is_row_local("t.id = src.id", INSERT, Clause("matched", "delete", expression))
    assert not is_row_local("t.id = src.id", INSERT, Clause("matched", "update", None, {"name": expression}))


def test_a_function_that_a_user_registered_is_not_row_local() -> None:
    asked: list[frozenset[str]] = []

    def is_builtin(names: frozenset[str]) -> bool:
        asked.append(names)
        return "upper" not in names

    assert not is_row_local("lower(t.name) = src.name", INSERT, is_builtin=is_builtin)
    assert asked == [frozenset({"lower", "upper"})]


def test_without_any_call_nobody_is_asked_about_functions() -> None:
    def is_builtin(names: frozenset[str]) -> bool:
        raise AssertionError(names)

    assert is_row_local("t.id = src.id", Clause("matched", "delete"), is_builtin=is_builtin)


# -- what the engine gets ----------------------------------------------------------------------------------------------


def test_every_text_keeps_its_words_and_gets_one_moment() -> None:
    update = Clause("matched", "update", "t.seen <  now()", {"seen": "current_timestamp()", "name": "'current_date'"})
    where, matching = merged("t.id = src.id  AND t.seen < current_timestamp", update, INSERT)
    assert where.text == "t.id = src.id  AND t.seen < current_timestamp"
    assert matching.on == where.expression == f"t.id = src.id  AND t.seen < {MOMENT}"
    assert str(matching.clauses[0].condition) == f"t.seen <  {MOMENT}"
    assert {key: str(value) for key, value in matching.clauses[0].values.items()} == {
        "seen": MOMENT,
        "name": "'current_date'",
    }
    assert str(matching.clauses[1].condition) == INSERT.condition
    assert {key: str(value) for key, value in matching.clauses[1].values.items()} == {
        "id": "source.id",
        "name": "upper(src.name)",
    }
    assert (matching.target, matching.source) == ("t", "src")
    assert where.columns is None


def test_a_column_of_the_source_is_not_taken_for_the_clock() -> None:
    insert = Clause("not matched", "insert", None, {"day": "current_date", "seen": "src.current_timestamp"})
    _, matching = merged("t.id = src.id", insert, columns=(*SOURCE, "current_date", "current_timestamp"))
    assert {key: str(value) for key, value in matching.clauses[0].values.items()} == insert.values


@pytest.mark.parametrize("expression", ["t.id IN (SELECT 1)", "max(src.id) OVER (PARTITION BY src.day) = 1"])
def test_subqueries_and_windows_are_refused_everywhere(expression: str) -> None:
    for given_ in (expression, Printed(expression)):
        for on, clause in [
            (given_, INSERT),
            ("t.id = src.id", Clause("matched", "delete", given_)),
            ("t.id = src.id", Clause("matched", "update", None, {"name": given_})),
        ]:
            with pytest.raises(errors.NotBuilt):
                merged(on, clause)


@pytest.mark.parametrize("on", ["", "t.id = src.id; DROP TABLE x", "t.name = 'open"])
def test_a_text_that_is_none_is_refused(on: str) -> None:
    with pytest.raises(errors.InvalidCondition):
        merged(on, INSERT)


# -- what is computed without the engine -------------------------------------------------------------------------------

DESCRIBED = Struct((Field("id", "long"), Field("day", "date"), Field("name", "string"), Field("only_s", "integer")))


def computed(on: str, *clauses: Clause, is_builtin: Callable[[frozenset[str]], bool] = lambda names: True) -> MergePlan:
    context, names = Context("table", SCHEMA, NOW, "UTC", is_builtin), tuple(DESCRIBED.names)
    return analyze_merge(on, clauses, MergeColumns(SCHEMA, names, "t", "src", described=DESCRIBED), context)[1]


def read_by(computation: Computation) -> set[Name]:
    return set(names_of(computation.tree))


def test_what_on_requires_beside_its_keys_is_computed_over_pairs_of_rows() -> None:
    assert computed("t.id = src.id").rest == computed("src.day = t.day AND (t.id = src.id)").rest == NOTHING_MORE
    found = computed("t.id = src.id AND (t.only_t > only_s OR src.name = 'a') AND t.name = src.name")
    assert found.keys == (("id", "id"), ("name", "name"))
    assert read_by(found.rest) == {("target", "only_t"), ("source", "only_s"), ("source", "name")}
    assert found.rest.is_condition


@pytest.mark.parametrize("on", ["t.id <=> 5", "true", "t.id = src.id OR t.day = src.day", "t.id + 1 = src.id"])
def test_without_keys_nothing_is_said_of_what_on_requires(on: str) -> None:
    assert computed(on).keys == ()


NULL_SAFE_ONS = {
    "t.id <=> src.id": [("id", "id")],
    "src.id IS NOT DISTINCT FROM t.id": [("id", "id")],
    "equal_null(t.Id, src.ID)": [("id", "id")],
    "t.id <=> src.id AND equal_null(only_s, only_t)": [("id", "id"), ("only_t", "only_s")],
}


@pytest.mark.parametrize("on", NULL_SAFE_ONS)
def test_keys_by_which_null_equals_null_are_told_from_others(on: str) -> None:
    found = computed(f"{on} AND t.day = src.day")
    assert list(found.keys) == [*NULL_SAFE_ONS[on], ("day", "day")]
    assert found.null_safe == {ours for ours, _ in NULL_SAFE_ONS[on]}
    assert found.rest == NOTHING_MORE


@pytest.mark.parametrize("rest", ["", " AND theirs(t.day)"])
def test_a_function_of_the_session_in_the_place_of_sparks_makes_no_key(rest: str) -> None:
    sides = MergeColumns(SCHEMA, tuple(DESCRIBED.names), "t", "src", described=DESCRIBED)

    def found(on: str) -> MergePlan:
        context = Context("table", SCHEMA, NOW, "UTC", lambda names: "equal_null" not in names)
        return analyze_merge(on + rest, (Clause("matched", "delete"),), sides, context)[1]

    assert found("t.id <=> src.id").keys == (("id", "id"),)
    plan = found("t.day = src.day AND equal_null(t.id, src.id)")
    assert (plan.keys, plan.null_safe) == ((), frozenset())
    assert plan.rest.reason is not None


def test_a_clause_sees_the_rows_that_it_is_for() -> None:
    update = Clause("matched", "update", "t.id > src.only_s", {"name": "concat(t.name, src.name)"})
    insert = Clause("not matched", "insert", "id > 5", {"id": "id + 1", "name": "lower(name)"})
    delete = Clause("not matched by source", "delete", "id > 5")
    matched, unmatched, alone = computed("t.id = src.id", update, insert, delete).clauses
    assert read_by(matched.condition.computation) == {("target", "id"), ("source", "only_s")}
    assert read_by(matched.values["name"].computation) == {("target", "name"), ("source", "name")}
    assert read_by(unmatched.condition.computation) == read_by(unmatched.values["id"].computation) == {("source", "id")}
    assert read_by(alone.condition.computation) == {("target", "id")}


@pytest.mark.parametrize("condition", ["id > 5", "t2.id > 5", "src.nope > 5", "t.a > 5", "rand() > src.id"])
def test_what_may_be_of_either_side_or_of_none_is_left_to_the_engine(condition: str) -> None:
    (clause,) = computed("t.id = src.id", Clause("matched", "delete", condition)).clauses
    assert clause.condition.computation.reason is not None


def test_nothing_is_computed_where_a_function_that_is_called_may_be_somebody_elses() -> None:
    asked: list[frozenset[str]] = []

    def is_builtin(names: frozenset[str]) -> bool:
        asked.append(names)
        return False

    update = Clause("matched", "update", "upper(src.name) = 'A'", {"name": "trim(src.name)"})
    found = computed("t.id = src.id AND lower(t.name) = 'a'", update, is_builtin=is_builtin)
    assert found.rest == found.clauses[0].condition.computation == HIDDEN
    assert asked == [frozenset({"lower", "upper", "trim"})]


# -- Columns -----------------------------------------------------------------------------------------------------------


def test_a_column_is_understood_by_its_print_with_the_tables_alias() -> None:
    where, matching = merged(Printed("and(=(t.id, src.id), >(t.only_t, 5))"))
    assert where.predicate == And((NO, ONLY_T))
    assert where.row_local
    assert matching.on == Printed("and(=(t.id, src.id), >(t.only_t, 5))")
    assert matching.keys == (("id", "id"),)
    assert read_by(matching.rest) == {("target", "only_t")}
    assert where.text == "((t.id = src.id) AND (t.only_t > 5))"
    assert said_of(Printed("=(t.st.id, 5)")) == Compare(("st", "id"), "=", 5)


@pytest.mark.parametrize(
    "text",
    [
        "=(id, 5)",
        "=(src.id, 5)",
        "=(u.id, 5)",
        "=(t.nope, 5)",
        "=(t..id, 5)",
        "=(.t.id, 5)",
        "=(t.id., 5)",
        "=(t.name, 5)",
        "=(t.name, t.id)",
        "t.id = 5",
        "=(t.id, 5.0)",
        "=(t.id, '05')",
    ],
)
def test_of_other_prints_nothing_is_said(text: str) -> None:
    assert said_of(Printed(text)) == NO


def test_a_column_that_calls_something_is_not_row_local() -> None:
    assert is_row_local(Printed("=(t.id, src.id)"), Clause("matched", "update", None, {"name": Printed("+(t.id, 1)")}))
    assert is_row_local(Printed("=(abs(t.id), 5)"))
    assert not is_row_local(Printed("=(sqrt(t.id), src.id)"))
    assert not is_row_local(Printed("=(abs(t.id), 5)"), is_builtin=lambda names: "abs" not in names)
    assert not is_row_local(
        "t.id = src.id", Clause("matched", "update", None, {"name": Printed("current_timestamp()")})
    )


# -- the history -------------------------------------------------------------------------------------------------------


def test_the_history_shows_the_clauses_as_delta_writes_them() -> None:
    clauses = (
        Clause("matched", "update", "src.only_s > 1", {"name": "src.name"}),
        Clause("matched", "delete"),
        Clause("not matched", "insert", None, {"id": "src.id"}),
    )
    shown = parameters_of(*merged("t.name = 'é'", *clauses))
    assert shown == {
        "predicate": "[\"t.name = 'é'\"]",
        "matchedPredicates": '[{"predicate":"src.only_s > 1","actionType":"update"},{"actionType":"delete"}]',
        "notMatchedPredicates": '[{"actionType":"insert"}]',
        "notMatchedBySourcePredicates": "[]",
    }
    assert all(json.loads(value) is not None for value in shown.values())


def test_the_history_shows_columns_as_sql() -> None:
    shown = parameters_of(*merged(Printed("=(t.id, src.id)"), Clause("matched", "delete", Printed("=(t.id, 1)"))))
    assert json.loads(shown["predicate"]) == ["(t.id = src.id)"]
    assert json.loads(shown["matchedPredicates"]) == [{"predicate": "(t.id = 1)", "actionType": "delete"}]


# -- what ON requires to be equal, for messages ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        ("t.id = src.id", [("id", "id")]),
        ("src.day = t.Day AND (t.id = src.id) AND t.only_t > 5", [("day", "day"), ("id", "id")]),
        ("only_t = only_s", [("only_t", "only_s")]),
        (Printed("and(=(t.id, src.id), =(src.day, t.day))"), [("id", "id"), ("day", "day")]),
        (Printed("and(<=>(t.id, src.id), equal_null(src.day, t.day))"), [("id", "id"), ("day", "day")]),
        # an alternative or a negation requires nothing
        ("t.id = src.id OR t.day = src.day", []),
        ("NOT (t.id = src.id)", []),
        (Printed("or(=(t.id, src.id), =(src.day, t.day))"), []),
        (Printed("not(=(t.id, src.id))"), []),
        # neither does what may be something else, or what is no column of each side
        ("id = src.id", []),
        ("id <=> src.id", []),
        ("t.id <=> src.id OR t.day = src.day", []),
        ("t.id IS DISTINCT FROM src.id", []),
        ("equal_null(t.id, src.id, 1)", []),
        ("nullif(t.id, src.id)", []),
        ("t.id = t.only_t", []),
        ("t.id = 5", []),
        ("t.id = src.id + 1", []),
        ("t.st.id = src.id", []),
        (Printed("=(t.name, 'a = b')"), []),
        (Printed("(t.id"), []),
    ],
)
def test_columns_that_must_be_equal_are_found_where_that_is_certain(on: Any, expected: list[tuple[str, str]]) -> None:
    assert list(merged(on)[1].keys) == expected
