"""A stream is written to a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from tests.interop.streams.playing import Played, Stage, case, condition


def arrive(stage: Stage, *values: Any, columns: str = "value INT", at: str = "in") -> DataFrame:
    """The stream of all rows that arrived so far at a place, these among them."""
    rows = [each if isinstance(each, tuple) else (each,) for each in values]
    stage.spark.createDataFrame(rows, columns).coalesce(1).write.mode("append").parquet(stage.path(at))
    return stage.spark.readStream.schema(columns).parquet(stage.path(at))


def written(stage: Stage, played: Played) -> Any:
    """The rows of the table, or why they are not there."""
    return played.error or stage.read("out")


def transactions(stage: Stage) -> list[Any]:
    """The numbers of the batches in each commit, and whether they are of one query."""
    found = [json.loads(line) for each in stage.log("out") for line in each.read_text().splitlines()]
    each = [action["txn"] for action in found if "txn" in action]
    return [len({one["appId"] for one in each}), [one["version"] for one in each]]


def history(stage: Stage) -> list[Any]:
    """What the history of the table says of each commit: of ids and sizes nothing, and the documented metrics only."""
    columns = ("operation", "operationParameters", "operationMetrics", "isBlindAppend", "userMetadata")
    found = stage.spark.sql(f"DESCRIBE HISTORY delta.`{stage.path('out')}`").orderBy("version").select(*columns)
    seen = []
    for operation, parameters, metrics, is_blind, told in found.collect():
        kept = {key: value for key, value in sorted(parameters.items()) if key != "queryId"}
        counted = {key: (metrics or {}).get(key) for key in ("numAddedFiles", "numRemovedFiles", "numOutputRows")}
        seen.append([operation, kept, counted, is_blind, told])
    return seen


@case("DeltaSinkSuite: append mode")
def append(stage: Stage) -> Mapping[str, Any]:
    seen: dict[str, Any] = {}
    for number in range(3):
        seen[f"batch {number}"] = written(stage, stage.write(arrive(stage, number)))
    again = stage.write(stage.spark.readStream.schema("value INT").parquet(stage.path("in")))
    return {**seen, "again": written(stage, again), "numbers": transactions(stage), "history": history(stage)}


@case("DeltaSinkSuite: complete mode")
def complete(stage: Stage) -> Mapping[str, Any]:
    seen: dict[str, Any] = {}
    for number in range(3):
        counted = arrive(stage, number).groupBy().count()
        seen[f"batch {number}"] = written(stage, stage.write(counted, mode="complete"))
    return {**seen, "numbers": transactions(stage), "history": history(stage)}


@case("DeltaSinkSuite: update mode: not supported", "DeltaSinkSuite: path not specified")
def what_is_refused_at_the_start(stage: Stage) -> Mapping[str, Any]:
    rows = arrive(stage, 1)
    writer = rows.writeStream.format("delta").option("checkpointLocation", stage.path("c"))
    seen = {"update": stage.write(rows.groupBy().count(), mode="update").error}
    for name, start in (
        ("no path", writer.start),
        ("no checkpoint", lambda: rows.writeStream.format("delta").start(stage.path("out"))),
    ):
        try:
            start().stop()
            seen[name] = "it started"
        except Exception as error:
            seen[name] = condition(error)
    return seen


@case(
    "DeltaSinkSuite: SPARK-21167: encode and decode path correctly",
    "DeltaSinkSuite: partitioned writing and batch reading",
    "DeltaSinkSuite: throw exception when users are trying to write in batch with different partitioning",
    "DeltaSinkSuite: incompatible schema merging throws errors - first streaming then batch",
)
def partitions(stage: Stage) -> Mapping[str, Any]:
    columns = "id INT, value STRING"

    def run(*rows: Any) -> Any:
        frame = arrive(stage, *rows, columns=columns)
        writer = frame.writeStream.partitionBy("value").format("delta")
        query = writer.option("checkpointLocation", stage.path("c")).trigger(availableNow=True).start(stage.path("out"))
        query.awaitTermination()
        return stage.read("out")

    seen = {"first": run((1, "hello world"), (2, "a/b=c"), (3, None)), "then": run((4, "%20"))}
    ids = stage.spark.range(2).selectExpr("CAST(id AS INT) AS id", "'x' AS value", "1 AS g")
    wrong = {
        "other partitions": lambda: ids.drop("g").write.format("delta").partitionBy("id").mode("append"),
        "more of them": lambda: ids.write.format("delta").partitionBy("value", "g").mode("append"),
        "another type": lambda: ids.selectExpr("array(id) AS id", "value").write.format("delta").mode("append"),
    }
    for name, writer in wrong.items():
        try:
            writer().save(stage.path("out"))
            seen[name] = "it was written"
        except Exception as error:
            seen[name] = condition(error)
    detail = stage.spark.sql(f"DESCRIBE DETAIL delta.`{stage.path('out')}`").select("partitionColumns").collect()
    return {**seen, "partition columns": detail[0][0]}


@case("DeltaSinkSuite: can't write out with all columns being partition columns")
def every_column_is_a_partition_column(stage: Stage) -> Mapping[str, Any]:
    frame = arrive(stage, (1, 1000), columns="id INT, value INT")
    played = Played()
    writer = frame.writeStream.partitionBy("id", "value").format("delta").option("checkpointLocation", stage.path("c"))
    try:
        writer.trigger(availableNow=True).start(stage.path("out")).awaitTermination()
    except Exception as error:
        played.error = condition(error)
    return {"refused": played.error}


@case("DeltaSinkSuite: work with aggregation + watermark")
def windows_behind_a_watermark(stage: Stage) -> Mapping[str, Any]:
    seen: dict[str, Any] = {}
    for number, seconds in enumerate(((100,), (104, 123), (140,))):
        rows = arrive(stage, *seconds, columns="time BIGINT").selectExpr("CAST(time AS TIMESTAMP) AS at")
        counted = rows.withWatermark("at", "10 seconds").groupBy(_window("at")).count()
        frame = counted.selectExpr("CAST(window.start AS LONG) AS start", "CAST(window.end AS LONG) AS end", "count")
        seen[f"run {number}"] = written(stage, stage.write(frame))
    return seen


def _window(column: str) -> Any:
    from pyspark.sql.functions import window

    return window(column, "5 seconds")


@case("DeltaSinkSuite: streaming write correctly sets isBlindAppend in CommitInfo")
def a_stream_that_reads_its_own_table(stage: Stage) -> Mapping[str, Any]:
    stage.write(arrive(stage, 1, 2))
    joined = arrive(stage, 2, 3).join(stage.spark.read.format("delta").load(stage.path("out")), "value")
    played = stage.write(joined)
    return {"rows": written(stage, played), "is blind": [each[3] for each in history(stage)]}


@case("DeltaSinkSuite: do not trust user nullability, so that parquet files aren't corrupted")
def columns_that_were_said_never_to_be_null(stage: Stage) -> Mapping[str, Any]:
    stage.folder.joinpath("json").mkdir()
    stage.folder.joinpath("json", "a.json").write_text('{"s": "ss", "b": {"s": "ss"}}')
    schema = "s STRING, b STRUCT<s: STRING, i: INT NOT NULL>, c INT NOT NULL"
    frame = stage.spark.readStream.schema(schema).json(stage.path("json"))
    return {"rows": written(stage, stage.write(frame))}


@case("DeltaSinkSuite: history includes user-defined metadata for DataFrame.writeStream API")
def what_a_user_says_of_commits(stage: Stage) -> Mapping[str, Any]:
    stage.write(arrive(stage, 1), userMetadata="said")
    return {"said": [each[4] for each in history(stage)]}


@case(
    "DeltaSinkSuite: DeltaSink allows streaming write to table with non-generated void column",
    "DeltaSinkSuite: DeltaSink rejects streaming write to table with generated void column",
    "DeltaSinkSuite: DeltaSink rejects streaming write with NullType column in batch schema",
)
def columns_of_no_type(stage: Stage) -> Mapping[str, Any]:
    stage.make("value INT, v VOID", name="out")
    seen = {"a table with one": written(stage, stage.write(arrive(stage, 1), checkpoint="one"))}
    frame = arrive(stage, 2).selectExpr("value", "CAST(NULL AS VOID) AS v")
    seen["rows with one"] = stage.write(frame, checkpoint="two").error
    seen["a new table"] = stage.write(frame, name="new", checkpoint="three").error
    return seen


@case(
    "DeltaSinkSuite: allow schema evolution after renaming column",
    "DeltaSinkSuite: allow schema evolution after dropping column",
)
def columns_change_below_a_sink(stage: Stage) -> Mapping[str, Any]:
    seen: dict[str, Any] = {}
    for change in ("RENAME COLUMN value TO renamed", "DROP COLUMN value"):
        for merge in ("false", "true"):
            name = f"{change.split()[0]}-{merge}"
            stage.make("value INT, x INT", name=name, columnMapping__mode="name")
            stage.write(arrive(stage, 1, at=f"in-{name}"), name, checkpoint=name)
            stage.sql(f"ALTER TABLE {{t}} {change}", name=name)
            with stage.setting(databricks__delta__schema__autoMerge__enabled=merge):
                found = stage.write(arrive(stage, 2, at=f"in-{name}"), name, checkpoint=name).error
            seen[name] = [found, sorted(stage.read(name), key=repr)]
    return seen


@case(
    "DeltaSourceTableAPISuite: writeStream.table - create new external table",
    "DeltaSourceTableAPISuite: writeStream.table - create new managed table",
    "DeltaSourceTableAPISuite: writeStream.table - create new managed table with database",
    "DeltaSourceTableAPISuite: writeStream.table - create table from existing output",
    "DeltaSourceTableAPISuite: writeStream.table - fail writing into a view",
    "DeltaSourceTableAPISuite: writeStream.table - fail due to different schema than existing Delta table",
    "DeltaSourceTableAPISuite: writeStream.table - fail due to different partitioning on existing Delta table",
    "DeltaSourceTableAPISuite: writeStream.table - fail writing into an external nonDelta table",
    "DeltaSourceTableAPISuite: writeStream.table - fail writing into an external nonDelta path",
)
def tables_by_name(stage: Stage) -> Mapping[str, Any]:
    schema, spark = f"schema_{stage.name}", stage.spark
    frame = arrive(stage, 1, 2)
    spark.sql(f"CREATE DATABASE {schema}")
    spark.sql(f"CREATE TABLE {schema}.plain (value INT) USING parquet")
    spark.sql(f"CREATE VIEW {schema}.seen AS SELECT * FROM {schema}.plain")
    for name, rows in (("existing", "CAST(id AS INT) AS value"), ("others", "id AS number")):
        stage.save(spark.range(4, 6).selectExpr(rows), name)
    stage.save(spark.range(4, 6).selectExpr("CAST(id AS INT) AS value", "1 AS g"), "parts", by="g")
    spark.range(1).write.parquet(stage.path("files"))

    def run(table: str, path: str = "", by: str = "") -> Any:
        number = sum(1 for _ in stage.folder.glob("c-*"))
        stage.folder.joinpath(f"c-{number}").mkdir()
        writer = frame.writeStream.format("delta").option("checkpointLocation", stage.path(f"c-{number}"))
        writer = writer.option("path", stage.path(path)) if path else writer
        writer = writer.partitionBy(by) if by else writer
        try:
            writer.trigger(availableNow=True).toTable(f"{schema}.{table}").awaitTermination()
        except Exception as error:
            return condition(error)
        return sorted(list(row) for row in spark.table(f"{schema}.{table}").collect())

    try:
        return {
            "new": run("managed"),
            "again": run("managed"),
            "at a path": run("external", "new"),
            "of rows that are there": run("existing", "existing"),
            "of other columns": run("others", "others"),
            "of other partitions": run("parts", "parts", "value"),
            "a view": run("seen"),
            "of another format": run("plain"),
            "files of another format": run("files", "files"),
        }
    finally:
        spark.sql(f"DROP DATABASE {schema} CASCADE")


@case("(beyond the suites) options and properties of a sink")
def options_of_a_sink(stage: Stage) -> Mapping[str, Any]:
    frame = arrive(stage, (1, "a"), (2, "b"), columns="id INT, value STRING")
    seen = {
        "merged": written(stage, stage.write(frame.select("id"), checkpoint="one")),
        "not merged": stage.write(frame, checkpoint="two").error,
        "merging": written(stage, stage.write(frame, checkpoint="three", mergeSchema="true")),
        "overwriting": stage.write(frame.select("value"), checkpoint="four", overwriteSchema="true").error,
        "replaceWhere": stage.write(frame, checkpoint="five", replaceWhere="id > 0").error,
    }
    return {**seen, "rows": stage.read("out")}
