"""Skipping files never changes which rows a predicate finds, whatever their statistics state."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch._protocol.conditions import may_hold
from anabranch._protocol.partitions import write_value
from anabranch._protocol.predicates import (
    Always,
    And,
    Compare,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
    Unknown,
    holds,
    names_of,
    normal_form,
)
from anabranch._protocol.schema.types import Array, Field, Struct, arrow_type
from anabranch._protocol.stats import skipping
from anabranch._protocol.stats.skipping import FileFacts, could_match, must_match
from anabranch._protocol.stats.statistics import stats_json
from tests.support.tiers import examples

UTC = UTC
MAPS = pa.map_(pa.string(), pa.string())
DAY = timedelta(days=1)
LONG = "a" * 31
INSTANT = datetime(1970, 1, 1, tzinfo=UTC)

POOL: dict[str, list[Any]] = {
    "integer": [-1, 0, 1, 2, 3],
    "long": [0, 1, 2, 2**53 + 1, 2**63 - 1],
    "double": [-0.0, 0.0, 1.0, 2.5, nan, inf, -inf],
    "float": [0.0, float(np.float32(0.1)), 2.0, nan, 2.0**24 + 2],
    "decimal(5,2)": [Decimal("-1.00"), Decimal("0.00"), Decimal("1.50"), Decimal("2.00")],
    "string": ["", "a", "ab", "b", LONG + "b" * 5, LONG + "b\uffff", LONG + "\U0001f600x", "\U0010ffff" * 40],
    "date": [date(2020, 1, 1), date(2020, 1, 2), date(2020, 2, 1)],
    "timestamp": [INSTANT + timedelta(microseconds=each) for each in (-1, 0, 1, 999, 1000, 1001)],
    "timestamp_ntz": [datetime(2020, 1, 1) + timedelta(microseconds=each) for each in (0, 1, 1001)],
    "boolean": [False, True],
}
LITERALS: dict[str, list[Any]] = {
    **POOL,
    "integer": [*POOL["integer"], 1.5, Decimal("1.5"), 2.0, 10**30, "1", True],
    "long": [*POOL["long"], 2.0**53, Decimal(2**53), 0.5, -(10**30)],
    "double": [*POOL["double"], 1, Decimal("2.5"), "1"],
    "float": [*POOL["float"], 0.1, 2, 2**24 + 1, Decimal("0.1")],
    "decimal(5,2)": [*POOL["decimal(5,2)"], 1, Decimal("1.505"), 1000, 0.5],
    "date": [*POOL["date"], "2020-01-02", "2020-1-2", datetime(2020, 1, 1)],
    "timestamp": [*POOL["timestamp"], "1970-01-01", date(1970, 1, 1)],
}

PLAIN = {name.partition("(")[0][:4]: name for name in POOL}
PARTITIONS = {f"p_{name}": data_type for name, data_type in PLAIN.items()}
SCHEMA = Struct((*(Field(n, t) for n, t in (PLAIN | PARTITIONS).items()), Field("list", Array("long"))))
TYPES: dict[str, str] = PLAIN | PARTITIONS


# -- files with rows and statistics ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    """Live rows, and what the log says of them."""

    rows: list[dict[str, Any]]
    partition: dict[str, str | None]
    stats: str | None


def key(value: Any) -> Any:
    if isinstance(value, float):
        return (isnan(value), 0.0 if isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def stated_bound(value: Any, *, upper: bool) -> Any:
    """The value as a writer states it: strings cut, timestamps cut to milliseconds, downwards both."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + ("Z" if value.tzinfo else "")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str) and len(value) > 32:
        return value[:32] + ("\U0010ffff" if value[32:33] != "\U0010ffff" else value[32:]) if upper else value[:32]
    return value


@st.composite
def column_stats(draw: st.DrawFn, name: str, values: list[Any]) -> dict[str, Any]:
    """``minValues``, ``maxValues``, ``nullCount`` of one column as some writer states them; parts may be missing."""
    known = [value for value in values if value is not None]
    # Most writers leave NaN out of both bounds; a column of nothing else then has none.
    numbers = [value for value in known if not (isinstance(value, float) and isnan(value))]
    wide = draw(st.lists(st.sampled_from(POOL[TYPES[name]]), max_size=1))
    extra = [value for value in wide if not (isinstance(value, float) and isnan(value))]
    found: dict[str, Any] = {"nullCount": len(values) - len(known)}
    if numbers:
        low, high = min([*numbers, *extra], key=key), max([*numbers, *extra], key=key)
        found["minValues"] = stated_bound(low, upper=False)
        found["maxValues"] = stated_bound(high, upper=True)
        if draw(st.integers(0, 9)) == 0 and len(known) != len(numbers):
            found["maxValues"] = "NaN"
    # JSON has no infinity; what stands there must not be a bound.
    infinite = [part for part, value in found.items() if isinstance(value, float) and value in (inf, -inf)]
    for part in infinite + draw(st.lists(st.sampled_from(["minValues", "maxValues", "nullCount"]), max_size=1)):
        found.pop(part, None)
    return found


@st.composite
def stated(draw: st.DrawFn, rows: list[dict[str, Any]], names: list[str]) -> str | None:
    """The statistics of these columns of physical rows."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from([None, "", "{", '{"numRecords":"x"}', "{}"]))
    stats: dict[str, Any] = {"numRecords": len(rows), "minValues": {}, "maxValues": {}, "nullCount": {}}
    for name in names:
        for part, value in draw(column_stats(name, [row[name] for row in rows])).items():
            stats[part][name] = value
    if kind == 1:
        del stats["numRecords"]
    return stats_json({**stats, "tightBounds": draw(st.booleans())})


@st.composite
def files(draw: st.DrawFn, names: list[str]) -> File:
    """A file of the columns of these names and the partition columns of their types; all others hold NULL."""
    values = {name: st.none() | st.sampled_from(POOL[PLAIN[name]]) for name in names}
    physical = draw(st.lists(st.fixed_dictionaries(values), max_size=4))
    if draw(st.booleans()):  # without nulls
        physical = [{n: POOL[PLAIN[n]][0] if v is None else v for n, v in row.items()} for row in physical]
    partition = {f"p_{name}": None if (value := draw(values[name])) == "" else value for name in names}
    texts = {name: write_value(value, TYPES[name]) for name, value in partition.items()}
    deleted = draw(st.sets(st.integers(0, 3), max_size=2))  # a vector hides them, and the statistics stay
    live = [{**row, **partition} for position, row in enumerate(physical) if position not in deleted]
    return File(live, texts, draw(stated(physical, names)))


def table_of(found: list[File]) -> pa.Table:
    partitions = pa.array([list(each.partition.items()) for each in found], MAPS)
    paths = [f"{i}.parquet" for i in range(len(found))]
    return pa.table(
        {
            "path": pa.array(paths, pa.string()),
            "partitionValues": partitions,
            "stats": pa.array([f.stats for f in found], pa.string()),
        }
    )


# -- predicates --------------------------------------------------------------------------------------------------------

OPERATORS = ["=", "<=>", "<", "<=", ">", ">=", "!="]


@st.composite
def leaves(draw: st.DrawFn, names: list[str]) -> Predicate:
    name = draw(st.sampled_from(names)) if draw(st.booleans()) else "p_" + draw(st.sampled_from(names))
    literal = st.none() | st.sampled_from(LITERALS[TYPES[name]])
    kind = draw(st.sampled_from(["compare", "compare", "compare", "in", "in", "null", "prefix", "constant"]))
    if kind == "compare":
        return Compare(name, draw(st.sampled_from(OPERATORS)), draw(literal))
    if kind == "in":
        return In(name, tuple(draw(st.lists(literal, max_size=4))))
    if kind == "constant":
        return draw(st.sampled_from([Always(True), Always(False), Unknown()]))
    if kind == "null" or TYPES[name] != "string":
        return IsNull(name)
    return StartsWith(name, draw(st.sampled_from(["", "a", LONG, LONG + "b", "\U0001f600", "\U0010ffff"])))


def grown(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    several = st.lists(inner, max_size=3).map(tuple)
    return st.builds(Not, inner) | st.builds(And, several) | st.builds(Or, several)


names = st.sets(st.sampled_from(sorted(PLAIN)), min_size=1, max_size=2).map(sorted)


def predicates(of: list[str]) -> st.SearchStrategy[Predicate]:
    return st.recursive(leaves(of), grown, max_leaves=4)


cases = names.flatmap(lambda of: st.tuples(st.lists(files(of), max_size=3), predicates(of)))


def truth(predicate: Predicate, row: dict[str, Any], *, unknown: bool) -> bool:
    """Whether the predicate is TRUE for the row, where a leaf without a truth value has the one that is given."""
    if isinstance(predicate, And | Or):
        every = [truth(part, row, unknown=unknown) for part in predicate.ps]
        return all(every) if isinstance(predicate, And) else any(every)
    try:
        return holds(predicate, row) is True
    except (TypeError, ValueError):
        return unknown and not (
            isinstance(predicate, Not) and None in predicate.p.values
        )  # NOT IN (NULL) is never TRUE


@pytest.mark.slow
@settings(max_examples=examples(300, 15))
@given(cases)
def test_files_that_are_skipped_hold_no_row_and_files_that_must_match_no_other(
    case: tuple[list[File], Predicate],
) -> None:
    found, predicate = case
    table, wanted = table_of(found), normal_form(predicate)
    could = could_match(predicate, table, SCHEMA, list(PARTITIONS)).to_pylist()
    must = must_match(predicate, table, SCHEMA, list(PARTITIONS)).to_pylist()
    for file, may, shall in zip(found, could, must, strict=True):
        assert may or not any(truth(wanted, row, unknown=True) for row in file.rows)
        assert not shall or all(truth(wanted, row, unknown=False) for row in file.rows)


def as_batch(rows: list[dict[str, Any]], predicate: Predicate) -> pa.RecordBatch:
    """The columns of a predicate."""
    columns = sorted(map(str, names_of(predicate)))
    arrays = [pa.array([row[name] for row in rows], arrow_type(TYPES[name])) for name in columns]
    return pa.RecordBatch.from_arrays([pa.nulls(len(rows)), *arrays], ["of no matter", *columns])


@pytest.mark.slow
@settings(max_examples=examples(300, 15))
@given(cases)
def test_a_row_that_may_not_hold_is_none_that_a_predicate_selects(case: tuple[list[File], Predicate]) -> None:
    found, predicate = case
    rows = [row for file in found for row in file.rows]
    possible = may_hold(predicate, SCHEMA, "").computation
    assert possible is not None
    may = possible.truths(as_batch(rows, predicate)).to_pylist()
    for row, is_possible in zip(rows, may, strict=True):
        assert is_possible or not truth(normal_form(predicate), row, unknown=True)


WHOLE = st.recursive(
    st.builds(Compare, st.just("x"), st.sampled_from(OPERATORS), st.none() | st.integers(0, 3))
    | st.builds(In, st.just("x"), st.lists(st.none() | st.integers(0, 3), max_size=3).map(tuple))
    | st.just(IsNull("x")),
    grown,
    max_leaves=4,
)


@pytest.mark.slow
@given(WHOLE, st.lists(st.none() | st.integers(0, 3), max_size=4))
def test_of_numbers_just_the_selected_rows_may_hold(predicate: Predicate, values: list[int | None]) -> None:
    possible = may_hold(predicate, Struct((Field("x", "long"),)), "").computation
    assert possible is not None
    may = possible.truths(pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], ["x"])).to_pylist()
    assert may == [holds(predicate, {"x": value}) is True for value in values]


@pytest.mark.slow
@given(names.flatmap(lambda of: st.tuples(st.lists(files(of), max_size=4), st.lists(predicates(of), max_size=3))))
def test_facts_that_are_kept_answer_as_fresh_ones(case: tuple[list[File], list[Predicate]]) -> None:
    found, questions = case
    table = table_of(found)
    kept = FileFacts(table, SCHEMA, list(PARTITIONS))
    for predicate in questions:
        assert kept.could_match(predicate).equals(could_match(predicate, table, SCHEMA, list(PARTITIONS)))
        assert kept.must_match(predicate).equals(must_match(predicate, table, SCHEMA, list(PARTITIONS)))


@pytest.mark.slow
@given(
    names.flatmap(lambda of: st.tuples(st.lists(files(of), max_size=6), predicates(of), st.integers(0, 6))), st.data()
)
def test_what_is_remembered_of_older_files_answers_as_read_anew(
    case: tuple[list[File], Predicate, int], data: st.DataObject
) -> None:
    found, predicate, count = case
    old, new = found[:count], found[count:]
    gone = data.draw(st.sets(st.integers(0, max(len(old) - 1, 0))))
    left = [each for i, each in enumerate(old) if i not in gone]
    older = FileFacts(table_of(old), SCHEMA, list(PARTITIONS))
    older.could_match(predicate)
    facts = FileFacts(table_of(left + new), SCHEMA, list(PARTITIONS))
    kept = None if len(left) == len(old) else pa.array([i not in gone for i in range(len(old))], pa.bool_())
    facts.remember(older, kept)
    assert facts.could_match(predicate).equals(could_match(predicate, facts.files, SCHEMA, list(PARTITIONS)))
    assert facts.must_match(predicate).equals(must_match(predicate, facts.files, SCHEMA, list(PARTITIONS)))


def test_nothing_is_remembered_over_a_change_of_the_columns() -> None:
    table, schema, _ = one_file("long", between(1, 2))
    older = FileFacts(table, schema, [])
    older.could_match(x("=", 1))
    for other, columns in ((Struct((Field("x", "integer"),)), []), (schema, ["x"])):
        facts = FileFacts(table, other, columns)
        facts.remember(older, None)
        found, anew = facts.column("x"), FileFacts(table, other, columns).column("x")
        assert found is not None
        assert anew is not None
        assert (found.field, found.low) == (anew.field, anew.low) != (schema.field("x"), pa.array([1], pa.int64()))


@pytest.mark.slow
@given(cases)
def test_a_file_is_judged_by_itself(case: tuple[list[File], Predicate]) -> None:
    found, predicate = case
    together = could_match(predicate, table_of(found), SCHEMA, list(PARTITIONS)).to_pylist()
    alone = [could_match(predicate, table_of([each]), SCHEMA, list(PARTITIONS))[0].as_py() for each in found]
    assert together == alone


# -- precision: what is skipped, and what not --------------------------------------------------------------------------


def one_file(data_type: str, stats: Any = None, partition: str | None = None, **metadata: Any) -> tuple[Any, ...]:
    text = stats if isinstance(stats, str | None) else json.dumps(stats)
    table = table_of([File([], {"x": partition} if stats is None else {}, text)])
    return table, Struct((Field("x", data_type, metadata=metadata),)), ["x"] if stats is None else []


def verdict(predicate: Predicate, file: tuple[Any, ...]) -> str:
    could, must = could_match(predicate, *file)[0].as_py(), must_match(predicate, *file)[0].as_py()
    return {(False, False): "none", (True, False): "some", (True, True): "all"}[could, must]


def between(low: Any, high: Any, nulls: int | None = 0, rows: int | None = 5) -> dict[str, Any]:
    return {
        "numRecords": rows,
        "minValues": {"x": low},
        "maxValues": {"x": high},
        "nullCount": {"x": nulls},
    }


def x(op: Any, value: Any) -> Predicate:
    return Compare("x", op, value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (x("=", 9), "none"),
        (x("=", 10), "some"),
        (x("<", 10), "none"),
        (x("<=", 10), "some"),
        (x("<", 21), "all"),
        (x(">", 20), "none"),
        (x(">=", 20), "some"),
        (x(">", 9), "all"),
        (x("!=", 5), "all"),
        (x("!=", 15), "some"),
        (x("<=>", 25), "none"),
        (x("<=>", None), "none"),
        (x("=", None), "none"),
        (Not(x("<=>", 25)), "all"),
        (Not(x("<=>", None)), "all"),
        (Not(x(">", 20)), "all"),
        (Not(x("=", None)), "none"),
        (In("x", (1, 2, 30)), "none"),
        (In("x", (1, 12)), "some"),
        (In("x", (1, None)), "none"),
        (In("x", tuple(range(-5000, 10))), "none"),
        (In("x", (*range(10), *range(21, 5000))), "none"),
        (In("x", (*range(10), 15, *range(21, 5000))), "some"),
        (Not(In("x", (1, 30))), "all"),
        (Not(In("x", (1, None))), "none"),
        (Not(In("x", (15,))), "some"),
        (IsNull("x"), "none"),
        (Not(IsNull("x")), "all"),
        (And((x(">", 5), x("<", 8))), "none"),
        (And((x(">", 5), x("<", 30))), "all"),
        (And((x(">", 5), Unknown())), "some"),
        (And((x(">", 50), Unknown())), "none"),
        (Or((x("<", 5), x(">", 25))), "none"),
        (Or((x("<", 5), x(">", 8))), "all"),
        (Or((x("<", 5), Unknown())), "some"),
        (Unknown(), "some"),
        (Not(Unknown()), "some"),
        (Always(True), "all"),
        (Always(False), "none"),
        (x("<", Decimal("10.5")), "some"),
        (x("<", Decimal("10.0")), "none"),
        (x("=", Decimal("10.5")), "none"),
        (x("=", 10**40), "some"),
        (x("<", 10**30), "all"),
        (x(">", 10**30), "none"),
        (x("=", 1.0), "none"),
        (x("=", "1"), "some"),
        (Compare("other", "=", 1), "some"),
    ],
    ids=lambda value: str(value)[:70],
)
def test_whole_numbers_from_10_to_20(predicate: Predicate, expected: str) -> None:
    assert verdict(predicate, one_file("long", between(10, 20))) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data_type", "low", "high", "below", "inside", "above"),
    [
        ("integer", 1, 5, 0, 3, 6),
        ("decimal(5,2)", 1.5, 2.5, Decimal("1.499"), Decimal("1.51"), 3),
        ("string", "b", "d", "a", "c", "dd"),
        ("date", "2020-01-02", "2020-01-04", date(2020, 1, 1), "2020-01-03", date(2020, 1, 5)),
        (
            "timestamp",
            "2020-01-02T00:00:00.000Z",
            "2020-01-04T00:00:00.000+01:00",
            datetime(2020, 1, 1, 23, 59, 59, 999999, UTC),
            datetime(2020, 1, 4, tzinfo=timezone(timedelta(hours=1))),
            datetime(2020, 1, 4, tzinfo=UTC),
        ),
        ("timestamp_ntz", "2020-01-02T00:00:00.000", "2020-01-04T00:00:00", *[datetime(2020, 1, d) for d in (1, 3, 5)]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bounds_of_every_ordered_type_skip_and_pick(
    data_type: str, low: Any, high: Any, below: Any, inside: Any, above: Any
) -> None:
    file = one_file(data_type, between(low, high))
    assert [verdict(x("=", each), file) for each in (below, inside, above)] == ["none", "some", "none"]
    assert [verdict(x("<", each), file) for each in (below, inside, above)] == ["none", "some", "all"]
    assert [verdict(x(">=", each), file) for each in (below, inside, above)] == ["all", "some", "none"]
    assert [verdict(Not(In("x", (each,))), file) for each in (below, inside, above)] == ["all", "some", "all"]


@pytest.mark.parametrize("nulls", [1, None])
def test_nulls_never_match_so_a_file_that_may_hold_them_is_never_picked(nulls: int | None) -> None:
    file = one_file("long", between(10, 20, nulls))
    assert verdict(x(">", 5), file) == "some"
    assert verdict(Not(IsNull("x")), file) == "some"
    assert verdict(IsNull("x"), file) == "some"
    assert verdict(x("=", 5), file) == "none"


def test_a_file_of_nulls_matches_is_null_only() -> None:
    file = one_file("long", {"numRecords": 3, "nullCount": {"x": 3}})
    for predicate in (x("=", 1), x("!=", 1), x("<", 1), In("x", (1,)), Not(In("x", (1,))), Not(IsNull("x"))):
        assert verdict(predicate, file) == "none"
    assert verdict(StartsWith("x", "a"), file) == "none"
    assert verdict(IsNull("x"), file) == "all"
    assert verdict(x("<=>", None), file) == "all"
    assert verdict(Not(x("<=>", 1)), file) == "all"


@pytest.mark.parametrize("stats", ["", "{", "{}", '{"numRecords":5}', '{"nullCount":{"x":5}}', '{"minValues":{"y":1}}'])
def test_without_statistics_nothing_is_skipped_and_nothing_picked(stats: str) -> None:
    for predicate in (x("=", 1), x("!=", 1), IsNull("x"), Not(IsNull("x")), In("x", (1,)), Not(In("x", (1,)))):
        assert verdict(predicate, one_file("long", stats)) == "some"


@pytest.mark.parametrize(
    ("prefix", "expected", "negated"),
    [
        ("abc", "all", "none"),
        ("abd", "none", "all"),
        ("abb", "none", "all"),
        ("abcc", "some", "some"),
        ("", "all", "none"),
    ],
)
def test_prefixes_are_looked_up_between_the_bounds(prefix: str, expected: str, negated: str) -> None:
    file = one_file("string", between("abcb", "abcd"))
    assert verdict(StartsWith("x", prefix), file) == expected
    assert verdict(Not(StartsWith("x", prefix)), file) == negated


@pytest.mark.parametrize(("low", "high"), [("a", "abc"), ("abc", "b"), ("a", "b")])
def test_a_prefix_that_one_bound_or_none_has_may_be_there(low: str, high: str) -> None:
    file = one_file("string", between(low, high))
    assert verdict(StartsWith("x", "abc"), file) == "some"
    assert verdict(Not(StartsWith("x", "abc")), file) == "some"


def test_a_prefix_of_anything_but_a_string_is_not_looked_up() -> None:
    assert verdict(StartsWith("x", "2020-01-05"), one_file("date", between("2020-01-02", "2020-01-03"))) == "some"


# -- traps -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data_type", ["float", "double"])
def test_a_maximum_says_nothing_of_nan_which_is_greater_than_all(data_type: str) -> None:
    file = one_file(data_type, between(1.0, 2.0))
    for predicate in (x(">", 5.0), x(">=", 5.0), x("=", nan), x("!=", 1.5), In("x", (nan, 9.0))):
        assert verdict(predicate, file) == "some"
    same = one_file(data_type, between(1.0, 1.0))
    assert verdict(x("!=", 1.0), same) == "some"
    assert verdict(Not(In("x", (1.0,))), same) == "some"
    assert verdict(x("<", 5.0), file) == "some"
    assert verdict(x("=", 5.0), file) == "none"
    assert verdict(In("x", (5.0, 6.0)), file) == "none"
    assert verdict(x("<", 1.0), file) == "none"
    assert verdict(x(">", 0.5), file) == "all"
    assert verdict(x("!=", 5.0), file) == "all"


def test_zeros_are_equal_whatever_their_sign() -> None:
    for zero in ("0.0", "-0.0"):
        for literal in (0.0, -0.0, 0):
            assert verdict(x("=", literal), one_file("double", between(json.loads(zero), json.loads(zero)))) == "some"
            assert verdict(x("=", literal), one_file("double", partition=zero)) == "all"
            assert verdict(Not(In("x", (literal, 5.0))), one_file("double", partition=zero)) == "none"


def test_a_float_bound_is_the_float_next_to_its_digits() -> None:
    file = one_file("float", between(0.1, 0.1))
    assert verdict(x("=", float(np.float32(0.1))), file) == "some"
    assert verdict(x("=", 0.1), file) == "none"


def test_a_cut_maximum_still_covers_the_string() -> None:
    file = one_file("string", between("a" * 32, "a" * 32 + "\ufffd"))
    assert verdict(x("=", "a" * 32 + "\U0001f600"), file) == "some"


def test_a_timestamp_is_looked_for_up_to_a_millisecond_after_the_maximum() -> None:
    file = one_file("timestamp", between("2020-01-01T00:00:00.000Z", "2020-01-01T00:00:00.000Z"))
    assert verdict(x("=", datetime(2020, 1, 1, 0, 0, 0, 999, UTC)), file) == "some"
    assert verdict(x(">", datetime(2020, 1, 1, 0, 0, 0, 2000, UTC)), file) == "none"


def test_a_large_double_beside_a_long_may_round_it() -> None:
    assert verdict(x("=", 2.0**53), one_file("long", between(2**53 + 1, 2**53 + 1))) == "some"


@pytest.mark.parametrize(
    "metadata", [{"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}, {"__COLLATIONS": {"x": "spark.UTF8_LCASE"}}]
)
def test_padded_and_collated_strings_are_not_skipped(metadata: dict[str, Any]) -> None:
    file = one_file("string", between("b", "d"), **metadata)
    assert verdict(x("=", "a"), file) == "some"
    assert verdict(StartsWith("x", "a"), file) == "some"
    assert verdict(IsNull("x"), file) == "none"


def test_wide_bounds_still_bound() -> None:
    file = one_file("long", {**between(10, 20, nulls=3), "tightBounds": False})
    assert verdict(x("=", 5), file) == "none"
    assert verdict(IsNull("x"), file) == "some"


def test_of_a_list_only_no_nulls_at_all_is_certain_since_some_writers_count_its_elements() -> None:
    schema = Struct((Field("x", Array("long")),))
    for nulls, verdicts in ((0, (False, True)), (1, (True, True)), (2, (True, True))):
        table, _, _ = one_file("long", {"numRecords": 2, "nullCount": {"x": nulls}})
        found = [could_match(each, table, schema, [])[0].as_py() for each in (IsNull("x"), Not(IsNull("x")))]
        assert tuple(found) == verdicts


def nested_file(**members: Any) -> tuple[pa.Table, Struct, list[str]]:
    """One file with a member ``a.b.c`` from 10 to 20, and what else is given."""
    inner = Struct((Field("c", "long", metadata=members.pop("metadata", {})), Field("d", "long")))
    schema = Struct((Field("a", Struct((Field("b", inner),))), Field("a.b.c", "long")))
    stats = {"numRecords": 5, **members}
    return table_of([File([], {}, json.dumps(stats))]), schema, []


def test_a_member_of_structs_is_skipped_by_its_own_bounds() -> None:
    def at(value: int) -> Any:
        return {"a": {"b": {"c": value}}, "a.b.c": 1}

    file = nested_file(minValues=at(10), maxValues=at(20), nullCount=at(0))
    path = ("a", "b", "c")
    assert [verdict(Compare(path, "=", each), file) for each in (9, 15, 21)] == ["none", "some", "none"]
    assert verdict(Compare(path, ">", 5), file) == "all"
    assert verdict(IsNull(path), file) == "none"
    assert verdict(Compare("a.b.c", "=", 15), file) == "none"
    assert verdict(Compare(("a", "b", "d"), "=", 15), file) == "some"
    for nowhere in (("a", "b"), ("a", "b", "e"), ("a", "b", "c", "d")):
        assert verdict(Compare(nowhere, "=", 9), file) == "some"


@pytest.mark.parametrize("odd", [5, None, "x", [], {"b": 5}, {"b": {"c": "x"}}, {"b": None}])
def test_a_member_whose_statistics_stand_otherwise_is_unknown(odd: Any) -> None:
    file = nested_file(minValues={"a": odd}, maxValues={"a": odd}, nullCount={"a": odd})
    assert verdict(Compare(("a", "b", "c"), "=", 9), file) == "some"


def test_a_member_is_found_by_its_physical_name() -> None:
    keyed = {"a": {"b": {"col-1": 10, "c": 50}}}
    file = nested_file(minValues=keyed, maxValues=keyed, metadata={"delta.columnMapping.physicalName": "col-1"})
    assert [verdict(Compare(("a", "b", "c"), "=", each), file) for each in (10, 50)] == ["some", "none"]


# -- partition values --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data_type", "text", "value", "other"),
    [
        ("integer", "5", 5, 6),
        ("long", "5", Decimal("5.0"), 4),
        ("double", "2.5", 2.5, 3),
        ("float", "0.1", float(np.float32(0.1)), 0.1),
        ("decimal(5,2)", "1.5", Decimal("1.50"), Decimal("1.505")),
        ("string", "é", "é", "e"),
        ("date", "2020-01-02", date(2020, 1, 2), "2020-01-03"),
        ("timestamp", "2020-01-01T00:00:00Z", datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 2, tzinfo=UTC)),
        ("timestamp_ntz", "2020-01-01 00:00:00", datetime(2020, 1, 1), datetime(2020, 1, 2)),
        ("boolean", "true", True, False),
    ],
)
def test_partition_values_are_exact(data_type: str, text: str, value: Any, other: Any) -> None:
    file = one_file(data_type, partition=text)
    assert verdict(x("=", value), file) == "all"
    assert verdict(x("<=>", value), file) == "all"
    assert verdict(In("x", (other, value)), file) == "all"
    assert verdict(x("!=", value), file) == "none"
    assert verdict(x("=", other), file) == "none"
    assert verdict(Not(In("x", (value,))), file) == "none"
    assert verdict(IsNull("x"), file) == "none"


@pytest.mark.parametrize("data_type", ["string", "integer", "date", "double", "binary"])
@pytest.mark.parametrize("text", [None, ""])
def test_a_null_partition_holds_nulls_only(data_type: str, text: str | None) -> None:
    file = one_file(data_type, partition=text)
    assert verdict(IsNull("x"), file) == "all"
    assert verdict(Not(IsNull("x")), file) == "none"


@pytest.mark.parametrize(("data_type", "text"), [("integer", "x"), ("date", "2020-02-30"), ("boolean", "1")])
def test_a_partition_text_that_is_no_value_is_unknown(data_type: str, text: str) -> None:
    for predicate in (x("=", POOL[data_type][0]), IsNull("x"), Not(IsNull("x"))):
        assert verdict(predicate, one_file(data_type, partition=text)) == "some"


def test_a_partition_timestamp_without_a_zone_may_be_of_any() -> None:
    file = one_file("timestamp", partition="2020-01-10 00:00:00")
    noon = datetime(2020, 1, 10, tzinfo=UTC)
    for away in (timedelta(0), timedelta(hours=14), timedelta(hours=-12)):
        assert verdict(x("=", noon + away), file) == "some"
    assert verdict(x("=", noon + DAY), file) == "none"
    assert verdict(x("<", noon + DAY), file) == "all"


def test_a_nan_partition_is_unknown() -> None:
    file = one_file("double", partition="NaN")
    for predicate in (x(">", 5.0), x("=", nan), x("<", 5.0)):
        assert verdict(predicate, file) == "some"
    assert verdict(IsNull("x"), file) == "none"


def test_partition_values_are_found_by_physical_names() -> None:
    table = table_of([File([], {"col-1": "5"}, None)])
    schema = Struct((Field("x", "integer", metadata={"delta.columnMapping.physicalName": "col-1"}),))
    assert could_match(x("=", 5), table, schema, ["x"]).to_pylist() == [True]
    assert could_match(x("=", 6), table, schema, ["x"]).to_pylist() == [False]


def test_statistics_are_read_only_for_files_that_partition_values_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files whose statistics are parsed are counted, since that is what a look-up in many partitions costs."""
    read, real = list[int](), skipping.stats_columns
    monkeypatch.setattr(skipping, "stats_columns", lambda stats, *rest: read.append(len(stats)) or real(stats, *rest))
    rows = [File([], {"p": str(i)}, json.dumps(between(i, i))) for i in range(100)]
    schema = Struct((Field("p", "integer"), Field("x", "long")))
    facts = FileFacts(table_of(rows), schema, ["p"])
    found = facts.could_match(And((In("p", (7, 8)), x("=", 7))))
    assert [i for i, each in enumerate(found.to_pylist()) if each] == [7]
    assert read == [2]


def test_many_values_are_looked_up_between_the_bounds_of_each_file() -> None:
    lists = [([None, 5, 6], [9, None, 6]), ([0, 7, 12], [1, 11, 20])]
    stats = [json.dumps(between(low, high)) for lows, highs in lists for low, high in zip(lows, highs, strict=True)]
    table = table_of([File([], {}, each) for each in stats])
    schema = Struct((Field("x", "long"),))
    found = could_match(In("x", (3, 10, 15, 2)), table, schema, []).to_pylist()
    assert found == [True, True, False, False, True, True]
    assert could_match(In("x", (10, 15)), table, schema, []).to_pylist() == [False, True, False, False, True, True]
    assert could_match(In("x", (5, 15)), table, schema, []).to_pylist()[1:3] == [True, False]
