"""MERGE through its door on real Spark: the documented uses, what comes back, and what happens beside other writers."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

import anabranch
from anabranch import DeltaTable, errors
from anabranch._api.merge_builder import DeltaMergeBuilder
from anabranch.testing import at_phase
from tests.support.worlds import World, assert_others_agree

pytestmark = pytest.mark.spark

Rows = list[tuple[Any, ...]]
ON = "t.id = s.id"
ARROW = {
    "long": pa.int64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}


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
    report = anabranch.check(table, deep=True)
    assert report.is_clean, str(report)
    assert_others_agree(str(table))


def make(sql: SparkSession, path: str, rows: Rows, schema: str, *, by: str | None = None) -> DeltaTable:
    columns = pa.schema([(name, ARROW[kind]) for name, kind in (each.split() for each in schema.split(", "))])
    table = pa.Table.from_pylist([dict(zip(columns.names, row, strict=True)) for row in rows], columns)
    anabranch.append(path, table, partition_by=[by] if by else None)
    return DeltaTable.forPath(sql, path)


def rows_of(path: str) -> Rows:
    return sorted((tuple(row.values()) for row in World(path).rows()), key=str)


def counts(result: DataFrame) -> tuple[int, ...]:
    (row,) = result.collect()
    names = ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")
    assert tuple(row.asDict()) == names
    return tuple(row)


@pytest.fixture
def table(sql: SparkSession, path: str) -> DeltaTable:
    """Ids 1 to 4 with ten times that as x."""
    return make(sql, path, [(i, i * 10, "old") for i in range(1, 5)], "id long, x long, note string")


def updates(sql: SparkSession, *rows: tuple[Any, ...], schema: str = "id long, x long, note string") -> DataFrame:
    return sql.createDataFrame(list(rows), schema).alias("s")


def upsert(table: DeltaTable, source: DataFrame, on: str | Column = ON) -> DeltaMergeBuilder:
    return table.alias("t").merge(source, on).whenMatchedUpdateAll().whenNotMatchedInsertAll()


# -- the documented uses -----------------------------------------------------------------------------------------------


def test_an_upsert_changes_what_matches_and_inserts_the_rest(sql: SparkSession, table: DeltaTable, path: str) -> None:
    result = upsert(table, updates(sql, (2, 21, "new"), (9, 90, "new"))).execute()
    assert counts(result) == (2, 1, 0, 1)
    assert rows_of(path) == [(1, 10, "old"), (2, 21, "new"), (3, 30, "old"), (4, 40, "old"), (9, 90, "new")]


@pytest.mark.exhaustive("tests/sql/test_merge.py::test_slowly_changing_dimensions_keep_what_was")
def test_an_upsert_with_named_columns_in_text(sql: SparkSession, path: str) -> None:
    schema = "date date, eventId long, data string, count long"
    day = dt.date(2026, 1, 1)
    table = make(sql, path, [(day, 1, "a", 1), (day, 2, "b", 5)], schema)
    incoming = sql.createDataFrame([(day, 2, "B"), (day, 3, "C")], "date date, eventId long, data string")
    result = (
        table.alias("events")
        .merge(source=incoming.alias("updates"), condition="events.eventId = updates.eventId")
        .whenMatchedUpdate(set={"data": "updates.data", "count": "events.count + 1"})
        .whenNotMatchedInsert(
            values={"date": "updates.date", "eventId": "updates.eventId", "data": "updates.data", "count": "1"}
        )
        .execute()
    )
    assert counts(result) == (2, 1, 0, 1)
    assert rows_of(path) == [(day, 1, "a", 1), (day, 2, "B", 6), (day, 3, "C", 1)]


@pytest.mark.exhaustive("tests/api/dataframe/test_merge_into.py::test_every_clause_takes_columns")
def test_an_upsert_with_columns(sql: SparkSession, table: DeltaTable, path: str) -> None:
    (
        table.alias("t")
        .merge(updates(sql, (2, 21, "new"), (9, 90, "new")), F.col("t.id") == F.col("s.id"))
        .whenMatchedUpdate(F.col("s.x") > 20, {"x": F.col("t.x") + F.col("s.x"), "T.NOTE": F.col("s.note")})
        .whenNotMatchedInsert(values={"ID": F.col("s.id"), "note": F.lit("only")})
        .execute()
    )
    assert rows_of(path) == [(1, 10, "old"), (2, 41, "new"), (3, 30, "old"), (4, 40, "old"), (9, None, "only")]


@pytest.mark.exhaustive(
    "tests/commands/dml/test_merge.py::test_an_insert_only_merge_leaves_what_matches",
    "tests/commands/dml/test_merge.py::test_a_merge_that_finds_nothing_to_do_commits_nothing",
)
def test_inserting_only_what_is_new_never_writes_a_row_twice(sql: SparkSession, path: str) -> None:
    logs = make(sql, path, [(1, "2026-03-01"), (2, "2026-03-01")], "uniqueId long, date string", by="date")
    new = updates(sql, (2, "2026-03-01"), (3, "2026-03-02"), schema="uniqueId long, date string")
    for expected in ((1, 0, 0, 1), (0, 0, 0, 0)):
        result = (
            logs.alias("logs")
            .merge(new.alias("new"), "logs.uniqueId = new.uniqueId AND logs.date >= '2026-03-01'")
            .whenNotMatchedInsertAll("new.date >= '2026-03-01'")
            .execute()
        )
        assert counts(result) == expected
    assert [row[0] for row in rows_of(path)] == [1, 2, 3]
    assert len(anabranch.history(path)) == 2, "nothing to do, nothing committed"


def test_slowly_changing_dimensions_keep_what_was(sql: SparkSession, path: str) -> None:
    schema = "customerId long, address string, current boolean, effectiveDate string, endDate string"
    customers = make(sql, path, [(1, "Oslo", True, "2020", None), (2, "Lima", True, "2020", None)], schema)
    staged = sql.createDataFrame(
        [(None, 1, "Bergen", "2026"), (1, 1, "Bergen", "2026"), (3, 3, "Rome", "2026")],
        "mergeKey long, customerId long, address string, d string",
    )
    (
        customers.alias("customers")
        .merge(staged.alias("staged"), "customers.customerId = mergeKey")
        .whenMatchedUpdate(
            condition="customers.current = true AND customers.address <> staged.address",
            set={"current": "false", "endDate": "staged.d"},
        )
        .whenNotMatchedInsert(
            values={
                "customerId": "staged.customerId",
                "address": "staged.address",
                "current": "true",
                "effectiveDate": "staged.d",
                "endDate": "null",
            }
        )
        .execute()
    )
    assert rows_of(path) == [
        (1, "Bergen", True, "2026", None),
        (1, "Oslo", False, "2020", "2026"),
        (2, "Lima", True, "2020", None),
        (3, "Rome", True, "2026", None),
    ]


def test_a_feed_of_changes_updates_deletes_and_inserts(sql: SparkSession, table: DeltaTable, path: str) -> None:
    feed = updates(
        sql, (1, 11, False), (2, None, True), (8, 80, False), (9, None, True), schema="id long, x long, deleted boolean"
    )
    result = (
        table.alias("t")
        .merge(feed, ON)
        .whenMatchedDelete(condition="s.deleted = true")
        .whenMatchedUpdate(set={"x": "s.x", "note": "'changed'"})
        .whenNotMatchedInsert(condition="s.deleted = false", values={"id": "s.id", "x": "s.x"})
        .execute()
    )
    assert counts(result) == (3, 1, 1, 1)
    assert rows_of(path) == [(1, 11, "changed"), (3, 30, "old"), (4, 40, "old"), (8, 80, None)]


@pytest.mark.exhaustive(
    "tests/spark/merging/test_merge.py::test_rows_without_a_match_may_be_changed_by_their_own_columns",
    "tests/commands/dml/test_merge.py::test_a_row_that_no_source_row_matches_can_be_changed",
    "tests/api/delta_table/test_merge_builder.py::test_each_step_adds_its_clause",
)
def test_rows_that_the_source_lacks_are_changed_or_deleted(sql: SparkSession, table: DeltaTable, path: str) -> None:
    result = (
        upsert(table, updates(sql, (1, 11, "new"), (9, 90, "new")))
        .whenNotMatchedBySourceDelete("t.x >= 40")
        .whenNotMatchedBySourceUpdate(set={"note": "'gone'"})
        .execute()
    )
    assert counts(result) == (5, 3, 1, 1)
    assert rows_of(path) == [(1, 11, "new"), (2, 20, "gone"), (3, 30, "gone"), (9, 90, "new")]


# -- what comes back, and what is kept ---------------------------------------------------------------------------------


def test_the_history_tells_what_was_merged(sql: SparkSession, table: DeltaTable, path: str) -> None:
    upsert(table, updates(sql, (2, 21, "new"), (9, 90, "new"))).execute()
    newest = anabranch.history(path)[0]
    assert newest["operation"] == "MERGE"
    assert {name: json.loads(value) for name, value in newest["operationParameters"].items()} == {
        "predicate": [ON],
        "matchedPredicates": [{"actionType": "update"}],
        "notMatchedPredicates": [{"actionType": "insert"}],
        "notMatchedBySourcePredicates": [],
    }
    metrics = newest["operationMetrics"]
    assert (metrics["numTargetRowsUpdated"], metrics["numTargetRowsInserted"]) == ("1", "1")
    assert metrics["numSourceRows"] == "2"


def test_the_clock_is_one_moment_in_all_of_a_merge(sql: SparkSession, path: str) -> None:
    table = make(sql, path, [(1, None), (2, None)], "id long, at timestamp")
    (
        table.alias("t")
        .merge(updates(sql, (1,), (9,), schema="id long"), ON)
        .whenMatchedUpdate(set={"at": "current_timestamp()"})
        .whenNotMatchedInsert(values={"id": "s.id", "at": "now()"})
        .whenNotMatchedBySourceUpdate("current_timestamp() > '2020-01-01'", {"at": "current_timestamp"})
        .execute()
    )
    assert len({at for _, at in rows_of(path)}) == 1


@pytest.mark.exhaustive(
    "tests/spark/merging/test_merge.py::test_null_keys_match_only_where_the_condition_says_so",
    "tests/commands/dml/test_merge.py::test_a_null_key_matches_nothing_and_is_inserted",
)
def test_null_keys_never_match(sql: SparkSession, path: str) -> None:
    table = make(sql, path, [(None, 1, "old")], "id long, x long, note string")
    upsert(table, updates(sql, (None, 2, "new"))).execute()
    assert rows_of(path) == [(None, 1, "old"), (None, 2, "new")]
    upsert(table, updates(sql, (None, 3, "newer")), "t.id <=> s.id AND t.note = 'new'").execute()
    assert rows_of(path) == [(None, 1, "old"), (None, 3, "newer")]


@pytest.mark.exhaustive(
    "tests/api/delta_table/test_merge_builder.py::test_a_table_without_an_alias_is_spoken_of_by_its_columns",
    "tests/sql/test_variables.py::test_what_a_user_writes_is_filled_in_once_in_every_door",
)
def test_without_aliases_names_of_one_side_only_are_enough(sql: SparkSession, table: DeltaTable, path: str) -> None:
    source = sql.createDataFrame([(2, 5)], "key long, more long")
    table.merge(source, "id = key").whenMatchedUpdate(set={"x": "x + more"}).execute()
    assert rows_of(path)[1] == (2, 25, "old")


@pytest.mark.exhaustive("tests/api/delta_table/test_merge_builder.py::test_each_step_adds_its_clause")
def test_columns_that_only_the_source_has_are_ignored_by_a_star(
    sql: SparkSession, table: DeltaTable, path: str
) -> None:
    upsert(table, updates(sql, (2, 21, "new", 0), schema="ID long, X long, note string, extra long")).execute()
    assert rows_of(path)[1] == (2, 21, "new")


def test_the_rows_of_a_handle_with_an_alias_go_by_it(table: DeltaTable) -> None:
    assert table.alias("t").toDF().select("t.id").count() == 4
    assert table.alias("t").alias("u").toDF().where("u.id = 1").count() == 1


# -- what is refused ---------------------------------------------------------------------------------------------------

BAD: dict[str, tuple[Any, type[Exception]]] = {
    "unknown name in ON": (lambda t, s: upsert(t, s, "t.nope = s.id"), errors.InvalidCondition),
    "ambiguous name in ON": (lambda t, s: upsert(t, s, "id = s.id"), errors.InvalidCondition),
    "does not parse": (lambda t, s: upsert(t, s, "t.id = = s.id"), errors.InvalidCondition),
    "no boolean": (lambda t, s: upsert(t, s, "t.id + s.id"), errors.InvalidCondition),
    "a subquery": (lambda t, s: upsert(t, s, "t.id IN (SELECT 1)"), errors.NotBuilt),
    "the table in an insert": (
        lambda t, s: t.alias("t").merge(s, ON).whenNotMatchedInsert(values={"id": "t.id"}),
        errors.InvalidCondition,
    ),
    "the source in BY SOURCE": (
        lambda t, s: t.alias("t").merge(s, ON).whenNotMatchedBySourceDelete("s.id = 1"),
        errors.InvalidCondition,
    ),
    "an aggregate": (
        lambda t, s: t.alias("t").merge(s, ON).whenMatchedUpdate(set={"x": "sum(s.x)"}),
        errors.InvalidCondition,
    ),
    "a wrong type": (
        lambda t, s: t.alias("t").merge(s, ON).whenMatchedUpdate(set={"x": "array(1)"}),
        errors.SchemaMismatch,
    ),
    "a value that does not fit": (
        lambda t, s: t.alias("t").merge(s, ON).whenMatchedUpdate(set={"x": "s.note"}),
        errors.ExecutionFailed,
    ),
    "a star without a column": (lambda t, s: upsert(t, s.drop("note").alias("s")), errors.SchemaMismatch),
    "two rows for one": (lambda t, s: upsert(t, s.union(s).alias("s")), errors.AmbiguousMerge),
}


@pytest.mark.parametrize(("build", "expected"), BAD.values(), ids=BAD.keys())
def test_a_bad_merge_gives_one_typed_error_and_writes_nothing(
    sql: SparkSession, table: DeltaTable, path: str, build: Any, expected: type[Exception]
) -> None:
    with pytest.raises(expected) as refused:
        build(table, updates(sql, (2, 21, "new"))).execute()
    assert "at org.apache" not in str(refused.value)
    assert len(anabranch.history(path)) == 1
    assert not list(Path(path).glob("job-*/_started_*"))


# -- beside other writers ----------------------------------------------------------------------------------------------


@pytest.mark.exhaustive(
    "tests/transaction/test_merge.py::test_two_upserts_of_different_keys_of_one_file_both_land",
    "tests/sql/test_sql.py::test_sql_has_the_row_level_too",
)
def test_two_upserts_of_different_keys_both_commit(sql: SparkSession, table: DeltaTable, path: str) -> None:
    other = upsert(table, updates(sql, (1, 11, "theirs"), (8, 80, "theirs")))
    with at_phase("staged", other.execute):
        upsert(table, updates(sql, (2, 22, "ours"), (9, 90, "ours"))).execute()
    assert rows_of(path) == [
        (1, 11, "theirs"),
        (2, 22, "ours"),
        (3, 30, "old"),
        (4, 40, "old"),
        (8, 80, "theirs"),
        (9, 90, "ours"),
    ]


@pytest.mark.exhaustive(
    "tests/transaction/test_merge.py::test_two_inserts_of_one_new_key_conflict",
    "tests/sql/test_merge.py::test_the_row_that_both_changed_is_shown_as_spark_wrote_it",
)
def test_two_inserts_of_one_new_key_conflict(sql: SparkSession, table: DeltaTable, path: str) -> None:
    other = upsert(table, updates(sql, (9, 91, "theirs")))
    with pytest.raises(errors.ConcurrentAppendException), at_phase("staged", other.execute):
        upsert(table, updates(sql, (9, 92, "ours"))).execute()
    assert [row for row in rows_of(path) if row[0] == 9] == [(9, 91, "theirs")]


@pytest.mark.exhaustive("tests/sql/test_merge.py::test_the_row_that_both_changed_is_shown_as_spark_wrote_it")
def test_a_matched_row_that_a_winner_changed_conflicts(sql: SparkSession, table: DeltaTable, path: str) -> None:
    with (
        pytest.raises(errors.ConcurrentDeleteReadException),
        at_phase("staged", lambda: table.update("id = 2", {"x": "-1"})),
    ):
        upsert(table, updates(sql, (2, 22, "ours"))).execute()
    assert rows_of(path)[1] == (2, -1, "old")


@pytest.mark.exhaustive(
    "tests/transaction/test_merge.py::test_a_blind_append_of_my_new_key_is_merged_into_at_write_serializable",
    "tests/transaction/test_merge.py::test_a_blind_append_of_my_new_key_alone_stays_behind_mine_at_write_serializable",
)
def test_a_row_that_a_blind_append_brings_is_matched_too(sql: SparkSession, table: DeltaTable, path: str) -> None:
    with at_phase("staged", lambda: anabranch.append(path, [{"id": 9, "x": 0, "note": "blind"}], spark=sql)):
        upsert(table, updates(sql, (9, 90, "ours"))).execute()
    nines = [row for row in rows_of(path) if row[0] == 9]
    assert nines in ([(9, 90, "ours")], [(9, 0, "blind"), (9, 90, "ours")]), "behind the append, or before it"


# -- what a conflict says ----------------------------------------------------------------------------------------------

BY_FILES = {"anabranch.conflictResolution": "file"}
DAYS = [dt.date(2024, 1, day) for day in (1, 2, 3)]


@pytest.fixture
def by_day(sql: SparkSession, path: str) -> DeltaTable:
    rows = [{"id": id, "day": day, "x": 0} for day in DAYS for id in (1, 2)]
    anabranch.append(path, rows, partition_by=["day"], properties=BY_FILES)
    return DeltaTable.forPath(sql, path)


@pytest.mark.parametrize(
    "on",
    [
        lambda: "t.day = s.day AND t.id = s.id",
        lambda: "(s.id = t.id) AND ((t.`day` = s.day))",
        lambda: (F.col("t.day") == F.col("s.day")) & (F.col("t.id") == F.col("s.id")),
    ],
    ids=["text", "turned round", "Column"],
)
def test_a_merge_that_loses_by_files_is_told_what_its_source_holds(
    sql: SparkSession, by_day: DeltaTable, on: Callable[[], str | Column]
) -> None:
    """The source is random, so it is not asked again: what is told is what was merged."""
    rows = updates(sql, (1, DAYS[0], 7), (1, DAYS[1], 7), (1, None, 7), schema="id long, day date, x long")
    source = rows.withColumn("x", (F.rand() * 100).cast("long")).alias("s")
    with (
        pytest.raises(errors.DeltaConcurrentModificationException) as refused,
        at_phase("staged", lambda: by_day.update("day = DATE '2024-01-03'", {"x": "1"})),
    ):
        upsert(by_day, source, on()).execute()
    narrower = refused.value.narrower
    assert narrower == "t.day IN (DATE '2024-01-01', DATE '2024-01-02')"
    assert f"Add AND {narrower} to the ON condition" in str(refused.value)


@pytest.mark.exhaustive(
    "tests/transaction/test_merge.py::test_partition_predicates_in_on_keep_file_level_merges_apart",
    "tests/sql/test_merge.py::test_a_merge_that_loses_by_files_is_told_what_its_source_holds",
)
def test_a_merge_that_heeds_what_it_was_told_lands(sql: SparkSession, by_day: DeltaTable) -> None:
    source = updates(sql, (1, DAYS[0], 7), (1, DAYS[1], 7), (1, None, 7), schema="id long, day date, x long")
    narrower = "t.day IN (DATE '2024-01-01', DATE '2024-01-02')"
    with at_phase("staged", lambda: by_day.update("day = DATE '2024-01-03'", {"x": "2"})):
        upsert(by_day, source, f"t.day = s.day AND t.id = s.id AND {narrower}").execute()


def test_the_row_that_both_changed_is_shown_as_spark_wrote_it(sql: SparkSession, table: DeltaTable) -> None:
    with (
        pytest.raises(errors.ConcurrentDeleteReadException) as refused,
        at_phase("staged", lambda: table.update("id = 2", {"x": "-1"})),
    ):
        upsert(table, updates(sql, (2, 21, "new"))).execute()
    assert refused.value.samples == [{"id": 2, "x": 20, "note": "old"}]


@pytest.mark.parametrize("value", ["true", "false"])
def test_the_legacy_setting_of_the_row_level_changes_nothing(sql: SparkSession, by_day: DeltaTable, value: str) -> None:
    """The table's owner chose the file level."""
    legacy = "spark.databricks.delta.rowLevelConcurrencyPreview"
    sql.conf.set(legacy, value)
    try:
        with (
            pytest.raises(errors.ConcurrentDeleteReadException),
            at_phase("staged", lambda: by_day.update("id = 1 AND day = DATE '2024-01-03'", {"x": "1"})),
        ):
            by_day.delete("id = 2 AND day = DATE '2024-01-03'")
    finally:
        sql.conf.unset(legacy)


@pytest.fixture
def with_default(sql: SparkSession, path: str) -> str:
    """A row whose column `c` is 5 by default, and a struct that has a default of its own."""
    builder = DeltaTable.create(sql).location(path).property("delta.feature.allowColumnDefaults", "supported")
    builder = builder.addColumn("id", "BIGINT").addColumn("s", "STRUCT<a: INT>")
    builder.addColumns([T.StructField("c", T.IntegerType(), True, {"CURRENT_DEFAULT": "5"})]).execute()
    anabranch.append(path, pa.table({"id": [1], "s": [{"a": 1}], "c": [9]}, schema=_DEFAULTED), spark=sql)
    return f"delta.`{path}`"


_DEFAULTED = pa.schema({"id": pa.int64(), "s": pa.struct({"a": pa.int32()}), "c": pa.int32()})


def test_default_is_the_columns_whatever_it_is_qualified_by(sql: SparkSession, with_default: str) -> None:
    anabranch.sql(sql, f"UPDATE {with_default} AS t SET t.c = DEFAULT WHERE id = 1")
    assert anabranch.sql(sql, f"SELECT c FROM {with_default}").first() == (5,)
    anabranch.sql(sql, f"UPDATE {with_default} SET c = 7")
    source = f"MERGE INTO {with_default} AS x USING (SELECT 1 AS id) s ON x.id = s.id WHEN MATCHED THEN UPDATE SET"
    anabranch.sql(sql, f"{source} x.c = DEFAULT")
    assert anabranch.sql(sql, f"SELECT c FROM {with_default}").first() == (5,)
    with pytest.raises(errors.InvalidOption, match="a whole column"):
        anabranch.sql(sql, f"UPDATE {with_default} SET s.a = DEFAULT")


def test_default_is_inserted_into_columns_that_are_there(sql: SparkSession, with_default: str) -> None:
    merge = f"MERGE INTO {with_default} x USING (SELECT 2 AS id) s ON x.id = s.id WHEN NOT MATCHED THEN INSERT"
    for columns in ("(id, misspelt) VALUES (2, DEFAULT)", "(misspelt) VALUES (DEFAULT)"):
        with pytest.raises(errors.UnknownColumn, match="misspelt"):
            anabranch.sql(sql, f"{merge} {columns}")
    anabranch.sql(sql, f"{merge} (id, c, s) VALUES (s.id, DEFAULT, DEFAULT)")
    anabranch.sql(sql, f"{merge.replace('2 AS id', '3 AS id')} (c) VALUES (DEFAULT)")
    assert anabranch.sql(sql, f"SELECT id, c, s FROM {with_default} WHERE c = 5 ORDER BY id").collect() == [
        (None, 5, None),
        (2, 5, None),
    ]


def test_a_version_behind_the_path_of_a_table_is_not_written(sql: SparkSession, table: DeltaTable, path: str) -> None:
    table.delete("id = 4")
    for text in (
        f"DELETE FROM delta.`{path}@v0`",
        f"OPTIMIZE delta.`{path}`@v0",
        f"UPDATE delta.`{path}@v0` SET x = 1",
    ):
        with pytest.raises(errors.InvalidOption, match="only a query takes a version"):
            anabranch.sql(sql, text)
    assert anabranch.sql(sql, f"SELECT count(*) FROM delta.`{path}@v0`").first() == (4,)


def test_a_static_partition_is_that_of_the_value_as_the_column_stores_it(sql: SparkSession, path: str) -> None:
    rows = pa.table({"id": [1, 2, 3], "p": ["1", "01", "x"]})
    anabranch.append(path, rows, partition_by=["p"], spark=sql)
    anabranch.sql(sql, f"INSERT OVERWRITE delta.`{path}` PARTITION (p = 1) SELECT 9L")
    found = anabranch.sql(sql, f"SELECT id, p FROM delta.`{path}`").collect()
    assert sorted(map(tuple, found)) == [(2, "01"), (3, "x"), (9, "1")]
