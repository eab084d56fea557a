"""Versions: `history`, `detail`, `restoreToVersion`, `restoreToTimestamp`, `clone` and its like."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from pyspark.errors import AnalysisException, IllegalArgumentException

from tests.documented.given import Given, Seen, detail_of, documents, operations, refused, rows_of, types_of
from tests.support.patience import a_tick

JOB = "struct<jobId:string,jobName:string,jobRunId:string,runId:string,jobOwnerId:string,triggerType:string>"
HISTORY = [
    *["version bigint", "timestamp timestamp", "userId string", "userName string", "operation string"],
    *["operationParameters map<string,string>", f"job {JOB}", "notebook struct<notebookId:string>"],
    *["clusterId string", "readVersion bigint", "isolationLevel string", "isBlindAppend boolean"],
    *["operationMetrics map<string,string>", "userMetadata string", "engineInfo string"],
]
DETAIL = [
    *["format string", "id string", "name string", "description string", "location string", "createdAt timestamp"],
    *["lastModified timestamp", "partitionColumns array<string>", "clusteringColumns array<string>"],
    *["numFiles bigint", "sizeInBytes bigint", "properties map<string,string>", "minReaderVersion int"],
    *["minWriterVersion int", "tableFeatures array<string>"],
]
RESTORED = [
    *["table_size_after_restore bigint", "num_of_files_after_restore bigint", "num_removed_files bigint"],
    *["num_restored_files bigint", "removed_files_size bigint", "restored_files_size bigint"],
]


def changed(given: Given) -> Any:
    """A table of five versions: made, appended to, updated, deleted from, merged into."""
    table = given.flights()
    given.write(given.frame("id long, carrier string, delay int", (5, "B6", 50)))
    table.update("id = 1", {"delay": "11"})
    table.delete("id = 2")
    source = given.frame("id long, carrier string, delay int", (1, "UA", 12), (6, "DL", 60))
    merged = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merged.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    return table


@documents("DeltaTable.history")
def the_history_tells_of_every_commit(given: Given) -> Iterator[Seen]:
    table = changed(given)
    history = table.history()
    yield "what it gives", types_of(history), HISTORY
    rows = history.collect()
    yield "the newest first", [row["version"] for row in rows], [4, 3, 2, 1, 0]
    yield "the operations", [row["operation"] for row in rows], ["MERGE", "DELETE", "UPDATE", "WRITE", "WRITE"]
    yield "what was read", [row["readVersion"] for row in rows], [3, 2, 1, 0, None]
    yield "blind appends", [row["isBlindAppend"] for row in rows], [False, False, False, True, True]
    metrics = [row["operationMetrics"] for row in rows]
    names = ["numTargetRowsUpdated", "numTargetRowsInserted", "numTargetRowsDeleted", "numSourceRows"]
    yield "metrics of the merge", [metrics[0].get(name) for name in names], ["1", "1", "0", "2"]
    yield "rows that the merge wrote", int(metrics[0].get("numOutputRows", 0)) >= 2, True
    yield "of the delete", metrics[1].get("numDeletedRows"), "1"
    yield "of the update", metrics[2].get("numUpdatedRows"), "1"
    yield "of the append", [metrics[3].get("numOutputRows"), metrics[3].get("numFiles")], ["1", "1"]
    yield "parameters of the append", rows[3]["operationParameters"], {"mode": "Append", "partitionBy": "[]"}
    yield "the limit", [row["version"] for row in table.history(2).collect()], [4, 3]
    yield "by keyword", [row["version"] for row in table.history(limit=1).collect()], [4]
    yield "a limit beyond", table.history(100).count(), 5


@documents("DeltaTable.detail")
def the_detail_tells_what_the_table_is(given: Given) -> Iterator[Seen]:
    table = given.made("id long, p string", (1, "a"), (2, "b"), by="p")
    detail = table.detail()
    yield "what it gives", types_of(detail), DETAIL
    [row] = detail.collect()
    yield "the format", row["format"], "delta"
    yield "no name", [row["name"], row["description"]], [None, None]
    scheme, _, place = row["location"].partition(given.path())
    yield "the location", place, ""
    yield "the scheme of the location", scheme, "file:"
    yield "partitions", [row["partitionColumns"], row["clusteringColumns"]], [["p"], []]
    yield "files", [row["numFiles"], row["sizeInBytes"] > 0], [2, True]
    yield "times", [type(row["createdAt"]).__name__, row["createdAt"] <= row["lastModified"]], ["datetime", True]
    yield "properties", row["properties"], {}
    yield "the protocol", [row["minReaderVersion"], row["minWriterVersion"]], [1, 2]
    yield "features", row["tableFeatures"], ["appendOnly", "invariants"]


@documents("DeltaTable.detail", "DeltaTable.forName")
def the_detail_tells_the_name(given: Given) -> Iterator[Seen]:
    name = f"{given.name}_told"
    table = given.DeltaTable.create(given.spark).tableName(name).addColumn("id", "INT").execute()
    expected = [f"spark_catalog.default.{name}"]
    yield "of a table that was made", detail_of(table, "name"), expected
    yield "of one that was opened", detail_of(given.DeltaTable.forName(given.spark, name), "name"), expected


@documents("DeltaTable.restoreToVersion")
def a_version_is_restored(given: Given) -> Iterator[Seen]:
    table = changed(given)
    done = table.restoreToVersion(1)
    yield "what it gives", types_of(done), RESTORED
    yield "one row", done.count(), 1
    yield "its rows", [row[0] for row in rows_of(table)], [1, 2, 3, 4, 5]
    yield "the history", operations(table)[0], "RESTORE"
    table.restoreToVersion(version=4)
    yield "and back", [row[0] for row in rows_of(table)], [1, 3, 4, 5, 6]
    yield "no version", refused(lambda: table.restoreToVersion(99), AnalysisException), "AnalysisException"
    yield "text", refused(lambda: table.restoreToVersion("1"), ValueError), "ValueError"
    yield "nothing", refused(lambda: table.restoreToVersion(None), ValueError), "ValueError"


@documents("DeltaTable.restoreToTimestamp")
def a_moment_is_restored(given: Given) -> Iterator[Seen]:
    table = given.flights()
    a_tick(1100)
    moment = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
    a_tick(1100)
    table.delete("id > 1")
    done = table.restoreToTimestamp(moment)
    yield "what it gives", types_of(done), RESTORED
    yield "its rows", [row[0] for row in rows_of(table)], [1, 2, 3, 4]
    early = refused(lambda: table.restoreToTimestamp(timestamp="2001-01-01"), AnalysisException)
    yield "a day before all", early, "AnalysisException"
    late = refused(lambda: table.restoreToTimestamp("2999-01-01 01:01:01"), AnalysisException)
    yield "a moment after all", late, "AnalysisException"
    yield "no moment", refused(lambda: table.restoreToTimestamp("soon"), AnalysisException), "AnalysisException"
    yield "a number", refused(lambda: table.restoreToTimestamp(1), ValueError), "ValueError"


@documents("DeltaTable.clone", "DeltaTable.cloneAtVersion")
def a_shallow_clone_is_made(given: Given) -> Iterator[Seen]:
    table = changed(given)

    def opened(name: str) -> Any:
        return given.DeltaTable.forPath(given.spark, given.path(name))

    made = table.clone(given.path("a"), True, False, {"my.own": "yes"})
    yield "its rows", rows_of(opened("a")), rows_of(table)
    yield "its properties", detail_of(opened("a"), "properties")[0].get("my.own"), "yes"
    yield "the history", operations(opened("a")), ["CLONE"]
    yield "what it gives", isinstance(made, given.DeltaTable), True
    table.cloneAtVersion(1, given.path("b"), isShallow=True, replace=False, properties={})
    yield "at a version", [row[0] for row in rows_of(opened("b"))], [1, 2, 3, 4, 5]
    again = refused(lambda: table.clone(given.path("b"), True, False, {}), AnalysisException)
    yield "where there is one", again, "AnalysisException"
    replaced = refused(lambda: table.clone(target=given.path("b"), isShallow=True, replace=True), Exception)
    yield "in the place of one with rows", replaced, "nothing was refused"
    table.clone(target=given.path("c"), isShallow=True, replace=True, properties={})
    yield "replacing nothing", rows_of(opened("c")), rows_of(table)
    opened("c").delete("id > 1")
    yield "the source stays", [row[0] for row in rows_of(table)], [1, 3, 4, 5, 6]


@documents("DeltaTable.cloneAtTimestamp")
def a_shallow_clone_of_a_moment_is_made(given: Given) -> Iterator[Seen]:
    table = given.flights()
    a_tick(1100)
    moment = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
    a_tick(1100)
    table.delete("id > 1")
    table.cloneAtTimestamp(moment, given.path("a"), True, False, {})
    yield "its rows", rows_of(given.DeltaTable.forPath(given.spark, given.path("a"))), rows_of_flights()
    early = refused(lambda: table.cloneAtTimestamp("2001-01-01", given.path("b"), True, False, {}), AnalysisException)
    yield "a day before all", early, "AnalysisException"


def rows_of_flights() -> list[list[Any]]:
    return [[1, "UA", 10], [2, "AA", 20], [3, "UA", None], [4, None, 40]]


@documents("DeltaTable.clone")
def a_clone_may_have_a_name(given: Given) -> Iterator[Seen]:
    table, name = given.flights(), f"{given.name}_clone"
    table.clone(name, True, False, {})
    yield "its rows", rows_of(given.DeltaTable.forName(given.spark, name)), rows_of(table)


@documents("DeltaTable.clone", "DeltaTable.cloneAtVersion", "DeltaTable.cloneAtTimestamp")
def a_clone_is_deep_and_without_properties_by_default(given: Given) -> Iterator[Seen]:
    table = given.flights()
    table.clone(given.path("a"), isShallow=True)
    yield "no properties", rows_of(given.DeltaTable.forPath(given.spark, given.path("a"))), rows_of(table)
    yield "deep", refused(lambda: table.clone(given.path("b")), IllegalArgumentException), "nothing was refused"


@documents("DeltaTable.clone", "DeltaTable.cloneAtVersion", "DeltaTable.cloneAtTimestamp")
def wrong_arguments_of_a_clone_are_told(given: Given) -> Iterator[Seen]:
    table, to = given.flights(), given.path("to")
    wrong = {
        "a target that is a number": lambda: table.clone(1, True),
        "isShallow": lambda: table.clone(to, "yes"),
        "replace": lambda: table.clone(to, True, 1),
        "properties": lambda: table.clone(to, True, False, ["a"]),
        "a property that is a number": lambda: table.clone(to, True, False, {"a": 1}),
        "a version that is text": lambda: table.cloneAtVersion("1", to, True),
        "a timestamp that is a number": lambda: table.cloneAtTimestamp(1, to, True),
    }
    for what, command in wrong.items():
        yield what, refused(command, ValueError), "ValueError"
    missing = refused(lambda: table.cloneAtVersion(99, to, True, False, {}), AnalysisException)
    yield "no version", missing, "AnalysisException"
    yield "nothing was made", given.DeltaTable.isDeltaTable(given.spark, to), False
