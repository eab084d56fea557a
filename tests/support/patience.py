"""How long tests wait: for an event, however long it takes, with one limit for all of them.

A test waits for what it needs to see and goes on as soon as it sees it. The limit is only there so that what never
happens fails the test that waits for it, by name, and not the whole run. It is far longer than anything here takes on a
machine that does eight other things at once, and no test passes or fails by how near it came to it.

Two limits belong together. `PATIENCE` is that of one wait; `WHOLE_TEST` is that of a whole test, its fixtures with it,
and the same as pytest's `timeout` in `pyproject.toml`. The second is longer, so that a wait that fails says so itself
(`tests/test_patience.py`). A test that works for as long as somebody asks for adds
that to the second.

Processes beside pytest's import this too, so it needs no package.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Thread

PATIENCE = 600
"""Seconds that one wait may take."""
WHOLE_TEST = 1200
"""Seconds that one test may take."""
_LOOKS = 0.005


def until(is_so: Callable[[], object], what: str = "what was waited for") -> None:
    """Wait until something is so that says nothing when it becomes so, and fail where it never does.

    Raises:
        AssertionError: it is not so after `PATIENCE` seconds.
    """
    ends = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < ends, f"{what} has not come"
        time.sleep(_LOOKS)


def happens(event: Event) -> None:
    """Wait for an event of another thread.

    Raises:
        AssertionError: it has not happened after `PATIENCE` seconds.
    """
    assert event.wait(PATIENCE), "the event has not come"


def end(*threads: Thread) -> None:
    """Wait for the end of threads.

    Raises:
        AssertionError: one runs after `PATIENCE` seconds.
    """
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), f"{thread.name} has not ended"


def started(*threads: Thread) -> None:
    """Start threads and wait for their end."""
    for thread in threads:
        thread.start()
    end(*threads)


def a_tick(milliseconds: float = 3) -> None:
    """Let the clocks of files and of the log go on, so that what was made before is older than what comes.

    A file's age is known in milliseconds, and VACUUM removes none that is as young as the VACUUM. This is no wait for
    somebody: however much else the machine does, the time that passes only becomes longer.
    """
    begun = time.time()
    while time.time() * 1000 < begun * 1000 + milliseconds:
        time.sleep(milliseconds / 1000)
