"""A store that fails when it is told to, and a clock that never waits."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from anabranch.errors import PutOutcomeUnknown, StoreError, StoreFull, StorePermissionDenied
from anabranch.storage.contract import Store
from anabranch.transaction.patience import Chance

PUTS = ("put_if_absent", "put")
CALLS = (*PUTS, "get", "read_range", "head", "list_from", "list_all", "delete", "sync")

Decision = Callable[["Call"], Exception | None]


@dataclass(frozen=True)
class Call:
    """One call: its number from 1, its name, and the name or names it is about."""

    number: int
    method: str
    about: Any

    @property
    def is_put(self) -> bool:
        return self.method in PUTS

    @property
    def is_commit(self) -> bool:
        return self.method == "put_if_absent" and str(self.about).endswith(".json")


@dataclass
class Faulty:
    """A store over ``inner``: ``before`` and ``after`` each call say with which error it fails, if it does."""

    inner: Store
    before: Decision = lambda call: None
    after: Decision = lambda call: None
    calls: list[Call] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.inner.url

    def __getattr__(self, method: str) -> Any:
        if method not in CALLS:
            raise AttributeError(method)

        def run(about: Any, *rest: Any) -> Any:
            call = Call(len(self.calls) + 1, method, about)
            self.calls.append(call)
            if (error := self.before(call)) is not None:
                raise error
            result = getattr(self.inner, method)(about, *rest)
            if (error := self.after(call)) is not None:
                raise error
            return result

        return run


@dataclass(frozen=True)
class Fault:
    """A way for one call to fail: before its effect or after it."""

    name: str
    is_after: bool
    make: Callable[[Call], Exception | None]

    def store(self, inner: Store, number: int) -> Faulty:
        """The store with this fault at its ``number``-th call."""

        def decide(call: Call) -> Exception | None:
            return self.make(call) if call.number == number else None

        return Faulty(inner, after=decide) if self.is_after else Faulty(inner, before=decide)


def _failure(kind: type[StoreError]) -> Callable[[Call], Exception]:
    return lambda call: kind(name=str(call.about), root="t", reason="as the test asked.")


def _unknown(call: Call) -> Exception:
    return _failure(PutOutcomeUnknown if call.is_put else StoreError)(call)


FAULTS = (
    Fault("request lost", False, _unknown),
    Fault("reply lost", True, _unknown),
    Fault("disk full", False, _failure(StoreFull)),
    Fault("permission denied", False, _failure(StorePermissionDenied)),
)
"""A reply that is lost comes after the effect; of a put nobody knows. A definite refusal comes before any effect."""


def lost(call: Call) -> PutOutcomeUnknown:
    """The error of a put that nobody answered."""
    return PutOutcomeUnknown(name=str(call.about), root="t", reason="as the test asked.")


def full(call: Call) -> StoreFull:
    """The error of a disk that is full."""
    return StoreFull(name=str(call.about), root="t", reason="as the test asked.")


def once(wanted: Callable[[Call], bool], make: Callable[[Call], Exception]) -> Decision:
    """Fail the first call that is wanted."""
    spent = itertools.count()
    return lambda call: make(call) if wanted(call) and next(spent) == 0 else None


def always(wanted: Callable[[Call], bool], make: Callable[[Call], Exception]) -> Decision:
    """Fail every call that is wanted."""
    return lambda call: make(call) if wanted(call) else None


def instant(on_sleep: Callable[[], object] = lambda: None) -> Chance:
    """Chance with a clock that only sleeping moves, by a second at least; ``on_sleep`` runs instead of waiting."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += max(seconds, 1.0)
        on_sleep()

    return Chance(seconds=lambda: now[0], sleep=sleep, random=lambda: 1.0)
