"""The heartbeat of a running job, by which VACUUM distinguishes running jobs from dead ones.

Knows the store, and the name of a file that a thread puts again and again as long as the job lives. It only decides
which jobs VACUUM spares; the fence (`anabranch._transaction.fence`) and the witness (`anabranch.commands.staging`)
prevent losses if it is wrong. Guarantees: the thread keeps no process alive, and ends by itself when the heartbeat is
garbage; after `stop` it puts nothing.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable

from anabranch._storage.contract import Store
from anabranch.errors import StoreError

EVERY_SECONDS = 30.0
"""Seconds between two heartbeats of a running job."""

Wait = Callable[[threading.Event, float], bool]
"""Waits the given seconds, or until the event is set; returns whether it is set."""

_logger = logging.getLogger(__name__)


class Heartbeat:
    """Puts the file ``name`` into a store every ``every_seconds``, first after one such interval, until it is stopped
    or garbage. Tests replace ``wait``.

    Attributes:
        beats: number of successful puts.
    """

    def __init__(
        self, store: Store, name: str, *, every_seconds: float = EVERY_SECONDS, wait: Wait = threading.Event.wait
    ) -> None:
        self._store, self._name = store, name
        self._stopped, self._guard = threading.Event(), threading.Lock()
        self.beats = 0
        arguments = (weakref.ref(self), self._stopped, every_seconds, wait)
        threading.Thread(target=_beat_on, args=arguments, name="anabranch-heartbeat", daemon=True).start()

    def beat(self) -> None:
        """Put the file, unless the heartbeat was stopped; after a failure the next beat tries again."""
        with self._guard:
            if self._stopped.is_set():
                return
            try:
                self._store.put(self._name, b"")
                self.beats += 1
            except StoreError as error:
                _logger.info("the heartbeat %s of %s was missed: %s", self._name, self._store.url, error)

    def stop(self) -> None:
        """Stop; on return no put is running, and none will follow."""
        self._stopped.set()
        with self._guard:
            return


def _beat_on(heartbeat: weakref.ref[Heartbeat], stopped: threading.Event, every_seconds: float, wait: Wait) -> None:
    while not wait(stopped, every_seconds):
        alive = heartbeat()
        if alive is None:
            return
        alive.beat()
        del alive  # while it waits, only the job holds it
