"""A table's own rules on real Spark: whatever way rows take, none that breaks a rule is ever committed."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

import anabranch
from anabranch import DeltaTable, errors
from anabranch._log.log import forget
from anabranch._protocol.schema.types import Array, Field, Map, Struct
from anabranch._spark.engine import SparkEngine
from anabranch._sql.conditions import resolve_condition
from anabranch.commands.ddl.add_constraint import AddConstraint
from anabranch.commands.opening import open_log
from anabranch.testing import at_phase
from tests.support.raw_logs import metadata, put_commit
from tests.support.readers import deltalake_rows, same_rows
from tests.support.tiers import examples, few_of
from tests.support.worlds import assert_others_agree

pytestmark = pytest.mark.spark

Way = Callable[[SparkSession, DeltaTable, str, Mapping[str, str]], object]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def sql(spark: SparkSession) -> SparkSession:
    return anabranch.install(spark)


@pytest.fixture(autouse=True)
def every_table_is_left_clean_and_readable_by_others(tmp_path: Path) -> Any:
    yield
    table = tmp_path / "table"
    if (table / "_delta_log").is_dir():
        report = anabranch.check(table, deep=True)
        assert report.is_clean, str(report)
        assert_others_agree(str(table))


def invariant(text: str) -> dict[str, str]:
    return {"delta.invariants": json.dumps({"expression": {"expression": text}})}


def declared(sql: SparkSession, path: str, **properties: str) -> Any:
    builder = DeltaTable.create(sql).location(path)
    for key, value in properties.items():
        builder = builder.property(f"delta.{key.replace('__', '.')}", value)
    return builder


def rows_of(path: str, *columns: str) -> list[tuple[Any, ...]]:
    """The values of these columns as delta-rs reads them, or of all."""
    return [tuple(row[name] for name in columns or row) for row in deltalake_rows(path)]


def append(sql: SparkSession, path: str, *expressions: str, ids: tuple[int, int] = (0, 1)) -> None:
    sql.range(*ids).selectExpr(*expressions).write.format("delta").mode("append").save(path)


# -- every rule on every way -------------------------------------------------------------------------------------------

GOOD = {
    "c": "5L",
    "n": "'n'",
    "s": "named_struct('a', 1L)",
    "l": "array(map_from_arrays(array('k'), array(1L)))",
    "i": "1",
    "v": "'abc'",
    "g": "{id} * 10",
}
NULL_INSIDE = "array(map_from_arrays(array('k'), array(cast(null as bigint))))"
BAD: dict[str, tuple[str, type[errors.AnabranchError], dict[str, Any]]] = {
    "c": ("0L", errors.CheckConstraintViolated, {"constraint": "positive", "values": {"c": "0"}}),
    "c NULL": ("cast(null as bigint)", errors.CheckConstraintViolated, {"values": {"c": None}}),
    "n": ("cast(null as string)", errors.NotNullViolated, {"column": "n"}),
    "s": ("named_struct('a', cast(null as bigint))", errors.NotNullViolated, {"column": "s.a"}),
    "l": (
        "array(map_from_arrays(array('k'), array(cast(null as bigint))))",
        errors.NotNullViolated,
        {"column": "l.element.value"},
    ),
    "i": ("-1", errors.CheckConstraintViolated, {"constraint": "EXPRESSION(i > 0)", "values": {"i": "-1"}}),
    "v": ("'abcd'", errors.LengthExceeded, {"column": "v", "limit": "varchar(3)", "values": {"v": "abcd"}}),
    "g": ("7L", errors.CheckConstraintViolated, {"constraint": "Generated Column", "expression": "g <=> id * 10"}),
}


def ruled(sql: SparkSession, path: str, **properties: str) -> DeltaTable:
    """A table with every kind of rule, and rows 1 and 2."""
    strict = T.StructType([T.StructField("a", T.LongType(), nullable=False)])
    counts = T.ArrayType(T.MapType(T.StringType(), T.LongType(), valueContainsNull=False))
    builder = declared(sql, path, constraints__positive="c > 0", **properties)
    builder = builder.addColumn("id", "BIGINT").addColumn("c", "BIGINT").addColumn("n", "STRING", nullable=False)
    builder = builder.addColumn("s", strict).addColumn("l", counts)
    builder = builder.addColumns([T.StructField("i", T.IntegerType(), True, invariant("i > 0"))])
    builder.addColumn("v", "VARCHAR(3)").addColumn("g", "BIGINT", generatedAlwaysAs="id * 10").execute()
    append(sql, path, *_selected("id", GOOD), ids=(1, 3))
    return DeltaTable.forPath(sql, path)


def _selected(id_: str, values: Mapping[str, str]) -> list[str]:
    return [f"{id_} as id", *(f"{value.format(id=id_)} as {name}" for name, value in values.items())]


def _appends(sql: SparkSession, table: DeltaTable, path: str, values: Mapping[str, str]) -> None:
    append(sql, path, *_selected("id", values), ids=(8, 10))


def _overwrites(sql: SparkSession, table: DeltaTable, path: str, values: Mapping[str, str]) -> None:
    sql.range(1, 3).selectExpr(*_selected("id", values)).write.format("delta").mode("overwrite").save(path)


def _replaces(sql: SparkSession, table: DeltaTable, path: str, values: Mapping[str, str]) -> None:
    rows = sql.range(2, 3).selectExpr(*_selected("id", values))
    rows.write.format("delta").mode("overwrite").option("replaceWhere", "id > 1").save(path)


def _updates(sql: SparkSession, table: DeltaTable, path: str, values: Mapping[str, str]) -> None:
    table.update("id = 2", {name: value.format(id="id") for name, value in values.items()})


def _merges(table: DeltaTable, sql: SparkSession, on: str = "t.id = s.id") -> Any:
    return table.alias("t").merge(sql.range(2, 3).alias("s"), on)


def _merge_updates(sql: SparkSession, table: DeltaTable, path: str, values: Mapping[str, str]) -> None:
    _merges(table, sql).whenMatchedUpdate(set={name: v.format(id="t.id") for name, v in values.items()}).execute()


def _merge_updates_alone(sql: SparkSession, table: DeltaTable, path: str, values: Mapping[str, str]) -> None:
    set_ = {name: value.format(id="t.id") for name, value in values.items()}
    _merges(table, sql).whenNotMatchedBySourceUpdate(set=set_).execute()


def _merge_inserts(sql: SparkSession, table: DeltaTable, path: str, values: Mapping[str, str]) -> None:
    new = {"id": "s.id + 100", **{name: value.format(id="(s.id + 100)") for name, value in values.items()}}
    _merges(table, sql, "t.id = s.id + 100").whenNotMatchedInsert(values=new).execute()


WAYS: dict[str, Way] = {
    "append": _appends,
    "overwrite": _overwrites,
    "replaceWhere": _replaces,
    "update": _updates,
    "merge update": _merge_updates,
    "merge update by no source": _merge_updates_alone,
    "merge insert": _merge_inserts,
}


def broken_by(name: str) -> list[str]:
    """The rules that a way breaks: all, or in a short run every fourth one, and its neighbours others."""
    step = examples(1, 4)
    return list(BAD)[list(WAYS).index(name) // 2 % step :: step]


def attempt_all(sql: SparkSession, table: DeltaTable, path: str, name: str, most: int = len(BAD)) -> None:
    """Every rule is broken in turn, in a short run at most so many, and nothing is committed; then none is broken."""
    way = WAYS[name]
    before, version = deltalake_rows(path), len(anabranch.history(path))
    for key in few_of(broken_by(name), most):
        value, kind, facts = BAD[key]
        with pytest.raises(kind) as caught:
            way(sql, table, path, {**GOOD, key.split()[0]: value})
        found = {name: caught.value.facts[name] for name in facts}
        assert found == facts, key
        assert "\n" not in str(caught.value)
        assert "java" not in str(caught.value)
    assert len(anabranch.history(path)) == version
    assert same_rows(deltalake_rows(path), before)
    way(sql, table, path, GOOD)
    assert len(anabranch.history(path)) == version + 1


@pytest.mark.parametrize("way", WAYS)
def test_no_way_to_write_breaks_a_rule(sql: SparkSession, path: str, way: str) -> None:
    attempt_all(sql, ruled(sql, path), path, way)


@pytest.mark.parametrize("way", ["update", "merge update"])
def test_neither_does_one_that_rewrites_files(sql: SparkSession, path: str, way: str) -> None:
    attempt_all(sql, ruled(sql, path, enableDeletionVectors="false"), path, way, most=1)


def test_the_row_that_holds_null_is_shown(sql: SparkSession, path: str) -> None:
    declared(sql, path).addColumn("id", "BIGINT").addColumn("b", "BINARY").addColumn("n", "INT", False).execute()
    with pytest.raises(errors.NotNullViolated) as caught:
        append(sql, path, "id", "X'FF00' as b", "if(id = 3, null, 1) as n", ids=(1, 5))
    assert caught.value.values == {"n": None, "id": "3", "b": "FF00"}
    assert "id = 3, b = FF00, n = NULL" in str(caught.value)


SENTENCE = "A row to write breaks a rule of its Delta table: "
MARKS = [f"{SENTENCE}{{}}", f'{SENTENCE}NULL stands in the NOT NULL column "y". The row has {{"y": null}}.']
"""Values that look like what Spark is told of a row."""


@pytest.mark.parametrize("value", ["a\nb", '"}\\', "{x} %s {0}", "é😀", "x" * 5000, *MARKS])
def test_any_value_can_be_shown(sql: SparkSession, path: str, value: str) -> None:
    declared(sql, path, constraints__c="x <> x").addColumn("x", "STRING").execute()
    with pytest.raises(errors.CheckConstraintViolated) as caught:
        sql.createDataFrame([(value,)], "x string").write.format("delta").mode("append").save(path)
    assert caught.value.values == {"x": value[:200]}


# -- what the optimiser may not do -------------------------------------------------------------------------------------


def test_a_check_of_a_random_value_judges_the_value_that_is_written(sql: SparkSession, path: str) -> None:
    declared(sql, path, constraints__c="x < 0.5").addColumn("id", "BIGINT").addColumn("x", "DOUBLE").execute()
    anabranch.append(path, [{"id": i, "x": 0.25} for i in range(2000)])
    with pytest.raises(errors.CheckConstraintViolated):
        sql.range(2000).withColumn("x", F.rand(7)).write.format("delta").mode("append").save(path)
    table = DeltaTable.forPath(sql, path)
    merged = table.alias("t").merge(sql.range(2000).alias("s"), "t.id = s.id")
    merged.whenMatchedUpdate(set={"x": F.rand() / 2}).execute()
    assert len([x for (x,) in rows_of(path, "x") if x < 0.5]) == 2000


@pytest.mark.parametrize("columns", ["id", "0 as id", "cast(null as bigint) as id"])
def test_a_check_of_constants_and_ranges_is_not_left_out(sql: SparkSession, path: str, columns: str) -> None:
    declared(sql, path, constraints__c="id > 0").addColumn("id", "BIGINT").addColumn("p", "STRING").execute()
    with pytest.raises(errors.CheckConstraintViolated):
        append(sql, path, columns, "'x' as p")
    with pytest.raises(errors.CheckConstraintViolated):
        sql.createDataFrame([(0, "x")], "id long, p string").write.format("delta").mode("append").save(path)


def test_a_rule_of_a_partition_column_is_held(sql: SparkSession, path: str) -> None:
    builder = declared(sql, path, constraints__c="p <> 'z'").addColumn("p", "VARCHAR(2)", nullable=False)
    builder.addColumn("id", "BIGINT").partitionedBy("p").execute()
    bad = (
        ("'z'", errors.CheckConstraintViolated),
        ("cast(null as string)", errors.NotNullViolated),
        ("'abc'", errors.LengthExceeded),
    )
    for value, error in few_of(bad, 1):
        with pytest.raises(error):
            append(sql, path, f"{value} as p", "id")
    append(sql, path, "'ab ' as p", "id")
    assert rows_of(path, "p", "id") == [("ab", 0)]


def test_a_constraint_may_look_at_the_clock_and_a_struct_may_carry_the_checks(sql: SparkSession, path: str) -> None:
    nested = T.StructType([T.StructField("d", T.DateType())])
    declared(sql, path, constraints__past="s.d < current_date()").addColumn("s", nested).addColumn("x", "INT").execute()
    with pytest.raises(errors.CheckConstraintViolated) as caught:
        append(sql, path, "named_struct('d', date'9999-01-02') as s")
    assert caught.value.values == {"s": "{9999-01-02}"}
    append(sql, path, "named_struct('d', date'2001-01-02') as s")


def test_an_expression_that_fails_on_a_row_stops_the_write(sql: SparkSession, path: str) -> None:
    declared(sql, path, constraints__c="1 div x = 1").addColumn("x", "BIGINT").execute()
    with pytest.raises(errors.ExecutionFailed, match="DIVIDE_BY_ZERO"):
        append(sql, path, "id as x")


def test_rows_that_are_only_copied_are_not_judged(sql: SparkSession, path: str) -> None:
    """A careless engine wrote them; who rewrites their file for another row is not the one to be refused."""
    anabranch.append(path, {"x": range(3)})
    schema = Struct((Field("x", "long"),))
    writers = ["checkConstraints", "deletionVectors", "appendOnly", "invariants"]
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}
    body = metadata(schema, delta_enableDeletionVectors="false", **{"delta_constraints.c": "x > 0"})
    put_commit(path, 1, {"protocol": {**features, "writerFeatures": writers}}, body)
    forget()
    table = DeltaTable.forPath(sql, path)
    table.update("x = 2", {"x": "x + 1"})
    table.delete("x = 1")
    assert rows_of(path) == [(0,), (3,)]
    with pytest.raises(errors.CheckConstraintViolated):
        table.update("x = 0", {"x": "x"})


@pytest.mark.classic("a client is told of no jobs")
def test_holding_rules_costs_no_job(sql: SparkSession, path: str, tmp_path: Path) -> None:
    declared(sql, path, constraints__c="id >= 0").addColumn("id", "BIGINT", nullable=False).execute()
    context, jobs = sql.sparkContext, {}
    try:
        for name, where in (("ruled", path), ("plain", str(tmp_path / "plain"))):
            context.setJobGroup(name, name)
            append(sql, where, "id")
            jobs[name] = len(context.statusTracker().getJobIdsForGroup(name))
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    assert jobs["ruled"] == jobs["plain"] > 0


# -- lengths -----------------------------------------------------------------------------------------------------------


def test_texts_are_stored_as_spark_stores_char_and_varchar(sql: SparkSession, path: str, tmp_path: Path) -> None:
    """Compared with what stock Spark makes of the same texts in a Parquet table of the same columns."""
    declared(sql, path).addColumn("id", "BIGINT").addColumn("c", "CHAR(3)").addColumn("v", "VARCHAR(3)").execute()
    texts = ["", "a", "abc", "abc  ", "ab  ", "é😀", "   ", "     ", None]
    rows = sql.createDataFrame([(i, text, text) for i, text in enumerate(texts)], "id long, c string, v string")
    sql.sql(f"CREATE TABLE theirs (id BIGINT, c CHAR(3), v VARCHAR(3)) USING parquet LOCATION '{tmp_path}/theirs'")
    try:
        rows.write.insertInto("theirs")
        expected = sorted(tuple(row.values()) for row in pq.read_table(f"{tmp_path}/theirs").to_pylist())
    finally:
        sql.sql("DROP TABLE theirs")
    rows.write.format("delta").mode("append").save(path)
    assert sorted(rows_of(path, "id", "c", "v")) == expected
    DeltaTable.forPath(sql, path).update("id = 1", {"c": "'x'", "v": "'y    '"})
    assert sorted(rows_of(path, "id", "c", "v"))[1] == (1, "x  ", "y  ")


def test_lengths_inside_nested_columns_are_held(sql: SparkSession, path: str) -> None:
    inner = T.StructType([T.StructField("c", T.CharType(2)), T.StructField("n", T.IntegerType())])
    nested = T.MapType(T.VarcharType(1), T.ArrayType(inner))
    declared(sql, path).addColumn("id", "BIGINT").addColumn("m", nested).execute()
    good = "map('k', array(named_struct('c', 'x', 'n', 1), null), 'l', null)"
    append(sql, path, "id", f"if(id = 0, {good}, null) as m", ids=(0, 2))
    assert rows_of(path, "id", "m") == [(0, [("k", [{"c": "x ", "n": 1}, None]), ("l", None)]), (1, None)]
    too_long = (
        ("map('k', array(named_struct('c', 'xyz', 'n', 1)))", "m.value.element.c"),
        ("map('kk', cast(null as array<struct<c: string, n: int>>))", "m.key"),
    )
    for bad, column in few_of(too_long, 1):
        with pytest.raises(errors.LengthExceeded) as caught:
            append(sql, path, "id", f"{bad} as m")
        assert caught.value.column == column


# -- defaults ----------------------------------------------------------------------------------------------------------


def defaulted(sql: SparkSession, path: str) -> DeltaTable:
    columns = [
        T.StructField("id", T.LongType()),
        T.StructField("d", T.IntegerType(), False, {"CURRENT_DEFAULT": "40 + 2"}),
        T.StructField("t", T.TimestampType(), True, {"CURRENT_DEFAULT": "current_timestamp()"}),
    ]
    return declared(sql, path).addColumns(columns).execute()


def test_a_column_that_rows_lack_has_its_default(sql: SparkSession, path: str) -> None:
    table = defaulted(sql, path)
    append(sql, path, "id", ids=(0, 1))
    append(sql, path, "id", "cast(7 as int) as d", "cast(null as timestamp) as t", ids=(1, 2))
    assert [(id_, d, t is None) for id_, d, t in rows_of(path, "id", "d", "t")] == [(0, 42, False), (1, 7, True)]
    source = sql.range(1, 4).alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdate(set={"t": "current_timestamp()"})
    merge.whenNotMatchedInsert("s.id = 2", {"id": "s.id"}).whenNotMatchedInsertAll().execute()
    assert sorted(rows_of(path, "id", "d")) == [(0, 42), (1, 7), (2, 42), (3, 42)]
    assert None not in [t for (t,) in rows_of(path, "t")]
    with pytest.raises(errors.SchemaMismatch, match="d"):
        table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().execute()


def test_a_default_that_does_not_fit_is_refused_when_the_table_is_made(sql: SparkSession, path: str) -> None:
    for text in ("'x' +", "nope", "id", "array(1)", "(select 1)"):
        column = T.StructField("d", T.IntegerType(), True, {"CURRENT_DEFAULT": text})
        with pytest.raises((errors.InvalidCondition, errors.SchemaMismatch, errors.NotBuilt)):
            declared(sql, path).addColumns([T.StructField("id", T.LongType()), column]).execute()
    assert not Path(path).exists()


# -- generated columns -------------------------------------------------------------------------------------------------


def generated(sql: SparkSession, path: str) -> DeltaTable:
    builder = declared(sql, path).addColumn("id", "BIGINT").addColumn("t", "TIMESTAMP").addColumn("x", "INT")
    builder = builder.addColumn("day", "DATE", generatedAlwaysAs="CAST(t AS DATE)")
    return builder.addColumn("n", "INT", generatedAlwaysAs="length(concat('x', `x`))").partitionedBy("day").execute()


def test_a_generated_column_is_computed_where_it_is_absent_and_checked_where_it_is_given(
    sql: SparkSession, path: str
) -> None:
    generated(sql, path)
    append(sql, path, "id", "timestamp'2024-01-02 03:04:05' as t", "cast(10 as int) as x")
    append(sql, path, "1L as id", "cast(null as timestamp) as t", "cast(7 as int) as x", "cast(null as date) as day")
    assert sorted(rows_of(path, "id", "day", "n")) == [(0, dt.date(2024, 1, 2), 3), (1, None, 2)]
    with pytest.raises(errors.CheckConstraintViolated) as caught:
        append(sql, path, "1L as id", "timestamp'2024-01-02 03:04:05' as t", "cast(null as date) as day")
    assert caught.value.values == {"t": "2024-01-02 03:04:05", "day": None}


def test_an_update_computes_what_depends_on_it_and_keeps_the_rest(sql: SparkSession, path: str) -> None:
    table = generated(sql, path)
    append(sql, path, "id", "timestamp'2024-01-02 23:30:00' as t", "cast(10 as int) as x", ids=(0, 2))
    sql.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")  # where the same instant lies on the next day
    try:
        table.update("id = 0", {"x": "x * 10"})
    finally:
        sql.conf.set("spark.sql.session.timeZone", "UTC")
    days = dt.date(2024, 1, 2), dt.date(2024, 1, 3)
    assert sorted(rows_of(path, "id", "day", "n")) == [(0, days[0], 4), (1, days[0], 3)]
    table.update("id = 1", {"t": "t + interval 1 hour"})
    assert sorted(rows_of(path, "id", "day", "n")) == [(0, days[0], 4), (1, days[1], 3)]


def test_a_column_that_is_generated_from_two_follows_either_of_them(sql: SparkSession, path: str) -> None:
    builder = declared(sql, path).addColumn("x", "INT").addColumn("y", "INT")
    table = builder.addColumn("g", "INT", generatedAlwaysAs="x * 10 + y").execute()
    append(sql, path, "1 as x", "2 as y")
    table.update(set={"y": "y + 1"})
    assert rows_of(path, "x", "y", "g") == [(1, 3, 13)]
    table.update(set={"x": "x + 1"})
    assert rows_of(path, "x", "y", "g") == [(2, 3, 23)]


def test_each_clause_of_a_merge_computes_what_depends_on_it(sql: SparkSession, path: str) -> None:
    builder = declared(sql, path).addColumn("id", "BIGINT").addColumn("x", "INT").addColumn("y", "INT")
    table = builder.addColumn("g", "INT", generatedAlwaysAs="x + 1").execute()
    append(sql, path, "id", "cast(id as int) as x", "cast(0 as int) as y", ids=(0, 4))
    source = sql.range(0, 6).selectExpr("id", "cast(id * 10 as int) as x", "cast(5 as int) as y").alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id and s.id <> 3")
    merge = merge.whenMatchedUpdate("s.id = 0", {"x": "s.x + 7"}).whenMatchedUpdate("s.id = 1", {"y": "s.y"})
    merge = merge.whenMatchedUpdateAll().whenNotMatchedInsert("s.id = 4", {"id": "s.id", "x": "s.x"})
    merge = merge.whenNotMatchedInsertAll("s.id = 5").whenNotMatchedBySourceUpdate(set={"x": "t.x - 9"})
    merge.execute()
    expected = [(0, 7, 0, 8), (1, 1, 5, 2), (2, 20, 5, 21), (3, -6, 0, -5), (4, 40, None, 41), (5, 50, 5, 51)]
    assert sorted(rows_of(path, "id", "x", "y", "g")) == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("nope + 1", errors.InvalidCondition),
        ("rand()", errors.InvalidCondition),
        ("sum(id)", errors.InvalidCondition),
        ("explode(array(id))", errors.InvalidCondition),
        ("current_timestamp()", errors.InvalidCondition),
        ("g + 1", errors.InvalidCondition),
        ("other + 1", errors.InvalidCondition),
        ("(select 1)", errors.RuleRefused),
        ("array(id)", errors.SchemaMismatch),
    ],
)
def test_a_column_is_generated_from_plain_columns_of_its_row_only(
    sql: SparkSession, path: str, text: str, error: type[errors.AnabranchError]
) -> None:
    builder = declared(sql, path).addColumn("id", "BIGINT").addColumn("other", "BIGINT", generatedAlwaysAs="id")
    with pytest.raises(error):
        builder.addColumn("g", "BIGINT", generatedAlwaysAs=text).execute()
    assert not Path(path).exists()


@pytest.mark.parametrize("text", ["nope > 1", "id", "id >", "sum(id) > 1", "(select true)", "id > 0; id < 1"])
def test_a_constraint_that_is_none_is_refused_when_the_table_is_made(sql: SparkSession, path: str, text: str) -> None:
    with pytest.raises((errors.InvalidCondition, errors.NotBuilt)):
        declared(sql, path, constraints__c=text).addColumn("id", "BIGINT").execute()
    assert not Path(path).exists()


# -- other writers -----------------------------------------------------------------------------------------------------


def test_constraints_that_delta_rs_made_are_held(sql: SparkSession, path: str) -> None:
    deltalake.write_deltalake(path, pa.table({"id": pa.array([1, 2], pa.int64()), "s": ["a", "b"]}))
    theirs = deltalake.DeltaTable(path)
    theirs.alter.add_constraint({"big": "id > 0 AND s != 'long'"})
    forget()
    table = DeltaTable.forPath(sql, path)
    with pytest.raises(errors.CheckConstraintViolated) as caught:
        append(sql, path, "id", "'x' as s")
    assert (caught.value.constraint, caught.value.values) == ("big", {"id": "0", "s": "x"})
    with pytest.raises(errors.CheckConstraintViolated):
        _merges(table, sql, "t.id = s.id + 10").whenNotMatchedInsert(values={"id": "s.id"}).execute()
    table.update("id = 1", {"s": "'z'"})
    assert rows_of(path, "id", "s") == [(1, "z"), (2, "b")]


def test_constraints_made_here_are_held_by_delta_rs(sql: SparkSession, path: str) -> None:
    builder = declared(sql, path, constraints__big="id > 0", enableDeletionVectors="false")
    builder.addColumn("id", "BIGINT").execute()
    assert anabranch.files(path).num_rows == 0
    bad, good = (pa.table({"id": pa.array([value], pa.int64())}) for value in (0, 1))
    with pytest.raises(Exception, match="failed validation check"):
        deltalake.write_deltalake(path, bad, mode="append")
    deltalake.write_deltalake(path, good, mode="append")


def test_rules_that_come_in_meanwhile_stop_a_writer_that_has_not_seen_them(sql: SparkSession, path: str) -> None:
    anabranch.append(path, {"id": [1, 2]})
    table = DeltaTable.forPath(sql, path)

    def constrain() -> None:
        deltalake.DeltaTable(path).alter.add_constraint({"big": "id > 0"})

    with (
        pytest.raises((errors.MetadataChangedException, errors.ProtocolChangedException)),
        at_phase("staged", constrain),
    ):
        table.update("id = 1", {"id": "-id"})
    assert rows_of(path) == [(1,), (2,)]


def test_a_nested_rule_of_another_engine_in_a_list_is_refused_by_name(sql: SparkSession, path: str) -> None:
    deep = Field("m", Map("string", Array(Struct((Field("a", "long", metadata={"CURRENT_DEFAULT": "1"}),)))))
    put_commit(
        path,
        0,
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["allowColumnDefaults"]}},
        metadata(Struct((Field("id", "long"), deep))),
    )
    with pytest.raises(errors.UnsupportedFeature, match="allowColumnDefaults"):
        append(sql, path, "id")


# -- rules and members that are set or added ---------------------------------------------------------------------------


def test_lengths_are_held_where_a_member_of_a_struct_is_set(sql: SparkSession, path: str) -> None:
    inner = T.StructType([T.StructField("c", T.CharType(3)), T.StructField("v", T.VarcharType(2))])
    table = declared(sql, path).addColumn("id", "BIGINT").addColumn("s", inner).execute()
    append(sql, path, "id", "named_struct('c', 'a', 'v', 'b') AS s")
    for value in few_of(({"s.c": "'long'"}, {"s.v": "'long'"}), 1):
        with pytest.raises(errors.LengthExceeded):
            table.update(set=value)
        source = sql.range(1).alias("u")
        with pytest.raises(errors.LengthExceeded):
            table.alias("t").merge(source, "t.id = u.id").whenMatchedUpdate(set=value).execute()
    table.update(set={"s.c": "'x'"})
    assert rows_of(path, "s") == [({"c": "x  ", "v": "b"},)]


def test_a_default_of_a_struct_outlives_a_new_member(sql: SparkSession, path: str) -> None:
    inner = T.StructType([T.StructField("a", T.IntegerType())])
    columns = [
        T.StructField("id", T.LongType()),
        T.StructField("s", inner, True, {"CURRENT_DEFAULT": "named_struct('a', 1)"}),
    ]
    table = declared(sql, path).addColumns(columns).execute()
    wider = sql.range(1, 2).selectExpr("id", "named_struct('a', 5, 'b', 6) AS s")
    wider.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    append(sql, path, "id")
    merge = table.alias("t").merge(sql.range(7, 9).alias("u"), "t.id = u.id")
    merge.whenNotMatchedInsert("u.id = 7", {"id": "u.id"}).whenNotMatchedInsert(
        values={"id": "u.id", "s": "named_struct('a', 0, 'b', 0)"}
    ).execute()
    structs = [(0, 1, None), (1, 5, 6), (7, 1, None), (8, 0, 0)]
    assert sorted(rows_of(path, "id", "s")) == [(id_, {"a": a, "b": b}) for id_, a, b in structs]


def test_a_constraint_is_added_as_text_since_it_stands_in_the_log(sql: SparkSession, path: str) -> None:
    declared(sql, path).addColumn("id", "BIGINT").execute()
    engine, snapshot = SparkEngine(sql), open_log(path).snapshot()
    with pytest.raises(errors.InvalidCondition, match="as text"):
        AddConstraint(path, "c", resolve_condition(F.col("id") > 0, snapshot, engine)).run(engine)
    AddConstraint(path, "c", resolve_condition("id > 0", snapshot, engine)).run(engine)
    with pytest.raises(errors.CheckConstraintViolated):
        append(sql, path, "id")


def test_a_column_without_a_type_is_null(sql: SparkSession, path: str) -> None:
    declared(sql, path).addColumn("id", "BIGINT").addColumn("note", "STRING").execute()
    sql.range(1).withColumn("note", F.lit(None)).write.format("delta").mode("append").save(path)
    assert rows_of(path, "id", "note") == [(0, None)]
