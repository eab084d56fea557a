"""Jobs: the folder of a running writer under its table, which shows VACUUM that the writer lives.

Knows markers and the heartbeat, and no data file. While a job runs, its folder holds a marker ``_started_<id>`` and a
heartbeat ``_beating_<id>``; ``_committed_<id>`` replaces them. The first is put exactly once, and a VACUUM that counts
the job as dead removes it before any other file of the job: so it is the witness that all files exist. The statements
of one transaction share a job.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from anabranch._log.committers import folder_of, private_committer
from anabranch._protocol.change_feed import FOLDER as CHANGE_FOLDER
from anabranch._storage.contract import Store
from anabranch._storage.trees import remove_empty_tree
from anabranch._transaction.open_transaction import OpenTransaction, open_transaction
from anabranch.commands.heartbeat import EVERY_SECONDS, Heartbeat
from anabranch.errors import StagedFilesVacuumed, StoreError

_logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Job:
    """The folder of one job, named by its ``id``; it exists once it is started.

    While it is in use, a heartbeat is put every ``beat_seconds``.
    """

    store: Store
    id: str
    beat_seconds: float = EVERY_SECONDS
    parts: int = 0
    _heart: list[Heartbeat] = field(default_factory=list, init=False, repr=False)

    @property
    def folder(self) -> str:
        """The name of the folder in the store."""
        return f"job-{self.id}"

    def start(self) -> None:
        """Put the marker of a running job, and start its heartbeat. A second call does nothing."""
        if self._heart:
            return
        self.store.put(self._marker("started"), b"")
        self._heart.append(Heartbeat(self.store, self._marker("beating"), every_seconds=self.beat_seconds))

    def check_alive(self) -> None:
        """Raises StagedFilesVacuumed if a VACUUM counted this job as dead: its files may be gone, and the command has
        to run again.
        """
        if self._heart and self.store.head(self._marker("started")) is None:
            raise StagedFilesVacuumed(table=self.store.url, file=f"{self.folder}/", txn_id=self.id)

    def finish(self) -> None:
        """Mark the folder's files as committed. They are, whatever happens to the markers."""
        if not self._heart:
            return
        try:
            beaten = self.stop()
            self.store.put(self._marker("committed"), b"")
            self.store.delete(self._marker("started"))
            if beaten:
                self.store.delete(self._marker("beating"))
        except StoreError as error:
            _logger.warning(
                "the markers in %s of %s could not be brought up to date: %s", self.folder, self.store.url, error
            )

    def stop(self) -> int:
        """End the heartbeat; return the number of beats."""
        for heart in self._heart:
            heart.stop()
        return sum(heart.beats for heart in self._heart)

    def discard(self) -> None:
        """Remove the markers of a job whose files are gone; what cannot be removed is left to VACUUM."""
        beaten = self.stop()
        try:
            if self._heart:
                self.store.delete(self._marker("started"))
            if beaten:
                self.store.delete(self._marker("beating"))
            for folder in (self.folder, f"{CHANGE_FOLDER}/{self.folder}"):
                remove_empty_tree(self.store, folder)
        except StoreError as error:
            _logger.warning("%s, which nothing names, was left in %s: %s", self.folder, self.store.url, error)

    def next_part(self) -> str:
        """The name of a folder inside, for the next statement."""
        self.parts += 1
        return f"statement-{self.parts}"

    def _marker(self, state: str) -> str:
        return f"{self.folder}/_{state}_{self.id}"


def shared_job(store: Store) -> Job | None:
    """The job that the statements of this thread's open transaction share; None where a command has its own."""
    transaction = open_transaction()
    if transaction is None or private_committer(store) is None:
        return None
    return job_of_transaction(transaction, store)


def job_of_transaction(transaction: OpenTransaction, store: Store) -> Job:
    """The job of an open transaction; it is started by the first statement that needs it."""
    if Job not in transaction.shared:
        transaction.shared[Job] = Job(folder_of(store), str(transaction.runtime.new_id()))
    job: Job = transaction.shared[Job]
    return job
