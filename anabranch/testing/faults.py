"""Faults: stores that fail on request, and a clock that never waits.

Knows how a store may fail, by its contract. A lost reply comes after the effect, so that the outcome of a put is
unknown; a definite refusal comes before any effect.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from anabranch._storage.contract import Store
from anabranch._transaction.retry import Runtime
from anabranch.errors import PutOutcomeUnknown, StoreError, StoreFull, StorePermissionDenied
from anabranch.testing.stores import Call, Decision, ObservedStore


@dataclass(frozen=True)
class Fault:
    """A way for one call to fail: before its effect or after it."""

    name: str
    is_after: bool
    make: Callable[[Call], BaseException | None]

    def store(self, inner: Store, number: int) -> ObservedStore:
        """The store with this fault at its ``number``-th call."""

        def decide(call: Call) -> BaseException | None:
            return self.make(call) if call.number == number else None

        return ObservedStore(inner, after=decide) if self.is_after else ObservedStore(inner, before=decide)


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
"""All ways in which a call may fail."""

INTERRUPTS = (
    Fault("interrupted before", False, lambda call: KeyboardInterrupt()),
    Fault("interrupted behind", True, lambda call: KeyboardInterrupt()),
)
"""An interrupt during the call: before its effect, or after it."""


def unanswered_put_error(call: Call) -> PutOutcomeUnknown:
    """The error of a put without an answer."""
    return PutOutcomeUnknown(name=str(call.about), root="t", reason="as the test asked.")


def full(call: Call) -> StoreFull:
    """The error of a full disk."""
    return StoreFull(name=str(call.about), root="t", reason="as the test asked.")


def once(matches: Callable[[Call], bool], make: Callable[[Call], Exception]) -> Decision:
    """Fails the first call that matches."""
    spent = itertools.count()
    return lambda call: make(call) if matches(call) and next(spent) == 0 else None


def always(matches: Callable[[Call], bool], make: Callable[[Call], Exception]) -> Decision:
    """Fails every call that matches."""
    return lambda call: make(call) if matches(call) else None


def instant(on_sleep: Callable[[], object] = lambda: None) -> Runtime:
    """A runtime whose clock moves only by sleeping, by a second at least; ``on_sleep`` runs instead of waiting."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += max(seconds, 1.0)
        on_sleep()

    return Runtime(seconds=lambda: now[0], sleep=sleep, random=lambda: 1.0)
