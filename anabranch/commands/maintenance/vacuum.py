"""VACUUM removes the files that no retained version holds, and nothing else.

Knows the order of the steps, which makes it safe (docs/concepts/the-fence.md): list; announce, by a commit that names
the running jobs, whose files are spared; read the table as of that commit or later; remove what was listed and is not
retained. Guarantees: whatever happens in between, even to this process, no live file and no file of a retained version
is removed; the next VACUUM can remove what is left; two at once do no harm.

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
from anabranch.commands.maintenance.vacuum_candidates import (
    Candidates,
    candidates_in_folder,
    candidates_in_log,
    record_last_version,
)
from anabranch.commands.maintenance.vacuum_confirmed import require_confirmation
from anabranch.commands.maintenance.vacuum_retained import (
    HiddenNames,
    Retained,
    find_aliased_names,
    folders_of,
    names_in_commits,
    names_in_snapshot,
)
from anabranch.commands.opening import Location, SecretFree, open_log
from anabranch.commands.watching import report_step, watch
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
"""Time without a sign of life after which a job counts as dead. A job that was only asleep loses time, nothing else."""

FARTHEST_AHEAD_MS = 2 * 24 * HOUR_MS
"""Maximum lead of this machine's clock over the store's; VACUUM refuses to run with a larger one."""

_THREADS = 16
_TOO_LATE = "this VACUUM began a week ago, and other commands count it as dead. Run it again."
_TIMES_ANNOUNCED = 10
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class VacuumResult(ShownAsTable):
    """What a VACUUM did, or with ``dry_run`` would do.

    Attributes:
        table: its URL.
        dry_run: whether nothing was removed.
        files: the files that were removed, or would be, sorted by name.
        failed: the names that could not be removed -> the reason.
        folders: number of empty folders that were removed.
        spared: the running jobs, whose files were left.
        directories: number of folders that were listed.
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
        """The total size of the files."""
        return sum(entry.size for entry in self.files)


@dataclass(frozen=True)
class Vacuum(SecretFree):
    """Remove the files of ``table`` that are in no version that was the newest within the last ``retention_hours`` (by
    default ``delta.deletedFileRetentionDuration``).

    Attributes:
        dry_run: report what would be removed, and remove nothing.
        lite: consider only files that commits removed, and list no folder.
        check_retention: refuse a retention shorter than the table's.
        dead_after_seconds: how long a running job may show no sign of life.
        threads: number of files or folders processed at once; 1 uses the caller's thread.

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

    @watch("VACUUM")
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> VacuumResult:
        """Run it.

        Raises:
            RetentionTooShort: the retention is shorter than the table's. LiteVacuumImpossible: the log does not reach
            back far enough. LiveFilesNotConfirmed: files would be removed, and no second witness confirms which files
            are live. UnsupportedFeature: the table needs an unknown feature. StoreError: the folder cannot be listed.
            MetadataChangedException, ProtocolChangedException: the table was changed again and again.
        """
        runtime, log = context.runtime, open_log(self.table, self.storage_options)
        for attempts_left in reversed(range(_TIMES_ANNOUNCED)):
            began_ms, snapshot = runtime.now_ms(), log.snapshot()
            plan = self._plan(snapshot, runtime)
            report_step("listing")
            candidates = plan.look(log, snapshot)
            context.progress("listed", len(candidates.files), len(candidates.files))
            reach("read")
            files_to_remove = plan.keeping(log, snapshot, candidates).going(candidates.files)
            if files_to_remove:
                require_confirmation(log, snapshot, candidates, files_to_remove)
            if self.dry_run:
                spared = candidates.running or frozenset()
                return VacuumResult(log.table, True, files_to_remove, spared=spared, directories=candidates.directories)
            try:
                start = self._start(snapshot, plan, files_to_remove, candidates, runtime)
                keeping = self._announce(log, plan, candidates, start, context)
            except DeltaConcurrentModificationException:
                if not attempts_left:
                    raise
                continue  # the retention, or what the table requires of a writer, may have changed
            last_ms = began_ms + DEAD_AFTER_MS - MARGIN_MS
            removing = _Removal(log, keeping, candidates, context.progress, self.threads, runtime, last_ms)
            vacuumed = removing.run()
            self._end(log, vacuumed, candidates, keeping.cutoff_ms, context)
            return vacuumed
        raise AssertionError("the last attempt returns or raises")

    def _plan(self, snapshot: Snapshot, runtime: Runtime) -> VacuumPlan:
        """The plan with its cutoff times. Raises an error unless the VACUUM may run."""
        _check(snapshot)
        default_ms, hours = snapshot.properties.tombstone_retention_ms, self.retention_hours
        if hours is not None and not _is_retention(hours):
            raise InvalidOption(option="retentionHours", value=hours, reason="it takes a number of hours from 0.")
        retention_ms = default_ms if hours is None else round(hours * HOUR_MS)
        if self.check_retention and retention_ms < default_ms:
            retained = f"{default_ms / HOUR_MS:g} hours"
            raise RetentionTooShort(table=snapshot.table, hours=f"{retention_ms / HOUR_MS:g}", retained=retained)
        now = runtime.now_ms()
        retention_ms = min(retention_ms, now)  # no file is older than 1970, and times are counted from there
        return VacuumPlan(self, retention_ms, now - retention_ms, now - round(self.dead_after_seconds * 1000))

    def _announce(
        self, log: Log, plan: VacuumPlan, candidates: Candidates, start: Transaction, context: RunContext
    ) -> Retained:
        """Commit the START and return what is kept as of that version or a later one.

        Raises:
            DeltaConcurrentModificationException: the table was changed meanwhile. TableError: this clock is wrong.
            UnsupportedFeature: after the START the table needs an unknown feature; nothing was removed.
            LiveFilesNotConfirmed: another writer changed its files meanwhile, and no second witness confirms them.
        """
        reach("staged")
        version = commit(start, log, NoRows(), context.policy(blind=True), context.runtime).version
        snapshot, start_commit = log.snapshot(), log.read(version)
        if start_commit is None or start_commit.txn_id != start.txn_id or snapshot.version < version:
            explanation = "another table stands at this path now"
            raise ProtocolChangedException(table=log.table, explanation=explanation, operation=START)
        if context.runtime.now_ms() - start_commit.raw.timestamp > FARTHEST_AHEAD_MS:
            reason = "this machine's clock is days ahead of the store's, and files would seem old. Nothing was removed."
            raise TableError(table=log.table, reason=reason)
        plan = plan.no_later_than(start_commit.raw.timestamp)
        _check(snapshot)
        keeping = plan.keeping(log, snapshot, candidates)
        is_known = start.base is not None and same_files(snapshot.files, start.base.files)
        if not is_known and (files_to_remove := keeping.going(candidates.files)):
            require_confirmation(log, snapshot, candidates, files_to_remove)
        return keeping

    def _start(
        self,
        snapshot: Snapshot,
        plan: VacuumPlan,
        files_to_remove: Sequence[Entry],
        candidates: Candidates,
        runtime: Runtime,
    ) -> Transaction:
        default_ms = snapshot.properties.tombstone_retention_ms
        specified = {} if self.retention_hours is None else {"specifiedRetentionMillis": plan.retained_ms}
        parameters = {"retentionCheckEnabled": self.check_retention, "defaultRetentionMillis": default_ms, **specified}
        counts = {
            "numFilesToDelete": len(files_to_remove),
            "sizeOfDataToDelete": sum(entry.size for entry in files_to_remove),
        }
        info = CommitInfo(START, parameters, counts, tags=start_tags(candidates.running, plan.cutoff_ms))
        return Transaction.on(snapshot, str(runtime.new_id()), info)

    def _end(
        self, log: Log, vacuumed: VacuumResult, candidates: Candidates, cutoff_ms: int, context: RunContext
    ) -> None:
        """Commit the END. A failure to do so is only logged: the files are removed either way."""
        try:
            snapshot = log.snapshot()
            through = candidates.correct_through(snapshot, cutoff_ms)
            if through is not None and not vacuumed.failed:
                record_last_version(log.store, through)
            _check(snapshot)
            status = {"status": "FAILED" if vacuumed.failed else "COMPLETED"}
            counts = {"numDeletedFiles": len(vacuumed.files), "numVacuumedDirectories": vacuumed.directories}
            ours = Transaction.on(snapshot, str(context.runtime.new_id()), CommitInfo(END, status, counts))
            with mute_listeners():  # the phases are those of the START
                commit(ours, log, NoRows(), context.policy(blind=True), context.runtime)
        except AnabranchError as error:
            _logger.warning("VACUUM of %s is done, but its end is not in the history: %s", log.table, error)


@dataclass(frozen=True)
class VacuumPlan:
    """A VACUUM about to run: its retention, and the times since which files or running jobs count as alive."""

    command: Vacuum
    retained_ms: int
    cutoff_ms: int
    alive_since_ms: int

    def no_later_than(self, now_ms: int) -> VacuumPlan:
        """The plan by the store's clock, which shows ``now_ms`` or less, in case this machine's is ahead."""
        return replace(self, cutoff_ms=min(self.cutoff_ms, now_ms + SKEW_MS - self.retained_ms))

    def look(self, log: Log, snapshot: Snapshot) -> Candidates:
        """The candidates. A job also counts as running as long as its marker is too young to be removed."""
        if self.command.lite:
            return candidates_in_log(log, snapshot, self.cutoff_ms, self.command.threads)
        alive_since_ms = min(self.alive_since_ms, self.cutoff_ms)
        return candidates_in_folder(
            snapshot, HiddenNames.of(snapshot), self.cutoff_ms, alive_since_ms, self.command.threads
        )

    def keeping(self, log: Log, snapshot: Snapshot, found: Candidates) -> Retained:
        """What is kept as of a version. Commits are read only where a file would go without what they say."""
        spared = found.running or frozenset()
        names = names_in_snapshot(snapshot, self.cutoff_ms)
        kept = Retained(names, self.cutoff_ms, spared, found.others, HiddenNames.of(snapshot))
        if not kept.going(found.files):
            return kept
        change_data = any(entry.name.startswith(f"{FOLDER}/") for entry in found.files)
        names = names | names_in_commits(log, snapshot, self.cutoff_ms, self.command.threads, change_data=change_data)
        return replace(kept, names=names | find_aliased_names(log.store, names, found.files))


def _is_retention(hours: Any) -> bool:
    return isinstance(hours, SupportsFloat) and not isinstance(hours, bool) and 0 <= float(hours) < float("inf")


def _check(snapshot: Snapshot) -> None:
    """Raises UnsupportedFeature if the table requires an unknown feature of a VACUUM."""
    check_writable(snapshot.table, snapshot.protocol, snapshot.metadata)


@dataclass(frozen=True)
class _Removal:
    """Removes the candidates that are not kept, until ``last_ms``: then a command that brings files back counts this
    VACUUM as dead.
    """

    log: Log
    keeping: Retained
    found: Candidates
    progress: Progress
    threads: int
    runtime: Runtime
    last_ms: int

    def run(self) -> VacuumResult:
        """Remove the files; report those that cannot be removed, and remove the rest all the same."""
        files_to_remove = self.keeping.going(self.found.files)
        failed: dict[str, str] = {}
        processed = 0
        for number, why in self._remove_all(self._groups(files_to_remove)):
            failed |= why
            processed += number
            self.progress("removed", min(processed, len(files_to_remove)), len(files_to_remove))
        removed = [entry for entry in files_to_remove if entry.name not in failed]
        spared = self.found.running or frozenset()
        folders = len(self._empty_folders(removed))
        return VacuumResult(self.log.table, False, removed, failed, folders, spared, self.found.directories)

    def _remove_all(self, groups: Sequence[Sequence[str]]) -> Iterator[tuple[int, dict[str, str]]]:
        if self.threads == 1:
            yield from map(self._remove, groups)
            return
        with ThreadPoolExecutor(self.threads, thread_name_prefix="anabranch-vacuum") as pool:
            yield from pool.map(self._remove, groups)

    def _groups(self, files_to_remove: Sequence[Entry]) -> list[list[str]]:
        """Groups of names to remove in order: those of a job that has not ended begin with its marker, so that the job
        notices if it is alive after all (`anabranch.commands.staging`).
        """
        ended = {
            job_of(entry.name) for entry in self.found.files if entry.name.rpartition("/")[2].startswith("_committed_")
        }
        alone, jobs = list[list[str]](), dict[str, list[str]]()
        for entry in files_to_remove:
            job = job_of(entry.name)
            if job is None or job in ended or self.found.running is None:
                alone.append([entry.name])
            else:
                jobs.setdefault(job, [f"job-{job}/_started_{job}"]).append(entry.name)
        return [*jobs.values(), *alone]

    def _remove(self, names: Sequence[str]) -> tuple[int, dict[str, str]]:
        """The number of names, and those that could not be removed with the reason. If the first fails, all do."""
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
        """Remove the folders that are empty, now or from the start; return their names."""
        removed_names = {entry.name for entry in removed}
        full = folders_of(entry for entry in self.found.files if entry.name not in removed_names)
        folders = [folder for folder in self.found.folders if folder not in full and self.keeping.is_ours(folder)]
        return remove_empty(self.log.store, folders)
