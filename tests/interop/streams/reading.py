"""A table is read as a stream: what is there, what is added, and what no stream can be read from."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.interop.streams.playing import Stage, case


@case(
    "DeltaSourceSuite: basic",
    "DeltaSourceSuite: initial snapshot ends at base index of next version",
    "DeltaSourceSuite: can consume new data without update",
    "DeltaSourceSuite: Delta sources don't write offsets with null json",
)
def rows_that_are_there_then_those_that_come(stage: Stage) -> Mapping[str, Any]:
    stage.add(0, 3)
    seen: dict[str, Any] = {}
    for number in range(3):
        seen[f"run {number}"] = stage.play(stage.stream().where("id % 2 = 0"), "kept").outcome
        seen[f"offset {number}"] = stage.offset("kept")
        stage.add(10 * number + 3, 10 * number + 9)
    return seen


@case(
    "DeltaSourceSuite: streaming processes 100 sequential single-value commits and contains all values 0 to 99",
    "DeltaSourceSuite: a fast writer should not starve a Delta source",
    "DeltaSourceSuite: make sure that the delta sources works fine",
)
def a_query_that_goes_on_sees_what_is_added(stage: Stage) -> Mapping[str, Any]:
    stage.add(0, 1)
    with stage.running(stage.stream()) as more:
        first = more().outcome
        stage.one_by_one(1, 12)
        return {"first": first, "then": more().outcome, "nothing new": more().outcome}


@case("DeltaSourceSuite: no schema should throw an exception")
def what_is_no_table(stage: Stage) -> Mapping[str, Any]:
    Path(stage.path("empty"), "_delta_log").mkdir(parents=True)
    Path(stage.path("folder")).mkdir()
    stage.spark.range(1).write.parquet(stage.path("files"))
    reader = stage.spark.readStream.format("delta")
    seen = {name: stage.given(name=name) for name in ("empty", "folder", "files", "none")}
    return {**seen, "no path": stage.outcome(lambda: reader.load())}


@case(
    "DeltaSourceSuite: disallow user specified schema",
    "DeltaSourceSuite: allow user specified schema if consistent: v1 source",
    "DeltaSourceSuite: createSource should create source with empty or matching table schema provided",
)
def a_schema_of_the_users(stage: Stage) -> Mapping[str, Any]:
    stage.add(0, 1)
    reader = stage.spark.readStream.format("delta")
    return {
        schema: stage.outcome(lambda schema=schema: reader.schema(schema).load(stage.path()))
        for schema in ("id BIGINT", "id INT", "a INT, b STRING")
    }


@case("DeltaSourceSuite: allow to change schema before starting a streaming query")
def columns_added_before_the_start(stage: Stage) -> Mapping[str, Any]:
    stage.one_by_one(0, 2)
    stage.sql("ALTER TABLE {t} ADD COLUMN value STRING", "INSERT INTO {t} VALUES (2, 'two')")
    return {"rows": stage.play(stage.stream()).outcome, "columns": stage.stream().columns}


@case("DeltaSourceSuite: Trigger.AvailableNow with an empty table")
def an_empty_table(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT")
    seen = {"no rows": stage.play(stage.stream(maxFilesPerTrigger=1), "kept").outcome}
    stage.add(0, 2)
    return {**seen, "then": stage.play(stage.stream(maxFilesPerTrigger=1), "kept").outcome}


@case("DeltaSourceSuite: batch-only options are ignored in streaming")
def options_of_a_read_that_ends(stage: Stage) -> Mapping[str, Any]:
    stage.one_by_one(0, 3)
    return {
        "versionAsOf": stage.given(versionAsOf=0),
        "timestampAsOf": stage.given(timestampAsOf="2030-01-01"),
        "path@v0": stage.given(name="t@v0"),
        "endingVersion": stage.given(startingVersion=0, endingVersion=1),
        "endingTimestamp": stage.given(startingVersion=0, endingTimestamp="2000-01-01"),
        "an option of nobody": stage.given(startingVersions=1),
    }


@case("DeltaSourceSuite: streaming query should fail when table is deleted and recreated with new id")
def another_table_at_the_path(stage: Stage) -> Mapping[str, Any]:
    stage.add(0, 2)
    stage.play(stage.stream(), "kept")
    shutil.rmtree(stage.path())
    stage.add(5, 6)
    stage.add(6, 7)
    return {"restart": stage.play(stage.stream(), "kept").outcome}


@case(
    "DeltaSourceSuite: excludeRegex works and doesn't mess up offsets across restarts - parquet version",
    "DeltaSourceSuite: excludeRegex throws good error on bad regex pattern",
)
def files_that_are_left_out_by_name(stage: Stage) -> Mapping[str, Any]:
    rows = stage.spark.range(0, 4, 1, 1).selectExpr("id", "id % 2 AS part")
    stage.save(rows, by="part")
    return {
        "one": stage.given(excludeRegex="part=0"),
        "no pattern": stage.given(excludeRegex="[abc"),
    }


@case(
    "DeltaSourceSuite: Delta source advances with non-data inserts and generates empty dataframe for "
    "non-data operations"
)
def commits_without_rows(stage: Stage) -> Mapping[str, Any]:
    stage.add(0, 3)
    stage.play(stage.stream(), "kept")
    seen: dict[str, Any] = {"at first": stage.offset("kept")}
    for number in range(2):
        stage.commit()
        seen[f"rows {number}"] = stage.play(stage.stream(), "kept").outcome
        seen[f"offset {number}"] = stage.offset("kept")
    return seen


@case("DeltaSourceSuite: Rate limited Delta source advances with non-data inserts")
def commits_without_rows_count_for_no_file(stage: Stage) -> Mapping[str, Any]:
    stage.add(0, 3)
    stage.play(stage.stream(maxFilesPerTrigger=2), "kept")
    for _ in range(4):
        stage.commit()
    return {"rows": stage.play(stage.stream(maxFilesPerTrigger=2), "kept").outcome, "offset": stage.offset("kept")}


@case("DeltaSourceSuite: Delta sources should verify the protocol reader version")
def a_protocol_that_nobody_reads(stage: Stage) -> Mapping[str, Any]:
    stage.add(0, 1)
    frame = stage.stream()
    with stage.running(frame) as more:
        first = more().outcome
        names = {"readerFeatures": ["ofNobody"], "writerFeatures": ["ofNobody"]}
        stage.commit({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **names}})
        return {"first": first, "then": more().outcome}


@case("DeltaSourceSuite: should not attempt to read a non exist version")
def two_tables_in_one_query(stage: Stage) -> Mapping[str, Any]:
    seen: dict[str, Any] = {}
    for number, names in enumerate((("a", "b"), ("a", "b"), ("b",), ())):
        for name in names:
            stage.add(number, number + 1, name=name)
        seen[f"run {number}"] = stage.play(stage.stream("a").union(stage.stream("b")), "kept").outcome
    return seen


@case(
    "DeltaSourceSuite: self union a Delta table should pass the catalog table assert",
    "DeltaSourceTableAPISuite: table API",
    "DeltaSourceTableAPISuite: table API with database",
)
def tables_by_name(stage: Stage) -> Mapping[str, Any]:
    schema, spark = f"schema_{stage.name}", stage.spark
    spark.sql(f"CREATE DATABASE {schema}")
    try:
        spark.range(3).write.format("delta").option("path", stage.path()).saveAsTable(f"{schema}.it")
        named = spark.readStream.format("delta").table(f"{schema}.it")
        spark.sql(f"CREATE VIEW {schema}.seen AS SELECT id + 1 AS more FROM {schema}.it")
        return {
            "by name": stage.play(named).outcome,
            "without a format": stage.play(spark.readStream.table(f"{schema}.it")).outcome,
            "by its path": stage.outcome(lambda: spark.readStream.table(f"delta.`{stage.path()}`")),
            "twice": stage.play(named.union(named)).outcome,
            "a view": stage.outcome(lambda: spark.readStream.table(f"{schema}.seen")),
            "none": stage.outcome(lambda: spark.readStream.table(f"{schema}.none")),
        }
    finally:
        spark.sql(f"DROP DATABASE {schema} CASCADE")


@case(
    "DeltaSourceSuite: delta source should not hang or reprocess data when using AvailableNow",
    "DeltaSourceSuite: reading from partitioned table succeeds during restart",
)
def one_partition_of_a_table(stage: Stage) -> Mapping[str, Any]:
    def run() -> Any:
        return stage.play(stage.stream().where("part = 0"), "kept").outcome

    ids = stage.spark.range(0, 6, 1, 3)
    stage.save(ids.selectExpr("id", "id % 3 AS part"), by="part")
    seen = {"first": run()}
    stage.save(ids.selectExpr("id + 10 AS id", "id % 3 AS part"), by="part")
    return {**seen, "then": run(), "at last": run()}


@case(
    "DeltaSourceSuite: streaming read returns correct data from table with partition column in middle",
    "DeltaSourceSuite: streaming read with column pruning and partition column in middle",
    "DeltaSourceSuite: streaming read with column mapping id and partition column in middle",
    "DeltaSourceSuite: reading from table with multiple partition columns succeeds during restart",
)
def a_partition_column_in_the_middle(stage: Stage) -> Mapping[str, Any]:
    seen: dict[str, Any] = {}
    for mode in ("none", "name", "id"):
        stage.make("id BIGINT, p INT, x INT, q STRING", "PARTITIONED BY (q, p)", name=mode, columnMapping__mode=mode)
        stage.sql("INSERT INTO {t} VALUES (1, 10, 100, 'a'), (2, NULL, 200, 'b')", name=mode)
        seen[mode] = stage.play(stage.stream(mode), mode).outcome
        stage.sql("INSERT INTO {t} VALUES (3, 30, NULL, NULL)", name=mode)
        seen[f"{mode}, then"] = stage.play(stage.stream(mode), mode).outcome
    some = stage.play(stage.stream("id").select("p", "id")).outcome
    return {**seen, "some columns": some, "columns": stage.stream("id").columns}


@case("DeltaSourceSuite: streaming read after column rename with partition column in middle")
def columns_renamed_before_the_start(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT, p INT, x INT", "PARTITIONED BY (p)", columnMapping__mode="name")
    stage.sql(
        "INSERT INTO {t} VALUES (1, 10, 100)",
        "ALTER TABLE {t} RENAME COLUMN x TO y",
        "INSERT INTO {t} VALUES (2, 20, 200)",
        "ALTER TABLE {t} RENAME COLUMN p TO q",
        "INSERT INTO {t} VALUES (3, 30, 300)",
    )
    return {"columns": stage.stream().columns, "rows": stage.play(stage.stream()).outcome}


@case("DeltaSourceSuite: streaming read preserves percent-literal string partition value")
def partition_values_with_percents(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT, p STRING", "PARTITIONED BY (p)")
    stage.sql("INSERT INTO {t} VALUES (1, '%20'), (2, '%25'), (3, 'a%2Fb'), (4, 'a b'), (5, '')")
    return {"rows": stage.play(stage.stream()).outcome}


@case(
    "DeltaSourceSuite: initial snapshot: checkpoint resume produces all rows without duplicates",
    "DeltaSourceSuite: initial snapshot: checkpoint resume after new commits produces all rows",
    "DeltaSourceSuite: initial snapshot: Trigger.AvailableNow processes all data and terminates",
)
def a_query_that_ends_in_the_middle_goes_on_there(stage: Stage) -> Mapping[str, Any]:
    stage.one_by_one(0, 6)
    first = stage.play(stage.stream(maxFilesPerTrigger=2), "kept", failing_at=2)
    stage.add(6, 9)
    stage.add(9, 12)
    then = stage.play(stage.stream(maxFilesPerTrigger=2), "kept")
    return {
        "no row is lost or shown twice": sorted(first.rows + then.rows) == list(range(12)),
        "batches": [first.sizes, then.sizes],
        "why it ended": first.error,
        "offset": stage.offset("kept"),
    }


@case(
    "DeltaSourceSuite: streaming delta source should not drop null columns",
    "DeltaSourceSuite: streaming delta source should drop null columns without feature flag",
)
def a_column_of_no_type(stage: Stage) -> Mapping[str, Any]:
    stage.save(stage.spark.sql("SELECT id, CAST(NULL AS VOID) AS nothing FROM range(3)"))
    return {
        "columns": stage.stream().columns,
        "the others": stage.play(stage.stream().drop("nothing")).outcome,
        "all": stage.play(stage.stream()).outcome,
    }


@case(
    "DeltaSourceDeletionVectorsSuite: streaming read with nulls and deletion vectors does not NPE",
    "DeltaSourceDeletionVectorsSuite: array column and deletion vectors preserve element identity",
    "DeltaSourceDeletionVectorsSuite: multiple deletion vectors per file with initial snapshot",
)
def rows_that_were_deleted_before_the_start(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT, xs ARRAY<INT>, s STRUCT<a: INT, b: MAP<STRING, INT>>", enableDeletionVectors="true")
    rows = "IF(id % 4 = 1, NULL, array(x * 10, NULL)), IF(id % 3 = 0, NULL, named_struct('a', x, 'b', map('k', x)))"
    numbers = "(SELECT id, CAST(id AS INT) AS x FROM range(0, 8, 1, 1))"
    stage.sql(f"INSERT INTO {{t}} SELECT id, {rows} FROM {numbers}")
    stage.sql(*(f"DELETE FROM {{t}} WHERE id = {number}" for number in (0, 3, 4)))
    frame = stage.stream().selectExpr("id", "xs", "s.a", "s.b['k']")
    return {"rows": stage.play(frame).outcome}


@case(
    "DeltaSourceDeletionVectorsSuite: variant column and deletion vectors preserve payload identity",
    "DeltaSourceDeletionVectorsSuite: streaming read with variant column and deletion vectors does not "
    "ClassCastException",
)
def variants(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT, v VARIANT")
    stage.sql("INSERT INTO {t} SELECT id, parse_json(concat('{\"row\":', id, '}')) FROM range(4)")
    return {"rows": stage.play(stage.stream().selectExpr("id", "variant_get(v, '$.row', 'int')")).outcome}
