"""A bucket with the latencies and rate limits of an object store, by a clock that is passed in.

Knows the contract of stores, and what `anabranch._storage.objects` and obstore do with a bucket's answers: a lost put
is followed by a HEAD; a request that is told to slow down (503) is sent again after a pause that doubles, except a
put-if-absent, whose caller decides. Each writer has a `Seat` of its own, under a URL of its own, as if it were a
process of its own: what one of them keeps in memory, another does not know.
"""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from anabranch._storage.contract import Entry
from anabranch.errors import AlreadyExists, NotFound, PutOutcomeUnknown, StoreError
from anabranch.testing.stores import DictStore
from benchmarks.virtual_time import VirtualTime

PAGE_NAMES = 1000
"""A listing brings so many names per request."""
_RETRIES, _FIRST_PAUSE, _LONGEST_PAUSE = 10, 0.1, 15.0
"""How obstore sends a request again."""


@dataclass(frozen=True)
class Service:
    """What the service is like: seconds that a request takes, from and to; bytes a second; and requests a second."""

    get: tuple[float, float] = (0.030, 0.060)
    head: tuple[float, float] = (0.030, 0.060)
    list: tuple[float, float] = (0.040, 0.090)
    put: tuple[float, float] = (0.050, 0.100)
    delete: tuple[float, float] = (0.030, 0.060)
    bytes_per_s: float = 80e6
    reads_per_s: float = 5500.0
    writes_per_s: float = 3500.0


class _SortedNames(DictStore):
    """A dictionary that need not look at every name for each listing."""

    def __init__(self, url: str, now_ms: Callable[[], int]) -> None:
        super().__init__(url, now_ms=now_ms)
        self._folders: dict[str, list[str]] = {}

    def list_from(self, start: str) -> list[Entry]:
        names = self._folders.get(start[: start.rfind("/") + 1], [])
        return [self.kept[name].entry for name in names[bisect_left(names, start) :]]

    def delete(self, name: str) -> None:
        if name in self.kept:
            self._folders[name[: name.rfind("/") + 1]].remove(name)
        super().delete(name)

    def _keep(self, name: str, data: bytes) -> None:
        if name not in self.kept:
            insort(self._folders.setdefault(name[: name.rfind("/") + 1], []), name)
        super()._keep(name, data)


class _Allowance:
    """So many requests a second, a second's worth of them at once."""

    def __init__(self, per_s: float, clock: VirtualTime) -> None:
        self._per_s, self._clock, self._left, self._at = per_s, clock, per_s, 0.0

    def takes(self) -> bool:
        now = self._clock.now
        self._left = min(self._per_s, self._left + (now - self._at) * self._per_s)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def borrow(self) -> float:
        """Take one of those to come; how long it is until then."""
        self._left -= 1
        return max(0.0, -self._left / self._per_s)


class Bucket:
    """One bucket for all seats.

    Attributes:
        inner: what it holds, for who looks at it without waiting.
        slowed: how many requests were told to slow down.
    """

    def __init__(self, clock: VirtualTime, service: Service, seed: int = 0) -> None:
        self.clock, self.slowed = clock, 0
        self.inner = _SortedNames("memory://scale/all", lambda: int(clock.now * 1000) + 1_800_000_000_000)
        self.dice = random.Random(seed)
        self.serve_as(service)

    def serve_as(self, service: Service) -> None:
        """Be like this from now on."""
        self.service = service
        self._reads = _Allowance(service.reads_per_s, self.clock)
        self._writes = _Allowance(service.writes_per_s, self.clock)

    def seat(self, number: int) -> Seat:
        """The bucket as one more process sees it."""
        return Seat(self, f"memory://scale/seat-{number}")

    def is_allowed(self, kind: str) -> bool:
        """Whether the service takes one more request now."""
        allowed = (self._writes if kind in ("put", "delete") else self._reads).takes()
        self.slowed += not allowed
        return allowed

    def borrow(self, kind: str) -> float:
        """How long the service lets a request wait that it does not take now."""
        return (self._writes if kind in ("put", "delete") else self._reads).borrow()


class Seat:
    """A store; ``requests`` counts what was sent, by kind."""

    def __init__(self, bucket: Bucket, url: str) -> None:
        self.bucket, self.url = bucket, url
        self.requests: Counter[str] = Counter()

    def get(self, name: str, *, etag: str | None = None) -> bytes:
        """As the contract says."""
        read = lambda: self.bucket.inner.get(name, etag=etag)  # noqa: E731
        return self._named(name, lambda: self._repeated("get", name, read))

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """As the contract says."""
        read = lambda: self.bucket.inner.read_range(name, start, length)  # noqa: E731
        return self._named(name, lambda: self._repeated("get", name, read))

    def head(self, name: str) -> Entry | None:
        """As the contract says."""
        return self._repeated("head", name, lambda: self.bucket.inner.head(name))

    def put_if_absent(self, name: str, data: bytes) -> None:
        """As the contract says."""
        try:
            self._once("put", name, lambda: self.bucket.inner.put_if_absent(name, data), len(data))
        except _SlowDown:
            raise PutOutcomeUnknown(name=name, root=self.url, reason="503 Slow Down") from None
        except AlreadyExists:
            self.head(name)  # as `anabranch._storage.objects` makes sure
            raise AlreadyExists(name=name, root=self.url) from None

    def put(self, name: str, data: bytes) -> None:
        """As the contract says."""
        self._repeated("put", name, lambda: self.bucket.inner.put(name, data), len(data))

    def put_stream(self, name: str, chunks: Iterable[bytes]) -> None:
        """As the contract says."""
        self.put(name, b"".join(chunks))

    def put_hint(self, name: str, data: bytes) -> None:
        """As the contract says."""
        self.put_if_absent(name, data)

    def list_from(self, start: str) -> list[Entry]:
        """As the contract says: page after page, each as the folder is when it is made."""
        found: list[Entry] = []
        while True:
            after = found[-1].name + "\0" if found else start
            page = self._repeated("list", start, lambda: self.bucket.inner.list_from(after)[:PAGE_NAMES])  # noqa: B023
            found += page
            if len(page) < PAGE_NAMES:
                return found

    def list_all(self, prefix: str = "") -> list[Entry]:
        """As the contract says."""
        return self._repeated("list", prefix, lambda: self.bucket.inner.list_all(prefix))

    def delete(self, name: str) -> None:
        """As the contract says."""
        self._repeated("delete", name, lambda: self.bucket.inner.delete(name))

    def sync(self, names: Iterable[str]) -> None:
        """Nothing to do."""

    def _named(self, name: str, read: Callable[[], bytes]) -> bytes:
        try:
            return read()
        except NotFound:
            raise NotFound(name=name, root=self.url) from None

    def _repeated(self, kind: str, name: str, effect: Callable[[], Any], sent: int = 0) -> Any:
        pause = _FIRST_PAUSE
        for _ in range(_RETRIES + 1):
            try:
                return self._once(kind, name, effect, sent)
            except _SlowDown:
                self.bucket.clock.sleep(pause)
                pause = min(_LONGEST_PAUSE, self.bucket.dice.uniform(_FIRST_PAUSE, 2 * pause))
        raise StoreError(name=name, root=self.url, reason="503 Slow Down, again and again.")

    def _once(self, kind: str, name: str, effect: Callable[[], Any], sent: int = 0) -> Any:
        """One request: half of its time passes before it takes effect, the other half before the answer is here."""
        bucket, service = self.bucket, self.bucket.service
        self.requests[kind] += 1
        half = bucket.dice.uniform(*getattr(service, kind)) / 2
        bucket.clock.sleep(half + sent / service.bytes_per_s)
        if not bucket.is_allowed(kind):
            bucket.clock.sleep(half)
            if bucket.clock.is_a_task:
                raise _SlowDown(name)
            bucket.clock.sleep(_FIRST_PAUSE + bucket.borrow(kind))  # beside a task no time passes: it is told here
        try:
            result = effect()
        except (AlreadyExists, NotFound):
            bucket.clock.sleep(half)
            raise
        bucket.clock.sleep(half + (len(result) / service.bytes_per_s if isinstance(result, bytes) else 0.0))
        return result


class _SlowDown(Exception):
    """The service answers 503."""
