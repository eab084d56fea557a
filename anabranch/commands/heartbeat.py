"""The heartbeat of a running job: by it VACUUM tells a job that runs from one that has died.

Knows the store, and the name of a file that a thread puts again and again for as long as the job lives. It only chooses
whom VACUUM spares; that nothing is lost where it says the wrong thing is the work of the fence
(`anabranch._transaction.fence`) and of the witness (`anabranch.commands.staging`). Guarantees: the thread keeps no
process alive, and ends by itself when nobody holds the heartbeat any more; after `stop` nothing is put.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable

from anabranch._storage.contract import Store
from anabranch.errors import StoreError

EVERY_SECONDS = 30.0
"""How often a running job shows that it runs."""

Wait = Callable[[threading.Event, float], bool]
"""Waits so many seconds, less if the event is set; whether it is."""

_logger = logging.getLogger(__name__)


class Heartbeat:
    """Puts the file ``name`` into a store every so many seconds until it is stopped or dropped; the first time after
    one such while. Tests ``wait`` in other ways.

    Attributes:
        beats: how many there were.
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
        """Show that the job runs, unless it was stopped; a store that refuses is asked again the next time."""
        with self._guard:
            if self._stopped.is_set():
                return
            try:
                self._store.put(self._name, b"")
                self.beats += 1
            except StoreError as error:
                _logger.info("the heartbeat %s of %s was missed: %s", self._name, self._store.url, error)

    def stop(self) -> None:
        """End it; on return nothing is being put, and nothing will be."""
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
