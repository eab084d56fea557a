"""DELETE and UPDATE: what they mark, write and say, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from anabranch import errors
from anabranch._log.log import forget
from anabranch._protocol.actions import FileRow
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.file_sets import FileSet, Marks
from anabranch.commands.dml.update import Update
from anabranch.commands.maintenance.check import check
from anabranch.testing import ArrowEngine, at_phase
from tests.support.raw_logs import WITH_VECTORS, Action, info, listing, metadata, put_commit, put_rows, remove
from tests.support.worlds import World

ROWS = [{"id": i, "x": i * 10} for i in range(6)]
METRICS = {
    "numAddedBytes",
    "numAddedChangeFiles",
    "numAddedFiles",
    "numCopiedRows",
    "numDeletionVectorsAdded",
    "numDeletionVectorsRemoved",
    "numDeletionVectorsUpdated",
    "numRemovedBytes",
    "numRemovedFiles",
    "executionTimeMs",
    "scanTimeMs",
    "rewriteTimeMs",
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    forget()
    made = World(str(tmp_path / "t"))
    yield made
    made.assert_clean()


def values(world: World) -> dict[int, int]:
    return {row["id"]: row["x"] for row in world.rows()}


def files(world: World) -> list[FileRow]:
    rows: list[FileRow] = world.log.snapshot().files.to_pylist()
    return rows


def metrics(world: World) -> Mapping[str, str]:
    found: Mapping[str, str] = world.info()["operationMetrics"]
    return found


# -- what is done ------------------------------------------------------------------------------------------------------


def test_a_delete_marks_rows_and_writes_no_data(world: World) -> None:
    world.create(ROWS)
    before = {name for name in listing(world.path) if name.endswith(".parquet")}
    outcome = world.delete("id = 1 OR id = 4")
    assert outcome.rows == 2
    assert {name for name in listing(world.path) if name.endswith(".parquet")} == before
    assert values(world) == {0: 0, 2: 20, 3: 30, 5: 50}


def test_an_update_marks_rows_and_writes_their_new_images_only(world: World) -> None:
    world.create(ROWS)
    assert world.update("id >= 4", x=lambda row: row["x"] + 1).rows == 2
    new = [row for row in files(world) if row["deletionVector"] is None]
    assert [json.loads(row["stats"])["numRecords"] for row in new] == [2]
    assert values(world) == {0: 0, 1: 10, 2: 20, 3: 30, 4: 41, 5: 51}


def test_a_file_whose_rows_all_match_by_statistics_is_removed_unread(world: World) -> None:
    world.create(ROWS)
    world.append({"id": 100, "x": 1})
    world.engine.evaluated.clear()
    assert world.delete("id < 50").rows == 6
    assert world.engine.evaluated == []
    assert values(world) == {100: 1}


@pytest.mark.slow
def test_a_file_that_cannot_match_is_not_read(world: World) -> None:
    world.create(ROWS)
    world.append({"id": 100, "x": 1})
    world.engine.evaluated.clear()
    world.update("id = 100", x=2)
    assert len(world.engine.evaluated) == 1


def test_a_partition_is_deleted_without_reading_or_statistics(world: World) -> None:
    put_commit(world.path, 0, WITH_VECTORS, metadata(partition_by=("x",), delta_enableDeletionVectors="true"))
    put_commit(
        world.path,
        1,
        put_rows(world.path, "x=1/a.parquet", [{"id": 1}, {"id": 2}], partitionValues={"x": "1"}, stats=None),
        put_rows(world.path, "x=2/b.parquet", [{"id": 3}], partitionValues={"x": "2"}),
    )
    assert world.delete("x = 1").rows == 2  # by the file's footer
    assert world.engine.evaluated == []
    assert values(world) == {3: 2}


def test_a_change_that_selects_nothing_commits_nothing(world: World) -> None:
    world.create(ROWS)
    before = listing(world.path)
    for outcome in (world.delete("id = 99"), world.update("x IS NULL", x=1), world.delete("false")):
        assert (outcome.rows, outcome.committed, dict(outcome.metrics)) == (0, None, {})
    assert listing(world.path) == before


def test_null_is_not_true(world: World) -> None:
    world.create([{"id": 1, "x": None}, {"id": 2, "x": 5}])
    assert world.delete("x != 7").rows == 1
    assert world.delete("NOT x = 7").rows == 0
    assert values(world) == {1: None}


@pytest.mark.slow
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_repeated_changes_of_one_file_add_up(world: World, vectors: str) -> None:
    world.create(ROWS, delta_enableDeletionVectors=vectors)
    world.delete("id = 1")
    world.update("id = 2", x=-2)
    world.delete("id = 2")
    world.update("id <= 3", x=0)
    assert values(world) == {0: 0, 3: 0, 4: 40, 5: 50}
    assert any(row["deletionVector"] is not None for row in files(world)) == (vectors == "true")


@pytest.mark.slow
def test_a_table_that_turned_vectors_off_keeps_honouring_those_that_it_has(world: World) -> None:
    world.create(ROWS)
    world.delete("id = 1")
    off = {**world.log.snapshot().metadata.to_json(), "configuration": {"delta.enableDeletionVectors": "false"}}
    put_commit(world.path, 2, {"metaData": off})
    world.update("id = 2", x=22)
    assert values(world) == {0: 0, 2: 22, 3: 30, 4: 40, 5: 50}
    assert [row["deletionVector"] for row in files(world)] == [None]


@pytest.mark.slow
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_partition_values_of_updated_rows_are_kept_or_moved(world: World, vectors: str) -> None:
    rows = [{"id": i, "p": ["a/b", None][i % 2]} for i in range(4)]
    world.create(rows, partition_by=("p",), delta_enableDeletionVectors=vectors)
    world.update("id = 0", p=None)
    world.update("id = 1", p="c d")
    world.update("id = 3", id=30)
    assert {row["id"]: row["p"] for row in world.rows()} == {0: None, 1: "c d", 2: "a/b", 30: None}


# -- what is said ------------------------------------------------------------------------------------------------------


def test_a_delete_says_what_it_did_in_deltas_names(world: World) -> None:
    world.create(ROWS)
    world.delete("id = 1")
    said = metrics(world)
    assert METRICS | {"numDeletedRows"} == said.keys()
    assert (said["numDeletedRows"], said["numDeletionVectorsAdded"], said["numRemovedFiles"]) == ("1", "1", "0")
    assert world.info()["operation"] == "DELETE"
    assert json.loads(world.info()["operationParameters"]["predicate"]) == ["id = 1"]
    assert world.info()["isBlindAppend"] is False


def test_an_update_says_what_it_did_in_deltas_names(world: World) -> None:
    world.create(ROWS)
    world.update("id = 1", x=5)
    said = metrics(world)
    assert METRICS | {"numUpdatedRows"} == said.keys()
    assert (said["numUpdatedRows"], said["numAddedFiles"], said["numCopiedRows"]) == ("1", "1", "0")


def test_a_second_mark_updates_the_vector(world: World) -> None:
    world.create(ROWS)
    world.delete("id = 1")
    world.delete("id = 2")
    said = metrics(world)
    assert (said["numDeletionVectorsUpdated"], said["numDeletionVectorsRemoved"]) == ("1", "1")


def test_the_last_rows_of_a_file_remove_it_with_its_vector(world: World) -> None:
    world.create(ROWS)
    world.delete("id = 1")
    size = sum(row["size"] for row in files(world))
    world.delete("x >= 0")
    said = metrics(world)
    assert (said["numDeletedRows"], said["numRemovedFiles"], said["numDeletionVectorsAdded"]) == ("5", "1", "0")
    assert (said["numRemovedBytes"], said["numDeletionVectorsRemoved"]) == (str(size), "1")
    assert files(world) == []


@pytest.mark.slow
def test_a_rewrite_counts_the_rows_that_it_only_copied(world: World) -> None:
    world.create(ROWS, delta_enableDeletionVectors="false")
    world.update("id = 1", x=5)
    assert (metrics(world)["numUpdatedRows"], metrics(world)["numCopiedRows"]) == ("1", "5")
    world.delete("id = 1")
    assert (metrics(world)["numDeletedRows"], metrics(world)["numCopiedRows"]) == ("1", "5")


@pytest.mark.slow
def test_rows_that_were_redone_are_counted(world: World) -> None:
    """A blind append before a winner that read the table: its row is changed too, and told."""
    world.create(ROWS)

    def winners() -> None:
        world.append({"id": 1, "x": 0})
        world.update("id = 5", x=55)

    with at_phase("staged", winners):
        outcome = world.update("id = 1", x=111)
    assert outcome.rows == 2
    assert metrics(world)["numUpdatedRows"] == "2"
    assert outcome.metrics["numUpdatedRows"] == 2


# -- files of which the log does not say how many rows they hold -------------------------------------------------------


def without_counting(world: World, stats: str | None) -> None:
    put_commit(world.path, 0, info(), WITH_VECTORS, metadata(delta_enableDeletionVectors="true"))
    put_commit(world.path, 1, info(), put_rows(world.path, "a.parquet", ROWS, stats=stats))


STATS = [
    None,
    "{}",
    "not json",
    '{"minValues":{"id":0},"maxValues":{"id":5}}',
    '{"numRecords":-1}',
    '{"numRecords":"6"}',
]


@pytest.mark.parametrize("stats", STATS)
def test_a_vector_is_only_added_with_the_number_of_rows(world: World, stats: str | None) -> None:
    """PROTOCOL.md, "Writer Requirements for Deletion Vectors": numRecords must be there."""
    without_counting(world, stats)
    world.delete("id = 1")
    (file,) = files(world)
    said = json.loads(file["stats"])
    assert (said["numRecords"], said["tightBounds"]) == (6, False)
    assert values(world).keys() == {0, 2, 3, 4, 5}


@pytest.mark.parametrize("stats", STATS)
def test_the_last_rows_of_an_uncounted_file_remove_it(world: World, stats: str | None) -> None:
    without_counting(world, stats)
    assert world.delete("id >= 0").rows == 6
    assert files(world) == []
    assert metrics(world)["numDeletedRows"] == "6"


def test_a_winner_that_dropped_the_number_of_rows_does_not_make_us_drop_it(tmp_path: Path) -> None:
    """Ours is carried over to the winner's add, which says nothing."""
    world = World(str(tmp_path / "t")).create(ROWS)

    def winner() -> None:
        world.delete("id = 1")
        (file,) = files(world)
        body = {name: value for name, value in file.items() if value is not None} | {"partitionValues": {}}
        gone = {name: body[name] for name in ("size", "deletionVector")}
        forgetful = {name: value for name, value in body.items() if name != "stats"}
        put_commit(world.path, 2, info(), remove(body["path"], **gone), add_of(forgetful))

    with at_phase("staged", winner):
        world.delete("id = 2")
    (file,) = files(world)
    assert json.loads(file["stats"])["numRecords"] == 6
    assert check(world.log.snapshot(), deep=True).is_clean


def add_of(body: Mapping[str, Any]) -> Action:
    return {"add": {**body, "dataChange": False}}


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assignments", "kind"),
    [
        ({"nope": 1}, errors.UnknownColumn),
        ({}, errors.InvalidOption),
        ({"x": 1, "X": 2}, errors.InvalidOption),
    ],
)
def test_an_assignment_that_cannot_be_is_refused(
    world: World, assignments: dict[str, Any], kind: type[Exception]
) -> None:
    world.create(ROWS)
    with pytest.raises(kind):
        Update(world.path, assignments).run(world.engine)
    assert world.version == 0


def test_assignments_are_spelled_as_in_the_schema(world: World) -> None:
    world.create(ROWS)
    Update(world.path, {"X": 5}, world.condition("id = 1")).run(world.engine)
    assert values(world)[1] == 5


class Odd(ArrowEngine):
    """An engine that does one thing otherwise."""

    def __init__(self, **how: Any) -> None:
        super().__init__()
        self.how = how
        self.now: dict[str, str] = {"spark.sql.session.timeZone": "UTC"}

    def find(self, files: FileSet, condition: Condition) -> Marks:
        if "find" in self.how:
            raise self.how["find"]
        return super().find(files, condition)

    def update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str) -> None:
        super().update(files, marks, assignments, folder)
        for _ in range(self.how.get("extra", 0)):
            super().update(files, marks, assignments, folder)
        if "update" in self.how:
            raise self.how["update"]

    def settings(self) -> Mapping[str, str]:
        return self.now


BROKEN = errors.ExecutionFailed(what="the condition", reason="division by zero.")


@pytest.mark.parametrize("how", [{"find": BROKEN}, {"update": BROKEN}, {"extra": 1}])
def test_a_change_that_fails_leaves_nothing(world: World, how: dict[str, Any]) -> None:
    world.create(ROWS)
    before = listing(world.path)
    with pytest.raises(errors.ExecutionFailed):
        Update(world.path, {"x": 1}, world.condition("id = 1")).run(Odd(**how))
    assert listing(world.path) == before


def test_an_update_that_would_bring_null_into_a_not_null_column_leaves_nothing(world: World) -> None:
    schema = json.loads(metadata()["metaData"]["schemaString"])
    schema["fields"][1]["nullable"] = False
    put_commit(
        world.path, 0, WITH_VECTORS, {"metaData": {**metadata()["metaData"], "schemaString": json.dumps(schema)}}
    )
    world.append(*ROWS)
    before = listing(world.path)
    with pytest.raises(errors.NotNullViolated):
        world.update("id = 1", x=None)
    assert listing(world.path) == before


def test_settings_that_change_in_the_middle_are_a_conflict_where_rows_must_be_judged(world: World) -> None:
    """The condition would mean something else for the winner's rows than it meant for the others."""
    world.create(ROWS)
    engine = Odd()

    def winner() -> None:
        world.update("id = 5", x=1)
        engine.now = {"spark.sql.session.timeZone": "Asia/Tokyo"}

    with pytest.raises(errors.ConcurrentWriteException) as refused, at_phase("staged", winner):
        Update(world.path, {"x": 1}, world.condition("x < 30")).run(engine)
    assert refused.value.getCondition() == "DELTA_CONCURRENT_WRITE.PREDICATES_NEED_REWRITE"
    assert "time zone" in refused.value.explanation
    assert refused.value.winner_version == 1
    assert world.version == 1


def test_settings_that_change_without_a_winner_are_no_matter(world: World) -> None:
    world.create(ROWS)
    engine = Odd()
    with at_phase("staged", lambda: engine.now.clear()):
        Update(world.path, {"x": 1}, world.condition("id = 1")).run(engine)
    assert values(world)[1] == 1


def test_a_condition_that_cannot_be_evaluated_on_a_winners_rows_is_a_conflict(world: World) -> None:
    world.create(ROWS)
    engine = Odd()

    def winner() -> None:
        world.update("id = 5", x=1)
        engine.how["find"] = BROKEN

    with pytest.raises(errors.ConcurrentWriteException) as refused, at_phase("staged", winner):
        Update(world.path, {"x": 1}, world.condition("x < 30")).run(engine)
    assert "division by zero" in refused.value.explanation
    assert world.version == 1
