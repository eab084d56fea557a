"""Commits that delete or change rows, and the options that say what a stream makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.interop.streams.playing import Stage, case

IGNORING: tuple[tuple[str, ...], ...] = (
    (),
    ("ignoreDeletes",),
    ("ignoreChanges",),
    ("skipChangeCommits",),
    ("ignoreFileDeletion",),
    ("ignoreDeletes", "ignoreChanges"),
    ("ignoreChanges", "skipChangeCommits"),
    ("ignoreDeletes", "skipChangeCommits"),
    ("ignoreDeletes", "ignoreChanges", "skipChangeCommits"),
)


def with_each(stage: Stage, options: tuple[tuple[str, ...], ...] = IGNORING, start: int = 1) -> dict[str, Any]:
    """What each set of options makes of the commits from a version on."""
    return {
        ", ".join(names) or "nothing": stage.given(startingVersion=start, **dict.fromkeys(names, True))
        for names in options
    }


FEW = IGNORING[:4]


@case(
    "DeltaSourceSuite: read options [ignoreDeletes]: ignores delete, rejects change",
    "DeltaSourceSuite: read options [skipChangeCommits]: ignores delete, skips change",
    "DeltaSourceSuite: read options [ignoreChanges]: ignores delete, includes change AddFiles",
    "DeltaSourceSuite: read options [ignoreFileDeletion] (deprecated): equivalent to ignoreChanges",
    "DeltaSourceSuite: read options [ignoreDeletes, ignoreChanges]: equivalent to ignoreChanges",
    "DeltaSourceSuite: read options [ignoreChanges, skipChangeCommits]: equivalent to skipChangeCommits",
    "DeltaSourceSuite: read options [ignoreDeletes, skipChangeCommits]: equivalent to skipChangeCommits",
    "DeltaSourceSuite: read options [ignoreDeletes, ignoreChanges, skipChangeCommits]: equivalent to skipChangeCommits",
    "DeltaSourceSuite: deltaSourceIgnoreDeleteError contains removeFile, version, tablePath",
    "DeltaSourceSuite: deltaSourceIgnoreChangesError contains changeInfo, version, tablePath",
)
def a_delete_then_an_overwrite(stage: Stage) -> Mapping[str, Any]:
    stage.add(1, 4)
    stage.sql("DELETE FROM {t}")
    stage.add(4, 6)
    stage.save(stage.spark.range(6, 9, 1, 1), mode="overwrite")
    stage.add(9, 11)
    return with_each(stage, start=0)


@case("DeltaSourceSuite: deltaSourceIgnoreDeleteError contains removeFile, version, tablePath")
def what_the_error_tells(stage: Stage) -> Mapping[str, Any]:
    stage.add(1, 4)
    stage.sql("DELETE FROM {t}")
    text = stage.play(stage.stream(startingVersion=0)).text
    told = {"its version": "version 1", "the table": stage.folder.name, "what to do": "ignoreDeletes"}
    return {what: word in text for what, word in told.items()}


@case(
    "DeltaSourceDeletionVectorsSuite: deleting files fails query if ignoreDeletes = false",
    "DeltaSourceDeletionVectorsSuite: allow to delete files after staring a streaming query when … is true",
    "DeltaSourceDeletionVectorsSuite: deleting files when ignoreChanges = true doesn't fail the query",
)
def whole_files_are_deleted(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", enableDeletionVectors="true")
    stage.add(0, 2)
    stage.add(2, 4)
    stage.sql("DELETE FROM {t} WHERE id < 2")
    stage.add(10, 11)
    return with_each(stage, FEW)


@case(
    "DeltaSourceDeletionVectorsSuite: updating the source table causes failure when ignoreChanges = false",
    "DeltaSourceDeletionVectorsSuite: allow to update the source table when ignoreChanges = true",
    "DeltaSourceDeletionVectorsSuite: updating source table when ignoreDeletes = true fails the query",
)
def rows_are_marked_as_deleted(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", enableDeletionVectors="true")
    stage.add(0, 2)
    stage.add(2, 5)
    stage.sql("DELETE FROM {t} WHERE id = 3")
    stage.add(10, 11)
    return with_each(stage, FEW)


@case("DeltaSourceDeletionVectorsSuite: subsequent DML commands are processed correctly in a batch - DELETE->DELETE")
def rows_of_one_file_are_deleted_twice(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", enableDeletionVectors="true")
    stage.add(0, 3)
    stage.add(3, 6)
    stage.sql("DELETE FROM {t} WHERE id = 3", "DELETE FROM {t} WHERE id = 4")
    return with_each(stage, FEW)


@case("DeltaSourceDeletionVectorsSuite: subsequent DML commands are processed correctly in a batch - INSERT->DELETE")
def a_row_is_deleted_that_has_just_come(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", enableDeletionVectors="true")
    stage.add(0, 3)
    stage.add(15, 17)
    stage.sql("DELETE FROM {t} WHERE id = 15")
    return with_each(stage, FEW)


@case("DeltaSourceDeletionVectorsSuite: multiple deletion vectors per file - …")
def a_running_query_meets_deleted_rows(stage: Stage) -> Mapping[str, Any]:
    seen: dict[str, Any] = {}
    for name in ("ignoreFileDeletion", "ignoreChanges"):
        stage.make("id BIGINT", name=name, enableDeletionVectors="true")
        stage.add(0, 6, name=name)
        with stage.running(stage.stream(name, **{name: True}), name) as more:
            seen[name] = more().outcome
            stage.sql("DELETE FROM {t} WHERE id = 0", "DELETE FROM {t} WHERE id = 1", name=name)
            seen[f"{name}, then"] = more().outcome
    return seen


@case(
    "DeltaSourceDeletionVectorsSuite: allow to delete files before starting a streaming query",
    "DeltaSourceDeletionVectorsSuite: allow to delete files before staring a streaming query without checkpoint",
)
def what_was_deleted_before_the_start(stage: Stage) -> Mapping[str, Any]:
    seen: dict[str, Any] = {}
    for interval in ("2", "100"):
        stage.make("id BIGINT", name=interval, checkpointInterval=interval)
        stage.one_by_one(0, 3, name=interval)
        stage.sql("DELETE FROM {t}", name=interval)
        stage.one_by_one(5, 7, name=interval)
        seen[interval] = stage.given(name=interval)
    return seen
