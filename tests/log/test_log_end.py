"""A log whose newest commit was lost is not taken for that of the version before."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from anabranch._log.file_names import checksum_name, commit_name, first_name
from anabranch._log.log import Log, forget, remember
from anabranch._protocol.features.table_features import writer_features
from anabranch._storage.contract import Entry
from anabranch.commands.dml.append import Append
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.errors import CorruptLog
from anabranch.testing import DictStore, ObservedStore, mounted

LOST = 3


@pytest.fixture
def store() -> Iterator[DictStore]:
    forget()
    store = DictStore("memory://ends/table")
    with mounted(store) as location:
        for number in range(LOST + 1):
            Append(location, [{"id": number}]).run()
        yield store
    forget()


def refused(log: Log) -> CorruptLog:
    with pytest.raises(CorruptLog) as caught:
        log.snapshot()
    return caught.value


@pytest.mark.parametrize("knows", [True, False])
def test_a_lost_newest_commit_is_told_by_the_checksum_file_that_it_left(store: DictStore, knows: bool) -> None:
    whole = dict(store.kept)
    store.delete(commit_name(LOST))
    store.delete(checksum_name(LOST))
    forget()
    if knows:
        assert Log(store).snapshot().version == LOST - 1
    store.put(checksum_name(LOST), whole[checksum_name(LOST)].data)
    error = refused(Log(store))
    assert (error.file, checksum_name(LOST) in error.message) == (commit_name(LOST), True)
    before = dict(store.kept)
    with pytest.raises(CorruptLog):
        Append(store.url, [{"id": 9}]).run()
    with pytest.raises(CorruptLog):
        Vacuum(store.url, 0, check_retention=False).run()
    assert set(store.kept) == set(before), "nothing is written over what was lost"


def test_the_versions_before_it_can_be_read_and_without_that_file_the_log_goes_on(store: DictStore) -> None:
    store.delete(commit_name(LOST))
    assert Log(store).snapshot(LOST - 1).version == LOST - 1
    store.delete(checksum_name(LOST))
    assert Append(store.url, [{"id": 9}]).run().version == LOST


def test_the_checksum_file_of_another_table_at_this_path_says_nothing_of_its_end(store: DictStore) -> None:
    store.delete(commit_name(LOST))
    name = checksum_name(LOST)
    stated = json.loads(store.get(name))
    store.put(name, json.dumps({**stated, "metadata": {**stated["metadata"], "id": "another"}}).encode())
    assert Log(store).snapshot().version == LOST - 1
    store.put(name, b"garbled")
    forget()
    assert Log(store).snapshot().version == LOST - 1


@pytest.mark.parametrize("feature", ["coordinatedCommits-preview", "managed-commit"])
def test_a_commit_that_a_coordinator_keeps_elsewhere_is_not_lost(store: DictStore, feature: str) -> None:
    first = store.get(commit_name(0)).replace(b'"writerFeatures":[', f'"writerFeatures":["{feature}",'.encode())
    store.put(commit_name(0), first)
    store.delete(commit_name(LOST))
    forget()
    found = Log(store).snapshot()
    assert (feature in writer_features(found.protocol), found.version) == (True, LOST - 1)


class Listings(ObservedStore):
    """Its listings are what these functions make of the true ones, one after the other; then they are true."""

    def __init__(self, inner: DictStore, *of: Callable[[list[Entry]], list[Entry]]) -> None:
        super().__init__(inner)
        self._of = list(of)

    def list_from(self, start: str) -> list[Entry]:
        found = super().list_from(start)
        return self._of.pop(0)(found) if self._of else found


def without_the_newest(listing: list[Entry]) -> list[Entry]:
    return [entry for entry in listing if entry.name != commit_name(LOST)]


@pytest.mark.parametrize("knows", [True, False])
def test_a_commit_that_a_listing_left_out_is_found_by_the_next_one(store: DictStore, knows: bool) -> None:
    known = Log(store).snapshot(LOST - 1)
    forget()
    if knows:
        remember(known)
    assert Log(Listings(store, without_the_newest)).snapshot().version == LOST


def test_a_commit_that_every_listing_leaves_out_is_no_loss(store: DictStore) -> None:
    forget()
    late = Listings(store, *[without_the_newest] * 4)
    assert Log(late).snapshot().version == LOST - 1, "nobody had been told of it when the listing began"


def test_a_commit_that_was_cleaned_up_while_the_folder_was_listed_is_no_loss(store: DictStore) -> None:
    """Its first page has the commit that is known, the last one what a clean-up left of the others."""
    known, entries = Log(store).snapshot(LOST - 1), store.list_from(first_name(0))
    Log(store).write_checkpoint(Log(store).snapshot(), now_ms=0)
    for version in range(LOST + 1):
        store.delete(commit_name(version))
    left = commit_name(LOST - 1), checksum_name(LOST)
    remember(known)
    torn = Listings(store, lambda listing: [entry for entry in entries if entry.name in left])
    assert Log(torn).snapshot().version == LOST


def test_a_checksum_file_that_goes_while_it_is_looked_at_says_nothing(store: DictStore) -> None:
    store.delete(commit_name(LOST))
    forget()

    class Going(ObservedStore):
        def head(self, name: str) -> Entry | None:
            store.delete(checksum_name(LOST)) if name == commit_name(LOST) else None
            return super().head(name)

    assert Log(Going(store)).snapshot().version == LOST - 1


def test_a_whole_log_is_read_by_no_further_request(store: DictStore) -> None:
    forget()
    watched = ObservedStore(store)
    log = Log(watched)
    log.snapshot()
    first = [(call.method, call.about) for call in watched.calls]
    assert ("head", commit_name(LOST + 1)) not in first
    assert not [about for method, about in first if str(about).endswith(".crc")]
    log.snapshot()
    assert [call.method for call in watched.calls[len(first) :]] == ["list_from"]
