"""A winner that brought no file may still have read the table: only one that can be trusted to have read nothing is
passed.

Ours moves p=1 to p=2 and has read version 0. Then a blind append brings a row with p=1, and somebody looks for p=2 and
finds nothing. Ours may not stand before the append, since it would also stand before the one who looked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anabranch import errors
from anabranch._log.commit_files import Raw
from anabranch._log.commits import parse_commit
from anabranch._protocol.layout import moves
from anabranch._protocol.layout.moves import Group, Origin, Output
from anabranch._protocol.rules.identity import identities, identity_metadata, with_marks
from anabranch._protocol.schema.types import Field, Struct
from anabranch._transaction.relocation import relocation_of
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import RESERVED_FOR
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.ddl.create import Create
from anabranch.commands.ddl.sync_identity import SyncIdentity
from anabranch.commands.dml.identity_values import reserve
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.dml.write import Write
from anabranch.testing import at_phase
from anabranch.testing.arrow_engine import read_from
from tests.support.raw_logs import Action, info, metadata, put_commit, remove, text_of
from tests.support.worlds import World, insert_all, table_path

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.int64())])
MOVED = [(1, 2), (2, 2)]
JUMPED = [(1, 2), (2, 1)]


@pytest.fixture(params=["row", "file"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    made = World(table_path(tmp_path))
    return made.create([{"id": 1, "p": 1}], anabranch_conflictResolution=request.param)


def nothing() -> pa.Table:
    return SCHEMA.empty_table()


def put(world: World, *actions: Action) -> None:
    put_commit(world.path, world.version + 1, *actions)


def bare(operation: str = "WRITE", **fields: Any) -> Action:
    """As deltalake writes one: no flag, no id, no footprint."""
    return {"commitInfo": {"timestamp": 1, "operation": operation, "engineInfo": "delta-rs:py-1.6.6", **fields}}


def after(world: World, winner: Callable[[World], object]) -> list[tuple[int, int]]:
    """The rows after ours has met a blind append and that winner behind it."""

    def winners() -> None:
        world.append({"id": 2, "p": 1})
        version = world.version
        winner(world)
        assert world.version > version

    with at_phase("staged", winners):
        world.update("p = 1", p=2)
    return sorted((row["id"], row["p"]) for row in world.rows())


def replaced(world: World) -> None:
    where = world.condition("p = 2")
    Write(world.path, nothing(), "overwrite", replace_where=where).run(world.engine)


def selected(world: World) -> None:
    Write(world.path, read_from(nothing(), world.version), "append").run(world.engine)


CDC: Action = {"cdc": {"path": "_change_data/a", "partitionValues": {}, "size": 1, "dataChange": False}}
DOMAIN: Action = {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}}
TXN: Action = {"txn": {"appId": "stream", "version": 1}}
NEW: Action = {"somethingNew": {"read": "everything"}}
TAGS = {RESERVED_FOR: "somebody"}

READERS: dict[str, Callable[[World], object]] = {
    "our replaceWhere without rows": replaced,
    "our INSERT SELECT that finds nothing": selected,
    "another engine's bare commitInfo": lambda world: put(world, bare(operationParameters={"predicate": "p = 2"})),
    "one that says it is not blind": lambda world: put(world, info(isBlindAppend=False)),
    "one whose flag is no boolean": lambda world: put(world, info(isBlindAppend="true")),
    "an UPDATE that found nothing": lambda world: put(world, bare("UPDATE", operationParameters={"predicate": "p=2"})),
    "a batch of a stream, no commitInfo": lambda world: put(world, TXN),
    "a batch of a stream that does not say it is blind": lambda world: put(world, info(), TXN),
    "a domain": lambda world: put(world, info(isBlindAppend=True), DOMAIN),
    "change data": lambda world: put(world, info(isBlindAppend=True), CDC),
    "an action that nobody here knows": lambda world: put(world, info(isBlindAppend=True), NEW),
    "a tag of a reservation that reserves nothing": lambda world: put(world, info(tags=TAGS)),
    "a record of moves that moves nothing": lambda world: put(world, info(tags={moves.TAG: moves.to_text([])})),
    "the name of a VACUUM with something else": lambda world: put(world, info(operation="VACUUM END"), TXN),
}

BLIND: dict[str, Callable[[World], object]] = {
    "a VACUUM of ours": lambda world: world.vacuum(0),
    "a VACUUM of another engine": lambda world: put(world, bare("VACUUM START")),
    "its end": lambda world: put(world, bare("VACUUM END")),
    "an append of no rows": lambda world: put(world, info(isBlindAppend=True)),
    "an empty batch of a stream that read nothing": lambda world: put(world, info(isBlindAppend=True), TXN),
}


@pytest.mark.parametrize("reader", READERS)
def test_mine_stands_behind_one_who_may_have_looked(world: World, reader: str) -> None:
    assert after(world, READERS[reader]) == MOVED
    assert world.info()["tags"]["anabranch.cut"] == "2"


@pytest.mark.parametrize("winner", BLIND)
def test_mine_stands_before_one_who_has_read_nothing_for_certain(world: World, winner: str) -> None:
    assert after(world, BLIND[winner]) == JUMPED
    assert world.info()["tags"]["anabranch.cut"] == "0"


@pytest.mark.parametrize(("wrote", "action"), [(True, CDC), (True, NEW), (True, DOMAIN), (False, TXN), (False, None)])
def test_a_change_of_metadata_passes_those_only_who_wrote_nothing(
    world: World, wrote: bool, action: Action | None
) -> None:
    def alter() -> None:
        SetProperties(world.path, {"a": "b"}).run()

    with at_phase("staged", lambda: put(world, bare(), *([action] if action else []))):
        if not wrote:
            alter()
            return
        with pytest.raises(errors.MetadataChangedException):
            alter()


# -- identity values ---------------------------------------------------------------------------------------------------


def numbered(folder: Path) -> World:
    """Rows of (id, p, n), where n is given by the table or by the user; its mark is 1."""
    number = Field("n", "long", True, identity_metadata(1, 1, explicit=True))
    path = table_path(folder)
    Create(path, NewTable(Struct((Field("id", "long"), Field("p", "long"), number)))).run()
    world = World(path)
    world.append({"id": 1, "p": 1})
    return world


def metadata_with_mark(world: World, mark: int) -> Action:
    return {"metaData": with_marks(world.log.snapshot().metadata, {"n": mark}).to_json()}


def reserving(*more: Action, **fields: Any) -> Callable[[World], object]:
    """A commit that moves the mark and says that it is one of our reservations."""
    said = {"operation": "RESERVE IDENTITY", "tags": TAGS, **fields}
    return lambda world: put(world, info(**said), metadata_with_mark(world, 7), *more)


MARKS: dict[str, Callable[[World], object]] = {
    "SYNC IDENTITY": lambda world: SyncIdentity(world.path, "n").run(world.engine),
    "another engine's mark": reserving(operation="CHANGE COLUMN", tags={}),
    "a tag that is no text": reserving(tags={RESERVED_FOR: 7}),
    "tags that are no map": reserving(tags="anabranch.reservedFor"),
    "a tag with what was read": reserving(tags={**TAGS, "anabranch.reads": "p = 2"}),
    "a tag with a batch of a stream": reserving(TXN),
    "a tag with change data": reserving(CDC),
    "a tag with a file that goes": reserving(remove("nothing.parquet", dataChange=False)),
}


def jumps(world: World, winner: Callable[[World], object]) -> bool:
    """Whether ours was put before a blind append and that winner behind it."""
    base = world.version

    def winners() -> None:
        world.append({"id": 2, "p": 1, "n": 5})
        version = world.version
        winner(world)
        assert world.version > version

    with at_phase("staged", winners):
        world.update("id = 1", p=2)
    return int(world.info()["tags"]["anabranch.cut"]) == base


@pytest.mark.parametrize("winner", MARKS)
def test_a_mark_that_moved_is_no_reservation_because_it_says_so(tmp_path: Path, winner: str) -> None:
    assert not jumps(numbered(tmp_path), MARKS[winner])


def test_a_reservation_of_ours_has_read_no_row(tmp_path: Path) -> None:
    assert jumps(numbered(tmp_path), lambda world: reserve(world.log, ["n"], 2, "somebody", Runtime()))
    assert jumps(numbered(tmp_path / "by hand"), reserving())


def test_a_reservation_that_changes_more_than_marks_is_a_change_of_metadata(tmp_path: Path) -> None:
    world = numbered(tmp_path)
    with pytest.raises(errors.MetadataChangedException):
        jumps(world, lambda w: put(w, info(operation="RESERVE IDENTITY", tags=TAGS), metadata()))


def set_back(mark: int | None, **fields: Any) -> Callable[[World], object]:
    """Another engine's commit that says a mark which lies before the one that the table has, or none."""

    def go(world: World) -> None:
        metadata = world.log.snapshot().metadata
        schema = json.loads(metadata.schema_string)
        of_identity = next(each["metadata"] for each in schema["fields"] if each["name"] == "n")
        of_identity.pop("delta.identity.highWaterMark")
        if mark is not None:
            of_identity["delta.identity.highWaterMark"] = mark
        put(world, info(**fields), {"metaData": {**metadata.to_json(), "schemaString": json.dumps(schema)}})

    return go


BACK = {
    "behind where it was": set_back(0),
    "none": set_back(None),
    "one that says it reserves": set_back(0, operation="RESERVE IDENTITY", tags=TAGS),
}


@pytest.mark.parametrize("back", BACK)
def test_a_mark_that_goes_back_is_a_change_of_metadata_and_no_reservation(tmp_path: Path, back: str) -> None:
    with pytest.raises(errors.MetadataChangedException, match=r"set back|metadata was changed"):
        jumps(numbered(tmp_path), BACK[back])


@pytest.mark.slow
@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize("mark", [1, 2])
def test_values_that_mine_has_reserved_are_given_to_nobody_else(tmp_path: Path, mark: int, bulk: bool) -> None:
    """The mark was 1 at the base of ours, ours reserves 2 and 3, and another engine says that 2 was the last."""
    world = numbered(tmp_path)
    rows = [{"id": 2, "p": 1}, {"id": 3, "p": 1}]
    append = Write(world.path, pa.Table.from_pylist(rows), "append")
    with (
        pytest.raises(errors.MetadataChangedException) as conflict,
        at_phase("staged", lambda: set_back(mark)(world)),
    ):
        append.run(world.engine) if bulk else world.append(*rows)
    assert conflict.value.retryable
    for number in range(10, 13):
        world.append({"id": number, "p": 1})
    given = [row["n"] for row in world.rows()]
    assert len(set(given)) == len(given)
    world.assert_clean()


def test_a_mark_that_goes_back_behind_one_that_was_passed_is_noticed(tmp_path: Path) -> None:
    """Ours is carried over a SYNC IDENTITY that sets the mark to 5, and loses its put to one that says 3."""
    world = numbered(tmp_path)

    def sync() -> None:
        world.append({"id": 2, "p": 3, "n": 5})
        SyncIdentity(world.path, "n").run(world.engine)

    with (
        pytest.raises(errors.MetadataChangedException),
        at_phase("staged", sync),
        at_phase("put", lambda: set_back(3)(world)),
    ):
        world.update("id = 1", p=2)


@pytest.mark.slow
def test_a_blind_flag_beside_a_mark_of_row_ids_that_goes_back_is_not_believed(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 1, "p": 1}], delta_enableRowTracking="true")
    name = "delta.rowTracking"

    def winner(mark: int) -> Callable[[World], object]:
        text = json.dumps({"rowIdHighWaterMark": mark})
        said = {"domainMetadata": {"domain": name, "configuration": text, "removed": False}}
        return lambda world: put(world, info(isBlindAppend=True), said)

    assert after(world.copy(tmp_path / "on"), winner(100)) == JUMPED
    assert after(world.copy(tmp_path / "back"), winner(-1)) == MOVED
    gone = {"domainMetadata": {"domain": name, "configuration": "{}", "removed": True}}
    assert after(world.copy(tmp_path / "gone"), lambda w: put(w, info(isBlindAppend=True), gone)) == MOVED


@pytest.mark.slow
def test_no_number_is_given_twice_around_a_sync(tmp_path: Path) -> None:
    """A MERGE brings 6 while a SYNC IDENTITY counts up to 3: it may not stand before the one that did not see its 6."""
    world = numbered(tmp_path)

    def winners() -> None:
        world.append({"id": 2, "p": 1, "n": 3})
        SyncIdentity(world.path, "n").run(world.engine)

    with pytest.raises(errors.MetadataChangedException, match="SYNC"), at_phase("staged", winners):
        world.merge([{"id": 9, "p": 1, "n": 6}], insert_all("id", "p", "n"))
    for number in range(10, 15):
        world.append({"id": number, "p": 1})
    given = [row["n"] for row in world.rows()]
    assert len(set(given)) == len(given)
    assert [each.mark for each in identities(world.log.snapshot().schema)] == [8]
    world.assert_clean()


@pytest.mark.parametrize("bulk", [False, True])
def test_an_append_that_brings_its_own_numbers_is_refused_behind_a_sync_that_did_not_see_them(
    tmp_path: Path, bulk: bool
) -> None:
    world = numbered(tmp_path)
    row = {"id": 3, "p": 1, "n": 6}
    world.append({"id": 2, "p": 1, "n": 3})
    append = Write(world.path, pa.Table.from_pylist([row]), "append")
    with (
        pytest.raises(errors.MetadataChangedException, match="SYNC"),
        at_phase("staged", lambda: SyncIdentity(world.path, "n").run(world.engine)),
    ):
        append.run(world.engine) if bulk else world.append(row)
    assert [row["id"] for row in world.rows()] == [1, 2]


def test_an_append_whose_numbers_the_table_gives_is_stopped_by_no_sync(tmp_path: Path) -> None:
    world = numbered(tmp_path)
    world.append({"id": 2, "p": 1, "n": 3})
    with at_phase("staged", lambda: SyncIdentity(world.path, "n").run(world.engine)):
        world.append({"id": 3, "p": 1})
    assert sorted(row["n"] for row in world.rows()) == [1, 2, 3]


@pytest.mark.parametrize("step", [1, -1])
def test_numbers_that_lie_before_the_mark_are_in_nobodys_way(tmp_path: Path, step: int) -> None:
    number = Field("n", "long", True, identity_metadata(step, step, explicit=True))
    path = table_path(tmp_path)
    Create(path, NewTable(Struct((Field("id", "long"), number)))).run()
    world = World(path)
    world.append({"id": 1, "n": 9 * step})
    with at_phase("staged", lambda: SyncIdentity(path, "n").run(world.engine)):
        world.append({"id": 2, "n": 6 * step})
    world.append({"id": 3})
    assert sorted(abs(row["n"]) for row in world.rows()) == [6, 9, 10]


# -- moves -------------------------------------------------------------------------------------------------------------

ADDED = {"path": "b", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": False}
GROUP = Group((Origin("a", 3),), (Output("b", 3),), in_order=True)


def moved(*actions: Action, groups: tuple[Group, ...] = (GROUP,)) -> bool:
    """Whether a commit with this record is believed to move rows and nothing else."""
    text = text_of(info(tags={moves.TAG: moves.to_text(groups)}), *actions)
    return relocation_of(parse_commit("t", Raw(1, text.encode()), ())) is not None


def vector(cardinality: int) -> dict[str, Any]:
    return {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 40, "cardinality": cardinality}


def test_moves_are_believed_where_as_many_rows_came_as_went() -> None:
    gone = remove("a", dataChange=False)
    assert moved(gone, {"add": ADDED})
    buried = {"add": {**ADDED, "deletionVector": vector(2)}}
    assert moved(remove("a", dataChange=False, deletionVector=vector(2)), buried)
    assert moved(remove("a", dataChange=False, deletionVector=vector(3)))
    assert not moved(gone, buried), "two rows were deleted on the way"
    assert not moved(gone), "all were"
    assert not moved(remove("a", dataChange=False, deletionVector=vector(2)), {"add": ADDED}), "two came back"


def test_moves_are_not_believed_beside_anything_else() -> None:
    whole = (remove("a", dataChange=False), {"add": ADDED})
    assert not moved(*whole, TXN)
    assert not moved(*whole, NEW)
    assert not moved(groups=())
    assert not moved(groups=(Group((Origin("a", 0),), (), in_order=False),))
