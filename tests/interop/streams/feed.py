"""The changes of a table are read as a stream."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from tests.interop.streams.playing import Stage, case
from tests.interop.streams.starting import dated

ON = {"enableChangeDataFeed": "true"}


def changes(stage: Stage, name: str = "t", **options: Any) -> DataFrame:
    """The feed without the times of its commits."""
    return stage.stream(name, readChangeFeed=True, **options).drop("_commit_timestamp")


def changed(stage: Stage, checkpoint: str = "", name: str = "t", **options: Any) -> Any:
    """What a query of the feed gives."""
    return stage.outcome(lambda: changes(stage, name, **options), checkpoint)


@case(
    "DeltaCDCStreamSuite: no startingVersion should result fetch the entire snapshot",
    "DeltaCDCStreamSuite: CDC initial snapshot should end at base index of next version",
)
def rows_that_are_there_are_inserts(stage: Stage) -> Mapping[str, Any]:
    stage.save(stage.spark.sql("SELECT * FROM VALUES (1), (9) AS t(v)"))
    stage.sql("DELETE FROM {t} WHERE v = 9", "INSERT INTO {t} VALUES (2)")
    stage.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    seen = {"at first": changed(stage, "kept"), "offset": stage.offset("kept")}
    stage.sql("DELETE FROM {t} WHERE v = 1", "UPDATE {t} SET v = 3 WHERE v = 2")
    columns = stage.stream(readChangeFeed=True).columns
    return {**seen, "then": changed(stage, "kept"), "offset then": stage.offset("kept"), "columns": columns}


@case("DeltaCDCStreamSuite: startingVersion = latest")
def the_latest_changes(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", **ON)
    stage.add(0, 2)
    with stage.running(changes(stage, startingVersion="latest")) as more:
        seen = {"at first": more().outcome}
        stage.add(3, 4)
        return {**seen, "then": more().outcome}


@case(
    "DeltaCDCStreamSuite: user provided startingVersion",
    "DeltaCDCStreamSuite: startingVersion and startingTimestamp are both set",
    "DeltaCDCStreamSuite: starting[Version/Timestamp] > latest version",
)
def changes_from_a_version(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", **ON)
    stage.add(0, 3)
    stage.add(3, 5)
    stage.sql("DELETE FROM {t} WHERE id = 2")
    seen = {str(at): changed(stage, startingVersion=at) for at in (0, 2, 3, 4, 9)}
    return {**seen, "both": changed(stage, startingVersion=0, startingTimestamp="2020-07-15")}


@case("DeltaCDCStreamSuite: startingVersion before CDF was enabled rejects with change-data-not-recorded")
def versions_that_recorded_nothing(stage: Stage) -> Mapping[str, Any]:
    stage.add(0, 2)
    seen = {"never": changed(stage), "never, from 0": changed(stage, startingVersion=0)}
    stage.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    stage.add(2, 3)
    seen |= {f"recording, from {at}": changed(stage, startingVersion=at) for at in (0, 1, 2)}
    seen["kept"] = changed(stage, "kept")
    stage.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')")
    stage.add(4, 5)
    return {**seen, "no longer": changed(stage, "kept"), "no longer, again": changed(stage, "kept")}


@case(
    "DeltaCDCStreamSuite: user provided startingTimestamp",
    "DeltaCDCStreamSuite: starting[Version/Timestamp] > latest version",
)
def changes_from_a_time(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", **ON)
    os.utime(stage.log()[0], (1, 1))
    dated(stage, 0, 20)
    times = ("2020-07-14", "2020-07-15 00:00:01", "2020-07-15 00:20:00", "2020-07-15 00:20:01")
    return {time: changed(stage, startingTimestamp=time) for time in times}


@case("DeltaCDCStreamSuite: check starting[Version/Timestamp] > latest version without error")
def beyond_the_end_under_a_setting(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", **ON)
    os.utime(stage.log()[0], (1, 1))
    dated(stage, 0)
    with stage.setting(databricks__delta__changeDataFeed__timestampOutOfRange__enabled="true"):
        seen = {
            "version": changed(stage, "version", startingVersion=2),
            "time": changed(stage, "time", startingTimestamp="2020-07-16"),
        }
        stage.add(7, 8)
        seen["version, then"] = changed(stage, "version", startingVersion=2)
        return {**seen, "time, then": changed(stage, "time", startingTimestamp="2020-07-16")}


@case("DeltaCDCStreamSuite: cdc streams should respect checkpoint")
def changes_go_on_at_a_checkpoint(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", **ON)
    stage.add(1, 4)
    stage.add(4, 7)
    stage.sql("DELETE FROM {t} WHERE id = 5")
    seen: dict[str, Any] = {}
    for number, checkpoint in enumerate(("one", "one", "two")):
        error = stage.write(changes(stage, startingVersion=2).select("id"), checkpoint=checkpoint).error
        seen[f"run {number}"] = error or stage.read("out")
    return seen


@case("DeltaCDCStreamSuite: cdc streams with noop merge")
def a_merge_that_changes_nothing(stage: Stage) -> Mapping[str, Any]:
    stage.make("k INT, v STRING", **ON)
    stage.sql("INSERT INTO {t} VALUES (1, 't'), (2, 'u')")
    source = "(SELECT 1 AS k, 'a' AS v UNION ALL SELECT 3, 'b')"
    stage.sql(
        f"MERGE INTO {{t}} t USING {source} s ON t.k = s.k WHEN MATCHED AND s.k = 10 THEN UPDATE SET * "
        "WHEN NOT MATCHED AND s.k = 11 THEN INSERT *"
    )
    stage.sql("INSERT INTO {t} VALUES (5, 'z')")
    found = changed(stage, startingVersion=1)
    return {"rows": [row[:3] for row in found]}


@case("DeltaCDCStreamSuite: streams updating latest offset with readChangeFeed=…")
def commits_without_changes(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", **ON)
    stage.add(0, 3)
    seen: dict[str, Any] = {"feed": changed(stage, "feed"), "rows": stage.given("rows")}
    for _ in range(3):
        stage.commit()
    seen |= {"feed, then": changed(stage, "feed"), "rows, then": stage.given("rows")}
    return {**seen, "offset of the feed": stage.offset("feed"), "offset of the rows": stage.offset("rows")}


@case(
    "DeltaCDCStreamSuite: cdc streams should be able to get offset when there only RemoveFiles",
    "DeltaCDCStreamSuite: cdc streams should work starting from RemoveFile",
    "DeltaCDCStreamSuite: cdc streams should work starting from AddCDCFile",
)
def deletes_of_partitions_and_of_rows(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT, part BIGINT", "PARTITIONED BY (part)", **ON)
    stage.save(stage.spark.range(0, 4, 1, 1).selectExpr("id", "id % 2 AS part"))
    seen = {"at first": changed(stage, "kept", startingVersion=0)}
    stage.sql("DELETE FROM {t} WHERE part = 0")
    seen["a partition"] = changed(stage, "kept", startingVersion=0)
    stage.sql("DELETE FROM {t} WHERE id = 3")
    seen["a row"] = changed(stage, "kept", startingVersion=0)
    stage.sql("INSERT INTO {t} VALUES (9, 9)")
    return {**seen, **{f"from {at}": changed(stage, startingVersion=at) for at in (2, 3)}}


@case(
    "DeltaCDCStreamSuite: rateLimit - overall",
    "DeltaCDCStreamSuite: rateLimit - should not deadlock",
    "DeltaCDCStreamSuite: maxFilesPerTrigger - 2 successive AddCDCFile commits",
    "DeltaCDCStreamSuite: maxFilesPerTrigger - batch reject stops iteration to prevent data loss",
    "DeltaCDCStreamSuite: maxFilesPerTrigger with Trigger.AvailableNow respects read limits",
)
def how_many_changes_a_batch_takes(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT, part BIGINT", "PARTITIONED BY (part)", **ON, enableDeletionVectors="false")
    stage.save(stage.spark.range(0, 4, 1, 1).selectExpr("id", "id % 2 AS part"))
    stage.sql("INSERT INTO {t} VALUES (4, -1)", "DELETE FROM {t} WHERE part = -1")
    stage.sql("UPDATE {t} SET id = 0 WHERE id < 2", "UPDATE {t} SET id = 0 WHERE id > 1")
    stage.sql("INSERT INTO {t} VALUES (10, 0)")
    options: tuple[dict[str, Any], ...] = (
        {"maxFilesPerTrigger": 1},
        {"maxFilesPerTrigger": 3},
        {"maxFilesPerTrigger": 5},
        {"maxBytesPerTrigger": "1b"},
    )
    seen: dict[str, Any] = {}
    for each in options:
        played = stage.play(changes(stage, startingVersion=0, **each))
        seen |= {f"batches, {each}": played.sizes, f"rows, {each}": played.outcome}
    return seen


@case("DeltaCDCStreamSuite: rateLimit - starting from initial snapshot")
def how_much_of_what_is_there_a_batch_takes(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", **ON)
    stage.one_by_one(0, 3)
    stage.add(3, 5, files=2)
    options: tuple[dict[str, Any], ...] = ({"maxFilesPerTrigger": 1}, {"maxBytesPerTrigger": "1b"})
    played = {str(each): stage.play(changes(stage, **each)) for each in options}
    return {each: [found.sizes, found.rows] for each, found in played.items()}


@case(
    "DeltaCDCStreamSuite: excludeRegex works with cdc",
    "DeltaCDCStreamSuite: excludeRegex on cdcPath should not return Add/RemoveFiles",
)
def files_of_a_feed_that_are_left_out_by_name(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT, part BIGINT", "PARTITIONED BY (part)", **ON)
    stage.save(stage.spark.range(2).selectExpr("id", "id % 2 AS part"))
    return {"rows": changed(stage, startingVersion=0, excludeRegex="part=0")}


@case("DeltaCDCStreamSuite: schema check for cdc stream")
def columns_change_while_a_feed_is_read(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", **ON)
    stage.one_by_one(0, 2)
    with stage.running(changes(stage, startingVersion=0), "kept") as more:
        seen = {"at first": more().outcome}
        stage.sql("ALTER TABLE {t} ADD COLUMN more STRING", "INSERT INTO {t} VALUES (5, 'x')")
        seen["running"] = more().outcome
    return {**seen, "again": changed(stage, "kept", startingVersion=0), "from 0": changed(stage, startingVersion=0)}


@case("DeltaCDCStreamSuite: should not attempt to read a non exist version")
def two_feeds_in_one_query(stage: Stage) -> Mapping[str, Any]:
    seen: dict[str, Any] = {}
    for name in ("a", "b"):
        stage.make("id BIGINT", name=name, **ON)
    for number, names in enumerate((("a", "b"), ("b",), ())):
        for name in names:
            stage.add(number, number + 1, name=name)
        seen[f"run {number}"] = stage.play(changes(stage, "a").union(changes(stage, "b")), "kept").outcome
    return seen


@case(
    "DeltaCDCStreamSuite: double delete-only on the same file",
    "DeltaCDCStreamSuite: CDC DV-diff: only deleted rows appear, not surviving rows",
    "DeltaCDCStreamSuite: CDC DV-diff: second delete emits only newly deleted rows, not prior deletions",
    "DeltaCDCStreamSuite: CDC DV-diff: partitioned table includes correct partition values",
    "DeltaCDCStreamSuite: CDC DV-diff: delete spanning multiple files produces one DV pair per file",
    "DeltaCDCStreamSuite: CDC DV-diff: multi-file commit admitted all-or-nothing under maxFilesPerTrigger",
    "DeltaCDCStreamSuite: CDC DV-diff: maxBytesPerTrigger rate limits across DV-diff commits",
    "DeltaCDCStreamSuite: CDC stream supports column pruning of data columns",
    "DeltaCDCStreamSuite: CDC stream on partitioned table strips partition and CDC columns correctly",
    "DeltaCDCStreamSuite: CDC stream on column-mapped table passes through correctly",
)
def rows_of_files_are_marked_as_deleted(stage: Stage) -> Mapping[str, Any]:
    more = {**ON, "enableDeletionVectors": "true", "columnMapping__mode": "name"}
    stage.make("id BIGINT, part STRING, x INT", "PARTITIONED BY (part)", **more)
    for start in (0, 6):
        rows = stage.spark.range(start, start + 6, 1, 1)
        stage.save(rows.selectExpr("id", "IF(id % 2 = 0, 'a', 'b') AS part", "CAST(id AS INT) AS x"))
    stage.sql("DELETE FROM {t} WHERE id IN (1, 2, 7)", "DELETE FROM {t} WHERE id IN (3, 4)")
    seen = {f"from {at}": changed(stage, startingVersion=at) for at in (1, 3, 4)}
    for limit in ({"maxFilesPerTrigger": 1}, {"maxBytesPerTrigger": "1b"}):
        seen[str(limit)] = stage.play(changes(stage, startingVersion=3, **limit)).batches
    pruned = changes(stage, startingVersion=0).select("_change_type", "part")
    return {**seen, "some columns": stage.play(pruned).outcome}


@case("DeltaCDCStreamSuite: CDC stream rejects reading row tracking metadata fields")
def ids_of_rows_in_a_feed(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", **ON, enableRowTracking="true")
    stage.add(0, 2)
    return {
        "the feed": stage.outcome(lambda: changes(stage, startingVersion=0).select("id", "_metadata.row_id")),
        "the rows": stage.outcome(lambda: stage.stream().select("id", "_metadata.row_id")),
    }
