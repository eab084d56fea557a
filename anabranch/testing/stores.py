"""Stores for tests: one in a dictionary, and one that reports every call.

Knows the contract of stores and nothing of tables. Guarantee: `DictStore` implements the whole contract
(`anabranch._storage.contract`), so that what holds on it holds on any other store.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from anabranch._storage.contract import Entry, Store, check_folder, check_name
from anabranch.errors import AlreadyExists, NotFound


class StoredObject(NamedTuple):
    """The bytes under a name, the number of the put that wrote them, and the entry in listings."""

    data: bytes
    number: int
    entry: Entry


class DictStore:
    """A store in memory: fast, shared by the threads of one process, and copied in no time.

    Args:
        url: its URL, by which commands find it (`anabranch.testing.mounted`).
        kept: its initial objects, such as another store's `kept`.

    Example:
        >>> with mounted(DictStore("memory://shop/orders")) as location:
        ...     Append(location, [{"id": 1}]).run()
    """

    def __init__(
        self,
        url: str,
        kept: Mapping[str, StoredObject] | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.url = url
        self._objects = dict(kept or {})
        self._removed: dict[str, StoredObject] = {}
        self._now_ms, self._lock = now_ms, threading.Lock()
        self._puts = max((stored.number for stored in self._objects.values()), default=0)

    @property
    def kept(self) -> Mapping[str, StoredObject]:
        """All objects in the store."""
        return self._objects

    @property
    def gone(self) -> Mapping[str, StoredObject]:
        """The last object of each name that was removed."""
        return self._removed

    def get(self, name: str, *, etag: str | None = None) -> bytes:
        """All bytes of a name; with an etag, only if it still has that etag."""
        stored = self._objects.get(check_name(name, self.url))
        if stored is None or (etag is not None and stored.entry.etag != etag):
            raise NotFound(name=name, root=self.url)
        return stored.data

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """Some bytes of a name."""
        if length < 0:
            raise ValueError(f"cannot read {length} bytes")
        return self.get(name)[start:][:length]

    def head(self, name: str) -> Entry | None:
        """The entry of a name."""
        stored = self._objects.get(check_name(name, self.url))
        return None if stored is None else stored.entry

    def put_if_absent(self, name: str, data: bytes) -> None:
        """Creates a name unless it exists."""
        with self._lock:
            if check_name(name, self.url) in self._objects:
                raise AlreadyExists(name=name, root=self.url)
            self._keep(name, data)

    def put(self, name: str, data: bytes) -> None:
        """Creates or replaces a name."""
        with self._lock:
            self._keep(check_name(name, self.url), data)

    def put_stream(self, name: str, chunks: Iterable[bytes]) -> None:
        """Creates or replaces a name."""
        self.put(name, b"".join(chunks))

    def put_hint(self, name: str, data: bytes) -> None:
        """Creates a name unless it exists."""
        self.put_if_absent(name, data)

    def list_from(self, start: str) -> list[Entry]:
        """The entries of one folder from a name on."""
        folder = start[: start.rfind("/") + 1]
        check_folder(folder, self.url)
        inside = len(folder)
        with self._lock:
            names = [name for name in self._objects if name.startswith(folder)]
            return self._entries(name for name in names if name >= start and name.find("/", inside) < 0)

    def list_all(self, prefix: str = "") -> list[Entry]:
        """Every entry below a folder."""
        folder = check_folder(prefix, self.url)
        with self._lock:
            return self._entries(name for name in self._objects if not folder or name.startswith(folder + "/"))

    def delete(self, name: str) -> None:
        """Removes a name."""
        with self._lock:
            if (removed := self._objects.pop(check_name(name, self.url), None)) is not None:
                self._removed[name] = removed

    def sync(self, names: Iterable[str]) -> None:
        """Checks the names; memory has nothing to flush."""
        for name in names:
            check_name(name, self.url)

    def _keep(self, name: str, data: bytes) -> None:
        self._puts += 1
        entry = Entry(name, len(data), self._now_ms(), str(self._puts))
        self._objects[name] = StoredObject(bytes(data), self._puts, entry)

    def _entries(self, names: Iterable[str]) -> list[Entry]:
        return [self._objects[name].entry for name in sorted(names)]


PUTS = ("put_if_absent", "put", "put_stream")


@dataclass(frozen=True)
class Call:
    """One call: its number from 1, its method, and the name or names that it is about."""

    number: int
    method: str
    about: Any

    @property
    def is_put(self) -> bool:
        """Whether it is one of the puts."""
        return self.method in PUTS

    @property
    def is_commit(self) -> bool:
        """Whether it tries to place a commit."""
        return self.method == "put_if_absent" and str(self.about).endswith(".json")


Decision = Callable[[Call], BaseException | None]
"""Returns the error, or interrupt, with which a call fails, if any; may also wait, count or start something."""


class ObservedStore:
    """A store over ``inner`` that passes each call to ``before`` and ``after``, which decide whether it fails there.

    An error of ``before`` replaces the call's effect; one of ``after`` hides that the call took effect.

    Attributes:
        calls: all calls so far.

    Example:
        >>> store = ObservedStore(open_store("/data/flights"), before=lambda call: print(call.method, call.about))
    """

    def __init__(self, inner: Store, before: Decision = lambda call: None, after: Decision = lambda call: None) -> None:
        self.inner, self.before, self.after = inner, before, after
        self.calls: list[Call] = []

    @property
    def url(self) -> str:
        """The inner store's URL."""
        return self.inner.url

    def get(self, name: str, *, etag: str | None = None) -> bytes:
        """See the contract."""
        return self._run("get", name, etag=etag)

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """See the contract."""
        return self._run("read_range", name, start, length)

    def head(self, name: str) -> Entry | None:
        """See the contract."""
        return self._run("head", name)

    def put_if_absent(self, name: str, data: bytes) -> None:
        """See the contract."""
        self._run("put_if_absent", name, data)

    def put(self, name: str, data: bytes) -> None:
        """See the contract."""
        self._run("put", name, data)

    def put_stream(self, name: str, chunks: Iterable[bytes]) -> None:
        """See the contract."""
        self._run("put_stream", name, chunks)

    def put_hint(self, name: str, data: bytes) -> None:
        """See the contract."""
        self._run("put_hint", name, data)

    def list_from(self, start: str) -> list[Entry]:
        """See the contract."""
        return self._run("list_from", start)

    def list_all(self, prefix: str = "") -> list[Entry]:
        """See the contract."""
        return self._run("list_all", prefix)

    def delete(self, name: str) -> None:
        """See the contract."""
        self._run("delete", name)

    def sync(self, names: Iterable[str]) -> None:
        """See the contract."""
        self._run("sync", list(names))

    def _run(self, method: str, about: Any, *rest: Any, **named: Any) -> Any:
        call = Call(len(self.calls) + 1, method, about)
        self.calls.append(call)
        if (error := self.before(call)) is not None:
            raise error
        result = getattr(self.inner, method)(about, *rest, **named)
        if (error := self.after(call)) is not None:
            raise error
        return result
