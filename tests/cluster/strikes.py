"""What goes wrong in a task, once: at one row, in the middle of what the task writes.

Each is a function of a column that gives its value back. It travels to the workers by value, since they have nothing of
ours: so its helpers are inside it. A file says that it has struck; without it nothing would have happened.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Strike = Callable[[int], int]


def fails(flag: Path, at: int) -> Strike:
    """The task fails, and is tried again."""
    struck = str(flag)

    def strike(value: int) -> int:
        import os

        if value == at and not os.path.exists(struck):
            with open(struck, "x"):
                raise RuntimeError("struck")
        return value

    return strike


def is_killed(flag: Path, at: int) -> Strike:
    """The executor is killed, as by ``kill -9``, and with it what its other tasks do and what its shuffles hold."""
    struck = str(flag)

    def strike(value: int) -> int:
        import os
        import signal
        import time

        if value == at and not os.path.exists(struck):
            with open(struck, "x"), open(f"/proc/{os.getppid()}/stat") as stat:
                executor = int(stat.read().rpartition(")")[2].split()[1])  # of the daemon that forked this process
            os.kill(executor, signal.SIGKILL)
            time.sleep(60)  # the executor takes this process along
        return value

    return strike


def sleeps(flag: Path, at: int) -> Strike:
    """The task hangs until a file ``over`` is there, so that a second attempt runs beside it, elsewhere."""
    struck, over = str(flag), str(flag.with_name("over"))

    def strike(value: int) -> int:
        import os
        import time

        if value == at and not os.path.exists(struck):
            open(struck, "x").close()
            while not os.path.exists(over):
                time.sleep(0.1)
        return value

    return strike
