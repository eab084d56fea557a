"""Few rows: small commands take a short way, and come to the same as by the long one, or fail the same way."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anabranch import DeltaTable
from anabranch._arrow import writing
from anabranch._arrow.site import Site
from anabranch._log.file_names import commit_name
from anabranch._protocol.rules.table_rules import GENERATION
from anabranch._spark import engine
from anabranch._spark.merging import expression_checks
from anabranch._spark.writing import few_rows
from anabranch.commands.dml.append import Append
from anabranch.errors import AnabranchError, ExecutionFailed
from tests.support.cancelled import Hanging
from tests.support.raw_logs import info, put_commit
from tests.support.readers import same_rows
from tests.support.spark_jobs import left_to_spark
from tests.support.worlds import World, table_path

pytestmark = pytest.mark.spark

_OWN_NAMES = re.compile(r"job-[0-9a-f-]+|attempt_\w+|(?<=The value ).*?(?= of the type)|(?<= of type ).*$", re.DOTALL)
"""Names that a job has for itself, and the value that it met first of several that are wrong."""
SEEDS = range(24)
"""Of commands."""
SCHEMA = pa.schema(
    {
        "k": pa.int64(),
        "v": pa.int32(),
        "d": pa.decimal128(7, 2),
        "f": pa.float64(),
        "day": pa.date32(),
        "moment": pa.timestamp("us", "UTC"),
        "word": pa.string(),
        "data": pa.binary(),
    }
)
VALUES: dict[str, list[Any]] = {
    "k": [None, 1, 2, 3, 4, 5, 6, 7],
    "v": [None, 0, 1, 2, 7],
    "d": [None, Decimal("-1.50"), Decimal("0.10"), Decimal("99999.99")],
    "f": [None, -0.0, 0.0, 0.1, math.nan, math.inf],
    "day": [None, dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29)],
    "moment": [None, dt.datetime(1582, 10, 4, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC)],
    "word": [None, "", "a", "é", "it's", "7", "x" * 40],
    "data": [None, b"", b"\xff\x00"],
}
TABLES: list[tuple[tuple[str, ...], dict[str, str]]] = [
    ((), {}),
    ((), {}),
    (("v",), {}),
    (("word", "day"), {}),
    ((), {"delta.enableRowTracking": "true"}),
    ((), {"delta.enableChangeDataFeed": "true"}),
    ((), {"delta.columnMapping.mode": "name"}),
    (("v",), {"delta.columnMapping.mode": "id", "delta.parquet.compression.codec": "zstd"}),
    ((), {"delta.enableDeletionVectors": "false"}),
    (
        (),
        {
            "delta.constraints.small": "v IS NULL OR v < 100",
            "delta.constraints.short": "word IS NULL OR length(word) < 90",
        },
    ),
    (("day",), {"delta.constraints.even": "k IS NULL OR k < 5 OR v % 2 = 0 OR v IS NULL OR word IS NOT NULL"}),
    ((), {GENERATION: "v * 2"}),
    (("v",), {GENERATION: "v * 2", "delta.enableRowTracking": "true"}),
]
ONS = ["t.k = s.k", "t.k = s.k", "t.k = s.k AND t.v = s.v", "t.word = s.word", "t.f = s.f", "t.k <=> s.k"]
ONS += ["t.k = s.k OR t.v = s.v", "t.k > s.k", "t.k = 10 / s.v", "s.k = 1", "false"]
BOTH = [None, None, "s.v > 1", "t.day > DATE'2000-01-01'", "1 / t.v > 0", "s.word IS NOT NULL"]
UPDATES = [None, {"v": "s.v + 1"}, {"word": "upper(s.word)", "f": "t.f * 2"}, {"d": "s.k * 100000"}, {"v": "200"}]
UPDATES += [{"k": "CAST(s.word AS BIGINT)"}, {"word": "repeat(coalesce(s.word, 'é'), 3)", "day": "s.day"}]
INSERTS = [
    None,
    None,
    {"k": "CAST(s.word AS BIGINT)"},
    {"k": "s.k", "v": "s.v * 2"},
    {"k": "s.k", "d": "s.d", "word": "concat(s.word, '!')"},
]
OWN = [None, "t.k > 3", "t.word = 'a'", "10 / t.k > 2"]
NO_SOURCE = [{"v": "t.v - 1"}, {"word": "NULL"}, {"f": "t.f / 0"}]
CONDITIONS = [None, "k = 3", "v > 0", "word = 'a' OR f > 0", "1 / v > 0", "k IS NULL", "k = 99"]
ASSIGNED = [{"v": "v + 1"}, {"word": "upper(word)", "k": "v"}, {"d": "k * 100000"}, {"v": "200"}, {"f": "1 / v"}]
ASSIGNED += [{"day": "date_add(day, 1)", "moment": "NULL"}, {"word": "repeat('y', 5000000)"}, {"k": "rand() * 0 + 5"}]
PLAIN = [{"v": "v + 1", "word": "'é'"}, {"f": "f * 1.1", "d": "0.10"}, {"k": "2147483647 + k"}, {"v": "v * 2000000000"}]
PLAIN += [{"day": "'2020-02-29'", "moment": "'1969-12-31 23:59:59'"}, {"v": "word"}, {"f": "round(f * 1.005, 2)"}]
PLAIN += [{"d": "f", "day": "day - 3"}, {"moment": "moment + INTERVAL 36 HOURS", "word": "CAST(moment AS STRING)"}]
PLAIN += [{"word": "NULL", "f": "f - 1"}, {"moment": "TIMESTAMP '2020-01-01 00:00:00 UTC'", "day": "DATE '2024-02-29'"}]


def drawn(dice: random.Random, count: int) -> pa.Table:
    return pa.Table.from_pylist(
        [{name: dice.choice(values) for name, values in VALUES.items()} for _ in range(count)], schema=SCHEMA
    )


def table(folder: Path, dice: random.Random) -> World:
    """Two or three files; values of one column obey a constraint, where there is one."""
    partition_by, properties = dice.choice(TABLES)
    properties = dict(properties)
    generated = properties.pop(GENERATION, None)
    world = World(table_path(folder))
    vectors = {"delta.enableDeletionVectors": "true"}
    for i in range(dice.choice([1, 2])):
        given = {**vectors, **properties} if i == 0 else {}
        Append(world.path, drawn(dice, 5), partition_by if i == 0 else None, given).run()
    if generated is not None:
        _generate(world, "k", generated)
    return world


def _generate(world: World, column: str, text: str) -> None:
    """From now on a column is generated; rows keep what they have."""
    first = [json.loads(line) for line in world.log.store.get(commit_name(0)).splitlines()]
    protocol, metadata = (next(each for each in first if name in each) for name in ("protocol", "metaData"))
    schema = json.loads(metadata["metaData"]["schemaString"])
    for each in schema["fields"]:
        each["metadata"] |= {GENERATION: text} if each["name"] == column else {}
    metadata["metaData"]["schemaString"] = json.dumps(schema)
    protocol["protocol"]["writerFeatures"].append("generatedColumns")
    put_commit(world.path, world.version + 1, info(operation="SET GENERATED"), protocol, metadata)


def merged(spark: SparkSession, world: World, dice: random.Random) -> Any:
    source = drawn(dice, dice.choice([0, 1, 3, 5]))
    if dice.random() < 0.5:  # which one of several rows Spark would keep hangs on chance
        first = {row["k"]: row for row in reversed(source.to_pylist())}
        source = pa.Table.from_pylist(list(first.values()), schema=SCHEMA)
        frame: Any = spark.createDataFrame(source, _spark(source)).dropDuplicates(["k"])
    else:
        frame = spark.createDataFrame(source, _spark(source))
    builder: Any = DeltaTable.forPath(spark, world.path).alias("t").merge(frame.alias("s"), dice.choice(ONS))
    for condition in dice.choice([[], [None], [None], ["s.v = 2", None]]):
        values, also = dice.choice(UPDATES), condition or dice.choice(BOTH)
        if dice.random() < 0.25:
            builder = builder.whenMatchedDelete(also)
        else:
            builder = builder.whenMatchedUpdateAll(also) if values is None else builder.whenMatchedUpdate(also, values)
    inserted = dice.choice(INSERTS)
    if dice.random() < 0.7:
        also = dice.choice([None, None, "s.k > 2"])  # Spark may judge rows that match, where that fails
        builder = (
            builder.whenNotMatchedInsertAll(also) if inserted is None else builder.whenNotMatchedInsert(also, inserted)
        )
    else:
        builder = builder.whenNotMatchedInsertAll("s.k = 1")
    if dice.random() < 0.3:
        builder = builder.whenNotMatchedBySourceUpdate(dice.choice(OWN), dice.choice(NO_SOURCE))
    elif dice.random() < 0.3:
        builder = builder.whenNotMatchedBySourceDelete(dice.choice(OWN))
    return builder.execute().collect()


def updated(spark: SparkSession, world: World, dice: random.Random) -> Any:
    DeltaTable.forPath(spark, world.path).update(dice.choice(CONDITIONS), dice.choice(ASSIGNED + PLAIN))


def _spark(rows: pa.Table) -> Any:
    from anabranch._protocol.schema.types import from_arrow
    from anabranch._spark.columns.types import spark_schema

    return spark_schema(from_arrow(rows.schema))


def outcome(run: Any, spark: SparkSession, world: World, seed: str) -> Any:
    """What a command gives, or what its error says, but for where the table is."""
    try:
        return run(spark, world, random.Random(seed))
    except AnabranchError as error:
        facts = {name: value for name, value in error.facts.items() if name not in ("table", "values")}
        return type(error), {
            name: _OWN_NAMES.sub("", str(value).replace(world.path, "")) for name, value in facts.items()
        }


def metrics(world: World) -> dict[str, int]:
    said = json.loads((Path(world.path) / "_delta_log" / f"{world.version:020}.json").read_text().splitlines()[0])
    found = said["commitInfo"].get("operationMetrics", {})
    return {name: value for name, value in found.items() if "Rows" in name}


def bounds(world: World) -> dict[str, Any]:
    """What statistics say of all files together, which may be cut otherwise; NULLs beside a NaN are counted by Spark's
    writer alone, and those beside very long texts by Arrow's alone.
    """
    snapshot = world.log.snapshot()
    said = [json.loads(text) for text in snapshot.files["stats"].to_pylist()]
    for name in (field.physical_name for field in snapshot.schema if field.type in ("float", "double", "string")):
        for each in said:
            if name not in each["minValues"]:
                each["nullCount"].pop(name, None)
    found = {}
    for kind, together in (("minValues", min), ("maxValues", max), ("nullCount", sum)):
        names = {name for each in said for name in each[kind]}
        found[kind] = {name: together([each[kind][name] for each in said if name in each[kind]]) for name in names}
    return {**found, "numRecords": sum(each["numRecords"] for each in said)}


@pytest.mark.slow
@pytest.mark.exhaustive(
    "tests/spark/merging/test_merge.py::test_rows_that_match_are_updated_or_deleted_and_the_others_inserted",
    "tests/spark/merging/test_merge.py::test_what_fails_on_a_row_is_typed_and_writes_no_data_files",
    "tests/arrow/test_assigned_values.py::test_every_plain_value_is_what_spark_stores",
    "tests/spark/test_stats.py::test_both_ways_of_writing_state_the_same",
)
@pytest.mark.parametrize("run", [merged, updated])
def test_the_short_way_comes_to_the_same_as_the_long_one(
    run: Any, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, ends = 0, set()
    for seed in SEEDS:
        one = table(tmp_path, random.Random(f"table {seed}"))
        other = one.copy(tmp_path)
        for turn in ("first", "second"):
            command = f"{run.__name__} {seed} {turn}"
            with monkeypatch.context() as long:
                long.setattr(few_rows, "MOST_ROWS", -1)
                long.setattr(expression_checks, "resolve_assignments", left_to_spark)
                long.setattr(Site, "check_read", left_to_spark)
                long.setattr(engine, "first", lambda work, otherwise: otherwise())
                expected = outcome(run, spark, other, command)
            with monkeypatch.context() as watched:
                if seed % 3 == 2:  # of a small source and a large table only the first is held
                    watched.setattr(few_rows, "is_small", lambda files, count: False)
                puts = []
                put = writing.put
                watched.setattr(writing, "put", lambda *given: (puts.append(given), put(*given)))  # noqa: B023
                assert outcome(run, spark, one, command) == expected, command
            short += bool(puts)
            ends.add(expected[0] if isinstance(expected, tuple) else "run")
            assert one.version == other.version
            assert metrics(one) == metrics(other), command
            assert same_rows(one.rows(), other.rows()), command
            assert bounds(one) == bounds(other), command
        one.assert_clean()
    assert short > len(SEEDS) / 3, "most commands take the short way"
    assert len(ends) > 2, "and some fail"


def test_a_small_source_is_merged_into_a_large_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(table_path(tmp_path)).create([{"k": 1, "v": 1}, {"k": 2, "v": 2}])
    monkeypatch.setattr(few_rows, "is_small", lambda files, count: False)
    source = spark.createDataFrame(pa.table({"k": [2, 3], "v": [20, 30]})).alias("s")
    builder = DeltaTable.forPath(spark, world.path).alias("t").merge(source, "t.k = s.k")
    builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert same_rows(world.rows(), [{"k": 1, "v": 1}, {"k": 2, "v": 20}, {"k": 3, "v": 30}])


@pytest.fixture
def days(tmp_path: Path) -> World:
    """A table with a day that Julian and Gregorian calendars count differently."""
    return World(table_path(tmp_path)).create(
        [{"k": 1, "day": dt.date(1500, 1, 1)}, {"k": 2, "day": dt.date(2000, 1, 1)}], delta_enableDeletionVectors="true"
    )


def upserted(spark: SparkSession, world: World) -> None:
    """A MERGE that updates one row and inserts another, of another old day."""
    source = spark.createDataFrame(pa.table({"k": [1, 3], "day": [dt.date(1400, 1, 1)] * 2})).alias("s")
    builder = DeltaTable.forPath(spark, world.path).alias("t").merge(source, "t.k = s.k")
    builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def shown(spark: SparkSession, world: World) -> list[tuple[int, str]]:
    """The rows as Spark reads them."""
    found = DeltaTable.forPath(spark, world.path).toDF().select("k", F.col("day").cast("string"))
    return sorted(map(tuple, found.collect()))


def test_a_session_that_takes_unsigned_files_for_julian_ones_reads_the_days_that_were_written(
    spark: SparkSession, days: World
) -> None:
    DeltaTable.forPath(spark, days.path).update(set={"k": "k + 0"})
    upserted(spark, days)
    with set_to(spark, "spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY"):
        assert shown(spark, days) == [(1, "1400-01-01"), (2, "2000-01-01"), (3, "1400-01-01")]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.sql.parquet.datetimeRebaseModeInWrite", "EXCEPTION"),
        ("spark.sql.parquet.datetimeRebaseModeInRead", "EXCEPTION"),
        ("parquet.page.size", "1048576"),
        ("spark.sql.files.maxRecordsPerFile", "100"),
    ],
)
def test_a_session_whose_writer_is_not_as_it_comes_writes_itself(
    spark: SparkSession, days: World, monkeypatch: pytest.MonkeyPatch, setting: str, value: str
) -> None:
    DeltaTable.forPath(spark, days.path).update(set={"k": "k + 0"})
    monkeypatch.setattr(writing, "put", lambda *given: pytest.fail("it takes Spark's writer"))
    with set_to(spark, setting, value):
        DeltaTable.forPath(spark, days.path).update("k = 2", {"k": "4"})
        with suppress(ExecutionFailed):  # an old day is what two of them refuse
            upserted(spark, days)


@contextmanager
def set_to(spark: SparkSession, setting: str, value: str) -> Iterator[None]:
    """A setting has another value in a block."""
    before = spark.conf.get(setting, None)
    spark.conf.set(setting, value)
    try:
        yield
    finally:
        spark.conf.unset(setting) if before is None else spark.conf.set(setting, before)


@pytest.mark.classic("a client cancels in another way")
def test_an_update_that_is_cancelled_is_not_tried_again(spark: SparkSession, days: World, tmp_path: Path) -> None:
    hanging = Hanging(tmp_path)
    hangs = F.udf(hanging.function, "long")
    with hanging.cancelled(spark), pytest.raises(ExecutionFailed, match="cancel"):
        DeltaTable.forPath(spark, days.path).update("k = 1", {"k": hangs("k")})
    assert hanging.calls == 1, "of the one row, by the first try"
    assert days.version == 0


def test_a_partition_value_too_long_for_a_folder_is_refused_as_by_spark_and_nothing_is_left(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = World(table_path(tmp_path)).create(
        [{"k": 1, "word": "a"}], partition_by=("word",), delta_enableDeletionVectors="true"
    )
    with pytest.raises(ExecutionFailed):
        DeltaTable.forPath(spark, world.path).update(set={"word": "repeat('x', 300)"})
    DeltaTable.forPath(spark, world.path).update(set={"word": "repeat('x', 100)"})
    assert world.rows() == [{"k": 1, "word": "x" * 100}]
    assert len(list(Path(world.path).rglob("word=x*"))) == 1


@pytest.mark.parametrize("value", ["'__HIVE_DEFAULT_PARTITION__'", "concat('__HIVE_DEFAULT_', 'PARTITION__')"])
def test_a_partition_value_that_would_come_back_as_null_is_refused(
    spark: SparkSession, tmp_path: Path, value: str
) -> None:
    world = World(table_path(tmp_path)).create([{"k": 1, "word": "a"}], partition_by=("word",))
    with pytest.raises(ExecutionFailed, match="stands for NULL"):
        DeltaTable.forPath(spark, world.path).update(set={"word": value})
    assert world.rows() == [{"k": 1, "word": "a"}]


def test_long_texts_are_left_to_spark(spark: SparkSession) -> None:
    rows = spark.range(10).select(F.repeat(F.lit("x"), 100_000).alias("text"))
    assert few_rows.try_collect(rows, 1000) is None
    assert few_rows.try_collect(rows.select(F.substring("text", 1, 100).alias("text")), 1000) is not None


@pytest.mark.parametrize("texts", [["t"], ["t", "a`b.c"]])
def test_a_text_that_is_not_there_is_not_too_long_and_others_are_looked_at(
    spark: SparkSession, texts: list[str]
) -> None:
    def collected(*rows: dict[str, str | None]) -> pa.Table | None:
        schema = pa.schema([(name, pa.string()) for name in texts])
        return few_rows.try_collect(spark.createDataFrame(pa.Table.from_pylist(list(rows), schema=schema)), 2)

    none: dict[str, str | None] = dict.fromkeys(texts)
    found = collected(none, dict.fromkeys(texts, "é"))
    assert found is not None
    assert found.to_pylist() == [none, dict.fromkeys(texts, "é")]
    assert collected(none, none | {texts[0]: "x" * (few_rows.MOST_BYTES + 1)}) is None


def test_more_rows_than_are_few_are_left_to_spark(spark: SparkSession) -> None:
    rows = spark.range(few_rows.MOST_ROWS + 1)
    assert few_rows.try_collect(rows, math.inf) is None
    assert few_rows.try_collect(rows.limit(7), math.inf).num_rows == 7


def test_rows_of_types_that_arrow_may_see_otherwise_are_left_to_spark(spark: SparkSession) -> None:
    assert few_rows.try_collect(spark.sql("SELECT 'a' COLLATE UTF8_LCASE AS c"), 1) is None
    assert few_rows.try_collect(spark.sql("SELECT array(1) AS c"), 1) is None
