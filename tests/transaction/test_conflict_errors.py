"""A conflict says who, where, which rows, and what to do; and nothing that goes wrong in saying so can hide it."""

from __future__ import annotations

import datetime as dt
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anabranch import errors
from anabranch._protocol.merges import Clause, MergePlan
from anabranch.commands import conflict_details
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.dml.merge import Merge
from anabranch.testing import at_phase
from tests.support.worlds import World, insert_all, table_path, update_all

DAYS = ["2024-01-01", "2024-01-02", "2024-01-03"]
ROWS = [{"id": i, "day": DAYS[i % 3], "x": 10 * i} for i in range(9)]
Refused = errors.DeltaConcurrentModificationException


@pytest.fixture
def by_row(tmp_path: Path) -> World:
    return World(table_path(tmp_path)).create(ROWS)


@pytest.fixture
def by_file(tmp_path: Path) -> World:
    return World(table_path(tmp_path)).create(ROWS, anabranch_conflictResolution="file")


@pytest.fixture
def by_day(tmp_path: Path) -> World:
    return World(table_path(tmp_path)).create(ROWS, partition_by=("day",), anabranch_conflictResolution="file")


def refused(ours: Callable[[], Any], winner: Callable[[], Any]) -> Any:
    """The conflict with which ours loses against the winner."""
    with pytest.raises(Refused) as caught, at_phase("staged", winner):
        ours()
    return caught.value


def row(id: int, day: int, x: int = 0) -> dict[str, Any]:
    return {"id": id, "day": DAYS[day], "x": x}


# -- who and where -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_mine_and_the_winner_are_named_with_operation_version_user_and_time(by_row: World) -> None:
    before = time.time() * 1000 - 100  # a file's time may be that of the last tick
    said = refused(lambda: by_row.update("id <= 1", x=7), lambda: by_row.delete("id = 1"))
    assert (said.operation, said.predicate, said.base_version) == ("UPDATE", "id <= 1", 0)
    assert (said.winner_operation, said.winner_version) == ("DELETE", 1)
    info = by_row.info(1)
    assert said.winner_user == info.get("userName", "an unknown user")
    assert said.user == said.winner_user
    assert said.winner_txn_id == info["txnId"]
    assert before <= said.winner_timestamp <= said.timestamp
    moment = dt.datetime.fromtimestamp(said.winner_timestamp / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
    for word in ("UPDATE where id <= 1, based on version 0", "version 1, DELETE by", said.user, moment, said.file):
        assert word in str(said)


def test_a_winner_that_says_nothing_of_itself_is_still_named(by_row: World) -> None:
    """Another engine's commit without ``commitInfo``."""
    log = Path(by_row.path) / "_delta_log"

    def anonymous() -> None:
        by_row.delete("id = 1")
        file = log / f"{1:020}.json"
        file.write_text("".join(line for line in file.read_text().splitlines(True) if "commitInfo" not in line))
        (log / f".{file.name}.crc").unlink(missing_ok=True)

    said = refused(lambda: by_row.delete("id = 1"), anonymous)
    assert (said.winner_version, said.winner_operation) == (1, "an unnamed operation")
    assert (said.winner_user, said.winner_txn_id) == ("an unknown user", None)


# -- rows --------------------------------------------------------------------------------------------------------------


def test_the_rows_that_both_changed_are_shown_as_mine_had_read_them(by_row: World) -> None:
    said = refused(lambda: by_row.update("id <= 1", x=7), lambda: by_row.update("id = 1", x=8))
    assert said.rows == [1]
    assert said.samples == [{"id": 1, "day": DAYS[1], "x": 10}]
    assert "Rows: [1] in it, with id = 1, day = '2024-01-02', x = 10." in str(said)


def test_a_message_says_nothing_of_what_is_none_in_particular(by_row: World) -> None:
    said = refused(lambda: by_row.update("id <= 1", x=7), SetProperties(by_row.path, {"a": "b"}).run)
    assert isinstance(said, errors.MetadataChangedException)
    assert "in particular" not in str(said)
    assert said.file == said.rows == "none in particular"


def test_at_serializable_a_conflict_with_an_insert_names_the_level(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_isolationLevel="Serializable")
    said = refused(lambda: world.update("x >= 0", x=7), lambda: world.append(row(9, 1)))
    assert "at WriteSerializable an insert that reads nothing would not conflict" in said.suggestion
    said = refused(lambda: world.update("id = 1", x=7), lambda: world.update("id = 1", x=8))
    assert "WriteSerializable" not in said.suggestion


def test_the_rows_that_a_winner_brought_are_shown(by_row: World) -> None:
    said = refused(lambda: by_row.update("x = 50", x=7), lambda: by_row.update("id = 2", x=50))
    assert said.getCondition() == "DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES"
    assert said.samples == [{"x": 50, "id": 2, "day": DAYS[2]}]
    assert next(iter(said.samples[0])) == "x", "what the condition names comes first"


def test_a_row_that_a_merge_matched_is_shown(by_row: World) -> None:
    said = refused(lambda: by_row.merge([row(4, 1)]), lambda: by_row.delete("id = 4"))
    assert said.samples == [{"id": 4, "day": DAYS[1], "x": 40}]


def test_a_row_that_an_overwrite_would_have_taken_is_shown(by_row: World) -> None:
    said = refused(lambda: by_row.overwrite(row(1, 1)), lambda: by_row.update("id = 3", x=5))
    assert said.samples in ([row(3, 0, 30)], [row(3, 0, 5)])


def test_five_rows_are_shown_at_most(by_row: World) -> None:
    said = refused(lambda: by_row.update(None, x=7), lambda: by_row.update(None, x=8))
    assert said.rows == [0, 1, 2, 3, 4]
    assert [each["id"] for each in said.samples] == [0, 1, 2, 3, 4]


def test_of_many_rows_it_says_how_many_there_are(by_row: World) -> None:
    said = refused(lambda: by_row.delete("id <= 6"), lambda: by_row.update(None, x=8))
    assert (len(said.rows), said.row_count) == (5, 7)
    assert "Rows: [0, 1, 2, 3, 4] in it (5 of 7), with id = 0" in str(said)
    said = refused(lambda: by_row.delete("id <= 3"), lambda: by_row.update("id <= 3", x=9))
    assert (len(said.rows), said.row_count) == (4, 4)
    assert " of 4" not in str(said)


def test_of_a_file_that_ours_takes_out_whole_every_live_row_counts(by_row: World) -> None:
    by_row.delete("id = 8")
    said = refused(lambda: by_row.overwrite(row(1, 1)), lambda: by_row.delete("id = 0"))
    assert said.row_count == 1
    said = refused(lambda: by_row.overwrite(row(1, 1)), lambda: by_row.overwrite(row(2, 2)))
    assert said.row_count == 7
    assert "(5 of 7)" in str(said)


def test_partition_values_are_shown_with_the_rest(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, partition_by=("day",))
    said = refused(lambda: world.delete("id = 4"), lambda: world.delete("id = 4"))
    assert said.samples == [{"id": 4, "day": DAYS[1], "x": 40}]


def test_long_values_are_cut_short_and_the_error_still_travels(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 1, "text": "a" * 10_000, "bytes": b"\0" * 10_000}])
    said = refused(lambda: world.delete("id = 1"), lambda: world.update("id = 1", text="b"))
    assert len(str(said)) < 1500
    assert said.samples[0]["text"].startswith("aaaa")
    assert said.samples[0]["text"].endswith("…")
    assert pickle.loads(pickle.dumps(said)).samples == said.samples


def test_a_column_that_is_too_big_is_left_out(by_row: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The condition's columns come first; here there are bytes for no other."""
    monkeypatch.setattr(conflict_details, "MAX_BYTES_READ", 200)
    said = refused(lambda: by_row.delete("x = 10"), lambda: by_row.delete("id = 1"))
    assert said.samples[0].keys() < {"id", "day", "x"}
    assert said.samples[0]["x"] == 10


def test_rows_of_a_later_row_group_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    whole = pq.write_table
    monkeypatch.setattr(pq, "write_table", lambda *args, **more: whole(*args, **{**more, "row_group_size": 4}))
    world = World(table_path(tmp_path)).create(ROWS)
    monkeypatch.undo()
    (file,) = Path(world.path).glob("*.parquet")
    assert pq.read_metadata(file).num_row_groups == 3
    said = refused(lambda: world.delete("id >= 5"), lambda: world.delete("id >= 5"))
    assert said.rows == [5, 6, 7, 8]
    assert [each["id"] for each in said.samples] == [5, 6, 7], "of the row group in which the first one lies"


# -- nothing hides the conflict ----------------------------------------------------------------------------------------


FAILURES = [OSError("gone"), ValueError("odd"), errors.StoreFull(name="x", root="t"), KeyError()]


@pytest.mark.parametrize("failure", FAILURES)
def test_rows_that_cannot_be_read_do_not_hide_the_conflict(
    by_row: World, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(conflict_details, "sample_rows", fail)
    monkeypatch.setattr(conflict_details, "partition_condition", fail)
    said = refused(lambda: by_row.delete("id = 1"), lambda: by_row.delete("id = 1"))
    assert said.getCondition() == "DELTA_CONCURRENT_DELETE_DELETE.ROW_LEVEL_CHANGES"
    assert (said.rows, said.samples) == ([1], [])


def test_a_data_file_that_is_gone_does_not_hide_the_conflict(by_row: World) -> None:
    def winner() -> None:
        by_row.delete("id = 1")
        for file in Path(by_row.path).glob("*.parquet"):
            file.unlink()

    said = refused(lambda: by_row.delete("id = 1"), winner)
    assert (said.rows, said.samples) == ([1], [])


def test_nothing_is_read_for_a_message_that_nobody_gets(by_row: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(conflict_details, "sample_rows", lambda *args: asked.append(args))
    with at_phase("staged", lambda: by_row.delete("id = 2")):
        by_row.delete("id = 1")
    assert not asked


# -- rows kept out of messages -----------------------------------------------------------------------------------------


def met(world: World) -> Any:
    return refused(lambda: world.update("x = 40", x=7), lambda: world.delete("id = 4"))


def test_a_table_can_keep_its_rows_out_of_messages(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, anabranch_rowsInErrors="false")
    said = met(world)
    assert (said.rows, said.samples) == ([4], [])
    assert "day" not in str(said)


@pytest.mark.parametrize("value", ["false", "FALSE", "0", "off"])
def test_the_environment_can_keep_rows_out_of_messages(
    by_row: World, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("ANABRANCH_ROWS_IN_ERRORS", value)
    said = met(by_row)
    assert (said.rows, said.samples) == ([4], [])


def test_the_environment_cannot_show_what_the_table_hides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANABRANCH_ROWS_IN_ERRORS", "true")
    said = met(World(table_path(tmp_path)).create(ROWS, anabranch_rowsInErrors="false"))
    assert said.samples == []


def test_suggestions_hold_no_values_either_where_rows_are_kept_out(
    by_day: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANABRANCH_ROWS_IN_ERRORS", "false")
    said = refused(lambda: by_day.merge([row(4, 1)], by="day"), lambda: by_day.update("id = 0", x=1))
    assert said.narrower is None
    assert DAYS[1] not in said.suggestion


# -- what to do --------------------------------------------------------------------------------------------------------

UPSERT = (update_all("x"), insert_all("id", "day", "x"))


def test_a_merge_by_files_is_told_what_to_add_to_its_condition(by_day: World) -> None:
    """The documentation's advice, filled in: the partitions that the source holds."""
    source = [row(4, 1), row(3, 0)]
    touch = Clause("matched", "update", None, {"x": 9})
    said = refused(lambda: by_day.merge(source, touch, by="day"), lambda: by_day.update("id = 2", x=1))
    assert said.narrower == "day IN ('2024-01-01', '2024-01-02')"
    assert "Add AND day IN ('2024-01-01', '2024-01-02') to the ON condition" in said.suggestion
    with at_phase("staged", lambda: by_day.update("day = '2024-01-03' AND id = 2", x=1)):
        by_day.merge([row(9, 1)], insert_all("id", "day", "x"), by="day", also=said.narrower)


def test_a_merge_is_told_the_columns_that_it_compares_where_no_partition_is_among_them(by_file: World) -> None:
    said = refused(lambda: by_file.merge([row(4, 1), row(100, 1)], *UPSERT), lambda: by_file.update("id = 2", x=1))
    assert said.narrower == "id IN (100, 4)"


@pytest.mark.parametrize(("sign", "narrower"), [("=", "id IN (100)"), ("<=>", None)])
def test_no_values_are_suggested_where_null_matches_too(by_file: World, sign: str, narrower: str | None) -> None:
    null_safe = frozenset({"id"}) if sign == "<=>" else frozenset[str]()
    source = pa.Table.from_pylist([row(100, 1), {**row(0, 1), "id": None}])
    matching = MergePlan(
        lambda mine, theirs: mine["id"] == theirs["id"], UPSERT, keys=(("id", "id"),), null_safe=null_safe
    )
    merge = Merge(by_file.path, source, matching, EVERY_ROW)
    said = refused(lambda: merge.run(by_file.engine), lambda: by_file.update("id = 2", x=1))
    assert said.narrower == narrower


def test_many_values_are_not_listed(by_file: World) -> None:
    said = refused(lambda: by_file.merge([row(i, 1) for i in range(11)], *UPSERT), lambda: by_file.delete("id = 2"))
    assert said.narrower is None
    assert "Add AND" not in said.suggestion


@pytest.mark.parametrize("odd", ["it's", 'a"b', "back\\slash", "two\nlines", "x" * 100])
def test_values_that_could_be_written_in_two_ways_are_not_suggested(tmp_path: Path, odd: str) -> None:
    world = World(table_path(tmp_path)).create(ROWS, anabranch_conflictResolution="file")
    said = refused(lambda: world.merge([{**row(4, 1), "day": odd}], by="day"), lambda: world.delete("id = 2"))
    assert said.narrower is None


def test_a_merge_that_changes_what_it_does_not_match_gets_no_such_advice(by_file: World) -> None:
    """NOT MATCHED BY SOURCE reads every row, whatever ON says."""
    gone = Clause("not matched by source", "delete")
    said = refused(lambda: by_file.merge([row(4, 1)], gone), lambda: by_file.update("id = 2", x=1))
    assert said.narrower is None


def test_an_update_by_files_is_told_the_partition_that_would_keep_it_apart(by_day: World) -> None:
    said = refused(lambda: by_day.update("x = 40", x=0), lambda: by_day.update("x = 30", x=40))
    assert said.getCondition() == "DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT"
    assert said.narrower == "day IN ('2024-01-02')"
    assert "All rows that it selected have day IN ('2024-01-02')" in said.suggestion
    with at_phase("staged", lambda: by_day.update("x = 60", x=40)):
        by_day.update(f"x = 40 AND {said.narrower}", x=0)


def test_no_partition_is_suggested_that_would_not_help(by_day: World) -> None:
    said = refused(lambda: by_day.update("id = 4", x=0), lambda: by_day.update("id = 7", x=40))
    assert said.narrower is None
    assert "anabranch.conflictResolution = row" in said.suggestion


def test_the_setting_that_would_have_avoided_it_is_named(tmp_path: Path) -> None:
    plain = World(table_path(tmp_path)).create(ROWS, delta_enableDeletionVectors="false")
    said = refused(lambda: plain.update("id = 4", x=0), lambda: plain.update("id = 7", x=40))
    assert "delta.enableDeletionVectors = true" in said.suggestion
    assert said.narrower is None


def test_the_row_level_is_not_recommended_to_who_has_it(by_row: World) -> None:
    said = refused(lambda: by_row.update("id = 4", x=0), lambda: by_row.update("id = 4", x=40))
    assert said.suggestion == "Run the command again: it will see the winner's rows."


# -- why ---------------------------------------------------------------------------------------------------------------


def test_a_command_without_a_condition_read_the_whole_table(by_file: World) -> None:
    added = refused(lambda: by_file.update(None, x=0), lambda: by_file.update("id = 4", x=40))
    assert added.getCondition() == "DELTA_CONCURRENT_APPEND.WHOLE_TABLE_READ"
    marked = refused(lambda: by_file.update(None, x=0), lambda: by_file.delete("id = 4"))
    assert marked.getCondition() == "DELTA_CONCURRENT_DELETE_READ.EMPTY_READ_PREDICATES"


def test_a_merge_whose_condition_only_compares_read_the_whole_table(by_file: World) -> None:
    said = refused(lambda: by_file.merge([row(4, 1)], *UPSERT), lambda: by_file.delete("id = 2"))
    assert said.getCondition() == "DELTA_CONCURRENT_DELETE_READ.EMPTY_READ_PREDICATES"


def test_a_merge_whose_condition_speaks_of_the_table_alone_did_not(by_file: World) -> None:
    ours = lambda: by_file.merge([row(4, 1)], *UPSERT, also="x >= 40")  # noqa: E731
    said = refused(ours, lambda: by_file.delete("id = 5"))
    assert said.getCondition() == "DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT"


def test_a_winner_that_replaced_everything_is_said_to_have(by_row: World, by_file: World) -> None:
    for world in (by_row, by_file):
        said = refused(lambda: world.delete("id = 1"), lambda: world.overwrite(row(200, 1)))  # noqa: B023
        assert said.sub_condition == "WHOLE_TABLE_REPLACE"


def test_a_winner_that_replaced_a_part_is_not(tmp_path: Path) -> None:
    from tests.transaction.test_replace import replace_where

    world = World(table_path(tmp_path)).create(ROWS)
    said = refused(lambda: world.delete("id = 1"), lambda: replace_where(world, "id = 1"))
    assert said.sub_condition == "ROW_LEVEL_CHANGES"


def test_changed_metadata_and_protocol_say_so(by_row: World, tmp_path: Path) -> None:
    import deltalake

    said = refused(
        lambda: by_row.append(row(9, 1)),
        lambda: deltalake.DeltaTable(by_row.path).alter.set_table_description("new words"),
    )
    assert said.getCondition() == "DELTA_METADATA_CHANGED.METADATA_CHANGE"
    path = table_path(tmp_path)
    made = refused(lambda: World(path).overwrite(row(1, 1)), lambda: Append(path, [row(2, 1)]).run())
    assert made.getCondition() == "DELTA_PROTOCOL_CHANGED.PROTOCOL_CHANGE"
