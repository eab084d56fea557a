"""Phases: the named moments of a transaction, at which a test may let something else happen.

Knows only names. In production nothing listens and `reach` costs one look-up. Listeners belong to one thread, so that
other writers of the same process go on undisturbed.
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
    """Tell this thread's listeners that its transaction has come to ``phase``."""
    for listener in tuple(getattr(_local, "listeners", ())):
        listener(phase)


def listen(listener: Listener) -> None:
    """Add a listener for this thread."""
    _local.listeners = (*getattr(_local, "listeners", ()), listener)


@contextmanager
def mute_listeners() -> Iterator[None]:
    """Let another transaction of this thread run unheard; those who listen inside the block are heard there."""
    ours, _local.listeners = getattr(_local, "listeners", ()), ()
    try:
        yield
    finally:
        _local.listeners = ours


def unlisten(listener: Listener) -> None:
    """Remove a listener of this thread."""
    _local.listeners = tuple(known for known in _local.listeners if known is not listener)
