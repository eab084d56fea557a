"""Where a stream of a table begins: a version, a time, and a checkpoint that knows better."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tests.interop.streams.playing import Stage, case

START = 1_594_771_200
"""2020-07-15 00:00:00 UTC."""


def dated(stage: Stage, *minutes: int) -> None:
    """Append ten rows for each time, in minutes after `START`."""
    for number, minute in enumerate(minutes, len(stage.log()) if (stage.folder / "t").exists() else 0):
        stage.add(10 * number, 10 * number + 2)
        at = START + 60 * minute
        os.utime(stage.log()[-1], (at, at))


@case("DeltaSourceSuite: startingVersion")
def a_version(stage: Stage) -> Mapping[str, Any]:
    stage.one_by_one(0, 2)
    seen = {f"{at}": stage.given(startingVersion=at) for at in (0, 1, -1, 2, 3, "x", "latest")}
    stage.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    stage.add(5, 6)
    stage.forget_versions(0)
    return {**seen, "0, gone": stage.given(startingVersion=0), "1, the first": stage.given(startingVersion=3)}


@case("DeltaSourceSuite: startingVersion should be ignored when restarting from a checkpoint, withRowTracking = …")
def a_checkpoint_knows_better(stage: Stage) -> Mapping[str, Any]:
    seen: dict[str, Any] = {}
    for tracked in ("false", "true"):
        stage.make("id BIGINT", name=tracked, enableRowTracking=tracked, checkpointInterval="4")
        stage.one_by_one(0, 2, name=tracked)
        seen[f"{tracked}, first"] = stage.given(tracked, tracked, startingVersion=2)
        stage.one_by_one(2, 4, name=tracked)
        seen[f"{tracked}, again"] = stage.given(tracked, tracked, startingVersion=2)
        stage.add(4, 5, name=tracked)
        stage.forget_versions(0, 1, 2, name=tracked)
        seen[f"{tracked}, its version gone"] = stage.given(tracked, tracked, startingVersion=2)
        seen[f"{tracked}, a new query"] = stage.given(name=tracked, startingVersion=2)
    return seen


@case("DeltaSourceSuite: startingTimestamp")
def a_time(stage: Stage) -> Mapping[str, Any]:
    dated(stage, 0, 20)
    times = (
        "2020-07-14",
        "2020-07-14 23:50:00",
        "2020-07-15",
        "2020-07-15 00:00:01",
        "2020-07-15 00:20:00",
        "2020-07-15T00:20:00Z",
        "2020-07-15T02:20:00+02:00",
        "2020-07-15 00:20:00.5",
        "2020-07-15 00:20:01",
        "2020-07-16",
        "not a time",
    )
    return {time: stage.given(startingTimestamp=time) for time in times}


@case("DeltaSourceSuite: startingVersion and startingTimestamp are both set")
def a_version_and_a_time(stage: Stage) -> Mapping[str, Any]:
    dated(stage, 0)
    return {"both": stage.given(startingVersion=0, startingTimestamp="2020-07-15")}


@case("DeltaSourceSuite: startingVersion: user defined start works with mergeSchema")
def a_version_of_fewer_columns(stage: Stage) -> Mapping[str, Any]:
    for number, columns in enumerate(("id",), 0):
        stage.save(stage.spark.range(number, number + 2).selectExpr(columns))
    stage.save(stage.spark.range(10, 12).selectExpr("id", "id AS id2"), mergeSchema="true")
    stage.save(stage.spark.range(20, 22).selectExpr("id", "id AS id2", "id AS id3"), mergeSchema="true")
    return {str(at): stage.given(f"from {at}".replace(" ", "-"), startingVersion=at) for at in (0, 1, 2)}


@case(
    "DeltaSourceSuite: startingVersion latest",
    "DeltaSourceSuite: startingVersion latest defined before started",
    "DeltaSourceSuite: startingVersion latest calls update when starting",
)
def the_latest(stage: Stage) -> Mapping[str, Any]:
    stage.add(0, 2)
    frame = stage.stream(startingVersion="latest")
    stage.add(2, 4)
    with stage.running(frame) as more:
        seen = {"at first": more().outcome}
        stage.add(4, 6)
        seen["one more"] = more().outcome
        stage.add(6, 7)
        stage.add(7, 8)
        return {**seen, "two more": more().outcome}


@case("DeltaSourceSuite: startingVersion latest works on defined but empty table")
def the_latest_of_an_empty_table(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT")
    with stage.running(stage.stream(startingVersion="latest")) as more:
        seen = {"at first": more().outcome}
        stage.add(0, 3)
        return {**seen, "then": more().outcome}


@case("DeltaSourceSuite: startingVersion latest")
def the_latest_of_a_query_that_ends(stage: Stage) -> Mapping[str, Any]:
    stage.add(0, 2)
    seen = {"at first": stage.given("kept", startingVersion="latest")}
    stage.add(2, 4)
    seen["then"] = stage.given("kept", startingVersion="latest")
    stage.add(4, 6)
    return {**seen, "at last": stage.given("kept", startingVersion="latest")}


@case(
    "DeltaSourceSuite: startingVersion should work with rate time",
    "DeltaSourceSuite: startingVersion specific version: new commits arrive after stream initialization",
)
def a_version_file_by_file(stage: Stage) -> Mapping[str, Any]:
    stage.add(0, 4, files=2)
    stage.add(5, 9, files=2)
    first = stage.play(stage.stream(startingVersion=1, maxFilesPerTrigger=1), "kept")
    seen = {"batches": first.sizes, "rows": first.outcome, "offset": stage.offset("kept")}
    stage.add(10, 14, files=2)
    then = stage.play(stage.stream(startingVersion=1, maxFilesPerTrigger=1), "kept")
    return {**seen, "then": then.outcome, "batches then": then.sizes, "offset then": stage.offset("kept")}


@case("DeltaSourceSuite: startingTimestamp with mid-history ICT")
def a_time_before_commits_kept_their_own(stage: Stage) -> Mapping[str, Any]:
    dated(stage, 0, 20, 40)
    stage.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')")
    dated(stage, 60, 80)
    times = ("2020-07-15 00:30:00", "2020-07-15 00:41:00", "2020-07-15 01:10:00")
    return {time: stage.given(startingTimestamp=time) for time in times}
