"""What a query needs is no longer there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.interop.streams.playing import Stage, case


def read_and_grown(stage: Stage, name: str = "t", **options: Any) -> Any:
    """A table of four commits of which a query has read the first; a checkpoint of the log holds the rest."""
    stage.make("id BIGINT", name=name, checkpointInterval="4")
    stage.add(0, 2, name=name)
    first = stage.given(name, name, **options)
    stage.one_by_one(2, 5, name=name)
    return first


@case(
    "DeltaSourceSuite: incremental: first commit file missing, fails",
    "DeltaSourceSuite: incremental: commit file gap between versions, fails",
    "DeltaSourceSuite: incremental: first commit file missing, failOnDataLoss=false succeeds",
    "DeltaSourceSuite: incremental: commit file gap between versions, failOnDataLoss=false succeeds",
)
def commits_that_are_gone(stage: Stage) -> Mapping[str, Any]:
    seen: dict[str, Any] = {}
    for loss in ("true", "false"):
        for name, versions in (("the first", (2,)), ("one between", (3,)), ("all that was read", (0, 1, 2))):
            table = f"{name}-{loss}".replace(" ", "-")
            seen[f"{name}, {loss}, at first"] = read_and_grown(stage, table, failOnDataLoss=loss)
            stage.forget_versions(*versions, name=table)
            seen[f"{name}, {loss}"] = stage.given(table, table, failOnDataLoss=loss)
    return seen


@case("(beyond the suites) a file of data is gone")
def a_file_that_is_gone(stage: Stage) -> Mapping[str, Any]:
    stage.add(0, 2)
    first = stage.given("kept")
    before = stage.files()
    stage.add(2, 4)
    [added] = stage.files() - before
    added.unlink()
    return {"first": first, "then": stage.given("kept"), "forgiven": stage.given("kept", failOnDataLoss=False)}


@case("DeltaSourceSuite: initial snapshot: commit file missing but checkpoint intact, succeeds")
def a_commit_is_gone_that_a_checkpoint_holds(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", checkpointInterval="4")
    stage.one_by_one(0, 5)
    stage.forget_versions(1)
    return {"rows": stage.given()}


@case(
    "DeltaSourceSuite: start from corrupt checkpoint",
    "DeltaSourceSuite: initial snapshot: checkpoint missing but all commit files intact, succeeds",
    "DeltaSourceSuite: initial snapshot: both checkpoint and commit file missing, fails",
)
def a_checkpoint_of_the_log_is_gone(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", checkpointInterval="4")
    stage.one_by_one(0, 5)
    for each in Path(stage.path(), "_delta_log").glob("*.checkpoint*.parquet"):
        each.unlink()
    seen = {"the checkpoint": stage.given()}
    stage.forget_versions(1)
    return {**seen, "a commit too": stage.given()}


@case("DeltaSourceSuite: can delete old files of a snapshot without update")
def a_log_is_cleaned_up_behind_a_query(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", checkpointInterval="4")
    stage.one_by_one(0, 4)
    with stage.running(stage.stream()) as more:
        seen = {"at first": more().outcome}
        stage.forget_versions(0, 1, 2, 3)
        stage.one_by_one(4, 6)
        return {**seen, "then": more().outcome}


@case(
    "DeltaSourceSuite: initial snapshot: log retention deletes old checkpoint and commit files mid-stream, "
    "restart fails"
)
def a_snapshot_is_gone_that_was_read_in_part(stage: Stage) -> Mapping[str, Any]:
    stage.make("id BIGINT", checkpointInterval="4")
    stage.one_by_one(0, 3)
    first = stage.play(stage.stream(maxFilesPerTrigger=1), "kept", failing_at=1)
    stage.one_by_one(3, 9)
    stage.forget_versions(0, 1, 2, 3)
    for each in Path(stage.path(), "_delta_log").glob(f"{4:020}.checkpoint*"):
        each.unlink()
    then = stage.given("kept", maxFilesPerTrigger=1)
    return {"first": first.rows, "then": then}


@case(
    "DeltaSourceOffsetSuite: unknown sourceVersion value",
    "DeltaSourceOffsetSuite: invalid sourceVersion value",
    "DeltaSourceOffsetSuite: missing sourceVersion",
    "DeltaSourceOffsetSuite: unmatched reservoir id",
    "DeltaSourceOffsetSuite: DeltaSourceOffset deserialization error",
)
def offsets_that_are_damaged(stage: Stage) -> Mapping[str, Any]:
    stage.add(0, 2)
    spoilt = {
        "another source version": ('"sourceVersion":1', '"sourceVersion":99'),
        "no number": ('"sourceVersion":1', '"sourceVersion":"x"'),
        "none": ('"sourceVersion":1,', ""),
        "another table": ('"reservoirId":"', '"reservoirId":"x'),
        "ahead of the table": ('"reservoirVersion":1', '"reservoirVersion":7'),
        "no JSON": ('{"sourceVersion"', '["sourceVersion"'),
    }
    seen: dict[str, Any] = {}
    for name, (old, new) in spoilt.items():
        kept = name.replace(" ", "-")
        stage.given(kept)
        note = stage.checkpoint(kept) / "offsets" / "0"
        found = note.read_text().replace('": ', '":').replace(', "', ',"')
        note.write_text(found.replace(old, new))
        note.with_name(".0.crc").unlink(missing_ok=True)
        seen[name] = [old in found, stage.given(kept)]
    return seen
