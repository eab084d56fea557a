"""Everything that a process keeps between calls, in one place.

It is in the lowest room, since every room keeps something. Guarantees: each kind has a bound, and the least recently
used entry is dropped first; all of it is thread-safe; `forget` drops whatever can be recomputed. Objects that cannot be
recomputed have no bound; `held` lists them with the reason.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import lru_cache
from threading import RLock
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Cache(MutableMapping[K, V], Generic[K, V]):
    """A mapping with a maximum number of entries; reading an entry makes it the most recently used.

    Attributes:
        lock: to be acquired where several steps belong together.
        dropped: whether an entry was dropped because the mapping was full.
    """

    def __init__(self, at_most: int) -> None:
        self.at_most, self.lock, self.dropped = at_most, RLock(), False
        self._entries: OrderedDict[K, V] = OrderedDict()

    def __getitem__(self, key: K) -> V:
        with self.lock:
            value = self._entries[key]
            self._entries.move_to_end(key)
            return value

    def __setitem__(self, key: K, value: V) -> None:
        with self.lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self.at_most:
                self._entries.popitem(last=False)
                self.dropped = True

    def __delitem__(self, key: K) -> None:
        with self.lock:
            del self._entries[key]

    def __iter__(self) -> Iterator[K]:
        with self.lock:
            return iter(list(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    def pop(self, key: K, *default: Any) -> Any:
        """As of a dict, atomically."""
        with self.lock:
            return self._entries.pop(key, *default)

    def swap(self, entries: OrderedDict[K, V]) -> OrderedDict[K, V]:
        """Replace the entries; returns the old ones."""
        with self.lock:
            self._entries, before = entries, self._entries
            return before

    def add(self, key: K, value: V) -> bool:
        """Put an entry unless there is one; True if it was put."""
        with self.lock:
            is_new = key not in self._entries
            self[key] = value
            return is_new

    def lighten(self, weight: Callable[[V], int], at_most: int) -> None:
        """Drop the least recently used entries until the total weight is at most this; the last used one stays."""
        with self.lock:
            weights = {key: weight(value) for key, value in self._entries.items()}
            total = sum(weights.values())
            for key in list(weights)[:-1]:
                if total <= at_most:
                    break
                del self._entries[key]
                total, self.dropped = total - weights[key], True

    def clear(self) -> None:
        """Drop all entries."""
        with self.lock:
            self._entries.clear()
            self.dropped = False


class PerObject(WeakKeyDictionary[K, V], Generic[K, V]):
    """Values for objects, such as sessions, for as long as these live; bounded by their number.

    Attributes:
        lock: to be acquired where several steps belong together.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lock = RLock()


class ProcessState:
    """The kinds of kept values, by name."""

    def __init__(self) -> None:
        self.bounds: dict[str, int | None] = {}
        """Maximum number of entries of each kind; None: as many as there are living objects."""
        self.held: dict[str, str] = {}
        """Objects that cannot be recomputed, and why they need no bound."""
        self._clear: dict[str, Callable[[], None]] = {}
        self._caches: list[Cache[Any, Any]] = []

    def cache(self, name: str, at_most: int) -> Cache[Any, Any]:
        """Register a new kind with a bound."""
        created: Cache[Any, Any] = Cache(at_most)
        self._register(name, at_most, created.clear)
        self._caches.append(created)
        return created

    def per_object(self, name: str) -> PerObject[Any, Any]:
        """Register a new kind, of living objects."""
        created: PerObject[Any, Any] = PerObject()
        self._register(name, None, created.clear)
        return created

    def memo(self, name: str, at_most: int) -> Callable[[_Function], _Function]:
        """Make a pure function remember its results, as a new kind."""

        def remember(function: _Function) -> _Function:
            remembered: Any = lru_cache(at_most)(function)
            self._register(name, at_most, remembered.cache_clear)
            return remembered

        return remember

    def hold(self, name: str, why: str) -> Callable[[V], V]:
        """Register an object that `forget` never drops, with the reason why it needs no bound."""
        self._check_new(name)
        self.held[name] = why
        return lambda value: value

    def forget(self, name: str | None = None) -> None:
        """Drop the values of one kind, or of all."""
        for kind in [name] if name is not None else list(self._clear):
            self._clear[kind]()

    @contextmanager
    def as_another_process(self) -> Iterator[None]:
        """Run a block with caches of its own, empty at first, as another process would; for tests on one thread."""
        saved = [c.swap(OrderedDict()) for c in self._caches]
        try:
            yield
        finally:
            for c, entries in zip(self._caches, saved, strict=True):
                c.swap(entries)

    def _register(self, name: str, bound: int | None, clear: Callable[[], None]) -> None:
        self._check_new(name)
        self.bounds[name], self._clear[name] = bound, clear

    def _check_new(self, name: str) -> None:
        assert name not in {**self.bounds, **self.held}, f"{name} is kept already"


STATE = ProcessState()
cache, per_object, memo, hold, forget = STATE.cache, STATE.per_object, STATE.memo, STATE.hold, STATE.forget
