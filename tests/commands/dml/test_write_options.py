"""Overwriting a part of a table, and writing at most once: what the options do, and what they refuse."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch import errors
from anabranch._log.log import forget
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.write import Write
from anabranch.commands.idempotence import application
from anabranch.testing import Row, at_phase
from tests.support.raw_logs import info, listing, put_commit, put_rows
from tests.support.worlds import World, assert_others_agree, table_path

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.int64())])
ROWS: list[Row] = [{"id": i, "x": i % 2} for i in range(6)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    forget()
    made = World(str(tmp_path / "t"))
    yield made
    if (tmp_path / "t" / "_delta_log").is_dir():
        made.assert_clean()


def table_of(*rows: tuple[int | None, int | None]) -> pa.Table:
    return pa.Table.from_pylist([{"id": id_, "x": x} for id_, x in rows], schema=SCHEMA)


def replace_where(world: World, where: str, *rows: tuple[int | None, int | None], **options: Any) -> Any:
    command = Write(world.path, table_of(*rows), "overwrite", replace_where=world.condition(where), **options)
    return command.run(world.engine)


def replace_partitions(world: World, *rows: tuple[int | None, int | None], mode: str = "overwrite") -> Any:
    return Write(world.path, table_of(*rows), mode, dynamic=True).run(world.engine)


def pairs(world: World) -> list[tuple[int | None, int | None]]:
    return [(row["id"], row["x"]) for row in world.rows()]


# -- replaceWhere ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("columns", [(), ("x",)])
def test_the_rows_of_a_condition_are_replaced_in_one_commit(
    world: World, vectors: str, columns: tuple[str, ...]
) -> None:
    world.create(ROWS, partition_by=columns, delta_enableDeletionVectors=vectors)
    assert replace_where(world, "id >= 4", (7, 0), (8, None)).version == 1
    assert pairs(world) == [(0, 0), (1, 1), (2, 0), (3, 1), (7, 0), (8, None)]
    marked = world.log.snapshot().files["deletionVector"].null_count < len(world.log.snapshot().files)
    assert marked == (vectors == "true")


def test_a_file_of_which_statistics_say_that_every_row_goes_is_not_read(world: World) -> None:
    world.create(ROWS[:3])
    world.append(*ROWS[3:])
    world.engine.evaluated.clear()
    replace_where(world, "id >= 3", (9, 9))
    assert world.engine.evaluated == []
    assert pairs(world) == [(0, 0), (1, 1), (2, 0), (9, 9)]


def test_the_history_shows_the_condition_and_what_was_done(world: World) -> None:
    world.create(ROWS)
    replace_where(world, "id >= 4", (7, 0), user_metadata="mended")
    said = world.info()
    assert said["operation"] == "WRITE"
    assert said["operationParameters"] == {"mode": "Overwrite", "partitionBy": "[]", "predicate": "id >= 4"}
    assert said["userMetadata"] == "mended"
    assert said["tags"]["anabranch.rowLocal"] == "true"
    metrics = said["operationMetrics"]
    assert (metrics["numDeletedRows"], metrics["numOutputRows"], metrics["numFiles"]) == ("2", "1", "1")
    assert int(metrics["executionTimeMs"]) >= 0


@pytest.mark.slow
def test_a_replace_by_no_rows_deletes_and_one_that_finds_no_rows_inserts(world: World) -> None:
    world.create(ROWS)
    replace_where(world, "id >= 4")
    assert pairs(world) == [(0, 0), (1, 1), (2, 0), (3, 1)]
    replace_where(world, "id > 100", (101, 0))
    assert pairs(world)[-1] == (101, 0)
    assert replace_where(world, "id > 200").version == 3


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize(
    ("where", "rows", "count"),
    [
        ("id >= 4", [(3, 0), (4, 0), (5, 0)], 1),
        ("id >= 4", [(None, 0)], 1),
        ("x = 1", [(1, 0), (2, None), (3, 1)], 2),
        ("id >= 4 AND x = 1", [(0, 0), (4, 0), (9, 9)], 3),
        ("id IN (1, NULL)", [(1, 0), (2, 0)], 1),
        ("false", [(1, 0)], 1),
    ],
)
def test_rows_that_the_condition_does_not_select_are_refused_and_counted(
    world: World, vectors: str, where: str, rows: list[Any], count: int
) -> None:
    world.create(ROWS, delta_enableDeletionVectors=vectors)
    before = listing(world.path)
    with pytest.raises(errors.ReplaceWhereMismatch) as refused:
        replace_where(world, where, *rows)
    assert (refused.value.count, refused.value.rows, refused.value.predicate) == (count, len(rows), where)
    assert refused.value.getCondition() == "DELTA_REPLACE_WHERE_MISMATCH"
    assert refused.value.getSqlState() == "44000"
    assert not refused.value.retryable
    assert f"{count} of the {len(rows)} rows" in str(refused.value)
    assert listing(world.path) == before


def test_the_rows_of_a_partitioned_write_are_held_to_a_condition_on_both_kinds_of_columns(world: World) -> None:
    world.create(ROWS, partition_by=("x",))
    with pytest.raises(errors.ReplaceWhereMismatch) as refused:
        replace_where(world, "x = 1 AND id > 2", (3, 1), (2, 1), (9, 0))
    assert refused.value.count == 2
    replace_where(world, "x = 1 AND id > 2", (3, 1), (9, 1))
    assert pairs(world) == [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0), (9, 1)]


def test_a_replace_where_there_is_no_table_creates_one_from_rows_that_it_selects(world: World) -> None:
    other = World(f"{world.path}-other").create(ROWS)
    command = Write(world.path, table_of((3, 0)), "overwrite", replace_where=other.condition("id >= 4"))
    with pytest.raises(errors.ReplaceWhereMismatch):
        command.run(world.engine)
    assert listing(world.path) == {}
    assert replace(command, source=table_of((4, 0))).run(world.engine) is not None
    assert (world.version, pairs(world)) == (0, [(4, 0)])


@pytest.mark.parametrize("mode", ["append", "error", "ignore"])
def test_a_condition_goes_with_overwrite_only(world: World, mode: str) -> None:
    world.create(ROWS)
    command = Write(world.path, table_of((1, 1)), mode, replace_where=world.condition("id = 1"))
    with pytest.raises(errors.InvalidOption, match=mode):
        command.run(world.engine)
    assert world.version == 0


def test_a_condition_and_dynamic_partitions_do_not_go_together(world: World) -> None:
    world.create(ROWS, partition_by=("x",))
    with pytest.raises(errors.InvalidOption, match="partitionOverwriteMode"):
        replace_where(world, "x = 1", (1, 1), dynamic=True)
    assert world.version == 0


def test_an_append_only_table_is_not_replaced_in_part(world: World) -> None:
    world.create(ROWS, partition_by=("x",), delta_appendOnly="true")
    before = listing(world.path)
    with pytest.raises(errors.AppendOnlyTable):
        replace_where(world, "id > 100", (101, 0))
    with pytest.raises(errors.AppendOnlyTable):
        replace_partitions(world, (1, 5))
    assert listing(world.path) == before


def test_settings_that_change_while_the_rows_are_written_stop_a_replace(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The condition would mean one thing for the new rows and another one for the old."""
    world.create(ROWS)
    zones = iter(["UTC", "Asia/Tokyo"])
    monkeypatch.setattr(world.engine, "settings", lambda: {"zone": next(zones)})
    before = listing(world.path)
    with pytest.raises(errors.ExecutionFailed, match="was changed meanwhile"):
        replace_where(world, "id >= 4", (4, 0))
    assert listing(world.path) == before


# -- dynamic overwrites ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (pa.scalar(5, pa.int32()), pa.scalar(1 << 40), False),
        (pa.scalar(5, pa.int32()), pa.scalar(5), True),
        (pa.scalar(dt.date(2020, 1, 1)), pa.scalar(dt.datetime(2020, 1, 1, 5), pa.timestamp("us")), False),
        (pa.scalar(dt.date(2020, 1, 1)), pa.scalar(dt.datetime(2020, 1, 1), pa.timestamp("us")), True),
        (pa.scalar(Decimal("1.25"), pa.decimal128(5, 2)), pa.scalar(Decimal("1.2501"), pa.decimal128(9, 4)), False),
        (pa.scalar(Decimal("1.25"), pa.decimal128(5, 2)), pa.scalar(Decimal("1.2500"), pa.decimal128(9, 4)), True),
        (pa.scalar(0.1, pa.float32()), pa.scalar(0.10000000149011612), False),
    ],
)
def test_partitions_are_compared_by_the_type_that_their_column_gets(
    tmp_path: Path, before: pa.Scalar, after: pa.Scalar, same: bool
) -> None:
    def rows(number: int, value: pa.Scalar) -> pa.Table:
        return pa.table({"id": [number], "p": pa.array([value.as_py()], value.type)})

    path = table_path(tmp_path)
    asked = {"delta.enableTypeWidening": "true", "delta.feature.timestampNtz": "supported"}
    Append(path, rows(1, before), ("p",), asked).run()
    world = World(path)
    Write(path, rows(2, after), "overwrite", dynamic=True, schema_change="merge").run(world.engine)
    assert [row["id"] for row in world.rows()] == ([2] if same else [1, 2])
    assert anabranch.check(path, deep=True).is_clean  # delta-rs knows no wider types


def test_rows_make_a_day_a_moment_only_where_the_table_lists_the_feature(tmp_path: Path) -> None:
    """As in delta-spark, which has the feature set by hand where a type changes."""
    path = table_path(tmp_path)
    Append(path, pa.table({"day": [dt.date(2020, 1, 1)]}), (), {"delta.enableTypeWidening": "true"}).run()
    world, files = World(path), listing(path)
    moments = pa.table({"day": pa.array([dt.datetime(2020, 1, 2, 3)], pa.timestamp("us"))})
    append = Write(path, moments, "append", schema_change="merge")
    with pytest.raises(errors.InvalidOption, match=r"set delta\.feature\.timestampNtz = supported first"):
        append.run(world.engine)
    assert listing(path) == files
    SetProperties(path, {"delta.feature.timestampNtz": "supported"}).run()
    append.run(world.engine)
    assert sorted(row["day"] for row in world.rows()) == [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2, 3)]


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_only_the_partitions_that_are_written_are_replaced(world: World, vectors: str) -> None:
    world.create([*ROWS, {"id": 6, "x": None}], partition_by=("x",), delta_enableDeletionVectors=vectors)
    replace_partitions(world, (10, 1), (11, 5))
    assert pairs(world) == [(0, 0), (2, 0), (4, 0), (6, None), (10, 1), (11, 5)]
    replace_partitions(world, (12, None))
    assert pairs(world) == [(0, 0), (2, 0), (4, 0), (10, 1), (11, 5), (12, None)]


def test_several_partition_columns_count_together(world: World) -> None:
    rows = [{"id": i, "x": i % 2, "y": i // 2 % 2} for i in range(4)]
    world.create(rows, partition_by=("x", "y"))
    new = pa.table({"id": [9], "x": [1], "y": [0]})
    Write(world.path, new, "overwrite", dynamic=True).run(world.engine)
    assert [row["id"] for row in world.rows()] == [0, 2, 3, 9]
    assert world.info()["tags"]["anabranch.reads"] == "x = '1' AND y = '0'"


def test_a_dynamic_overwrite_of_a_table_without_partitions_replaces_every_row(world: World) -> None:
    """As in Delta, which does not look at the option there."""
    world.create(ROWS)
    replace_partitions(world, (10, 1))
    assert pairs(world) == [(10, 1)]


def test_a_dynamic_overwrite_by_no_rows_replaces_nothing(world: World) -> None:
    world.create(ROWS, partition_by=("x",))
    replace_partitions(world)
    assert len(world.rows()) == 6


def test_a_dynamic_overwrite_creates_a_table_and_an_append_stays_one(world: World) -> None:
    Write(world.path, table_of((1, 1)), "overwrite", ("x",), dynamic=True).run(world.engine)
    replace_partitions(world, (2, 1), mode="append")
    assert pairs(world) == [(1, 1), (2, 1)]
    assert world.info()["isBlindAppend"] is True
    assert "isDynamicPartitionOverwrite" not in world.info()["operationParameters"]


def test_the_history_shows_that_an_overwrite_was_dynamic(world: World) -> None:
    world.create(ROWS, partition_by=("x",))
    replace_partitions(world, (10, 1))
    assert world.info()["operationParameters"] == {
        "mode": "Overwrite",
        "partitionBy": '["x"]',
        "isDynamicPartitionOverwrite": "true",
    }


@pytest.mark.slow
def test_many_partitions_are_counted_not_listed_in_what_was_read(world: World) -> None:
    world.create([{"id": i, "x": i} for i in range(40)], partition_by=("x",))
    replace_partitions(world, *[(i + 100, i) for i in range(30)])
    assert world.info()["tags"]["anabranch.reads"] == "the partition is one of the 30 written"
    assert len(world.rows()) == 40


@pytest.mark.parametrize(
    ("kind", "other", "same"),
    [
        (pa.float64(), 1.5, float("nan")),
        (pa.date32(), dt.date(2020, 1, 1), dt.date(2020, 1, 2)),
        (pa.string(), "a", "a b/c'%"),
        (pa.timestamp("us", "UTC"), dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2)),
        (pa.bool_(), True, False),
        (pa.binary(), b"a", b"b"),
        (pa.decimal128(5, 2), 1, 2),
    ],
    ids=str,
)
def test_partitions_of_every_type_are_told_apart(world: World, kind: pa.DataType, other: Any, same: Any) -> None:
    first = pa.table({"id": [0, 1], "p": pa.array([other, same], kind)})
    Write(world.path, first, "append", ("p",)).run(world.engine)
    Write(world.path, pa.table({"id": [2], "p": pa.array([same], kind)}), "overwrite", dynamic=True).run(world.engine)
    assert sorted(anabranch.files(world.path)["rows"].to_pylist()) == [1, 1]
    assert sorted(row["id"] for row in world.rows()) == [0, 2]


@pytest.mark.parametrize("phase", ["before", "meanwhile"])
def test_a_partition_whose_moment_names_no_zone_stops_a_dynamic_overwrite(tmp_path: Path, phase: str) -> None:
    """It may be any of a day's partitions, so it can neither be kept nor removed."""
    made = World(str(tmp_path / "zones"))
    moment = pa.array([dt.datetime(2020, 1, 1)], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": [0], "p": moment})
    Write(made.path, rows, "append", ("p",)).run(made.engine)

    def foreign() -> None:
        values = {"p": "2020-01-01 00:00:00"}
        put_commit(made.path, 1, info(), put_rows(made.path, "f.parquet", [{"id": 1}], partitionValues=values))

    command = Write(made.path, rows, "overwrite", dynamic=True)
    if phase == "before":
        foreign()
        with pytest.raises(errors.ExecutionFailed, match="time zone"):
            command.run(made.engine)
    else:
        with pytest.raises(errors.ConcurrentWriteException, match="time zone"), at_phase("staged", foreign):
            command.run(made.engine)
    assert made.version == 1
    assert len([name for name in listing(made.path) if name.startswith("job-")]) == 2


# -- writing at most once ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("app_id", "version"),
    [("a", None), (None, 1), ("a", -1), ("a", "1.5"), ("a", "one"), ("a", 1 << 63), ("a", ""), ("a", True)],
)
def test_half_an_application_or_a_version_that_is_none_is_refused(app_id: str | None, version: Any) -> None:
    with pytest.raises(errors.InvalidOption) as refused:
        application(app_id, version)
    assert refused.value.option == ("txnAppId" if app_id is None else "txnVersion")


def test_no_application_is_none_and_the_largest_version_is_one() -> None:
    assert application(None, None) is None
    largest = application("a", str((1 << 63) - 1))
    assert largest is not None
    assert largest.version == (1 << 63) - 1


def test_a_write_that_was_done_is_skipped_before_anything_else_is_looked_at(world: World) -> None:
    """Also one that was to create the table, and one whose rows would be refused today."""
    once = application("load", 7)
    assert Write(world.path, table_of((1, 1)), "error", txn=once).run(world.engine) is not None
    before = listing(world.path)
    for mode in ("error", "append", "overwrite", "ignore"):
        assert Write(world.path, pa.table({"other": [1]}), mode, txn=once).run(world.engine) is None
    assert listing(world.path) == before


@pytest.mark.slow
def test_the_version_is_remembered_by_checkpoints(world: World) -> None:
    world.create(ROWS, delta_checkpointInterval="2")
    Write(world.path, table_of((1, 1)), "append", txn=application("load", 7)).run(world.engine)
    for id_ in range(3):
        world.append({"id": id_, "x": 0})
    forget()
    assert Write(world.path, table_of((1, 1)), "append", txn=application("load", 7)).run(world.engine) is None


def test_an_append_without_spark_is_idempotent_too(tmp_path: Path) -> None:
    path, rows = str(tmp_path / "t"), [{"id": 1}]
    assert anabranch.append(path, rows, txn_app_id="load", txn_version=1) == 0
    assert anabranch.append(path, rows) == 1
    assert anabranch.append(path, rows, txn_app_id="load", txn_version=1) == 1
    again = Append(path, rows, txn=application("load", 1)).run()
    assert (again.version, again.attempts) == (1, 0)
    assert len(anabranch.history(path)) == 2
    with pytest.raises(errors.InvalidOption, match="go together"):
        anabranch.append(path, rows, txn_app_id="load")
    with (
        pytest.raises(errors.ConcurrentTransactionException),
        at_phase("staged", lambda: anabranch.append(path, rows, txn_app_id="load", txn_version=2)),
    ):
        anabranch.append(path, rows, txn_app_id="load", txn_version=2)
    assert World(path).version == 2
    assert len(list(Path(path).glob("*.parquet"))) == 3


# -- the door ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def table(spark: Any, tmp_path: Path) -> Iterator[str]:
    anabranch.install(spark)
    path = str(tmp_path / "table")
    rows = [{"id": i, "x": i * 10, "day": dt.date(2017, 1, 1 + i % 3)} for i in range(6)]
    anabranch.append(path, rows, partition_by=("day",))
    yield path
    assert anabranch.check(path, deep=True).is_clean
    assert_others_agree(path)


def frame(spark: Any, *rows: tuple[int, int, str]) -> Any:
    named = [{"id": id_, "x": x, "day": dt.date.fromisoformat(day)} for id_, x, day in rows]
    return spark.createDataFrame(pa.Table.from_pylist(named))


def ids(path: str) -> list[int]:
    return [row["id"] for row in World(path).rows()]


def data_files(path: str) -> set[str]:
    """All but the checksums that Hadoop leaves beside a file."""
    return {name for name in listing(path) if not name.endswith(".crc")}


def overwriting(rows: Any, **options: Any) -> Any:
    return rows.write.format("delta").mode("overwrite").options(**options)


@pytest.mark.spark
def test_replace_where_on_spark(spark: Any, table: str) -> None:
    overwriting(frame(spark, (7, 7, "2017-01-02")), replaceWhere="day >= '2017-01-02'").save(table)
    assert ids(table) == [0, 3, 7]
    where = "x > 20 AND upper(string(day)) < '2017-01-02'"
    overwriting(frame(spark, (9, 90, "2017-01-01")), replacewhere=where).save(table)
    assert ids(table) == [0, 7, 9]
    newest = anabranch.history(table)[0]
    assert (newest["operation"], newest["operationParameters"]["predicate"]) == ("WRITE", where)
    assert newest["operationMetrics"]["numDeletedRows"] == "1"


@pytest.mark.spark
def test_replace_where_on_spark_refuses_rows_and_leaves_no_file_of_them(spark: Any, table: str) -> None:
    before = data_files(table)
    rows = frame(spark, (7, 7, "2017-01-02"), (8, 8, "2016-01-01"), (9, 9, "2015-01-01"))
    with pytest.raises(errors.ReplaceWhereMismatch) as refused:
        overwriting(rows, replaceWhere="day >= '2017-01-02' AND abs(x) < 50").save(table)
    assert (refused.value.count, refused.value.rows) == (2, 3)
    with pytest.raises(errors.ExecutionFailed, match="DIVIDE_BY_ZERO"):
        overwriting(rows, replaceWhere="1 / (x - 8) > 0").save(table)
    with pytest.raises(errors.InvalidCondition):
        overwriting(rows, replaceWhere="altitude > 5").save(table)
    with pytest.raises(errors.InvalidOption):
        rows.write.format("delta").mode("append").option("replaceWhere", "id > 0").save(table)
    with pytest.raises(errors.NotBuilt):
        overwriting(rows, replaceWhere="id IN (SELECT 1)").save(table)
    assert data_files(table) == before


@pytest.mark.exhaustive(
    "tests/transaction/test_replace.py::test_by_rows_a_change_outside_the_condition_and_a_replace_both_land",
    "tests/transaction/test_replace.py::test_by_rows_a_replace_of_a_changed_row_is_refused",
    "tests/commands/dml/test_write_options.py::test_replace_where_on_spark",
)
@pytest.mark.spark
def test_replace_where_on_spark_beside_a_change_of_other_rows(spark: Any, table: str) -> None:
    changing = anabranch.DeltaTable.forPath(spark, table)
    with at_phase("staged", lambda: changing.update("id = 3", {"x": "x + 1"})):
        overwriting(frame(spark, (0, 1, "2017-01-01")), replaceWhere="id = 0").save(table)
    found = {row["id"]: row["x"] for row in spark.read.format("delta").load(table).collect()}
    assert found == {0: 1, 1: 10, 2: 20, 3: 31, 4: 40, 5: 50}
    with (
        pytest.raises(errors.ConcurrentDeleteReadException),
        at_phase("staged", lambda: changing.update("id = 3", {"x": "x + 1"})),
    ):
        overwriting(frame(spark, (3, 3, "2017-01-01")), replaceWhere="id = 3").save(table)


@pytest.mark.spark
def test_a_new_table_is_held_to_the_condition_on_spark(spark: Any, tmp_path: Path) -> None:
    path, rows = str(tmp_path / "new"), anabranch.install(spark).range(3)
    with pytest.raises(errors.ReplaceWhereMismatch):
        overwriting(rows, replaceWhere="id > 0").save(path)
    overwriting(rows, replaceWhere="id >= 0").save(path)
    assert ids(path) == [0, 1, 2]


@pytest.mark.spark
def test_dynamic_partitions_on_spark_by_option_and_by_session(spark: Any, table: str) -> None:
    setting = "spark.sql.sources.partitionOverwriteMode"
    overwriting(frame(spark, (7, 7, "2017-01-02")), partitionOverwriteMode="Dynamic").save(table)
    assert ids(table) == [0, 2, 3, 5, 7]
    spark.conf.set(setting, "dynamic")
    try:
        overwriting(frame(spark, (8, 8, "2017-01-01"))).save(table)
        assert ids(table) == [2, 5, 7, 8]
        overwriting(frame(spark, (9, 9, "2017-01-03")), replaceWhere="id > 2").save(table)
        assert ids(table) == [2, 9]  # a condition counts more than the session
        overwriting(frame(spark, (1, 1, "2020-01-01")), partitionOverwriteMode="static").save(table)
        assert ids(table) == [1]
    finally:
        spark.conf.unset(setting)
    with pytest.raises(errors.InvalidOption, match="static or dynamic"):
        overwriting(frame(spark, (1, 1, "2020-01-01")), partitionOverwriteMode="sometimes").save(table)
    both = {"replaceWhere": "id = 1", "partitionOverwriteMode": "dynamic"}
    with pytest.raises(errors.InvalidOption, match="partitionOverwriteMode"):
        overwriting(frame(spark, (1, 1, "2020-01-01")), **both).save(table)
    assert ids(table) == [1]


@pytest.mark.spark
def test_idempotent_writes_on_spark(spark: Any, table: str) -> None:
    rows = frame(spark, (7, 7, "2017-01-02"))
    once = {"txnAppId": "load", "txnVersion": 3}
    rows.write.format("delta").mode("append").options(**once).save(table)
    rows.write.format("delta").mode("append").options(**once).save(table)
    overwriting(rows, **once).save(table)
    assert ids(table) == [0, 1, 2, 3, 4, 5, 7]
    for half in ({"txnAppId": "load"}, {"txnVersion": 4}, {"txnAppId": "load", "txnVersion": "four"}):
        with pytest.raises(errors.InvalidOption):
            rows.write.format("delta").mode("append").options(**half).save(table)
    with pytest.raises(errors.InvalidOption, match="nobody checks"):
        rows.write.format("delta").mode("append").option("dataChange", "false").save(table)
    assert len(anabranch.history(table)) == 2
