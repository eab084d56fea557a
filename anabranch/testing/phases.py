"""Tools to test pipelines with: run something at a named moment inside a transaction.

A concurrent writer is hard to catch at the right moment; here the moment has a name, on one thread, without sleeping::

with at_phase("staged", lambda: DeltaTable.forPath(spark, path).delete("id = 1")): DeltaTable.forPath(spark,
path).update("id = 2", {"x": "x + 1"})
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

from anabranch._transaction.open_transaction import inside
from anabranch._transaction.phases import PHASES, listen, mute_listeners, unlisten
from anabranch.errors import InvalidOption

__all__ = ["at_phase"]


@contextmanager
def at_phase(phase: str, other: Callable[[], Any]) -> Iterator[None]:
    """Runs ``other()`` once, inside the transaction that this thread runs in the block, when that reaches ``phase``.

    Phases: ``"read"`` (snapshot pinned), ``"staged"`` (all work done, nothing committed, before the first put; also
    when nothing had to be written), ``"checked"`` (a window of winners judged), ``"put"`` (just before each put),
    ``"committed"``.

    It fires at the first reach only; ``other`` itself is not intercepted, by this trap or any other around it, and
    inherits nothing of the transaction; its error propagates, before the put. Other threads and worker processes are
    not covered.

    Raises:
        AssertionError: at the end of the block, if the phase was never reached.
        InvalidOption: the phase does not exist.
    """
    if phase not in PHASES:
        raise InvalidOption(option="phase", value=phase, reason="it takes " + ", ".join(PHASES) + ".")
    trap = _Trap(phase, other)
    listen(trap)
    try:
        yield
    finally:
        unlisten(trap)
    assert trap.has_fired, f"no transaction in this block came to the phase {phase!r}"


class _Trap:
    """Fires once, as if nothing ran around it: in the context in which it was set, and it mutes all listeners."""

    def __init__(self, phase: str, other: Callable[[], Any]) -> None:
        self._phase, self._other, self._context = phase, other, copy_context()
        self.has_fired = False

    def __call__(self, phase: str) -> None:
        if phase == self._phase and not self.has_fired:
            self.has_fired = True
            with mute_listeners():
                self._context.run(self._run_outside)

    def _run_outside(self) -> None:
        """Run the other's work, outside of a transaction of several statements that the trap stands in."""
        with inside(None):
            self._other()
