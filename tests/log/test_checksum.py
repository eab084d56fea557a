"""Checksum files say what each version amounts to, cost an append no add, and decide nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch._log.checksum import read_checksum
from anabranch._log.commits import ENGINE
from anabranch._log.file_names import checksum_name, commit_name
from anabranch._log.log import Log, forget
from anabranch._protocol.actions import AppTransaction
from anabranch._storage import open_store
from anabranch.commands.dml.append import Append
from anabranch.errors import StoreError
from anabranch.testing import DictStore, at_phase, mounted
from anabranch.testing.stores import Call, ObservedStore
from tests.log.histories import as_bodies
from tests.support.raw_logs import WITH_VECTORS, add, info, metadata, put_commit, remove
from tests.support.worlds import World


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(str(tmp_path / "t")).create([{"id": i, "x": i} for i in range(6)], delta_checkpointInterval="4")


def said(world: World, version: int) -> dict[str, Any]:
    return json.loads((Path(world.path) / checksum_name(version)).read_text())


def assert_true(world: World, version: int) -> None:
    stated = read_checksum(world.log.store, version)
    assert stated is not None, version
    snapshot = world.log.snapshot(version)
    assert stated.differs(snapshot.checksum()) == []


CHANGES: dict[str, Callable[[World], Any]] = {
    "append": lambda world: world.append({"id": 10, "x": 1}, {"id": 11, "x": 2}),
    "mark": lambda world: world.delete("id = 1"),
    "mark again": lambda world: world.update("id = 2", x=9),
    "delete a file": lambda world: world.delete("id >= 10"),
    "merge": lambda world: world.merge([{"id": 3, "x": 7}, {"id": 50, "x": 8}]),
    "overwrite": lambda world: world.overwrite({"id": 1, "x": 1}),
    "app": lambda world: Append(world.path, [{"id": 4, "x": 4}], txn=AppTransaction("app", 3)).run(),
}


@pytest.mark.slow
def test_every_commit_is_summed_up(world: World) -> None:
    assert_true(world, 0)
    for change in CHANGES.values():
        change(world)
        assert_true(world, world.version)
    for change in reversed(CHANGES.values()):
        forget()
        change(world)
        assert_true(world, world.version)
    versions = range(world.version + 1)
    assert all((Path(world.path) / checksum_name(version)).exists() for version in versions)


def test_it_has_the_fields_of_the_protocol(world: World) -> None:
    world.delete("id = 1")
    Append(world.path, [{"id": 4, "x": 4}], txn=AppTransaction("app", 3)).run()
    files = world.log.snapshot().files.to_pylist()
    fields = said(world, 2)
    assert fields["tableSizeBytes"] == sum(file["size"] for file in files)
    assert fields["numFiles"] == 2
    assert (fields["numMetadata"], fields["numProtocol"]) == (1, 1)
    assert (fields["numDeletionVectorsOpt"], fields["numDeletedRecordsOpt"]) == (1, 1)
    assert [each["appId"] for each in fields["setTransactions"]] == ["app"]
    assert fields["domainMetadata"] == []
    assert fields["metadata"] == world.log.snapshot().metadata.to_json()
    assert fields["protocol"] == world.log.snapshot().protocol.to_json()
    assert fields["txnId"] == world.info(2)["txnId"]
    assert "inCommitTimestampOpt" not in fields


def test_an_append_to_a_cold_table_reads_no_add_for_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch._log.snapshot.Snapshot.files", property(lambda self: pytest.fail("adds were read")))
    forget()
    world.append({"id": 10, "x": 1})
    forget()
    assert said(world, 1)["numFiles"] == 2


def test_a_table_without_any_gets_none_until_its_files_are_known(world: World) -> None:
    """A commit of another engine, most of which write none, ends the chain; a checkpoint begins it anew."""
    world.append({"id": 10, "x": 1})
    for version in (0, 1):
        (Path(world.path) / checksum_name(version)).unlink()
    forget()
    for i in range(3):
        world.append({"id": 11 + i, "x": 1})
    assert not (Path(world.path) / checksum_name(3)).exists()
    assert_true(world, 4)
    world.append({"id": 20, "x": 1})
    assert_true(world, 5)


def by_another_engine(world: World, **lies: Any) -> None:
    """Version 0 and its checksum file as those of another engine."""
    log = Path(world.path) / commit_name(0)
    log.write_text(log.read_text().replace(ENGINE, "Other/1.0"))
    (Path(world.path) / checksum_name(0)).write_text(json.dumps({**said(world, 0), **lies}))
    forget()


def test_one_of_another_engine_is_not_gone_on_from_until_the_files_are_read(world: World) -> None:
    by_another_engine(world, numFiles=7)
    world.append({"id": 10, "x": 1})
    assert not (Path(world.path) / checksum_name(1)).exists()
    world.delete("id = 1")
    assert_true(world, 2)


def test_a_winner_of_another_engine_that_names_live_files_again_is_not_summed_up(world: World) -> None:
    def won() -> None:
        (file,) = world.log.snapshot().files.to_pylist()
        put_commit(world.path, 1, info(), add(file["path"], size=file["size"]))

    with at_phase("put", won):
        world.delete("id = 1")
    assert world.version == 2
    assert not (Path(world.path) / checksum_name(2)).exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"numFiles":-1}', "\u00ff" * 9])
def test_a_broken_one_is_as_good_as_none(world: World, text: str) -> None:
    (Path(world.path) / checksum_name(0)).write_text(text)
    forget()
    assert read_checksum(world.log.store, 0) is None
    world.append({"id": 10, "x": 1})
    assert not (Path(world.path) / checksum_name(1)).exists()
    assert len(world.rows()) == 7


def test_one_of_a_commit_that_stood_here_before_is_not_gone_on_from(world: World) -> None:
    (Path(world.path) / checksum_name(0)).write_text(json.dumps({**said(world, 0), "txnId": "another"}))
    forget()
    world.append({"id": 10, "x": 1})
    assert not (Path(world.path) / checksum_name(1)).exists()


@pytest.mark.parametrize("is_kept", [True, False], ids=["its checksum file stays", "its checksum file goes, too"])
def test_a_commit_that_is_made_anew_in_a_copy_put_back_is_summed_up_anew(world: World, is_kept: bool) -> None:
    """This process remembers the sums of its own version 1; another makes that version again."""
    world.append(*({"id": 10 + i, "x": 1} for i in range(3)))
    (Path(world.path) / commit_name(1)).unlink()
    if not is_kept:
        (Path(world.path) / checksum_name(1)).unlink()
    put_commit(world.path, 1, info(txnId="another's"), add("f.parquet", size=77))
    for i in range(3):
        world.append({"id": 20 + i, "x": 1})
    assert len(world.log.snapshot().files) == 5
    for version in (2, 3, 4):
        stated = read_checksum(world.log.store, version)
        assert stated is None or stated.differs(world.log.snapshot(version).checksum()) == []


def test_after_a_checkpoint_a_process_that_knows_nothing_goes_on_from_our_own(world: World) -> None:
    for i in range(4):
        world.append({"id": 10 + i, "x": 1})
    for commit in range(4):
        (Path(world.path) / commit_name(commit)).unlink()
    forget()
    world.append({"id": 20, "x": 1})
    assert_true(world, 5)


def test_none_is_replaced(world: World) -> None:
    (Path(world.path) / checksum_name(1)).write_text("ours")
    world.append({"id": 10, "x": 1})
    assert (Path(world.path) / checksum_name(1)).read_text() == "ours"


def test_a_writer_that_was_overtaken_sums_up_the_version_that_it_got(world: World) -> None:
    with at_phase("put", lambda: world.append({"id": 10, "x": 1})):
        world.delete("id = 1")
    assert world.version == 2
    for version in (1, 2):
        assert_true(world, version)


def test_adds_that_state_live_files_anew_end_the_chain(tmp_path: Path) -> None:
    put_commit(tmp_path, 0, info(), WITH_VECTORS, metadata(), add("a"), add("b"))
    log = Log(open_store(tmp_path))
    summed = log.snapshot().checksum()
    put_commit(tmp_path, 1, add("a", dataChange=False, stats="{}"))
    put_commit(tmp_path, 2, remove("a"))
    first, second = (log.read(version) for version in (1, 2))
    assert first is not None
    assert second is not None
    assert summed.advance_by(first) is None
    assert log.snapshot(1).checksum().advance_by(second) is None, "the remove does not say its size"


def test_a_commit_stands_whatever_becomes_of_its_checksum() -> None:
    refuse = StoreError(name="x", root="y", reason="the disk is in a bad mood.")

    def before(call: Call) -> Exception | None:
        return refuse if call.method == "put_hint" or str(call.about).endswith(".crc") else None

    with mounted(ObservedStore(DictStore("memory://moods/t"), before)) as location:
        assert Append(location, [{"id": 1}]).run().version == 0
        assert Append(location, [{"id": 2}]).run().version == 1


# -- the check ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tableSizeBytes", 1),
        ("numFiles", 7),
        ("numDeletedRecordsOpt", 5),
        ("setTransactions", [{"appId": "a", "version": 1}]),
    ],
)
def test_commits_decide_against_a_checksum_which_the_check_and_a_warning_name(
    world: World, field: str, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    world.append({"id": 10, "x": 1})
    world.delete("id = 0")
    before = as_bodies(world.log.snapshot().files)
    assert anabranch.check(world.path).is_clean
    fields = said(world, 2)
    (Path(world.path) / checksum_name(2)).write_text(json.dumps({**fields, field: value}))
    forget()
    (finding,) = anabranch.check(world.path).findings
    assert finding.file == checksum_name(2)
    forget()
    caplog.clear()
    assert as_bodies(world.log.snapshot().files) == before
    assert (f"{checksum_name(2)} of {world.log.table} is wrong" in caplog.text) == (field != "setTransactions")
    world.append({"id": 11, "x": 1})
    assert_true(world, 3)


@pytest.mark.parametrize("field", ["metadata", "protocol"])
def test_the_check_finds_other_metadata(world: World, field: str) -> None:
    fields = said(world, 0)
    wrong = {
        "metadata": {**fields["metadata"], "partitionColumns": ["x"]},
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
    }
    (Path(world.path) / checksum_name(0)).write_text(json.dumps({**fields, field: wrong[field]}))
    forget()
    (finding,) = anabranch.check(world.path).findings
    assert field in finding.problem
    assert world.log.snapshot().partition_columns == ()


def test_the_check_looks_at_the_newest_checksum_that_there_is(world: World) -> None:
    fields = said(world, 0)
    (Path(world.path) / checksum_name(0)).write_text(json.dumps({**fields, "numFiles": 3}))
    forget()
    put_commit(world.path, 1, info())
    assert anabranch.check(world.path).findings[0].file == checksum_name(0)


def test_a_changed_commit_shows_by_its_checksum(world: World) -> None:
    """What they are for: somebody changed a commit file after it was committed."""
    world.append({"id": 10, "x": 1})
    file = Path(world.path) / commit_name(1)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if '"add"' not in line))
    forget()
    assert {finding.file for finding in anabranch.check(world.path).findings} == {checksum_name(1)}
