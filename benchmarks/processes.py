"""Processes as the kernel counts them, where there is ``/proc``: who is below whom, processor time, memory.

Knows nothing of benchmarks. A set of processes is asked for again and again while work runs, since Spark starts and
ends workers as it likes.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

Processes = Callable[[], Collection[int]]
"""Tells which processes belong to somebody now."""

SAMPLE_S = 0.05
LOOK_AGAIN_S = 1.0
"""So often the memory is read, and so often it is asked which processes there are: that takes some milliseconds."""


def this_one() -> set[int]:
    """This process alone."""
    return {os.getpid()}


def below(root: int | None = None) -> set[int]:
    """A process (this one by default) and all below it."""
    parents = {process: parent for process, (parent, _) in _known().items()}
    return {process for process in parents if _is_below(process, root or os.getpid(), parents)}


def cpu_seconds(of: Processes = below) -> float:
    """Processor time that these processes used so far, with children of theirs that ended; else of this one."""
    known = _known()
    if not known:
        return time.process_time()
    return sum(known[process][1] for process in of() if process in known)


def resident_mb(processes: Collection[int]) -> float:
    """The memory that these processes hold, summed up; what they share counts for each."""
    pages = 0
    for process in processes:
        with contextlib.suppress(OSError):  # it ended meanwhile
            pages += int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def without_forks(processes: Collection[int]) -> set[int]:
    """The processes but for those that a JVM has just forked, to become something small: they show all its memory."""
    known = _known()
    programs = {process: _program(process) for process in processes}
    return {
        process
        for process, program in programs.items()
        if not (program.endswith("/java") and programs.get(known.get(process, (0, 0.0))[0]) == program)
    }


def _program(process: int) -> str:
    with contextlib.suppress(OSError):  # it ended meanwhile
        return os.readlink(f"/proc/{process}/exe")
    return ""


class Peak:
    """The most memory that some processes held at once while the block ran, as far as samples tell: ``mb``."""

    def __init__(self, of: Processes) -> None:
        self._of, self.mb, self._ends = of, 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._processes = without_forks(of())

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        self._processes = without_forks(self._of())
        self._sample()

    def _watch(self) -> None:
        looked = time.monotonic()
        while not self._ends.wait(SAMPLE_S):
            if time.monotonic() - looked > LOOK_AGAIN_S:
                self._processes, looked = without_forks(self._of()), time.monotonic()
            self._sample()

    def _sample(self) -> None:
        self.mb = max(self.mb, resident_mb(self._processes))


def _known() -> dict[int, tuple[int, float]]:
    """The parent of each process, and its processor time together with that of children that have ended."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            _, _, rest = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")
            fields = rest.split()
            found[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return found


def _is_below(process: int, ancestor: int, parents: Mapping[int, int]) -> bool:
    while process and process != ancestor:
        process = parents.get(process, 0)
    return process == ancestor
