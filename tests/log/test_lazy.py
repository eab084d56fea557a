"""Lazy properties: once per instance, and no instance waits for another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from anabranch._log.lazy import lazy
from anabranch._log.log import Log, forget
from anabranch._storage import open_store
from anabranch.testing import Call, ObservedStore
from tests.support.patience import end, happens
from tests.support.worlds import World, table_path


class Counted:
    """Counts its computations."""

    def __init__(self) -> None:
        self.times = 0

    @lazy
    def value(self) -> int:
        """What it is."""
        self.times += 1
        return 7


def test_a_lazy_property_is_computed_once_and_keeps_its_docstring() -> None:
    counted = Counted()
    assert (counted.value, counted.value, counted.times) == (7, 7, 1)
    assert Counted.value.__doc__ == "What it is."


def test_a_slow_read_of_one_table_does_not_stop_another_table(tmp_path: Path) -> None:
    """functools.cached_property would, before Python 3.12: its lock is shared by all instances."""
    slow, quick = (World(table_path(tmp_path)).create([{"id": 1}]) for _ in range(2))
    reading, go_on = threading.Event(), threading.Event()

    def wait(call: object) -> None:
        reading.set()
        happens(go_on)

    store = ObservedStore(open_store(slow.path))
    snapshot = Log(store).snapshot()
    store.before = wait
    with stuck(lambda: snapshot.files, reading, go_on):
        assert len(quick.log.snapshot().files) == 1


def test_a_slow_read_of_one_checkpoint_does_not_stop_another(tmp_path: Path) -> None:
    slow, quick = (World(table_path(tmp_path)).create([{"id": 1}]) for _ in range(2))
    for world in (slow, quick):
        world.log.write_checkpoint(world.log.snapshot(), now_ms=1_700_000_000_000)
    forget()
    reading, go_on = threading.Event(), threading.Event()

    def wait(call: Call) -> None:
        if call.method == "get" and str(call.about).endswith(".checkpoint.parquet"):
            reading.set()
            happens(go_on)

    store = ObservedStore(open_store(slow.path))
    store.before = wait
    with stuck(lambda: Log(store).snapshot().files, reading, go_on):
        assert len(Log(open_store(quick.path)).snapshot().files) == 1


@contextmanager
def stuck(read: Callable[[], object], reading: threading.Event, go_on: threading.Event) -> Iterator[None]:
    """Somebody is in the middle of reading, until the block ends, or until it loses patience."""
    thread = threading.Thread(target=read)
    thread.start()
    try:
        happens(reading)
        yield
        assert thread.is_alive(), "it waited until the other table's read had given up"
    finally:
        go_on.set()
        end(thread)
