"""Overwrites that replace what their own rows match: which rows go, what is recorded, and what winners do to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anabranch import errors
from anabranch._log.log import forget
from anabranch._protocol.merges import Clause, MergePlan
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.dml.matched_rows import Matching
from anabranch.commands.dml.write import Write
from anabranch.commands.queries.change_feed import ReadChanges
from anabranch.testing import ArrowEngine, Row, at_phase
from tests.support.feeds import rows_of
from tests.support.raw_logs import info, put_commit
from tests.support.worlds import World, equal

ROWS: list[Row] = [{"id": i, "x": i * 10} for i in range(4)]
SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.int64())])
PLAIN: dict[str, str] = {}
WITHOUT_VECTORS = {"delta_enableDeletionVectors": "false"}
WITH_FEED = {"delta_enableChangeDataFeed": "true"}
LAYOUTS = {"vectors": PLAIN, "no vectors": WITHOUT_VECTORS, "feed": {**WITHOUT_VECTORS, **WITH_FEED}}


class CountingEngine(ArrowEngine):
    """Counts how often a source was evaluated."""

    held = 0

    def hold(self, *args: Any) -> Any:
        """Holds the rows, and counts."""
        self.held += 1
        return super().hold(*args)


@pytest.fixture(params=list(LAYOUTS.values()), ids=list(LAYOUTS))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    forget()
    made = World(str(tmp_path / "t"), CountingEngine()).create(ROWS, **request.param)
    yield made
    made.assert_clean()


def command(
    world: World, *rows: tuple[int | None, int], by: str = "id", mode: str = "overwrite", **options: Any
) -> Write:
    source = pa.Table.from_pylist([{"id": id_, "x": x} for id_, x in rows], SCHEMA)
    plan = MergePlan(lambda row, new: equal(row[by], new[by]), (Clause("matched", "delete"),), keys=((by, by),))
    matching = Matching("replaceUsing", source, plan, EVERY_ROW, {"replaceUsingCols": f"({by})"})
    return Write(world.path, source, mode, matching=matching, **options)


def replace_by_id(world: World, *rows: tuple[int | None, int], **options: Any) -> Any:
    return command(world, *rows, **options).run(world.engine)


def pairs(world: World) -> list[tuple[int | None, int]]:
    return [(row["id"], row["x"]) for row in world.rows()]


def test_matched_rows_go_and_all_rows_of_the_source_come(world: World) -> None:
    committed = replace_by_id(world, (1, 11), (9, 99))
    assert pairs(world) == [(0, 0), (1, 11), (2, 20), (3, 30), (9, 99)]
    assert committed.metrics["numDeletedRows"] == 1
    assert committed.metrics["numOutputRows"] == 2
    assert committed.version == 1


def test_the_history_has_a_write_with_the_columns(world: World) -> None:
    replace_by_id(world, (1, 11))
    commit = world.info()
    assert commit["operation"] == "WRITE"
    assert commit["operationParameters"] == {"mode": "Overwrite", "partitionBy": "[]", "replaceUsingCols": "(id)"}


def test_several_rows_may_match_one_and_one_may_match_several(world: World) -> None:
    replace_by_id(world, (1, 11), (1, 12))
    replace_by_id(world, (1, 13))
    assert pairs(world) == [(0, 0), (1, 13), (2, 20), (3, 30)]


def test_null_matches_nothing(world: World) -> None:
    replace_by_id(world, (None, 1))
    replace_by_id(world, (None, 2))
    assert sorted(x for id_, x in pairs(world) if id_ is None) == [1, 2]


def test_a_source_without_rows_replaces_nothing(world: World) -> None:
    replace_by_id(world)
    assert pairs(world) == [(row["id"], row["x"]) for row in ROWS]


def test_the_source_is_evaluated_once(world: World) -> None:
    with at_phase("staged", stand_behind(world, {"id": 1, "x": 7})):
        replace_by_id(world, (1, 11))
    assert world.engine.held == 1  # type: ignore[attr-defined]


class EngineOfOneEvaluation(ArrowEngine):
    """Sees other rows in a source when it holds it than at any other time, as of a random source."""

    def hold(self, source: pa.Table, *args: Any) -> Any:
        """Holds the rows with the key 2 instead of 1."""
        return super().hold(pa.table({"id": [2], "x": [22]}, SCHEMA), *args)


def test_the_rows_that_are_written_are_those_that_were_matched(tmp_path: Path) -> None:
    random = World(str(tmp_path / "random"), EngineOfOneEvaluation()).create(ROWS)
    replace_by_id(random, (1, 11))
    assert pairs(random) == [(0, 0), (1, 10), (2, 22), (3, 30)]


def test_without_a_table_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(errors.NotATable):
        replace_by_id(World(str(tmp_path / "none")), (1, 11))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("mode", ["append", "error", "ignore"])
def test_only_an_overwrite_replaces(world: World, mode: str) -> None:
    with pytest.raises(errors.InvalidOption, match=r"replaceUsing .* it needs mode overwrite"):
        replace_by_id(world, (1, 11), mode=mode)


def test_the_columns_stay(world: World) -> None:
    with pytest.raises(errors.IncompatibleOptions) as refused:
        replace_by_id(world, (1, 11), schema_change="overwrite")
    assert refused.value.getCondition() == "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"


def test_an_append_only_table_refuses_it(tmp_path: Path) -> None:
    kept = World(str(tmp_path / "kept")).create(ROWS, delta_appendOnly="true")
    with pytest.raises(errors.AppendOnlyTable):
        replace_by_id(kept, (1, 11))


@pytest.mark.parametrize("properties", [WITH_FEED, {**WITH_FEED, **WITHOUT_VECTORS}], ids=["vectors", "no vectors"])
def test_the_change_feed_has_what_went_and_what_came(tmp_path: Path, properties: dict[str, str]) -> None:
    told = World(str(tmp_path / "told")).create(ROWS, **properties)
    replace_by_id(told, (1, 11), (9, 99))
    feed = rows_of(ReadChanges(told.path, 1).run())
    assert sorted((row["_change_type"], row["id"], row["x"]) for row in feed) == [
        ("delete", 1, 10),
        ("insert", 1, 11),
        ("insert", 9, 99),
    ]


# -- beside other writers ----------------------------------------------------------------------------------------------


def stand_behind(world: World, *rows: Row) -> Callable[[], None]:
    """A blind append, and behind it a winner that is not blind, so that a transaction stands behind both."""

    def winners() -> None:
        Append(world.path, list(rows)).run()
        put_commit(world.path, 2, info(), {"txn": {"appId": "a", "version": 1}})

    return winners


def test_a_matching_row_of_a_blind_append_stays_behind_it(world: World) -> None:
    with at_phase("staged", lambda: world.append({"id": 1, "x": 7})):
        replace_by_id(world, (1, 11))
    assert pairs(world) == [(0, 0), (1, 7), (1, 11), (2, 20), (3, 30)]


def test_a_matching_row_of_a_blind_append_that_it_stands_behind_is_replaced_too(world: World) -> None:
    with at_phase("staged", stand_behind(world, {"id": 1, "x": 7}, {"id": 8, "x": 8})):
        replace_by_id(world, (1, 11))
    assert pairs(world) == [(0, 0), (1, 11), (2, 20), (3, 30), (8, 8)]
    metrics = world.info()["operationMetrics"]
    assert (metrics["numDeletedRows"], metrics["numOutputRows"]) == ("2", "1")


def test_two_that_bring_the_same_new_key_do_not_both_commit(world: World) -> None:
    with (
        pytest.raises(errors.ConcurrentAppendException),
        at_phase("staged", lambda: replace_by_id(world, (9, 1))),
    ):
        replace_by_id(world, (9, 2))
    assert (9, 1) in pairs(world)


def test_appends_of_other_rows_stay(world: World) -> None:
    with at_phase("staged", lambda: world.append({"id": 8, "x": 8})):
        replace_by_id(world, (1, 11))
    assert (8, 8) in pairs(world)


def test_changes_of_rows_that_it_does_not_match_both_land(tmp_path: Path) -> None:
    both = World(str(tmp_path / "both")).create(ROWS)
    with at_phase("staged", lambda: both.update("id = 3", x=31)):
        replace_by_id(both, (1, 11))
    assert pairs(both) == [(0, 0), (1, 11), (2, 20), (3, 31)]


@pytest.mark.parametrize(
    "winner",
    [lambda w: w.update("id = 1", x=7), lambda w: w.delete("id = 1"), lambda w: w.update("id = 3", id=1)],
    ids=["changed", "deleted", "made to match"],
)
def test_a_change_of_a_row_that_it_matches_is_a_conflict(world: World, winner: Callable[[World], Any]) -> None:
    with pytest.raises(errors.DeltaConcurrentModificationException), at_phase("staged", lambda: winner(world)):
        replace_by_id(world, (1, 11))
    assert (1, 11) not in pairs(world)


def test_at_serializable_an_appended_row_that_it_matches_is_a_conflict(tmp_path: Path) -> None:
    strict = World(str(tmp_path / "strict")).create(ROWS, delta_isolationLevel="Serializable")
    with pytest.raises(errors.ConcurrentAppendException), at_phase("staged", lambda: strict.append({"id": 1, "x": 7})):
        replace_by_id(strict, (1, 11))


def test_the_feed_names_rows_of_a_blind_append_that_it_replaced(tmp_path: Path) -> None:
    told = World(str(tmp_path / "told")).create(ROWS, **WITH_FEED, **WITHOUT_VECTORS)
    with at_phase("staged", stand_behind(told, {"id": 1, "x": 7}, {"id": 8, "x": 8})):
        replace_by_id(told, (1, 11))
    rows = [(row["_change_type"], row["x"]) for row in rows_of(ReadChanges(told.path, 3).run())]
    assert sorted(rows) == [("delete", 7), ("delete", 10), ("insert", 11)]
    assert pairs(told) == [(0, 0), (1, 11), (2, 20), (3, 30), (8, 8)]


def test_it_runs_again_on_the_rows_of_its_winners_where_the_table_redoes(tmp_path: Path) -> None:
    again = World(str(tmp_path / "again")).create(ROWS, anabranch_conflictResolution="redo")
    with at_phase("staged", lambda: again.update("id = 3", id=1)):
        replace_by_id(again, (1, 11))
    assert pairs(again) == [(0, 0), (1, 11), (2, 20)]
