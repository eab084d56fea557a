"""Probes a store: whether its put-if-absent refuses an existing name and lets exactly one of several concurrent
writers succeed, whether deleting is allowed, and how its clock differs.

Writes two names, in a folder of its own below the location, and removes them and nothing else.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from anabranch._cli import diagnosis
from anabranch._cli.diagnosis import Check
from anabranch._storage import open_store
from anabranch._storage.contract import Store
from anabranch.commands.opening import open_log
from anabranch.errors import AlreadyExists, AnabranchError, PutOutcomeUnknown, StorePermissionDenied

_PUT, _AT_ONCE = "put-if-absent", "puts at once"
_FIRST, _SECOND = b"first", b"second"
_WRITERS = 8
_NO_TABLES = "Keep no tables here: two writers would overwrite each other's commits."


def store_checks(location: str) -> Iterator[Check]:
    """Opens a location, looks for a table, and probes its store; a store that cannot be opened is a failed check."""
    try:
        store = open_store(location)
    except AnabranchError as error:
        yield Check("store", "failed", error.message)
        return
    yield Check("store", "ok", store.url)
    yield _table(location)
    with own_folder(store) as (folder, _):
        yield from put_checks(store, f"{folder}/name")


def put_checks(store: Store, name: str) -> Iterator[Check]:
    """Puts a new name twice, and another by several threads at once, and removes both."""
    names = [name, f"{name}-at-once"]
    before = _now_ms()
    try:
        store.put_if_absent(name, _FIRST)
    except PutOutcomeUnknown as error:
        yield Check(_PUT, "failed", error.message)
        yield from cleanup_checks(store, names[:1])
        return
    except AnabranchError as error:  # nothing was written
        yield Check(_PUT, "failed", error.message)
        return
    after = _now_ms()
    try:
        yield _second(store, name)
        yield _at_once(store, names[1])
        entry = store.head(name)
        if entry is not None:
            yield diagnosis.skew_check(entry.modified_ms, before, after)
    except AnabranchError as error:
        yield Check(_PUT, "failed", error.message)
    yield from cleanup_checks(store, names)


def _second(store: Store, name: str) -> Check:
    try:
        store.put_if_absent(name, _SECOND)
    except AlreadyExists:
        return put_check(refused=True, kept=store.get(name) == _FIRST)
    return put_check(refused=False, kept=store.get(name) == _FIRST)


def put_check(*, refused: bool, kept: bool) -> Check:
    """Judges the outcome of two puts of one name. Pure."""
    if refused and kept:
        return Check(_PUT, "ok", "the second of two puts of one name was refused")
    problem = "the first bytes were lost" if refused else "the second of two puts of one name was not refused"
    return Check(_PUT, "failed", problem, _NO_TABLES)


def _at_once(store: Store, name: str) -> Check:
    """Lets several threads put one name at the same moment."""
    gate = threading.Barrier(_WRITERS)

    def put(data: bytes) -> bool | None:
        gate.wait()
        try:
            store.put_if_absent(name, data)
        except AlreadyExists:
            return False
        except PutOutcomeUnknown:  # S3 may answer that it could not decide
            return None
        return True

    written = [str(number).encode() for number in range(_WRITERS)]
    with ThreadPoolExecutor(_WRITERS) as pool:
        outcomes = dict(zip(written, pool.map(put, written), strict=True))
    won = [data for data, outcome in outcomes.items() if outcome]
    unsure = [data for data, outcome in outcomes.items() if outcome is None]
    return at_once_check(len(won), kept=store.get(name) in (won or unsure))


def at_once_check(won: int, *, kept: bool) -> Check:
    """Judges the outcome of several concurrent puts of one name. Pure.

    Args:
        won: the number of writers for which the store reported success.
        kept: whether the name has the bytes of a successful writer, or, without one, of one with an unknown outcome.
    """
    if won <= 1 and kept:
        return Check(_AT_ONCE, "ok", f"one of {_WRITERS} won")
    problem = (
        f"{won} of {_WRITERS} writers of one name were told that they won"
        if won > 1
        else "the winner's bytes were lost"
    )
    return Check(_AT_ONCE, "failed", problem, _NO_TABLES)


def cleanup_checks(store: Store, names: list[str]) -> Iterator[Check]:
    """Removes the names; yields a check only if that fails."""
    by_hand = f"Remove {' and '.join(names)} below {store.url} yourself."
    try:
        for name in names:
            store.delete(name)
        if any(store.head(name) is not None for name in names):
            yield Check("cleaning up", "warning", "what was written is still there", by_hand)
    except StorePermissionDenied:
        yield Check("deleting", "failed", "these keys may not delete; Spark's writes and VACUUM need it", by_hand)
    except AnabranchError as error:
        yield Check("cleaning up", "warning", error.message, by_hand)


def _table(location: str) -> Check:
    try:
        snapshot = open_log(location).newest()
    except AnabranchError as error:
        return Check("table", "failed", error.message)
    return Check("table", "ok", "none here yet" if snapshot is None else f"version {snapshot.version}")


@contextmanager
def own_folder(store: Store) -> Iterator[tuple[str, Path | None]]:
    """The name of a new folder for the probe, and its path if it is on a disk, where no empty folder is left behind."""
    folder = f"_anabranch_doctor_{uuid.uuid4().hex}"
    scheme, _, path = store.url.partition("://")
    on_disk = Path(path, folder) if scheme == "file" else None
    with _without_new_folders(on_disk) if on_disk is not None else nullcontext():
        yield folder, on_disk


@contextmanager
def _without_new_folders(folder: Path) -> Iterator[None]:
    """Removes, after the block, the empty folders that a put on a disk has created."""
    new = [parent for parent in (folder, *folder.parents) if _is_missing(parent)]
    try:
        yield
    finally:
        with suppress(OSError):
            for parent in new:
                parent.rmdir()


def _is_missing(folder: Path) -> bool:
    """Whether a folder certainly does not exist; below an unreadable folder, that is unknown."""
    try:
        return not folder.exists()
    except OSError:
        return False


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
