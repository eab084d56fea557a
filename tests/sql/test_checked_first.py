"""Every expression of a change is judged before anything is read or written, whatever rows there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable, errors
from anabranch._spark.engine import SparkEngine
from anabranch._sql.conditions import resolve_condition, resolve_values
from anabranch.commands.opening import file_set, open_log
from tests.support.tiers import few_of

pytestmark = pytest.mark.spark

_MERGE = "MERGE INTO @t USING (SELECT 1 AS k, 2 AS w) s ON @on WHEN "
UNFIT = [
    "UPDATE @t SET v = nope",
    "UPDATE @t SET v = t.k + nope.k",
    "UPDATE @t SET v = max(v)",
    "UPDATE @t SET v = explode(array(1))",
    "UPDATE @t SET v = 1 WHERE nope = 1",
    "UPDATE @t SET v = 1 WHERE max(v) = 1",
    "UPDATE @t SET v = 1 WHERE row_number() OVER (ORDER BY k) = 1",
    "UPDATE @t SET v = 1 WHERE p = 1 OR nope = 2",
    "DELETE FROM @t WHERE nope = 1",
    "DELETE FROM @t WHERE p = 1 OR nope = 2",
    "DELETE FROM @t WHERE count(*) = 0",
    "DELETE FROM @t WHERE k",
    "INSERT INTO @t REPLACE WHERE p = 1 AND nope = 1 SELECT 1, 1, 1",
    "INSERT INTO @t REPLACE WHERE max(p) = 1 SELECT 1, 1, 1",
    _MERGE + "MATCHED AND nope = 1 THEN DELETE",
    _MERGE + "MATCHED THEN UPDATE SET v = nope",
    _MERGE + "MATCHED THEN UPDATE SET v = max(w)",
    _MERGE + "NOT MATCHED THEN INSERT (k, v) VALUES (nope, 1)",
    _MERGE + "NOT MATCHED THEN INSERT (k, v) VALUES (sum(w), 1)",
    _MERGE + "NOT MATCHED AND t.k = 1 THEN INSERT (k) VALUES (1)",
    _MERGE + "NOT MATCHED BY SOURCE AND w = 1 THEN DELETE",
    _MERGE + "NOT MATCHED BY SOURCE THEN UPDATE SET v = w",
    _MERGE.replace("@on", "t.k = s.nope") + "MATCHED THEN DELETE",
    _MERGE.replace("@on", "max(t.k) = s.k") + "MATCHED THEN DELETE",
]
RANDOM = [
    "DELETE FROM @t WHERE rand() < 2",
    "DELETE FROM @t WHERE p = 1 OR uuid() <> ''",
    "DELETE FROM @t WHERE k IN (SELECT id FROM range(9)) AND rand() < 2",
    "DELETE FROM @t WHERE monotonically_increasing_id() = 0",
    "UPDATE @t SET v = rand()",
    "UPDATE @t SET v = 1 WHERE rand() > 0.5",
    "INSERT INTO @t REPLACE WHERE p = 1 AND rand() < 2 SELECT 1, 1, 1",
    _MERGE + "MATCHED AND rand() > 0.5 THEN DELETE",
    _MERGE + "NOT MATCHED AND rand() > 0.5 THEN INSERT (k) VALUES (1)",
    _MERGE + "NOT MATCHED BY SOURCE AND uuid() = 'x' THEN DELETE",
    _MERGE.replace("@on", "t.k = s.k AND rand() < 2") + "MATCHED THEN DELETE",
]


@pytest.fixture(params=["", "VALUES (1, 1, 1)"], ids=["empty", "one row"])
def path(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    location = str(tmp_path / "t")
    anabranch.install(spark)
    spark.sql(f"CREATE TABLE delta.`{location}` (k INT, v INT, p INT) USING delta PARTITIONED BY (p)")
    if request.param:
        spark.sql(f"INSERT INTO delta.`{location}` {request.param}")
    return location


def test_what_no_row_decides_is_refused_whether_or_not_there_is_a_row(spark: SparkSession, path: str) -> None:
    before = len(anabranch.history(path))
    for text in few_of(UNFIT, 7):
        with pytest.raises((errors.InvalidCondition, errors.NotBuilt)):
            spark.sql(_on(text, path))
    for text in few_of(RANDOM, 5):
        with pytest.raises(errors.Nondeterministic) as refused:
            spark.sql(_on(text, path))
        of_clause = "MERGE" in text and "ON t.k = s.k WHEN" in _on(text, path)
        named = "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"
        assert refused.value.getCondition() == named if of_clause else refused.value.condition
    with pytest.raises(errors.SchemaMismatch):
        spark.sql(_on("UPDATE @t SET v = array(1)", path))
    assert len(anabranch.history(path)) == before
    assert not [each for each in Path(path).rglob("*") if "_source" in each.name or "_changes" in each.name]


def _on(text: str, path: str) -> str:
    return text.replace("INTO @t USING", "INTO @t t USING").replace("@on", "t.k = s.k").replace("@t", f"delta.`{path}`")


def test_columns_are_judged_as_texts_are(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    random = F.udf(lambda: 1, "int").asNondeterministic()
    steady = F.udf(lambda: 1, "int")
    with pytest.raises(errors.Nondeterministic):
        table.delete(random() == 1)
    with pytest.raises(errors.Nondeterministic):
        table.update(None, {"v": F.rand()})
    with pytest.raises(errors.InvalidCondition):
        table.update(F.col("k") == 5, {"v": F.max("v")})
    table.update((steady() == 7) & (F.current_timestamp() < "2000-01-01"), {"v": steady()})
    merged = table.alias("t").merge(spark.range(1).alias("s"), "t.k = s.id")
    with pytest.raises(errors.Nondeterministic):
        merged.whenMatchedDelete(F.rand() < 2).execute()
    with pytest.raises(errors.InvalidCondition):
        merged.whenNotMatchedInsert(values={"k": F.col("nope")}).execute()
    merged.whenNotMatchedInsert(values={"k": "id", "v": "cast(rand() + 5 AS int)"}).execute()
    assert [row["v"] for row in table.toDF().filter("k = 0").collect()] == [5]


@pytest.mark.classic("a client is told of no jobs")
def test_judging_runs_no_job(spark: SparkSession, path: str) -> None:
    snapshot, engine = open_log(path).snapshot(), SparkEngine(spark)
    where = resolve_condition("k = 1 AND v > 2", snapshot, engine)
    values = resolve_values({"v": "v + 1"}, snapshot, engine)
    none = file_set(snapshot, snapshot.files.slice(0, 0))
    spark.sparkContext.setJobGroup(path, "")
    try:
        engine.check(none, where, values)
        assert list(spark.sparkContext.statusTracker().getJobIdsForGroup(path)) == []
        spark.range(1).count()
        assert list(spark.sparkContext.statusTracker().getJobIdsForGroup(path)) != []
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
