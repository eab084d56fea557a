"""VACUUM: the files that no retained version holds are removed, and nothing else.

Knows the order of the steps, which is what makes it safe (docs/concepts/the-fence.md): list; announce, by a commit that
names the jobs which are spared; look at the table as it is then, or later; remove what was listed and is not held.
Guarantees: whatever happens in between, to this process too, no live file and no file of a retained version goes; what
is left can be removed by the next one; two at once do no harm.

PROTOCOL.md, section "Vacuum Protocol Check".
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, SupportsFloat

from anabranch._log.checksum_verifier import same_files
from anabranch._log.cleanup import SKEW_MS
from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.change_feed import FOLDER
from anabranch._protocol.features.table_features import check_writable
from anabranch._storage.contract import Entry
from anabranch._storage.trees import remove_empty
from anabranch._transaction.commit import commit
from anabranch._transaction.fence import job_of, start_tags
from anabranch._transaction.phases import mute_listeners, reach
from anabranch._transaction.rebase_handler import NoRows
from anabranch._transaction.retry import Runtime
from anabranch._transaction.running_vacuums import DEAD_AFTER_MS, END, MARGIN_MS, START
from anabranch._transaction.transaction import CommitInfo, Transaction
from anabranch.commands.context import NEWEST, Progress, RunContext
from anabranch.commands.engine import Engine
from anabranch.commands.maintenance.vacuum_candidates import Found, in_folder, in_log, remember
from anabranch.commands.maintenance.vacuum_confirmed import require_confirmation
from anabranch.commands.maintenance.vacuum_retained import (
    Hidden,
    Keeping,
    find_known_by_alias,
    folders_of,
    names_to_keep,
)
from anabranch.commands.opening import Location, Masked, open_log
from anabranch.commands.watching import tell, watched
from anabranch.errors import (
    AnabranchError,
    DeltaConcurrentModificationException,
    InvalidOption,
    ProtocolChangedException,
    RetentionTooShort,
    StoreError,
    TableError,
)
from anabranch.errors.html import ShownAsTable

HOUR_MS = 3_600_000
DEAD_AFTER_SECONDS = 600.0
"""A job that has shown no sign of life for so long is taken for dead. Whoever was only asleep loses time by it, and
nothing else."""

FARTHEST_AHEAD_MS = 2 * 24 * HOUR_MS
"""A clock further ahead of the store's is not believed."""

_THREADS = 16
_TOO_LATE = "this VACUUM began a week ago, and others take it for dead. Run it again."
_TIMES_ANNOUNCED = 10
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Vacuumed(ShownAsTable):
    """What a VACUUM did, or with ``dry_run`` would do.

    Attributes:
        table: its URL.
        dry_run: whether nothing was removed.
        files: what was removed, or would be, sorted by name.
        failed: what could not be removed, and why.
        folders: how many empty folders were removed.
        spared: the jobs whose files were left because they run.
        directories: how many folders were looked at.
    """

    table: str
    dry_run: bool
    files: Sequence[Entry]
    failed: Mapping[str, str] = field(default_factory=dict)
    folders: int = 0
    spared: frozenset[str] = frozenset()
    directories: int = 0

    @property
    def bytes(self) -> int:
        """The size of the files."""
        return sum(entry.size for entry in self.files)


@dataclass(frozen=True)
class Vacuum(Masked):
    """Remove the files of ``table`` that no version holds which was the newest within the last ``retention_hours`` (by
    default what ``delta.deletedFileRetentionDuration`` says).

    Attributes:
        dry_run: only say what would go.
        lite: look only at files that the log says were removed, and list nothing.
        check_retention: refuse to retain less than the table says.
        dead_after_seconds: how long a running job may show no sign of life.
        threads: so many files or folders are worked on at once; one: on the caller's thread.

    Example:
        >>> Vacuum("/data/flights", dry_run=True).run().bytes
    """

    table: Location
    retention_hours: float | None = None
    dry_run: bool = False
    lite: bool = False
    check_retention: bool = True
    storage_options: Mapping[str, str] | None = None
    dead_after_seconds: float = DEAD_AFTER_SECONDS
    threads: int = _THREADS

    @watched("VACUUM")
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Vacuumed:
        """Run it.

        Raises:
            RetentionTooShort: it would retain less than the table says. LiteVacuumImpossible: the log does not reach
            back far enough. LiveFilesNotConfirmed: something would go, and no second witness says which files are
            live. UnsupportedFeature: the table needs what is not known here. StoreError: the folder cannot
            be listed. MetadataChangedException, ProtocolChangedException: the table was changed again and again.
        """
        runtime, log = context.runtime, open_log(self.table, self.storage_options)
        for left in reversed(range(_TIMES_ANNOUNCED)):
            began_ms, snapshot = runtime.now_ms(), log.snapshot()
            plan = self._plan(snapshot, runtime)
            tell("listing")
            found = plan.look(log, snapshot)
            context.progress("listed", len(found.files), len(found.files))
            reach("read")
            going = plan.keeping(log, snapshot, found).going(found.files)
            if going:
                require_confirmation(log, snapshot, found, going)
            if self.dry_run:
                spared = found.running or frozenset()
                return Vacuumed(log.table, True, going, spared=spared, directories=found.directories)
            try:
                start = self._start(snapshot, plan, going, found, runtime)
                keeping = self._announce(log, plan, found, start, context)
            except DeltaConcurrentModificationException:
                if not left:
                    raise
                continue  # the retention, or what the table asks of a writer, may be another one now
            last_ms = began_ms + DEAD_AFTER_MS - MARGIN_MS
            removing = _Removing(log, keeping, found, context.progress, self.threads, runtime, last_ms)
            done = removing.run()
            self._end(log, done, found, keeping.cutoff_ms, context)
            return done
        raise AssertionError("the last attempt returns or raises")

    def _plan(self, snapshot: Snapshot, runtime: Runtime) -> Plan:
        """Says by which moments it goes; raises an error unless it may be run."""
        _check(snapshot)
        default_ms, hours = snapshot.properties.tombstone_retention_ms, self.retention_hours
        if hours is not None and not _is_retention(hours):
            raise InvalidOption(option="retentionHours", value=hours, reason="it takes a number of hours from 0.")
        asked_ms = default_ms if hours is None else round(hours * HOUR_MS)
        if self.check_retention and asked_ms < default_ms:
            retained = f"{default_ms / HOUR_MS:g} hours"
            raise RetentionTooShort(table=snapshot.table, hours=f"{asked_ms / HOUR_MS:g}", retained=retained)
        now = runtime.now_ms()
        asked_ms = min(asked_ms, now)  # no file is older than 1970, and there is no moment before all that is counted
        return Plan(self, asked_ms, now - asked_ms, now - round(self.dead_after_seconds * 1000))

    def _announce(self, log: Log, plan: Plan, found: Found, start: Transaction, context: RunContext) -> Keeping:
        """Commit the START, and say what is kept as of that version or a later one.

        Raises:
            DeltaConcurrentModificationException: the table was changed meanwhile. TableError: this clock is wrong.
            UnsupportedFeature: behind the START the table has got what is not known here; nothing was removed.
            LiveFilesNotConfirmed: others changed its files meanwhile, and no second witness says the same of them.
        """
        reach("staged")
        version = commit(start, log, NoRows(), context.policy(blind=True), context.runtime).version
        snapshot, own = log.snapshot(), log.read(version)
        if own is None or own.txn_id != start.txn_id or snapshot.version < version:
            said = "another table stands at this path now"
            raise ProtocolChangedException(table=log.table, explanation=said, operation=START)
        if context.runtime.now_ms() - own.raw.timestamp > FARTHEST_AHEAD_MS:
            reason = "this machine's clock is days ahead of the store's, and files would seem old. Nothing was removed."
            raise TableError(table=log.table, reason=reason)
        plan = plan.no_later_than(own.raw.timestamp)
        _check(snapshot)
        keeping = plan.keeping(log, snapshot, found)
        is_known = start.base is not None and same_files(snapshot.files, start.base.files)
        if not is_known and (going := keeping.going(found.files)):
            require_confirmation(log, snapshot, found, going)
        return keeping

    def _start(
        self, snapshot: Snapshot, plan: Plan, going: Sequence[Entry], found: Found, runtime: Runtime
    ) -> Transaction:
        default_ms = snapshot.properties.tombstone_retention_ms
        asked = {} if self.retention_hours is None else {"specifiedRetentionMillis": plan.retained_ms}
        parameters = {"retentionCheckEnabled": self.check_retention, "defaultRetentionMillis": default_ms, **asked}
        counts = {"numFilesToDelete": len(going), "sizeOfDataToDelete": sum(entry.size for entry in going)}
        info = CommitInfo(START, parameters, counts, tags=start_tags(found.running, plan.cutoff_ms))
        return Transaction.on(snapshot, str(runtime.new_id()), info)

    def _end(self, log: Log, done: Vacuumed, found: Found, cutoff_ms: int, context: RunContext) -> None:
        """Say what was done. It is done, whether that can be said or not."""
        try:
            snapshot = log.snapshot()
            through = found.correct_through(snapshot, cutoff_ms)
            if through is not None and not done.failed:
                remember(log.store, through)
            _check(snapshot)
            status = {"status": "FAILED" if done.failed else "COMPLETED"}
            counts = {"numDeletedFiles": len(done.files), "numVacuumedDirectories": done.directories}
            ours = Transaction.on(snapshot, str(context.runtime.new_id()), CommitInfo(END, status, counts))
            with mute_listeners():  # the phases are those of the START
                commit(ours, log, NoRows(), context.policy(blind=True), context.runtime)
        except AnabranchError as error:
            _logger.warning("VACUUM of %s is done, but its end is not in the history: %s", log.table, error)


@dataclass(frozen=True)
class Plan:
    """A VACUUM about to run: what it retains, and since when files or a running job must have shown that they live."""

    command: Vacuum
    retained_ms: int
    cutoff_ms: int
    alive_since_ms: int

    def no_later_than(self, now_ms: int) -> Plan:
        """The same by the store's clock, where it shows this moment or an earlier one and this machine's is ahead."""
        return replace(self, cutoff_ms=min(self.cutoff_ms, now_ms + SKEW_MS - self.retained_ms))

    def look(self, log: Log, snapshot: Snapshot) -> Found:
        """What is there. A job counts as running, too, as long as its marker is too young to go."""
        if self.command.lite:
            return in_log(log, snapshot, self.cutoff_ms, self.command.threads)
        alive_since_ms = min(self.alive_since_ms, self.cutoff_ms)
        return in_folder(snapshot, Hidden.of(snapshot), self.cutoff_ms, alive_since_ms, self.command.threads)

    def keeping(self, log: Log, snapshot: Snapshot, found: Found) -> Keeping:
        """What is kept as of a version."""
        change_data = any(entry.name.startswith(f"{FOLDER}/") for entry in found.files)
        names = names_to_keep(log, snapshot, self.cutoff_ms, change_data=change_data)
        names |= find_known_by_alias(log.store, names, found.files)
        spared = found.running or frozenset()
        return Keeping(names, self.cutoff_ms, spared, found.others, Hidden.of(snapshot))


def _is_retention(hours: Any) -> bool:
    return isinstance(hours, SupportsFloat) and not isinstance(hours, bool) and 0 <= float(hours) < float("inf")


def _check(snapshot: Snapshot) -> None:
    """Raises UnsupportedFeature if the table asks of a VACUUM what is not known here."""
    check_writable(snapshot.table, snapshot.protocol, snapshot.metadata)


@dataclass(frozen=True)
class _Removing:
    """The removal of what was found and is not kept, up to the moment ``last_ms``: whoever brings files back takes this
    VACUUM for dead then.
    """

    log: Log
    keeping: Keeping
    found: Found
    progress: Progress
    threads: int
    runtime: Runtime
    last_ms: int

    def run(self) -> Vacuumed:
        """Remove it; what cannot be removed is told, and the rest goes all the same."""
        going = self.keeping.going(self.found.files)
        failed: dict[str, str] = {}
        done = 0
        for number, why in self._remove_all(self._groups(going)):
            failed |= why
            done += number
            self.progress("removed", min(done, len(going)), len(going))
        removed = [entry for entry in going if entry.name not in failed]
        spared = self.found.running or frozenset()
        folders = len(self._empty_folders(removed))
        return Vacuumed(self.log.table, False, removed, failed, folders, spared, self.found.directories)

    def _remove_all(self, groups: Sequence[Sequence[str]]) -> Iterator[tuple[int, dict[str, str]]]:
        if self.threads == 1:
            yield from map(self._remove, groups)
            return
        with ThreadPoolExecutor(self.threads, thread_name_prefix="anabranch-vacuum") as pool:
            yield from pool.map(self._remove, groups)

    def _groups(self, going: Sequence[Entry]) -> list[list[str]]:
        """Names that are removed one after the other: those of a job that has not ended begin with its witness, so that
        it learns of it should it be alive after all (`anabranch.commands.staging`).
        """
        ended = {job_of(e.name) for e in self.found.files if e.name.rpartition("/")[2].startswith("_committed_")}
        alone, jobs = list[list[str]](), dict[str, list[str]]()
        for entry in going:
            job = job_of(entry.name)
            if job is None or job in ended or self.found.running is None:
                alone.append([entry.name])
            else:
                jobs.setdefault(job, [f"job-{job}/_started_{job}"]).append(entry.name)
        return [*jobs.values(), *alone]

    def _remove(self, names: Sequence[str]) -> tuple[int, dict[str, str]]:
        """How many there were; and what could not be removed, with the reason: where it is the first, all of them."""
        failed: dict[str, str] = {}
        for number, name in enumerate(names):
            if name in failed:
                continue
            if self.runtime.now_ms() > self.last_ms:
                return len(names), failed | dict.fromkeys(names[number:], _TOO_LATE)
            try:
                self.log.store.delete(name)
            except StoreError as error:
                failed |= dict.fromkeys(names if name == names[0] else [name], error.message)
        return len(names), failed

    def _empty_folders(self, removed: Sequence[Entry]) -> list[str]:
        """Remove the folders that hold nothing any more, or held nothing; their names."""
        gone = {entry.name for entry in removed}
        full = folders_of(entry for entry in self.found.files if entry.name not in gone)
        wanted = [each for each in self.found.folders if each not in full and self.keeping.is_ours(each)]
        return remove_empty(self.log.store, wanted)
