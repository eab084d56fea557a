"""Phases: the named moments of a transaction at which a test may let something else happen.

Knows only names. In production nothing listens and `reach` costs one look-up. Listeners belong to one thread, so that
they do not disturb other writers of the same process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PHASES = ("read", "staged", "checked", "put", "committed")
"""snapshot pinned; all work done and nothing committed; a window of winners judged; just before each put; committed."""

_local = threading.local()

Listener = Callable[[str], None]


def reach(phase: str) -> None:
    """Notify this thread's listeners that its transaction has reached ``phase``."""
    for listener in tuple(getattr(_local, "listeners", ())):
        listener(phase)


def listen(listener: Listener) -> None:
    """Add a listener for this thread."""
    _local.listeners = (*getattr(_local, "listeners", ()), listener)


@contextmanager
def mute_listeners() -> Iterator[None]:
    """Run another transaction of this thread without these listeners; listeners added inside the block work there."""
    ours, _local.listeners = getattr(_local, "listeners", ()), ()
    try:
        yield
    finally:
        _local.listeners = ours


def unlisten(listener: Listener) -> None:
    """Remove a listener of this thread."""
    _local.listeners = tuple(other for other in _local.listeners if other is not listener)
