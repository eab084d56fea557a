"""Columns change while a table is read as a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.interop.streams.playing import Stage, case


def while_running(stage: Stage, columns: str, first: str, change: str, then: str, **properties: str) -> dict[str, Any]:
    """A change beside a query that runs; the query, that of the same DataFrame, and that of a new one."""
    stage.make(columns, **properties)
    stage.sql(f"INSERT INTO {{t}} VALUES {first}")
    frame = stage.stream()
    with stage.running(frame, "kept") as more:
        seen = {"at first": more().outcome}
        stage.sql(change, f"INSERT INTO {{t}} VALUES {then}")
        seen["running"] = more().outcome
    seen["the same DataFrame"] = stage.play(frame, "kept").outcome
    seen["a new DataFrame"] = stage.given("kept")
    return seen


@case(
    "DeltaSourceSuite: disallow to change schema after starting a streaming query",
    "DeltaSourceSuite: add column: restarting with new DataFrame should recover",
    "DeltaSourceSuite: add column: restarting with stale DataFrame should fail",
)
def a_column_is_added(stage: Stage) -> Mapping[str, Any]:
    change = "ALTER TABLE {t} ADD COLUMN more STRING"
    return while_running(stage, "id STRING", "('0')", change, "('1', 'a')")


@case(
    "DeltaSourceSuite: relax nullability: restarting with new DataFrame should recover",
    "DeltaSourceSuite: relax nullability: restarting with stale DataFrame should recover",
    "DeltaSourceSuite: handling nullability schema changes",
)
def a_column_may_be_null(stage: Stage) -> Mapping[str, Any]:
    change = "ALTER TABLE {t} ALTER COLUMN id DROP NOT NULL"
    return while_running(stage, "id STRING NOT NULL", "('0')", change, "(NULL)")


@case(
    "DeltaSourceSuite: type widening: restarting with new DataFrame should recover",
    "DeltaSourceSuite: type widening: restarting with stale DataFrame should recover",
)
def a_type_is_widened(stage: Stage) -> Mapping[str, Any]:
    change = "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT"
    with stage.setting(databricks__delta__typeWidening__enableStreamingSchemaTracking="false"):
        return while_running(stage, "id INT", "(0)", change, "(3000000000)", enableTypeWidening="true")


@case("DeltaSourceSuite: type widening: should fail with non-additive schema change error when enable schema tracking")
def a_type_is_widened_under_tracking(stage: Stage) -> Mapping[str, Any]:
    change = "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT"
    return while_running(stage, "id INT", "(0)", change, "(3000000000)", enableTypeWidening="true")


@case(
    "DeltaSourceSuite: drop column: should fail with non-additive schema change error",
    "DeltaSourceColumnMappingSuite: column mapping + streaming: blocking workflow - drop column",
)
def a_column_is_dropped(stage: Stage) -> Mapping[str, Any]:
    change = "ALTER TABLE {t} DROP COLUMN v"
    return while_running(stage, "id INT, v INT", "(0, 0)", change, "(1)", columnMapping__mode="name")


@case(
    "DeltaSourceSuite: rename column: should fail with non-additive schema change error",
    "DeltaSourceColumnMappingSuite: column mapping + streaming: blocking workflow - rename column",
)
def a_column_is_renamed(stage: Stage) -> Mapping[str, Any]:
    change = "ALTER TABLE {t} RENAME COLUMN v TO w"
    return while_running(stage, "id INT, v INT", "(0, 0)", change, "(1, 1)", columnMapping__mode="name")


@case(
    "DeltaSourceSuite: drop column: should succeed with unsafe column mapping schema change flag enabled",
    "DeltaSourceSuite: rename column: should throw schema change error with unsafe flag enabled",
    "DeltaSourceColumnMappingSuite: unsafe flag can unblock drop or rename column",
)
def changes_under_the_unsafe_setting(stage: Stage) -> Mapping[str, Any]:
    name = "databricks__delta__streaming__unsafeReadOnIncompatibleColumnMappingSchemaChanges__enabled"
    with stage.setting(**{name: "true"}):
        return a_column_is_dropped.__wrapped__(stage)  # type: ignore[attr-defined,no-any-return]


@case("DeltaSourceColumnMappingSuite: column mapping + streaming - allowed workflows - column addition")
def a_column_is_added_by_a_write(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", columnMapping__mode="name")
    stage.add(0, 2)
    seen = {"at first": stage.given("kept")}
    stage.save(stage.spark.range(2, 4).selectExpr("id", "id AS more"), mergeSchema="true")
    return {**seen, "then": stage.given("kept"), "at last": stage.given("kept")}


@case("DeltaSourceColumnMappingSuite: column mapping + streaming - allowed workflows - upgrade to name mode")
def a_table_is_given_names_for_its_columns(stage: Stage) -> Mapping[str, Any]:
    stage.add(0, 2)
    seen = {"at first": stage.given("kept")}
    stage.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    stage.add(2, 3)
    seen["then"] = stage.given("kept")
    stage.sql("ALTER TABLE {t} RENAME COLUMN id TO number")
    return {**seen, "renamed": stage.given("kept"), "a new query": stage.given()}


@case("(beyond the suites) changes of metadata that leave the columns alone")
def changes_that_leave_the_columns_alone(stage: Stage) -> Mapping[str, Any]:
    changes = (
        "ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "ALTER TABLE {t} ALTER COLUMN id COMMENT 'a number'",
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)",
    )
    seen: dict[str, Any] = {}
    for number, change in enumerate(changes):
        stage.add(0, 1, name=str(number))
        with stage.running(stage.stream(str(number)), str(number)) as more:
            more()
            stage.sql(change, name=str(number))
            stage.add(1, 2, name=str(number))
            seen[change] = more().outcome
        seen[f"{change}, again"] = stage.given(str(number), str(number))
    return seen


@case("(beyond the suites) a change of columns that a query has yet to read")
def changes_between_two_runs(stage: Stage) -> Mapping[str, Any]:
    stage.make("id INT, v INT", columnMapping__mode="name", enableTypeWidening="true")
    stage.sql("INSERT INTO {t} VALUES (0, 0)")
    seen = {"at first": stage.given("kept")}
    changes: tuple[str, ...] = (
        "ALTER TABLE {t} ADD COLUMN x INT",
        "ALTER TABLE {t} ALTER COLUMN v TYPE BIGINT",
        "ALTER TABLE {t} RENAME COLUMN v TO w",
        "ALTER TABLE {t} DROP COLUMN w",
    )
    for number, change in enumerate(changes, 1):
        stage.sql(change)
        columns = ", ".join([str(number)] * len(stage.spark.read.format("delta").load(stage.path()).columns))
        stage.sql(f"INSERT INTO {{t}} VALUES ({columns})")
        seen[change] = stage.given("kept")
        seen[f"{change}, again"] = stage.given("kept")
        seen[f"{change}, from the beginning"] = stage.given(startingVersion=0)
    return seen


@case("(beyond the suites) a table is overwritten with other columns")
def a_table_is_overwritten_with_other_columns(stage: Stage) -> Mapping[str, Any]:
    stage.add(0, 2)
    seen = {"at first": stage.given("kept", ignoreChanges=True)}
    rows = stage.spark.range(5, 7).selectExpr("CAST(id AS STRING) AS id", "1 AS g")
    stage.save(rows, mode="overwrite", by="g", overwriteSchema="true")
    return {**seen, "then": stage.given("kept", ignoreChanges=True), "again": stage.given("kept", ignoreChanges=True)}


@case(
    "DeltaSourceSchemaEvolutionSuite: schema location not under checkpoint",
    "DeltaSourceSchemaEvolutionSuite: schema location same as checkpoint",
    "DeltaSourceSchemaEvolutionSuite: schema log is applied",
    "DeltaSourceSchemaEvolutionSuite: detect incompatible schema change while streaming",
)
def a_log_of_schemas(stage: Stage) -> Mapping[str, Any]:
    stage.make("id INT, v INT", columnMapping__mode="name")
    stage.sql("INSERT INTO {t} VALUES (0, 0)")
    elsewhere, inside = stage.path("elsewhere"), str(stage.checkpoint("kept") / "_schemas")
    stage.checkpoint("kept").mkdir()
    seen = {"elsewhere": stage.given("another", schemaTrackingLocation=elsewhere)}
    runs: list[Callable[[], Any]] = [lambda: stage.given("kept", schemaTrackingLocation=inside)] * 3
    seen.update({f"inside, run {number}": run() for number, run in enumerate(runs)})
    stage.sql("ALTER TABLE {t} RENAME COLUMN v TO w", "INSERT INTO {t} VALUES (1, 1)")
    return {**seen, **{f"renamed, run {number}": run() for number, run in enumerate(runs)}}
