"""A winner is judged by what it did: what it says of itself only counts where its actions agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from anabranch import errors
from anabranch._log.commit_files import Raw
from anabranch._log.commits import Commit, parse_commit
from anabranch._protocol.actions import AppTransaction, DomainMetadata
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.file_sets import Marks
from anabranch._protocol.predicates import Always
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.commit import commit as commit_transaction
from anabranch._transaction.retry import RetryPolicy
from anabranch._transaction.transaction import (
    Changes,
    CommitInfo,
    Declarations,
    Position,
    ReadSet,
    Transaction,
    is_blind_append,
    only_deletes,
)
from anabranch.testing import at_phase
from anabranch.testing.faults import instant
from tests.support.raw_logs import Action, add, info, metadata, put_commit, put_rows, remove, text_of
from tests.support.worlds import World

VECTOR = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 40, "cardinality": 2}
CDC: Action = {"cdc": {"path": "_change_data/a", "partitionValues": {}, "size": 1, "dataChange": False}}
DOMAIN: Action = {"domainMetadata": {"domain": "d", "configuration": "", "removed": False}}
PROTOCOL: Action = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def commit(*actions: Action) -> Commit:
    return parse_commit("t", Raw(1, text_of(*actions).encode()), ())


# -- blind appends -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "actions",
    [
        [add("a")],
        [add("a"), add("b")],
        [add("a"), {"txn": {"appId": "s", "version": 1}}],
        [],
    ],
)
def test_adds_alone_that_say_so_are_a_blind_append(actions: list[Action]) -> None:
    assert is_blind_append(commit(info(isBlindAppend=True), *actions))


@pytest.mark.parametrize(
    "actions",
    [
        [add("a"), remove("b")],
        [add("a"), remove("b", dataChange=False)],
        [add("a", dataChange=False)],
        [add("a"), add("b", dataChange=False)],
        [{"add": {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 0}}],
        [add("a"), CDC],
        [add("a"), metadata()],
        [add("a"), PROTOCOL],
        [add("a"), DOMAIN],
        [add("a", deletionVector=VECTOR)],
    ],
)
def test_a_false_flag_is_not_believed(actions: list[Action]) -> None:
    assert not is_blind_append(commit(info(isBlindAppend=True), *actions))


@pytest.mark.parametrize("flag", [False, None, "true", 1, "yes"])
def test_adds_that_do_not_say_that_they_are_blind_are_not(flag: object) -> None:
    assert not is_blind_append(commit(info(isBlindAppend=flag), add("a")))
    assert not is_blind_append(commit(add("a")))


def test_only_the_first_commit_info_speaks() -> None:
    assert not is_blind_append(commit(info(), info(isBlindAppend=True), add("a")))


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ([remove("a")], True),
        ([remove("a"), add("a", deletionVector=VECTOR)], True),
        ([remove("a"), add("b")], False),
        ([remove("a"), add("a", deletionVector=VECTOR), add("b")], False),
        ([add("a")], False),
        ([], False),
    ],
)
def test_taking_away_is_told_from_bringing(actions: list[Action], expected: bool) -> None:
    assert only_deletes(commit(info(), *actions)) is expected


# -- ours --------------------------------------------------------------------------------------------------------------

BLANK = Transaction.on(None, "id", CommitInfo("WRITE"), table="t")
READS = ReadSet(Condition("true", Always(True), True, "true"), frozenset())


def test_an_append_that_reads_nothing_is_blind() -> None:
    assert BLANK.is_blind
    assert not BLANK.serializable


def test_whatever_read_or_takes_away_is_not_blind() -> None:
    assert not replace(BLANK, reads=READS).is_blind
    assert not replace(BLANK, changes=Changes(removes=frozenset({"a"}))).is_blind


def test_a_change_of_metadata_is_held_to_serializable() -> None:
    head = commit(metadata(), PROTOCOL).head
    assert replace(BLANK, declarations=Declarations(metadata=head.metadata)).serializable
    assert replace(BLANK, declarations=Declarations(protocol=head.protocol)).serializable


def test_a_transaction_is_judged_by_the_dials_of_its_table_and_stands_behind_its_base(tmp_path: object) -> None:
    dials = {"delta.isolationLevel": "Serializable", "anabranch.conflictResolution": "file"}
    world = World(f"{tmp_path}/t").create([{"id": 1}], **dials)
    world.append({"id": 2})
    base = world.log.snapshot()
    read = Transaction.on(base, "id", CommitInfo("X"))
    made = Transaction.on(None, "id", CommitInfo("X"), table="t", declarations=Declarations(metadata=base.metadata))
    assert (read.table, read.position) == (base.table, Position(rebased_to=1))
    assert (made.table, made.position) == ("t", Position(rebased_to=-1))
    for ours in (read, made):
        assert (ours.isolation, ours.resolution, ours.metadata) == ("Serializable", "file", base.metadata)


# -- on a table --------------------------------------------------------------------------------------------------------


@pytest.fixture
def world(tmp_path: object) -> World:
    return World(f"{tmp_path}/t").create([{"id": i, "x": i} for i in range(4)])


def test_an_update_that_calls_itself_blind_is_judged_as_the_update_that_it_is(world: World) -> None:
    """It moved a row into what ours selects, and lied."""
    (old,) = world.log.snapshot().files.to_pylist()

    def liar() -> None:
        rows = [{"id": 0, "x": 3}, *({"id": i, "x": i} for i in range(1, 4))]
        new = put_rows(world.path, "liar.parquet", rows)
        put_commit(world.path, 1, info(isBlindAppend=True), remove(old["path"], size=old["size"]), new)

    with pytest.raises(errors.DeltaConcurrentModificationException), at_phase("staged", liar):
        world.update("x = 3", x=33)
    assert world.version == 1


def test_rows_that_were_not_marked_as_new_data_stop_a_change_that_selects_them(world: World) -> None:
    """``dataChange`` false may be an OPTIMIZE, or a user's option on any write: nobody can tell."""

    def other() -> None:
        new = put_rows(world.path, "moved.parquet", [{"id": 3, "x": 3}], dataChange=False)
        put_commit(world.path, 1, info(isBlindAppend=True), new)

    with pytest.raises(errors.ConcurrentAppendException), at_phase("staged", other):
        world.update("x = 3", x=33)


def test_a_blind_append_of_another_engine_stops_nobody(world: World) -> None:
    def other() -> None:
        put_commit(world.path, 1, info(isBlindAppend=True), put_rows(world.path, "new.parquet", [{"id": 3, "x": 3}]))

    with at_phase("staged", other):
        world.update("x = 3", x=33)
    assert sorted(row["x"] for row in world.rows() if row["id"] == 3) == [3, 33]


def test_an_append_of_another_engine_that_does_not_say_it_is_blind_is_read(world: World) -> None:
    def other() -> None:
        put_commit(world.path, 1, info(), put_rows(world.path, "new.parquet", [{"id": 3, "x": 3}]))

    with pytest.raises(errors.ConcurrentAppendException), at_phase("staged", other):
        world.update("x = 3", x=33)


# -- what no order can mend --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["WriteSerializable", "Serializable"])
@pytest.mark.parametrize("command", ["append", "update", "delete", "overwrite", "update of nothing"])
@pytest.mark.parametrize("change", ["metadata", "protocol"])
def test_a_change_of_metadata_or_protocol_fails_every_concurrent_writer(
    tmp_path: object, level: str, command: str, change: str
) -> None:
    world = World(f"{tmp_path}/t").create([{"id": 1, "x": 1}], delta_isolationLevel=level)
    snapshot = world.log.snapshot()
    action, kind = {
        "metadata": ({"metaData": snapshot.metadata.to_json()}, errors.MetadataChangedException),
        "protocol": ({"protocol": snapshot.protocol.to_json()}, errors.ProtocolChangedException),
    }[change]
    run = {
        "append": lambda: world.append({"id": 2, "x": 2}),
        "update": lambda: world.update("id = 1", x=2),
        "delete": lambda: world.delete("id = 1"),
        "overwrite": lambda: world.overwrite({"id": 3, "x": 3}),
        "update of nothing": lambda: world.update("id = 99", x=2),
    }[command]
    winner = lambda: put_commit(world.path, 1, info(operation="ALTER", userName="ada"), action)  # noqa: E731
    if command == "update of nothing":  # it commits nothing, so that there is nothing to be placed
        with at_phase("staged", winner):
            run()
    else:
        with pytest.raises(kind) as refused, at_phase("staged", winner):
            run()
        assert (refused.value.winner_version, refused.value.winner_operation) == (1, "ALTER")
        assert refused.value.winner_user == "ada"
        assert refused.value.retryable
    assert world.version == 1
    assert world.rows() == [{"id": 1, "x": 1}]


class EveryRow:
    """The hands of a transaction that may select anything."""

    def could_match(self, files: pa.Table) -> pa.Table:
        return files

    def matches(self, files: pa.Table) -> Marks:
        return {path: BitMap64([0]) for path in files["path"].to_pylist()}

    def sample(self, file: Any, rows: Any) -> list[Any]:
        return []

    def narrower(self, ours: Any, file: Any) -> None:
        return None

    def discard(self) -> None:
        """Nothing was staged."""

    def finish(self) -> None:
        """Nothing was staged."""


def placed(world: World, **parts: Any) -> CommitResult:
    """Commit a transaction that only writes these parts, based on version 0, behind what stands there now."""
    reads = parts.pop("reads", None)
    ours = Transaction.on(
        world.log.snapshot(0), "ours", CommitInfo("WRITE"), reads=reads, declarations=Declarations(**parts)
    )
    return commit_transaction(ours, world.log, EveryRow(), RetryPolicy(attempts=3), instant())  # type: ignore[arg-type]


def test_two_runs_of_one_stream_conflict_and_two_streams_do_not(world: World) -> None:
    """The same application id twice at once, whatever the versions."""
    put_commit(world.path, 1, info(), {"txn": {"appId": "stream", "version": 7}})
    for version in (1, 7, 8):
        with pytest.raises(errors.ConcurrentTransactionException) as refused:
            placed(world, app_transactions=(AppTransaction("stream", version),))
        assert refused.value.winner_version == 1
    assert placed(world, app_transactions=(AppTransaction("other", 1),)).version == 2


def test_two_writers_of_one_domain_conflict_and_of_two_do_not(world: World) -> None:
    put_commit(world.path, 1, info(), DOMAIN)
    with pytest.raises(errors.ConcurrentWriteException) as refused:
        placed(world, domains=(DomainMetadata("d", "ours"),))
    assert "domain d" in refused.value.explanation
    assert placed(world, domains=(DomainMetadata("e", "ours"),)).version == 2


def test_a_change_of_metadata_cannot_stand_behind_an_append_that_it_did_not_see(world: World) -> None:
    """It reads the whole table: the rows that came in were written under the old schema."""
    world.append({"id": 9, "x": 9})
    schema = world.log.snapshot().metadata
    with pytest.raises(errors.DeltaConcurrentModificationException):
        placed(world, metadata=replace(schema, description="new"), reads=READS)
    assert world.version == 1


def test_the_documented_order_of_reasons_is_kept(world: World) -> None:
    """Protocol before metadata before the application, whatever the order of the lines."""
    snapshot = world.log.snapshot()
    lines = [
        {"txn": {"appId": "stream", "version": 7}},
        {"metaData": snapshot.metadata.to_json()},
        {"protocol": snapshot.protocol.to_json()},
    ]
    ours = {"app_transactions": (AppTransaction("stream", 1),)}
    put_commit(world.path, 1, info(), *lines)
    with pytest.raises(errors.ProtocolChangedException):
        placed(world, **ours)
    put_commit(world.path, 1, info(), *lines[:2])
    with pytest.raises(errors.MetadataChangedException):
        placed(world, **ours)


def test_the_first_winner_in_the_way_is_named(world: World) -> None:
    put_commit(world.path, 1, info(operation="FIRST"), {"txn": {"appId": "stream", "version": 1}})
    put_commit(world.path, 2, info(operation="SECOND"), {"txn": {"appId": "stream", "version": 2}})
    with pytest.raises(errors.ConcurrentTransactionException) as refused:
        placed(world, app_transactions=(AppTransaction("stream", 3),))
    assert refused.value.winner_operation == "FIRST"
