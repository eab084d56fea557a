"""Reads batches on a second thread while the first writes: both release Python's lock for most of the time.

Imports pyarrow only, since it travels to executors by value, as `anabranch._arrow.files` does. Guarantees: the number
and size of waiting batches is bounded; when the writer is done, or fails, no thread is left.
"""

from __future__ import annotations

import collections
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

AHEAD, AHEAD_BYTES = 16, 64 << 20
"""Maximum number of batches that wait to be written, and their approximate maximum size in bytes: a row group, so that
one is read while another is encoded.
"""


@contextlib.contextmanager
def read_ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[Iterator[pa.RecordBatch]]:
    """The same batches, a few of which a second thread reads ahead while the caller writes. An error of the reader is
    raised in place of its batch.
    """
    read = _Queue()

    def fill() -> None:
        end: BaseException | None = None
        try:
            for batch in batches:
                if not read.put(batch, batch.nbytes):
                    return
        except BaseException as error:
            end = error
        read.put(end, 0)

    def take_batches() -> Iterator[pa.RecordBatch]:
        while isinstance(item := read.get(), pa.RecordBatch):
            yield item
        if item is not None:
            raise item

    reader = threading.Thread(target=fill, name="anabranch-read", daemon=True)
    reader.start()
    try:
        yield take_batches()
    finally:
        read.leave()
        reader.join()


class _Queue:
    """A queue between two threads, bounded by number and by size; the consumer may leave it."""

    def __init__(self) -> None:
        self._items: collections.deque[tuple[Any, int]] = collections.deque()
        self._held, self._is_left, self._changed = 0, False, threading.Condition()

    def put(self, item: Any, size: int) -> bool:
        """Append an item once there is room; return whether the consumer is still reading."""
        with self._changed:
            self._changed.wait_for(self._has_room)
            self._items.append((item, size))
            self._held += size
            self._changed.notify_all()
            return not self._is_left

    def get(self) -> Any:
        """Take the oldest item, waiting for one if necessary."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._items) > 0)
            item, size = self._items.popleft()
            self._held -= size
            self._changed.notify_all()
            return item

    def leave(self) -> None:
        """Stop consuming."""
        with self._changed:
            self._is_left = True
            self._changed.notify_all()

    def _has_room(self) -> bool:
        return self._is_left or (len(self._items) < AHEAD and self._held < AHEAD_BYTES)
