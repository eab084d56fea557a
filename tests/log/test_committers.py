"""The contract of committers, on each of them: who has won a version, and what a log shows of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from anabranch._log.committers import (
    Committer,
    FolderCommitter,
    PrivateCommitter,
    committer_of,
    folder_of,
    private_committer,
    view_through,
)
from anabranch._log.file_names import LAST_CHECKPOINT, checksum_name, commit_name, first_name
from anabranch._log.log import Log
from anabranch._storage import open_store
from anabranch._storage.contract import Entry, Store
from anabranch.commands.dml.append import Append
from anabranch.errors import AlreadyExists, NotFound

BASE = 1
Make = Callable[[Path], tuple[Committer, Store]]


def folder(path: Path) -> tuple[Committer, Store]:
    """The folder of a table at version 1."""
    for number in range(BASE + 1):
        Append(path, [{"id": number}]).run()
    store = open_store(path)
    return FolderCommitter(store), store


def private(path: Path) -> tuple[Committer, Store]:
    """A private log behind version 1 of a table that has gone on to version 2."""
    _, store = folder(path)
    base = Log(store).snapshot().segment.newest
    Append(path, [{"id": 9}]).run()
    committer = PrivateCommitter(BASE, base, "mine", lambda: 7)
    return committer, view_through(store, committer)


@pytest.fixture(params=[folder, private])
def committer_and_store(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Committer, Store]:
    made: tuple[Committer, Store] = request.param(tmp_path / "t")
    return made


Pair = tuple[Committer, Store]


def names(entries: list[Entry]) -> list[str]:
    return [entry.name for entry in entries]


def test_a_version_is_won_once(committer_and_store: Pair) -> None:
    committer, _ = committer_and_store
    committer.propose(BASE + 1, b"mine\n")
    with pytest.raises(AlreadyExists):
        committer.propose(BASE + 1, b"theirs\n")
    assert committer.read(BASE + 1) == b"mine\n"


def test_the_tail_holds_what_was_won_since_a_version(committer_and_store: Pair) -> None:
    committer, _ = committer_and_store
    assert list(committer.tail(BASE)) == []
    committer.propose(BASE + 1, b"one\n")
    committer.propose(BASE + 2, b"two\n")
    assert names(list(committer.tail(BASE))) == [commit_name(BASE + 1), commit_name(BASE + 2)]
    assert names(list(committer.tail(BASE + 1))) == [commit_name(BASE + 2)]


def test_a_version_that_nobody_has_won_cannot_be_read(committer_and_store: Pair) -> None:
    committer, _ = committer_and_store
    with pytest.raises(NotFound):
        committer.read(BASE + 1)


def test_the_store_shows_the_tail_as_files_of_the_folder(committer_and_store: Pair) -> None:
    committer, store = committer_and_store
    committer.propose(BASE + 1, b"one\n")
    committer.publish(BASE + 1)
    name = commit_name(BASE + 1)
    (entry,) = [entry for entry in store.list_from(first_name(BASE + 1)) if entry.name == name]
    assert entry == store.head(name)
    assert entry.size == 4
    assert store.get(name, etag=entry.etag) == b"one\n"
    assert store.read_range(name, -3, 2) == b"ne"
    with pytest.raises(NotFound):
        store.get(name, etag="another")


def test_the_log_of_the_store_proposes_to_it(committer_and_store: Pair) -> None:
    committer, store = committer_and_store
    log = Log(store)
    assert log.put(BASE + 1, b"one\n")
    assert not log.put(BASE + 1, b"two\n")
    assert committer.read(BASE + 1) == b"one\n"
    assert type(committer_of(store)) is type(committer)


# -- a private log -----------------------------------------------------------------------------------------------------


def test_the_folders_later_versions_are_hidden_with_all_that_speaks_of_them(tmp_path: Path) -> None:
    _, view = private(tmp_path / "t")
    store = folder_of(view)
    later = names(store.list_from(first_name(BASE + 1)))
    assert commit_name(BASE + 1) in later
    assert names(view.list_from(first_name(BASE))) == [commit_name(BASE)]
    assert {commit_name(BASE + 1), checksum_name(BASE + 1)}.isdisjoint(names(view.list_from("_delta_log/")))
    for name in (commit_name(BASE + 1), checksum_name(BASE + 1), LAST_CHECKPOINT):
        assert view.head(name) is None
        with pytest.raises(NotFound):
            view.get(name)
    assert Log(view).snapshot().version == BASE


def test_nothing_of_a_private_log_reaches_the_folder(tmp_path: Path) -> None:
    committer, view = private(tmp_path / "t")
    store, before = folder_of(view), names(open_store(tmp_path / "t").list_all())
    committer.propose(BASE + 1, b"one\n")
    view.put(LAST_CHECKPOINT, b"{}")
    view.put_hint(checksum_name(BASE + 1), b"{}")
    view.put_stream("_delta_log/x.checkpoint.parquet", [b"x"])
    view.delete(commit_name(BASE))
    assert names(store.list_all()) == before
    assert private_committer(store) is None
    assert private_committer(view) is committer


def test_what_is_withdrawn_was_never_there(tmp_path: Path) -> None:
    committer, view = private(tmp_path / "t")
    assert isinstance(committer, PrivateCommitter)
    for version in (BASE + 1, BASE + 2):
        committer.propose(version, b"x\n")
    committer.withdraw(BASE + 2)
    assert committer.newest == BASE + 1
    committer.withdraw(BASE + 1)
    assert view.head(commit_name(BASE + 1)) is None


def test_a_view_is_a_store_of_the_same_kind(tmp_path: Path) -> None:
    _, view = private(tmp_path / "t")
    store = folder_of(view)
    assert isinstance(view, type(store))
    assert view.url == store.url
    view.put("data.parquet", b"rows")
    assert store.get("data.parquet") == b"rows"
