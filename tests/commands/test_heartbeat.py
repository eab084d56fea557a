"""A running job shows that it runs, and no longer."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from anabranch._storage import open_store
from anabranch.commands.heartbeat import Heartbeat
from anabranch.commands.staging import Staging
from anabranch.errors import StoreError
from anabranch.testing import Call, DictStore, ObservedStore
from tests.support.patience import PATIENCE, until

OFTEN = 0.005


EARLIER: set[threading.Thread] = set()
"""Hearts of other tests, which may take their time to end."""


@pytest.fixture(autouse=True)
def own_hearts_only() -> None:
    EARLIER.clear()
    EARLIER.update(threading.enumerate())


def beating() -> list[threading.Thread]:
    found = [thread for thread in threading.enumerate() if thread.name == "anabranch-heartbeat"]
    return [thread for thread in found if thread not in EARLIER]


def test_a_heart_beats_until_it_is_stopped() -> None:
    store = DictStore("memory://beats/a")
    heart = Heartbeat(store, "job-1/_beating_1", every_seconds=OFTEN)
    until(lambda: heart.beats >= 3)
    heart.stop()
    beats = heart.beats
    store.delete("job-1/_beating_1")
    until(lambda: not beating())
    assert heart.beats == beats, "it beat after it was stopped"
    assert not store.kept


def test_a_short_job_never_beats() -> None:
    store = DictStore("memory://beats/b")
    staging = Staging(store, "1")
    staging.start()
    staging.finish()
    assert list(store.kept) == ["job-1/_committed_1"]


def test_a_finished_job_leaves_no_heartbeat_and_a_discarded_one_nothing() -> None:
    for end, left in (("finish", ["job-1/_committed_1"]), ("discard", [])):
        store = DictStore("memory://beats/c")
        staging = Staging(store, "1", OFTEN)
        staging.start()
        until(lambda store=store: "job-1/_beating_1" in store.kept)
        getattr(staging, end)()
        assert list(store.kept) == left
    until(lambda: not beating())


def test_nobody_who_dropped_a_job_leaks_its_thread() -> None:
    staging = Staging(DictStore("memory://beats/d"), "1", OFTEN)
    staging.start()
    assert beating()
    del staging
    gc.collect()
    until(lambda: not beating())


def test_a_store_that_refuses_a_beat_is_asked_again() -> None:
    def refuses(call: Call) -> StoreError | None:
        return StoreError(name=call.about, root="", reason="not now.") if call.number < 3 else None

    store = ObservedStore(DictStore("memory://beats/e"), before=refuses)
    heart = Heartbeat(store, "job-1/_beating_1", every_seconds=OFTEN)
    until(lambda: heart.beats >= 1)
    heart.stop()


@pytest.mark.slow
def test_a_process_ends_though_a_heart_beats(tmp_path: Path) -> None:
    script = (
        "from anabranch.commands.staging import Staging\n"
        "from anabranch._storage import open_store\n"
        f"staging = Staging(open_store({str(tmp_path)!r}), '1', 0.01)\n"
        "staging.start()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], timeout=PATIENCE, env=dict(os.environ), check=False)
    assert done.returncode == 0
    assert open_store(tmp_path).head("job-1/_started_1") is not None
