"""Writers who race for the same names, as threads or as processes, and one who watches the listings meanwhile.

Imported by the racing processes too, so it knows nothing of pytest.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Barrier
from typing import NamedTuple

from anabranch._storage import Store, open_store
from anabranch.errors import AlreadyExists
from tests.support.patience import PATIENCE

LOG = "_delta_log/"
THREADS = 32
PROCESSES = 8
BYTES = 6_000


class Tally(NamedTuple):
    """What one writer was told.

    Args:
        won: the versions that it was told to have created.
        authors: whose bytes stood under each version when its own put had returned or been refused.
    """

    won: list[int]
    authors: list[int]


@dataclass(frozen=True)
class Race:
    """What all writers share.

    Args:
        location: of the store.
        versions: how many of them everybody tries to create, in order.
        gate: where all wait for the last.
        standing: the highest version that a put, of anybody, has returned or been refused for; -1 before the first.
        environment: where credentials come from; a forked server of processes has only that of its own start.
    """

    location: str
    versions: int
    gate: threading.Barrier | Barrier
    standing: Synchronized[int]
    environment: Mapping[str, str]


_race: list[Race] = []


def version(number: int) -> str:
    return f"{LOG}{number:020}.json"


def wins(store: Store, name: str, data: bytes) -> bool:
    try:
        store.put_if_absent(name, data)
    except AlreadyExists:
        return False
    return True


def threads_racing(location: str, versions: int) -> list[Tally]:
    """What each of 32 threads was told, each with a handle of its own."""
    standing = multiprocessing.get_context("forkserver").Value("i", -1)
    race = Race(location, versions, threading.Barrier(THREADS), standing, {})
    return _watched(race, ThreadPoolExecutor(THREADS, initializer=_enter, initargs=(race,)), THREADS)


def processes_racing(location: str, versions: int) -> list[Tally]:
    """What each of 8 processes was told. None is forked from this one, whose threads obstore needs."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    race = Race(location, versions, context.Barrier(PROCESSES), context.Value("i", -1), dict(os.environ))
    pool = ProcessPoolExecutor(PROCESSES, mp_context=context, initializer=_enter, initargs=(race,))
    return _watched(race, pool, PROCESSES)


def contents(writer: int, number: int) -> bytes:
    """Bytes of one size, from which their author can be told, and whether all are there."""
    return (b"%03d put %05d;" % (writer, number) * BYTES)[:BYTES]


def author(data: bytes, number: int) -> int:
    writer = int(data[:3])
    assert data == contents(writer, number)
    return writer


def _enter(race: Race) -> None:
    os.environ.update(race.environment)
    _race[:] = [race]


def _watched(race: Race, pool: Executor, writers: int) -> list[Tally]:
    with pool, _watcher(race):
        return list(pool.map(_write, range(writers)))


def _write(writer: int) -> Tally:
    """Try all versions in order, and read each one at once."""
    race = _race[0]
    store, tally = open_store(race.location), Tally([], [])
    race.gate.wait(PATIENCE)
    for number in range(race.versions):
        if wins(store, version(number), contents(writer, number)):
            tally.won.append(number)
        with race.standing.get_lock():
            race.standing.value = max(race.standing.value, number)
        tally.authors.append(author(store.get(version(number)), number))
    return tally


@contextmanager
def _watcher(race: Race) -> Iterator[None]:
    """List again and again, on a thread of this process, until the block ends; what it finds wrong is raised then."""
    done = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(partial(_watch, race, done))
        try:
            yield
        finally:
            done.set()
        watching.result()


def _watch(race: Race, done: threading.Event) -> None:
    store, is_last = open_store(race.location), False
    while not is_last:
        is_last, standing = done.is_set(), race.standing.value
        start = max(standing, 0) // 2
        listed = store.list_from(version(start))
        names = [entry.name for entry in listed]
        assert names[: standing - start + 1] == [version(number) for number in range(start, standing + 1)]
        assert names == sorted({*names})
        assert {entry.size for entry in listed} <= {BYTES}
