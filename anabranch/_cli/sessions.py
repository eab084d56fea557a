"""The session of a command: its Java writes to a file, so that the terminal shows only the command's output."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from anabranch.errors import needs_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def get_or_start_session(app: str) -> SparkSession:
    """The session of this process, or a new one that writes nothing to the terminal.

    Raises:
        MissingPySpark, MissingJava: it cannot be started.
    """
    with needs_pyspark("This command"):
        from pyspark.sql import SparkSession  # most commands do not need it

        from anabranch._api.session import session
    if SparkSession.getActiveSession() is not None:
        return session(app)
    with (
        tempfile.NamedTemporaryFile(prefix="anabranch-spark-") as log,
        interrupts_wait(),
        java_prints_to(Path(log.name)),
    ):
        return session(app, **{"spark.ui.showConsoleProgress": "false"})


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Delays Ctrl-C until the end of the block; a second one is not delayed.

    A starting Java would run forever if this process ended before they are connected; afterwards it ends with it.
    """
    before, pressed = signal.getsignal(signal.SIGINT), list[int]()
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is note:  # else PySpark has installed its own, which cancels jobs
            signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


@contextmanager
def java_prints_to(log: Path) -> Iterator[None]:
    """Redirects errors and warnings of a JVM that starts in this block to ``log``, for its whole life; if the block
    fails, prints them.
    """
    sys.stderr.flush()
    terminal = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    except Exception:
        os.write(terminal, log.read_bytes())
        raise
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
