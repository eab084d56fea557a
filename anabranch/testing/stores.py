"""Stores for tests: one in a dictionary, and one that tells of every call.

Knows the contract of stores and nothing of tables. Guarantee: `DictStore` keeps the whole contract
(`anabranch._storage.contract`), so that what holds above it holds above any other store.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from anabranch._storage.contract import Entry, Store, check_folder, check_name
from anabranch.errors import AlreadyExists, NotFound


class Kept(NamedTuple):
    """The bytes under a name, which put of this store it was, and the entry that listings give."""

    data: bytes
    number: int
    entry: Entry


class DictStore:
    """A store in memory: fast, shared by the threads of one process, and copied in no time.

    Args:
        url: what it calls itself; `anabranch.testing.mounted` lets commands find it by that.
        kept: what it holds at first, such as another store's `kept`.

    Example:
        >>> with mounted(DictStore("memory://shop/orders")) as location:
        ...     Append(location, [{"id": 1}]).run()
    """

    def __init__(
        self,
        url: str,
        kept: Mapping[str, Kept] | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.url = url
        self._kept = dict(kept or {})
        self._gone: dict[str, Kept] = {}
        self._now_ms, self._lock = now_ms, threading.Lock()
        self._puts = max((each.number for each in self._kept.values()), default=0)

    @property
    def kept(self) -> Mapping[str, Kept]:
        """All that it holds."""
        return self._kept

    @property
    def gone(self) -> Mapping[str, Kept]:
        """What it held last of each name that was removed, for who looks at the past."""
        return self._gone

    def get(self, name: str, *, etag: str | None = None) -> bytes:
        """All bytes of a name, as long as they are those that had an etag."""
        found = self._kept.get(check_name(name, self.url))
        if found is None or (etag is not None and found.entry.etag != etag):
            raise NotFound(name=name, root=self.url)
        return found.data

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """Some bytes of a name."""
        if length < 0:
            raise ValueError(f"cannot read {length} bytes")
        return self.get(name)[start:][:length]

    def head(self, name: str) -> Entry | None:
        """The entry of a name."""
        found = self._kept.get(check_name(name, self.url))
        return None if found is None else found.entry

    def put_if_absent(self, name: str, data: bytes) -> None:
        """Create a name, if nobody has."""
        with self._lock:
            if check_name(name, self.url) in self._kept:
                raise AlreadyExists(name=name, root=self.url)
            self._keep(name, data)

    def put(self, name: str, data: bytes) -> None:
        """Create or replace a name."""
        with self._lock:
            self._keep(check_name(name, self.url), data)

    def put_stream(self, name: str, chunks: Iterable[bytes]) -> None:
        """Create or replace a name."""
        self.put(name, b"".join(chunks))

    def put_hint(self, name: str, data: bytes) -> None:
        """Create a name, if nobody has."""
        self.put_if_absent(name, data)

    def list_from(self, start: str) -> list[Entry]:
        """The entries of one folder from a name on."""
        folder = start[: start.rfind("/") + 1]
        check_folder(folder, self.url)
        inside = len(folder)
        with self._lock:
            names = [name for name in self._kept if name.startswith(folder)]
            return self._entries(name for name in names if name >= start and name.find("/", inside) < 0)

    def list_all(self, prefix: str = "") -> list[Entry]:
        """Every entry below a folder."""
        folder = check_folder(prefix, self.url)
        with self._lock:
            return self._entries(name for name in self._kept if not folder or name.startswith(folder + "/"))

    def delete(self, name: str) -> None:
        """Remove a name."""
        with self._lock:
            if (found := self._kept.pop(check_name(name, self.url), None)) is not None:
                self._gone[name] = found

    def sync(self, names: Iterable[str]) -> None:
        """Nothing is more durable here than it is."""
        for name in names:
            check_name(name, self.url)

    def _keep(self, name: str, data: bytes) -> None:
        self._puts += 1
        entry = Entry(name, len(data), self._now_ms(), str(self._puts))
        self._kept[name] = Kept(bytes(data), self._puts, entry)

    def _entries(self, names: Iterable[str]) -> list[Entry]:
        return [self._kept[name].entry for name in sorted(names)]


PUTS = ("put_if_absent", "put", "put_stream")


@dataclass(frozen=True)
class Call:
    """One call: its number from 1, its name, and the name or names it is about."""

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
"""Says of a call with which error, or interrupt, it fails, if it does; may also wait, count or start something."""


class Watched:
    """A store over ``inner``: each call is told to ``before`` and ``after``, which say whether it fails there.

    An error of ``before`` comes instead of the call's effect; one of ``after`` hides that it took effect.

    Attributes:
        calls: all calls so far.

    Example:
        >>> store = Watched(open_store("/data/flights"), before=lambda call: print(call.method, call.about))
    """

    def __init__(self, inner: Store, before: Decision = lambda call: None, after: Decision = lambda call: None) -> None:
        self.inner, self.before, self.after = inner, before, after
        self.calls: list[Call] = []

    @property
    def url(self) -> str:
        """The inner store's URL."""
        return self.inner.url

    def get(self, name: str, *, etag: str | None = None) -> bytes:
        """As the contract says."""
        return self._run("get", name, etag=etag)

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """As the contract says."""
        return self._run("read_range", name, start, length)

    def head(self, name: str) -> Entry | None:
        """As the contract says."""
        return self._run("head", name)

    def put_if_absent(self, name: str, data: bytes) -> None:
        """As the contract says."""
        self._run("put_if_absent", name, data)

    def put(self, name: str, data: bytes) -> None:
        """As the contract says."""
        self._run("put", name, data)

    def put_stream(self, name: str, chunks: Iterable[bytes]) -> None:
        """As the contract says."""
        self._run("put_stream", name, chunks)

    def put_hint(self, name: str, data: bytes) -> None:
        """As the contract says."""
        self._run("put_hint", name, data)

    def list_from(self, start: str) -> list[Entry]:
        """As the contract says."""
        return self._run("list_from", start)

    def list_all(self, prefix: str = "") -> list[Entry]:
        """As the contract says."""
        return self._run("list_all", prefix)

    def delete(self, name: str) -> None:
        """As the contract says."""
        self._run("delete", name)

    def sync(self, names: Iterable[str]) -> None:
        """As the contract says."""
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
