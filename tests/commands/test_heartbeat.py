"""A running job shows that it runs, and no longer."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from anabranch.commands.heartbeat import Heartbeat
from anabranch.commands.staging import Staging
from anabranch.errors import StoreError
from anabranch.storage import open_store
from anabranch.testing import Call, DictStore, Watched

OFTEN = 0.005


def beating() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "anabranch-heartbeat"]


def eventually(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + 5
    while not holds() and time.monotonic() < until:
        time.sleep(0.005)
    return holds()


def test_a_heart_beats_until_it_is_stopped() -> None:
    store = DictStore("memory://beats/a")
    heart = Heartbeat(store, "job-1/_beating_1", every_seconds=OFTEN)
    assert eventually(lambda: heart.beats >= 3)
    heart.stop()
    beats = heart.beats
    store.delete("job-1/_beating_1")
    time.sleep(5 * OFTEN)
    assert heart.beats == beats
    assert not store.kept
    assert eventually(lambda: not beating())


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
        assert eventually(lambda store=store: "job-1/_beating_1" in store.kept)
        getattr(staging, end)()
        assert list(store.kept) == left
    assert eventually(lambda: not beating())


def test_nobody_who_dropped_a_job_leaks_its_thread() -> None:
    staging = Staging(DictStore("memory://beats/d"), "1", OFTEN)
    staging.start()
    assert beating()
    del staging
    gc.collect()
    assert eventually(lambda: not beating())


def test_a_store_that_refuses_a_beat_is_asked_again() -> None:
    def refuses(call: Call) -> StoreError | None:
        return StoreError(name=call.about, root="", reason="not now.") if call.number < 3 else None

    store = Watched(DictStore("memory://beats/e"), before=refuses)
    heart = Heartbeat(store, "job-1/_beating_1", every_seconds=OFTEN)
    assert eventually(lambda: heart.beats >= 1)
    heart.stop()


@pytest.mark.slow
def test_a_process_ends_though_a_heart_beats(tmp_path: Path) -> None:
    script = (
        "from anabranch.commands.staging import Staging\n"
        "from anabranch.storage import open_store\n"
        f"staging = Staging(open_store({str(tmp_path)!r}), '1', 0.01)\n"
        "staging.start()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], timeout=60, env=dict(os.environ), check=False)
    assert done.returncode == 0
    assert open_store(tmp_path).head("job-1/_started_1") is not None
