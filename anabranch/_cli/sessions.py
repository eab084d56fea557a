"""The session of a command: what its Java writes goes to a file, so that the terminal holds what the command says."""

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
    """The session of this process, or a new one that writes nothing on the terminal.

    Raises:
        MissingPySpark, MissingJava: there is nothing to start it with.
    """
    with needs_pyspark("This command"):
        from pyspark.sql import SparkSession  # which most commands do not need

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
    """Ctrl-C waits for the end of the block; a second one does not.

    A Java that starts stays for ever if this process ends before the two have met; afterwards it ends with it.
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
        if signal.getsignal(signal.SIGINT) is note:  # else PySpark's own is in its place, which cancels jobs
            signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


@contextmanager
def java_prints_to(log: Path) -> Iterator[None]:
    """A JVM that starts in this block writes its errors and warnings to ``log`` all its life; if none starts, they are
    printed.
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
