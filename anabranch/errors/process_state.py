"""What a process keeps between calls, all of it in one place.

It stands in the lowest room, since every room keeps something. Guarantees: each kind has a bound, and what was used
least recently goes first; all of it is safe under threads; `forget` drops whatever can be found again. What no bound
can be set to, since it could not be found again, is `held`, with the reason beside it.
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
    """A mapping of at most so many entries; a look at one makes it the most recently used.

    Attributes:
        lock: to be held where several steps belong together.
        dropped: whether an entry had to go since there were too many.
    """

    def __init__(self, at_most: int) -> None:
        self.at_most, self.lock, self.dropped = at_most, RLock(), False
        self._entries: OrderedDict[K, V] = OrderedDict()

    def __getitem__(self, key: K) -> V:
        with self.lock:
            found = self._entries[key]
            self._entries.move_to_end(key)
            return found

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
        """As of a dict, in one step."""
        with self.lock:
            return self._entries.pop(key, *default)

    def swap(self, entries: OrderedDict[K, V]) -> OrderedDict[K, V]:
        """Keep these from now on; gives what was kept."""
        with self.lock:
            self._entries, before = entries, self._entries
            return before

    def add(self, key: K, value: V) -> bool:
        """Put an entry where there is none; False where there is one."""
        with self.lock:
            is_new = key not in self._entries
            self[key] = value
            return is_new

    def lighten(self, weight: Callable[[V], int], at_most: int) -> None:
        """Drop what was used least recently until the rest has no more weight than this; what was used last stays."""
        with self.lock:
            weights = {key: weight(value) for key, value in self._entries.items()}
            left = sum(weights.values())
            for key in list(weights)[:-1]:
                if left <= at_most:
                    break
                del self._entries[key]
                left, self.dropped = left - weights[key], True

    def clear(self) -> None:
        """Drop all."""
        with self.lock:
            self._entries.clear()
            self.dropped = False


class PerObject(WeakKeyDictionary[K, V], Generic[K, V]):
    """What is kept of objects for as long as they live, sessions for one; bounded by their number.

    Attributes:
        lock: to be held where several steps belong together.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lock = RLock()


class ProcessState:
    """The kinds that there are, by their names."""

    def __init__(self) -> None:
        self.bounds: dict[str, int | None] = {}
        """How many entries each kind may have; None: as many as there are objects that live."""
        self.held: dict[str, str] = {}
        """What cannot be found again, and why it needs no bound."""
        self._clear: dict[str, Callable[[], None]] = {}
        self._caches: list[Cache[Any, Any]] = []

    def cache(self, name: str, at_most: int) -> Cache[Any, Any]:
        """A new kind."""
        found: Cache[Any, Any] = Cache(at_most)
        self._register(name, at_most, found.clear)
        self._caches.append(found)
        return found

    def per_object(self, name: str) -> PerObject[Any, Any]:
        """A new kind, of objects that live."""
        found: PerObject[Any, Any] = PerObject()
        self._register(name, None, found.clear)
        return found

    def memo(self, name: str, at_most: int) -> Callable[[_Function], _Function]:
        """Make a pure function remember its results; they are a new kind."""

        def remembering(function: _Function) -> _Function:
            found: Any = lru_cache(at_most)(function)
            self._register(name, at_most, found.cache_clear)
            return found

        return remembering

    def hold(self, name: str, why: str) -> Callable[[V], V]:
        """Say of an object that it is kept, and why it needs no bound; `forget` leaves it as it is."""
        self._check_new(name)
        self.held[name] = why
        return lambda each: each

    def forget(self, name: str | None = None) -> None:
        """Drop all that is kept of one kind, or of all."""
        for each in [name] if name is not None else list(self._clear):
            self._clear[each]()

    @contextmanager
    def as_another_process(self) -> Iterator[None]:
        """Run a block with caches of its own, empty at first, as another process would; for tests on one thread."""
        kept = [each.swap(OrderedDict()) for each in self._caches]
        try:
            yield
        finally:
            for each, entries in zip(self._caches, kept, strict=True):
                each.swap(entries)

    def _register(self, name: str, bound: int | None, clear: Callable[[], None]) -> None:
        self._check_new(name)
        self.bounds[name], self._clear[name] = bound, clear

    def _check_new(self, name: str) -> None:
        assert name not in {**self.bounds, **self.held}, f"{name} is kept already"


STATE = ProcessState()
cache, per_object, memo, hold, forget = STATE.cache, STATE.per_object, STATE.memo, STATE.hold, STATE.forget
