"""A job that runs for as long as nobody cancels it, and somebody who cancels it once it runs.

The function of a column travels to Spark's workers by value, since they may have nothing of ours: so its helpers are
inside it, and a file says that it has begun.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.patience import end, until


class Hanging:
    """A function that hangs where it is called first, and returns at once where it is called again.

    Args:
        folder: where it says that it was called.
    """

    def __init__(self, folder: Path) -> None:
        self._begun, self._over = folder / "begun", folder / "over"

    @property
    def calls(self) -> int:
        """How often it was called."""
        return len(self._begun.read_text()) if self._begun.exists() else 0

    @property
    def function(self) -> Callable[[int], int]:
        """The function, of one number, which it gives back."""
        begun, over = str(self._begun), str(self._over)

        def hang(number: int) -> int:
            import os
            import time

            is_first = not os.path.exists(begun)
            with open(begun, "a") as said:
                said.write("x")
            while is_first and not os.path.exists(over):
                time.sleep(0.05)
            return number

        return hang

    @contextmanager
    def cancelled(self, spark: SparkSession) -> Iterator[None]:
        """Within the block every job is cancelled as soon as the function hangs in one; behind it nobody hangs."""

        def cancel() -> None:
            until(lambda: self.calls or self._over.exists())
            spark.sparkContext.cancelAllJobs()

        cancels = threading.Thread(target=cancel)
        cancels.start()
        try:
            yield
        finally:
            self._over.touch()
            end(cancels)
