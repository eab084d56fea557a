"""What opening and committing ask of a store: no more than they have to know, and less often the slower it is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from anabranch import errors
from anabranch._log.file_names import commit_name, commit_version
from anabranch._log.log import Log, forget, remember
from anabranch._log.positions import LogPosition
from anabranch._storage.open import mounted
from anabranch._transaction.phases import listen, unlisten
from anabranch._transaction.retry import RetryPolicy, Runtime, default_retry
from anabranch.commands.context import RunContext
from anabranch.commands.dml.append import Append
from anabranch.testing import DictStore, ObservedStore
from anabranch.testing.faults import instant
from anabranch.testing.stores import Call
from tests.support.patience import PATIENCE

ROWS = [{"id": 1}]


@pytest.fixture
def store() -> Iterator[DictStore]:
    found = DictStore("memory://requests/t")
    with mounted(found):
        Append(found.url, ROWS, properties={"delta.checkpointInterval": "1000"}).run()
        Append(found.url, ROWS).run()
        yield found
    forget(found.url)


class _Losing(ObservedStore):
    """A store whose next commits are taken by others just before; ``hidden`` lists fail after each loss."""

    def __init__(self, inner: DictStore, losses: int, hidden: int = 0) -> None:
        super().__init__(inner, before=self._told)
        self.left, self.hidden, self.is_hiding = losses, hidden, False

    def _told(self, call: Call) -> Exception | None:
        if call.is_commit and self.left:
            self.left, self.is_hiding = self.left - 1, True
            winner = self.inner.get(commit_name((commit_version(call.about) or 0) - 1))
            winner = winner.replace(b'"txnId":"', b'"txnId":"w').replace(b"part-", b"part-w")
            self.inner.put_if_absent(call.about, winner)
        if call.method == "list_from" and self.is_hiding and self.hidden:
            self.hidden -= 1
            return errors.StoreError(name=str(call.about), root=self.url, reason="as the test asked.")
        return None

    def of_the_log(self) -> list[str]:
        """The calls about the log, from the first commit that was tried."""
        said = [f"{call.method} {call.about[-7:]}" for call in self.calls if "_delta_log" in str(call.about)]
        return said[said.index("put_if_absent 02.json") :]


def test_a_lost_put_costs_one_listing_and_one_read_of_the_winner(store: DictStore) -> None:
    losing = _Losing(store, 1)
    with mounted(losing):
        assert Append(store.url, ROWS).run().version == 3
    asked = losing.of_the_log()
    assert asked[:4] == ["put_if_absent 02.json", "list_from 0000001", "get 02.json", "put_if_absent 03.json"]


def test_a_put_that_was_lost_is_decided_also_where_no_list_comes(store: DictStore) -> None:
    losing = _Losing(store, 1, hidden=1)
    with mounted(losing):
        assert Append(store.url, ROWS).run().version == 3
    assert "head 02.json" in losing.of_the_log()


def test_every_later_try_looks_again_after_its_pause(store: DictStore) -> None:
    losing = _Losing(store, 3)
    with mounted(losing):
        assert Append(store.url, ROWS).run(context=RunContext(runtime=instant())).attempts == 4
    lists = [call for call in losing.of_the_log() if call.startswith("list_from")]
    assert len(lists) == 5, "one for each loss, and one after each pause"


def test_pauses_grow_with_what_a_put_takes() -> None:
    retry, always = default_retry(blind=True), Runtime(random=lambda: 1.0)
    assert [retry.pause(attempt, always, took=0.4) for attempt in (0, 1, 2, 3, 40)] == pytest.approx(
        [0.16, 0.32, 0.64, 1.28, 2.4]
    )
    assert retry.pause(40, always, took=0.001) == retry.longest_pause


def test_pauses_grow_with_what_the_store_takes_and_not_with_the_work_of_a_rebase(store: DictStore) -> None:
    clock, pauses = [0.0], list[float]()

    def work(phase: str) -> None:
        clock[0] += 100.0 if phase == "checked" else 0.0  # a MERGE redone on winners' rows, say

    runtime = Runtime(seconds=lambda: clock[0], sleep=pauses.append, random=lambda: 1.0)
    listen(work)
    try:
        with mounted(_Losing(store, 12)):
            Append(store.url, ROWS).run(context=RunContext(runtime=runtime))
    finally:
        unlisten(work)
    assert clock[0] > 1000
    assert len(pauses) == 11
    assert max(pauses) == RetryPolicy(1).longest_pause


def test_a_disk_is_paused_for_as_before() -> None:
    retry, always = RetryPolicy(attempts=1), Runtime(random=lambda: 1.0)
    assert retry.pause(0, always, took=0.002) == retry.first_pause


@pytest.mark.slow
def test_a_handle_that_was_away_starts_from_the_checkpoint_and_not_from_every_commit() -> None:
    store = DictStore("memory://requests/away")
    with mounted(store):
        Append(store.url, ROWS).run()
        before = Log(store).snapshot()
        for _ in range(60):
            Append(store.url, ROWS).run()
        remember(before)
        watched = ObservedStore(store)
        assert Log(watched).snapshot().version == 60
        assert len(Log(watched).snapshot().files) == 61
    forget(store.url)
    commits = [call for call in watched.calls if call.method == "get" and str(call.about).endswith(".json")]
    assert len(commits) < 5


def test_winners_are_read_together_and_stay_in_their_order(store: DictStore) -> None:
    for _ in range(19):
        Append(store.url, ROWS).run()
    meeting = threading.Barrier(2, timeout=PATIENCE)

    class Meeting(ObservedStore):
        def get(self, name: str, *, etag: str | None = None) -> bytes:
            meeting.wait()  # breaks unless two are read at once
            return super().get(name, etag=etag)

    found: Any = Log(Meeting(store)).commits_after(LogPosition(0, None, None))
    assert [commit.version for commit in found] == list(range(1, 21))


@pytest.mark.parametrize(("kept", "times"), [(1 << 20, 1), (0, 2)], ids=["few bytes", "more than is kept"])
def test_commits_that_were_read_for_the_head_are_not_read_again_for_the_files(
    store: DictStore, monkeypatch: pytest.MonkeyPatch, kept: int, times: int
) -> None:
    monkeypatch.setattr("anabranch._log.snapshot.KEPT_BYTES", kept)
    forget(store.url)
    watched = ObservedStore(store)
    assert Log(watched).snapshot().files.num_rows == 2
    read = [call.about for call in watched.calls if call.method == "get" and str(call.about).endswith(".json")]
    assert sorted(read) == sorted([commit_name(0), commit_name(1)] * times)
