"""REPLACE ON and REPLACE USING on real Spark: in SQL, by the options of writers, and what both refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import errors, tables
from anabranch.errors import AnabranchError
from tests.documented import replacing
from tests.documented.given import Given, observed, scenarios_of
from tests.support.worlds import World, assert_others_agree

pytestmark = pytest.mark.spark

Rows = list[tuple[Any, ...]]
FORMS = {"vectors": {}, "no vectors": {"delta.enableDeletionVectors": "false"}}


@pytest.fixture(params=FORMS)
def path(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A table of four rows, one without a key."""
    rows = [{"id": id_, "note": "old"} for id_ in (1, 2, 3, None)]
    anabranch.append(tmp_path / "table", rows, properties=FORMS[request.param])
    return str(tmp_path / "table")


@pytest.fixture
def sql(spark: SparkSession) -> SparkSession:
    return anabranch.install(spark)


@pytest.fixture(autouse=True)
def every_table_is_left_clean_and_readable_by_others(path: str) -> Any:
    yield
    report = anabranch.check(path, deep=True)
    assert report.is_clean, str(report)
    assert_others_agree(path)


def rows_of(path: str) -> Rows:
    return sorted((tuple(row.values()) for row in World(path).rows()), key=str)


def new(sql: SparkSession, *rows: tuple[Any, ...], schema: str = "id long, note string") -> DataFrame:
    return sql.createDataFrame(list(rows), schema)


def overwrite(rows: DataFrame, **options: Any) -> Any:
    return rows.write.format("delta").mode("overwrite").options(**options)


def run(sql: SparkSession, path: str, statement: str) -> None:
    sql.sql(statement.replace("@T", f"delta.`{path}`"))


# -- the options of writers --------------------------------------------------------------------------------------------


def test_replace_using_replaces_rows_with_equal_columns_and_null_equals_nothing(sql: SparkSession, path: str) -> None:
    overwrite(new(sql, (1, "new"), (9, "new"), (None, "new")), replaceUsing=" id ").save(path)
    assert rows_of(path) == [(1, "new"), (2, "old"), (3, "old"), (9, "new"), (None, "new"), (None, "old")]
    assert anabranch.history(path)[0]["operationParameters"]["replaceUsingCols"] == "( id )"


def test_replace_on_replaces_rows_that_satisfy_any_condition_on_both(sql: SparkSession, path: str) -> None:
    on = "t.id <=> s.id OR t.id > s.id + 1"
    overwrite(new(sql, (1, "new"), (None, "new")).alias("s"), replaceOn=on, targetAlias="t").save(path)
    assert rows_of(path) == [(1, "new"), (2, "old"), (None, "new")]
    written = anabranch.history(path)[0]
    assert written["operationParameters"]["replaceOnCond"] == on
    assert written["operationMetrics"]["numDeletedRows"] == "3"


def test_a_condition_may_read_one_side_alone(sql: SparkSession, path: str) -> None:
    overwrite(new(sql, (7, "new")).alias("s"), replaceOn="t.id < 3", targetAlias="t").save(path)
    assert rows_of(path) == [(3, "old"), (7, "new"), (None, "old")]
    overwrite(new(sql, (8, "new")).alias("s"), replaceOn="s.id = 9").save(path)
    assert (7, "new") in rows_of(path)
    overwrite(new(sql, (8, "all")), replaceOn="true").save(path)
    assert rows_of(path) == [(8, "all")]


def test_rows_of_a_random_source_are_those_that_were_matched(sql: SparkSession, path: str) -> None:
    rows = sql.range(1, 3).select(
        (F.col("id") + (F.rand() * 1000).cast("long") * 10).alias("id"), F.lit("new").alias("note")
    )
    for _ in range(2):
        overwrite(rows, replaceUsing="id").save(path)
    ids = [id_ for id_, note in rows_of(path) if note == "new"]
    assert len(ids) == len(set(ids))


def test_rows_of_the_same_table_may_be_its_source(sql: SparkSession, path: str) -> None:
    rows = sql.read.format("delta").load(path).where("id < 3").withColumn("note", F.lit("again"))
    overwrite(rows, replaceUsing="id").save(path)
    assert rows_of(path) == [(1, "again"), (2, "again"), (3, "old"), (None, "old")]


def test_columns_are_added_by_merge_schema(sql: SparkSession, path: str) -> None:
    rows = new(sql, (1, "new", 5), schema="id long, note string, n int").alias("s")
    overwrite(rows, replaceOn="t.id = s.n - 4", targetAlias="t", mergeSchema=True).save(path)
    assert rows_of(path) == [(1, "new", 5), (2, "old", None), (3, "old", None), (None, "old", None)]


def test_insert_into_stores_by_position_and_needs_the_columns_of_using_at_their_places(
    sql: SparkSession, path: str
) -> None:
    overwrite(new(sql, (1, "new"), schema="id int, words string"), replaceUsing="id").insertInto(f"delta.`{path}`")
    assert (1, "new") in rows_of(path)
    assert (1, "old") not in rows_of(path)
    with pytest.raises(errors.MisalignedUsingColumns):
        overwrite(new(sql, ("2", 3), schema="note string, id long"), replaceUsing="id").insertInto(f"delta.`{path}`")


def test_save_stores_by_name_whatever_the_places(sql: SparkSession, path: str) -> None:
    overwrite(new(sql, ("new", 1), schema="note string, id long"), replaceUsing="id").save(path)
    assert (1, "new") in rows_of(path)
    assert (1, "old") not in rows_of(path)


def test_a_setting_for_dynamic_overwrites_does_not_matter(sql: SparkSession, path: str) -> None:
    sql.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        overwrite(new(sql, (1, "new")), replaceUsing="id").save(path)
    finally:
        sql.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert len(rows_of(path)) == 4


def test_an_alias_of_the_table_may_stand_in_replace_where(sql: SparkSession, path: str) -> None:
    overwrite(new(sql, (1, "new")), replaceWhere="T.id <= 2", targetAlias="t").save(path)
    assert rows_of(path) == [(1, "new"), (3, "old"), (None, "old")]


REFUSED = [
    ({"replaceOn": "true", "replaceUsing": "id"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
    ({"replaceUsing": "id", "overwriteSchema": "true"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
    ({"replaceOn": "true", "dataChange": "false"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
    ({"replaceOn": "true", "replaceWhere": "id = 1"}, "DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING"),
    (
        {"replaceUsing": "id", "partitionOverwriteMode": "static"},
        "DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING",
    ),
    ({"replaceOn": "id = id"}, "DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION"),
    ({"replaceOn": "s.id = 1"}, "DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION"),
    ({"replaceUsing": "none"}, "UNRESOLVED_INSERT_REPLACE_USING_COLUMN"),
    ({"replaceUsing": "id,,note"}, "INVALID_OPTION"),
    ({"replaceOn": "t.id + 1", "targetAlias": "t"}, "INVALID_CONDITION"),
    ({"replaceOn": "t.id =", "targetAlias": "t"}, "UNREADABLE_EXPRESSION"),
    ({"replaceOn": "t.id IN (SELECT 1)", "targetAlias": "t"}, "NOT_BUILT_YET"),
    ({"replaceOn": "rand() > 0.5"}, "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
    ({"targetAlias": "t"}, "INVALID_OPTION"),
]


@pytest.mark.parametrize(
    ("options", "condition"), REFUSED, ids=lambda value: ",".join(value) if isinstance(value, dict) else ""
)
def test_what_is_refused_writes_nothing(sql: SparkSession, path: str, options: dict[str, str], condition: str) -> None:
    before = rows_of(path)
    with pytest.raises(AnabranchError) as refused:
        overwrite(new(sql, (1, "new")), **options).save(path)
    assert refused.value.getCondition() == condition
    assert rows_of(path) == before


def test_other_ways_to_overwrite_refuse_it(sql: SparkSession, path: str) -> None:
    table = f"delta.`{path}`"
    with pytest.raises(errors.ReplacesByFilter):
        new(sql, (1, "new")).writeTo(table).option("replaceUsing", "id").overwrite(F.col("id") == 1)
    with pytest.raises(errors.ReplacesPartitions):
        new(sql, (1, "new")).writeTo(table).option("replaceUsing", "id").overwritePartitions()
    with pytest.raises(errors.InvalidOption):
        new(sql, (1, "new")).write.format("delta").mode("append").option("replaceUsing", "id").save(path)


# -- SQL ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def rows(sql: SparkSession) -> None:
    new(sql, (1, "new"), (9, "new"), (None, "new")).createOrReplaceTempView("new_rows")


BY_ID = [(1, "new"), (2, "old"), (3, "old"), (9, "new"), (None, "new"), (None, "old")]


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO @T REPLACE USING (id) SELECT * FROM new_rows",
        "INSERT INTO @T BY NAME REPLACE USING (id) SELECT note, id FROM new_rows",
        "INSERT INTO @T AS t REPLACE ON t.id = s.id (SELECT * FROM new_rows) AS s",
        "INSERT INTO @T t REPLACE ON t.id = new_rows.id SELECT * FROM new_rows",
        "WITH w AS (SELECT * FROM new_rows) INSERT INTO @T AS t REPLACE ON t.id = s.id (TABLE w) AS s",
        "INSERT INTO @T REPLACE USING (id) VALUES (1, 'new'), (9, 'new'), (NULL, 'new') AS v(id, note)",
    ],
)
def test_statements_replace_rows_by_equality(sql: SparkSession, path: str, statement: str) -> None:
    run(sql, path, statement)
    assert rows_of(path) == BY_ID


@pytest.mark.usefixtures("rows")
def test_null_equals_null_by_its_own_operator(sql: SparkSession, path: str) -> None:
    run(sql, path, "INSERT INTO @T AS t REPLACE ON t.id <=> s.id (SELECT * FROM new_rows) AS s")
    assert rows_of(path) == [row for row in BY_ID if row != (None, "old")]


@pytest.mark.usefixtures("rows")
def test_a_query_without_rows_replaces_nothing(sql: SparkSession, path: str) -> None:
    before = rows_of(path)
    run(sql, path, "INSERT INTO @T AS t REPLACE ON true SELECT * FROM new_rows WHERE false")
    assert rows_of(path) == before


@pytest.mark.usefixtures("rows")
def test_columns_are_added_with_schema_evolution(sql: SparkSession, path: str) -> None:
    run(
        sql, path, "INSERT WITH SCHEMA EVOLUTION INTO @T REPLACE USING (id) SELECT *, 5 AS n FROM new_rows WHERE id = 1"
    )
    assert rows_of(path) == [(1, "new", 5), (2, "old", None), (3, "old", None), (None, "old", None)]


def test_names_of_values_are_those_of_spark(sql: SparkSession, path: str) -> None:
    with pytest.raises(errors.UnknownUsingColumn, match="`col1`, `col2`"):
        run(sql, path, "INSERT INTO @T REPLACE USING (id) VALUES (1, 'new')")
    with pytest.raises(errors.MisalignedUsingColumns):
        run(sql, path, "INSERT INTO @T REPLACE USING (id) SELECT 'new' AS note, 1 AS id")


# -- beside delta-spark ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", scenarios_of([replacing]))
def test_ours_has_the_rows_of_the_model_as_delta_spark_has_them(sql: SparkSession, tmp_path: Path, name: str) -> None:
    given = Given(sql, tables, tmp_path / "drawn", name.replace(".", "_"))
    seen = observed(scenarios_of([replacing])[name], given)
    assert [(what, found) for what, found, expected in seen if found != expected] == []
