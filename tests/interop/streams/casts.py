"""The rows of a stream have other types than the columns of the table that they are written to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.interop.streams.playing import Stage, case
from tests.interop.streams.writing import arrive, history


def two_writes(stage: Stage, first: str, then: str, name: str = "out", **options: str) -> Any:
    """Two batches whose columns are other expressions of the same numbers: the types, and the rows or the error."""
    place = f"in-{name}"
    found = [stage.write(arrive(stage, 17, at=place).selectExpr(first), name, checkpoint=name).error]
    found.append(stage.write(arrive(stage, 23, at=place).selectExpr(then), name, checkpoint=name, **options).error)
    frame = stage.spark.read.format("delta").load(stage.path(name))
    return [frame.dtypes, [str(row) for row in stage.read(name)], [error for error in found if error]]


@case(
    "DeltaSinkImplicitCastSuite: write wider type - long -> int",
    "DeltaSinkImplicitCastSuite: write wider type - Decimal(10, 4) -> Decimal(6, 2)",
    "DeltaSinkImplicitCastSuite: write narrower type - int -> long",
    "DeltaSinkImplicitCastSuite: write different type - date -> string",
    "DeltaSinkImplicitCastSuite: handling type mismatch in addBatch",
)
def other_types(stage: Stage) -> Mapping[str, Any]:
    pairs = (
        ("value AS v", "CAST(value AS BIGINT) AS v"),
        ("CAST(value AS DECIMAL(6, 2)) AS v", "CAST(98.7654 AS DECIMAL(10, 4)) AS v"),
        ("CAST(value AS BIGINT) AS v", "value AS v"),
        ("'abc' AS v", "DATE '2024-07-25' AS v"),
        ("DATE '2024-07-25' AS v", "'2024-07-26' AS v"),
        ("DATE '2024-07-25' AS v", "'no date' AS v"),
        ("CAST(value AS DOUBLE) AS v", "CAST(value AS FLOAT) AS v"),
        ("TIMESTAMP '2024-07-25 01:02:03' AS v", "DATE '2024-07-26' AS v"),
        ("true AS v", "value AS v"),
    )
    return {
        f"{first}, {then}": two_writes(stage, first, then, f"out-{number}")
        for number, (first, then) in enumerate(pairs)
    }


@case("DeltaSinkImplicitCastSuite: write wider type - long -> int - overflow with storeAssignmentPolicy=…")
def numbers_that_do_not_fit(stage: Stage) -> Mapping[str, Any]:
    seen: dict[str, Any] = {}
    for policy in ("STRICT", "ANSI", "LEGACY"):
        with stage.setting(sql__storeAssignmentPolicy=policy):
            seen[policy] = two_writes(stage, "value AS v", "9223372036854775807 AS v", policy)
    return seen


@case(
    "DeltaSinkImplicitCastSuite: implicit cast in nested struct/array/map",
    "DeltaSinkImplicitCastSuite: write invalid nested type - array -> struct",
)
def other_types_within_others(stage: Stage) -> Mapping[str, Any]:
    pairs = {
        "struct": ("named_struct('a', value) AS v", "named_struct('a', CAST(value AS BIGINT)) AS v"),
        "map": ("map(value, value + 1) AS v", "map(CAST(value AS BIGINT), CAST(value AS STRING)) AS v"),
        "array": ("array(value) AS v", "array(CAST(value AS BIGINT), NULL) AS v"),
        "array for struct": ("named_struct('a', value) AS v", "array(value) AS v"),
        "fewer fields": ("named_struct('a', value, 'b', 1) AS v", "named_struct('a', value) AS v"),
        "more fields": ("named_struct('a', value) AS v", "named_struct('a', value, 'b', 1) AS v"),
    }
    return {name: two_writes(stage, *pair, name=name.replace(" ", "-")) for name, pair in pairs.items()}


@case("DeltaSinkImplicitCastSuite: implicit cast on partition value")
def other_types_of_a_partition(stage: Stage) -> Mapping[str, Any]:
    stage.make("day DATE, value INT", "PARTITIONED BY (day)", name="out")
    first = "DATE '2024-07-26' AS day", "value"
    then = "TIMESTAMP '2024-07-27 00:00:00' AS day", "CAST(value AS DECIMAL(4, 1)) AS value"
    found = [stage.write(arrive(stage, 1).selectExpr(*columns)).error for columns in (first, then)]
    return {"errors": found, "rows": [str(row) for row in stage.read("out")]}


@case(
    "DeltaSinkImplicitCastSuite: implicit cast with schema evolution",
    "DeltaSinkImplicitCastSuite: implicit cast and missing column",
)
def columns_that_are_more_or_fewer(stage: Stage) -> Mapping[str, Any]:
    first = "CAST(value AS DECIMAL(6, 3)) AS a"
    seen: dict[str, Any] = {}
    for name, columns, merge in (
        ("more", ("CAST(value AS BIGINT) AS a", "'abc' AS b"), "true"),
        ("more, not merged", ("CAST(value AS BIGINT) AS a", "'abc' AS b"), "false"),
    ):
        table = name.replace(", ", "-").replace(" ", "-")
        with stage.setting(databricks__delta__schema__autoMerge__enabled=merge):
            found = [stage.write(arrive(stage, 1, at=f"in-{table}").selectExpr(first), table, checkpoint=table).error]
            rows = arrive(stage, 2, at=f"in-{table}").selectExpr(*columns)
            found.append(stage.write(rows, table, checkpoint=table).error)
        seen[name] = [found, [str(row) for row in stage.read(table)]]
    stage.write(arrive(stage, 1).selectExpr("TIMESTAMP '2024-07-28 12:00:00' AS a", "'abc' AS b"), checkpoint="fewer")
    fewer = stage.write(arrive(stage, 2).selectExpr("DATE '2024-07-29' AS a"), checkpoint="fewer").error
    return {**seen, "fewer": [fewer, [str(row) for row in stage.read("out")]]}


@case("DeltaSinkImplicitCastSuite: implicit cast with schema overwrite")
def a_batch_replaces_the_columns(stage: Stage) -> Mapping[str, Any]:
    def run(value: int, *columns: str) -> Any:
        counted = arrive(stage, value).selectExpr("CAST(value AS DECIMAL(6, 3)) AS a").groupBy("a").count()
        frame = counted.selectExpr("a", "count", *columns)
        error = stage.write(frame, mode="complete", overwriteSchema="true").error
        found = stage.spark.read.format("delta").load(stage.path("out"))
        return [error, found.dtypes, [str(row) for row in stage.read("out")]]

    return {"first": run(10, "CAST(count AS INT) AS b", "'11' AS c"), "then": run(20, "count AS b", "'21' AS d")}


@case(
    "DeltaSinkImplicitCastSuite: implicit cast with case sensitivity, caseSensitive=…",
    "DeltaSinkImplicitCastSuite: schema evolution with case sensitivity and without type mismatch",
)
def names_in_another_case(stage: Stage) -> Mapping[str, Any]:
    seen: dict[str, Any] = {}
    for sensitive in ("false", "true"):
        with stage.setting(sql__caseSensitive=sensitive):
            pair = "CAST(value AS BIGINT) AS value", "value AS VALUE"
            seen[sensitive] = two_writes(stage, *pair, name=f"cast-{sensitive}")
            pair = "value AS a", "value AS A"
            seen[f"{sensitive}, merging"] = two_writes(stage, *pair, name=f"merge-{sensitive}", mergeSchema="true")
    return seen


@case("DeltaSinkImplicitCastSuite: implicit cast after renaming/dropping columns with column mapping")
def a_column_takes_the_name_of_another(stage: Stage) -> Mapping[str, Any]:
    stage.write(arrive(stage, 1).selectExpr("value AS a", "CAST(value AS BIGINT) + 99 AS b"))
    mapped = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"
    stage.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({mapped})", name="out")
    stage.sql("ALTER TABLE {t} DROP COLUMN a", "ALTER TABLE {t} RENAME COLUMN b TO a", name="out")
    error = stage.write(arrive(stage, 17).selectExpr("CAST(value AS STRING) AS a")).error
    return {"error": error, "rows": stage.read("out"), "operations": [each[0] for each in history(stage)]}
