"""The examples that Delta's documentation on isolation and conflicts gives, each done as it stands there.

Every one is told by what its sessions run and by what the page promises of them; the winner commits while the other one
has done its work and not yet committed. Parts that need text conditions over two sides run on Spark, at the end.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch import errors
from anabranch._protocol.actions import AppTransaction
from anabranch._protocol.merges import MergePlan
from anabranch._protocol.schema.types import Field, Struct, schema_json
from anabranch.commands.ddl.create import Create
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.merge import Merge
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.dml.write import Write
from anabranch.testing import at_phase
from tests.support.raw_logs import info, put_commit
from tests.support.worlds import World, assert_others_agree, equal, insert_all, table_path, update_all

LEVELS = ("WriteSerializable", "Serializable")
FIRST, SECOND = dt.date(2024, 1, 1), dt.date(2024, 1, 2)
Rows = list[dict[str, Any]]


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def events(folder: Path, level: str, dial: str, *dates: dt.date, by: tuple[str, ...] = ()) -> World:
    """One row for each date, in one file, or in one for each date where the table is partitioned by it."""
    rows = [{"id": i, "date": date, "x": 0} for i, date in enumerate(dates)]
    named = {"delta_isolationLevel": level, "anabranch_conflictResolution": dial}
    return World(table_path(folder)).create(rows, partition_by=by, **named)


def xs(world: World) -> dict[int, int]:
    return {row["id"]: row["x"] for row in world.rows()}


# -- "avoid conflicts using partitioning and disjoint command conditions" ----------------------------------------------


def update_late(world: World) -> object:
    return world.update("date > '2010-01-01'", x=1)


def delete_early(world: World) -> object:
    return world.delete("date < '2010-01-01'")


ORDERS = [(update_late, delete_early), (delete_early, update_late)]
EARLY, LATE = dt.date(2009, 5, 5), dt.date(2011, 5, 5)


@pytest.mark.parametrize(("ours", "winner"), ORDERS, ids=["update last", "delete last"])
def test_by_files_an_update_and_a_delete_of_disjoint_dates_conflict_where_the_table_is_not_partitioned(
    tmp_path: Path, level: str, ours: Callable[[World], object], winner: Callable[[World], object]
) -> None:
    world = events(tmp_path, level, "file", EARLY, LATE)
    with pytest.raises(errors.DeltaConcurrentModificationException), at_phase("staged", lambda: winner(world)):
        ours(world)
    assert world.version == 1
    world.assert_clean()


@pytest.mark.parametrize(("ours", "winner"), ORDERS, ids=["update last", "delete last"])
@pytest.mark.parametrize(("dial", "by"), [("row", ()), ("file", ("date",)), ("row", ("date",))], ids=str)
def test_they_do_not_conflict_by_rows_nor_where_the_table_is_partitioned_by_date(
    tmp_path: Path,
    level: str,
    dial: str,
    by: tuple[str, ...],
    ours: Callable[[World], object],
    winner: Callable[[World], object],
) -> None:
    world = events(tmp_path, level, dial, EARLY, LATE, by=by)
    with at_phase("staged", lambda: winner(world)):
        ours(world)
    assert xs(world) == {1: 1}
    world.assert_clean()


# -- ConcurrentAppendException: "make the separation explicit in the operation condition" ------------------------------


def upsert(world: World, date: dt.date, id: int, x: int, *, also: str | None = None) -> None:
    """MERGE … ON t.id = s.id AND t.date = s.date, and what is added to that about the table alone."""
    columns = ("id", "date", "x")
    source = pa.table({"id": [id], "date": [date], "x": [x]})
    matching = MergePlan(
        lambda row, given: equal(row["id"], given["id"]) is True and row["date"] == given["date"],
        (update_all(*columns), insert_all(*columns)),
    )
    Merge(world.path, source, matching, world.condition(also)).run(world.engine)


@pytest.mark.slow
def test_by_files_merges_of_different_partitions_conflict_unless_they_name_their_partitions(
    tmp_path: Path, level: str
) -> None:
    """The documentation's way out: add AND t.date = '2024-01-01', a constant, to the condition."""

    def both(world: World, *, named: bool) -> None:
        def of(date: dt.date) -> str | None:
            return f"date = '{date}'" if named else None

        with at_phase("staged", lambda: upsert(world, FIRST, 0, 1, also=of(FIRST))):
            upsert(world, SECOND, 1, 2, also=of(SECOND))

    apart = events(tmp_path, level, "file", FIRST, SECOND, by=("date",))
    with pytest.raises((errors.ConcurrentAppendException, errors.ConcurrentDeleteReadException)) as refused:
        both(apart, named=False)
    assert refused.value.winner_operation == "MERGE"
    assert xs(apart) == {0: 1, 1: 0}

    explicit = events(tmp_path, level, "file", FIRST, SECOND, by=("date",))
    both(explicit, named=True)
    assert xs(explicit) == {0: 1, 1: 2}
    explicit.assert_clean()


@pytest.mark.slow
def test_by_rows_the_same_merges_need_no_such_hint(tmp_path: Path, level: str) -> None:
    for by in ((), ("date",)):
        world = events(tmp_path, level, "row", FIRST, SECOND, by=by)
        with at_phase("staged", lambda world=world: upsert(world, FIRST, 0, 1)):  # type: ignore[misc]
            upsert(world, SECOND, 1, 2)
        assert xs(world) == {0: 1, 1: 2}
        world.assert_clean()


# -- "WriteSerializable versus Serializable": txn1 and txn2 ------------------------------------------------------------


@pytest.mark.parametrize("dial", ["row", "file"])
def test_txn1_a_long_delete_is_ordered_before_txn2_an_insert_that_committed_first_at_write_serializable(
    tmp_path: Path, dial: str
) -> None:
    """The history shows the insert first; the state is that of the delete first, since the new row is still there."""
    world = events(tmp_path, "WriteSerializable", dial, FIRST)
    with at_phase("staged", lambda: world.append({"id": 7, "date": FIRST, "x": 7})):
        world.delete(f"date = '{FIRST}'")
    assert xs(world) == {7: 7}
    assert [world.info(version)["operation"] for version in (1, 2)] == ["WRITE", "DELETE"]
    assert world.info(2)["tags"]["anabranch.cut"] == "0", "placed behind version 0, before the insert"
    world.assert_clean()


@pytest.mark.parametrize("dial", ["row", "file"])
def test_at_serializable_txn1_is_refused(tmp_path: Path, dial: str) -> None:
    world = events(tmp_path, "Serializable", dial, FIRST)
    with (
        pytest.raises(errors.ConcurrentAppendException),
        at_phase("staged", lambda: world.append({"id": 7, "date": FIRST, "x": 7})),
    ):
        world.delete(f"date = '{FIRST}'")
    assert xs(world) == {0: 0, 7: 7}


# -- MetadataChangedException ------------------------------------------------------------------------------------------


def change_metadata(world: World, change: str) -> None:
    """What an ALTER TABLE of any engine writes."""
    before = world.log.snapshot().metadata
    fields = Struct((*world.log.snapshot().schema.fields, Field("new", "long")))
    after = {
        "a property": replace(before, configuration={**before.configuration, "owner": "me"}),
        "a column": replace(before, schema_string=schema_json(fields)),
        "a description": replace(before, description="anew"),
    }[change]
    put_commit(world.path, world.version + 1, info(operation="ALTER"), {"metaData": after.to_json()})


WRITES: dict[str, Callable[[World], object]] = {
    "append": lambda world: world.append({"id": 9, "date": FIRST, "x": 9}),
    "update": lambda world: world.update("id = 0", x=1),
    "delete": lambda world: world.delete("id = 0"),
    "merge": lambda world: upsert(world, FIRST, 0, 1),
    "overwrite": lambda world: world.overwrite({"id": 9, "date": FIRST, "x": 9}),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("change", ["a property", "a column", "a description"])
def test_a_change_of_metadata_fails_every_concurrent_write(tmp_path: Path, level: str, write: str, change: str) -> None:
    world = events(tmp_path, level, "row", FIRST)
    with (
        pytest.raises(errors.MetadataChangedException) as refused,
        at_phase("staged", lambda: change_metadata(world, change)),
    ):
        WRITES[write](world)
    assert refused.value.retryable
    assert (world.version, xs(world)) == (1, {0: 0})
    WRITES[write](world)
    assert world.version == 2


# -- ConcurrentTransactionException ------------------------------------------------------------------------------------


def test_two_writers_of_one_stream_at_once_are_told_apart_by_their_application(tmp_path: Path, level: str) -> None:
    world = events(tmp_path, level, "row", FIRST)

    def stream(x: int) -> object:
        return Append(world.path, [{"id": x, "date": FIRST, "x": x}], txn=AppTransaction("checkpoint", 1, None)).run()

    with pytest.raises(errors.ConcurrentTransactionException) as refused, at_phase("staged", lambda: stream(7)):
        stream(8)
    assert refused.value.sql_state == "2D521"
    assert xs(world) == {0: 0, 7: 7}
    stream(8)
    assert xs(world) == {0: 0, 7: 7}, "that batch is in, so it is skipped"


# -- ProtocolChangedException ------------------------------------------------------------------------------------------

NEW = pa.table({"id": [8], "x": [8]})


def create(path: str) -> object:
    schema = Struct((Field("id", "long"), Field("x", "long")))
    return Create(path, NewTable(schema, properties={"anabranch.conflictResolution": "file"}), False).run()


CREATIONS: dict[str, Callable[[str], object]] = {
    "create": create,
    "write": lambda path: Write(path, NEW, "error").run(World(path).engine),
    "replace": lambda path: Write(path, NEW, "overwrite").run(World(path).engine),
}


@pytest.mark.parametrize(
    ("ours", "winner"), [pair for pair in product(CREATIONS, CREATIONS) if pair[1] != "create" or pair[0] == "create"]
)
def test_of_several_writers_that_create_or_write_to_one_empty_path_all_but_the_first_are_told(
    tmp_path: Path, ours: str, winner: str
) -> None:
    path = table_path(tmp_path)
    with (
        pytest.raises(errors.ProtocolChangedException) as refused,
        at_phase("staged", lambda: CREATIONS[winner](path)),
    ):
        CREATIONS[ours](path)
    assert (refused.value.winner_version, refused.value.retryable) == (0, True)
    assert World(path).version == 0
    assert World(path).rows() == ([] if winner == "create" else NEW.to_pylist())


@pytest.mark.parametrize("ours", ["write", "replace"])
def test_a_table_is_not_created_where_a_first_write_has_laid_files_which_then_commits(
    tmp_path: Path, ours: str
) -> None:
    path = table_path(tmp_path)
    refused: list[errors.LocationNotEmpty] = []

    def refuse() -> None:
        with pytest.raises(errors.LocationNotEmpty) as error:
            create(path)
        refused.append(error.value)

    with at_phase("staged", refuse):
        CREATIONS[ours](path)
    assert len(refused) == 1
    assert World(path).rows() == NEW.to_pylist()


def test_several_appends_to_one_empty_path_are_told_at_the_dial_file_and_all_land_at_the_dial_row(
    tmp_path: Path,
) -> None:
    def write(path: str, dial: str, id: int) -> None:
        Append(path, [{"id": id}], None, {"anabranch.conflictResolution": dial}).run()

    documented, ours = table_path(tmp_path), table_path(tmp_path)
    with (
        pytest.raises(errors.ProtocolChangedException),
        at_phase("staged", lambda: write(documented, "file", 1)),
    ):
        write(documented, "file", 2)
    with at_phase("staged", lambda: write(ours, "row", 1)):
        write(ours, "row", 2)
    assert (World(documented).rows(), World(ours).rows()) == ([{"id": 1}], [{"id": 1}, {"id": 2}])


def test_a_change_of_protocol_fails_every_concurrent_write(tmp_path: Path, level: str) -> None:
    for write in WRITES.values():
        world = events(tmp_path, level, "row", FIRST)
        higher = world.log.snapshot().protocol.to_json()
        higher["writerFeatures"] = [*higher["writerFeatures"], "vacuumProtocolCheck"]
        higher["readerFeatures"] = [*higher["readerFeatures"], "vacuumProtocolCheck"]
        with (
            pytest.raises(errors.ProtocolChangedException),
            at_phase("staged", lambda w=world, p=higher: put_commit(w.path, 1, info(), {"protocol": p})),  # type: ignore[misc]
        ):
            write(world)
        assert xs(world) == {0: 0}


# -- on Spark, in the documentation's own words ------------------------------------------------------------------------

ON = "t.id = s.id AND t.date = s.date"


def spark_events(spark: Any, folder: Path, level: str, **properties: str) -> Any:
    path = str(folder / "table")
    rows = pa.table({"id": [0, 1], "date": [FIRST, SECOND], "x": [0, 0]})
    named = {"delta.isolationLevel": level, "anabranch.conflictResolution": "file", **properties}
    Append(path, rows, ("date",), named).run()
    return path, anabranch.DeltaTable.forPath(anabranch.install(spark), path)


def spark_upsert(spark: Any, table: Any, date: dt.date, id: int, x: int, on: str) -> None:
    source = spark.createDataFrame(pa.table({"id": [id], "date": [date], "x": [x]})).alias("s")
    table.alias("t").merge(source, on).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


@pytest.mark.spark
def test_merge_on_spark_with_explicit_partition_predicates(spark: Any, tmp_path: Path, level: str) -> None:
    path, table = spark_events(spark, tmp_path, level)

    def both(named: bool) -> None:
        def on(date: dt.date) -> str:
            return f"{ON} AND t.date = '{date}'" if named else ON

        with at_phase("staged", lambda: spark_upsert(spark, table, FIRST, 0, 1, on(FIRST))):
            spark_upsert(spark, table, SECOND, 1, 2, on(SECOND))

    with pytest.raises((errors.ConcurrentAppendException, errors.ConcurrentDeleteReadException)):
        both(named=False)
    both(named=True)
    assert [(row["id"], row["x"]) for row in World(path).rows()] == [(0, 1), (1, 2)]
    assert anabranch.check(path, deep=True).is_clean
    assert_others_agree(path)


@pytest.mark.spark
def test_update_and_delete_on_spark_of_disjoint_dates(spark: Any, tmp_path: Path, level: str) -> None:
    path, table = spark_events(spark, tmp_path, level)
    with at_phase("staged", lambda: table.delete("date < '2024-01-02'")):
        table.update("date > '2024-01-01'", {"x": "1"})
    assert [(row["id"], row["x"]) for row in World(path).rows()] == [(1, 1)]
    assert_others_agree(path)
