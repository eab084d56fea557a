"""RESTORE makes a table equal to an older version of itself.

Knows two versions of one table, and which parts of a table never go back. Guarantees: rows, columns, partitioning,
clustering and properties are those of the old version, in one commit after all others; it commits no ``add`` whose data
file or vector file is missing, or may still be deleted by a running VACUUM; the protocol, identity values, column
numbers and row ids only move forward.

Source: Delta Lake documentation, "Restore a Delta table to an earlier state".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from anabranch._log.commits import Commit
from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._log.vectors import vector_of
from anabranch._protocol.actions import FileRow
from anabranch._protocol.layout import clustering
from anabranch._protocol.layout.file_sets import Marks
from anabranch._transaction.commit import CommitResult, commit
from anabranch._transaction.conflict_errors import Conflict
from anabranch._transaction.phases import reach
from anabranch._transaction.rebase_handler import NoRows
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.engine import Engine
from anabranch.commands.maintenance.file_existence import find_missing, reappearance_conflict
from anabranch.commands.maintenance.restore_plan import RestorePlan, make_plan
from anabranch.commands.maintenance.returning_files import ReturningFiles
from anabranch.commands.opening import Location, SecretFree, open_log
from anabranch.commands.queries.time_travel import AsOf
from anabranch.commands.rerunning import rerunnable, with_redone_runs
from anabranch.commands.watching import watch
from anabranch.errors import (
    ConcurrentWriteException,
    InvalidOption,
    RestoreFilesMissing,
    TimestampAfterLatestCommit,
    TimestampBeforeEarliestCommit,
    VersionNotFound,
)
from anabranch.errors.html import ShownAsTable

_NAMED = 100
"""Maximum number of missing files that an error names."""

METRICS = {
    "table_size_after_restore": "tableSizeAfterRestore",
    "num_of_files_after_restore": "numOfFilesAfterRestore",
    "num_removed_files": "numRemovedFiles",
    "num_restored_files": "numRestoredFiles",
    "removed_files_size": "removedFilesSize",
    "restored_files_size": "restoredFilesSize",
}
"""The columns of RESTORE's result, as delta-spark names them -> the metrics in the history."""

RESULT = pa.schema([(name, pa.int64()) for name in METRICS])


@dataclass(frozen=True)
class RestoreResult(ShownAsTable):
    """What a RESTORE did.

    Attributes:
        version: the version that was restored.
        committed: its commit; None if the table equalled that version already, or with ``dry_run``.
        metrics: Delta's metrics, as in the history.
        missing: the files that do not exist and were not restored.
        changes: whether the table differed from that version.
    """

    version: int
    committed: CommitResult | None
    metrics: Mapping[str, int]
    missing: tuple[str, ...] = ()
    changes: bool = True

    @property
    def row(self) -> dict[str, int]:
        """The one row of `RESULT`."""
        return {column: self.metrics[name] for column, name in METRICS.items()}


@dataclass(frozen=True)
class Restore(SecretFree):
    """Make the table equal to its state at ``version`` or at ``timestamp``.

    It reads the whole table and replaces it, so it conflicts with every winner that changed rows or metadata. At
    WriteSerializable, blind appends do not conflict unless the metadata changes too: they are ordered after it.

    Attributes:
        ignore_missing: leave out files that do not exist, instead of raising.
        zone: the zone of timestamps without one.
        dry_run: raise the same errors, report what would be done, and commit nothing.

    Example:
        >>> Restore("/data/flights", version=7).run().metrics["numRestoredFiles"]
    """

    table: Location
    version: int | str | None = None
    timestamp: Any = None
    ignore_missing: bool = False
    zone: str = "UTC"
    storage_options: Mapping[str, str] | None = None
    dry_run: bool = False

    @watch("RESTORE")
    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> RestoreResult:
        """Run it.

        Raises:
            InvalidOption: no version is specified, or it belongs to another table that was here before.
            AmbiguousTimeTravel, InvalidTimestamp: the version is specified twice, or cannot be parsed.
            VersionNotFound, TimestampBeforeEarliestCommit, TimestampAfterLatestCommit: there is no such version.
            RestoreFilesMissing: a file of the version does not exist any more.
            AppendOnlyTable, UnsupportedFeature: the table does not allow the change.
            DeltaConcurrentModificationException: it conflicts with a winner or with a running VACUUM.
        """
        runtime, log = context.runtime, open_log(self.table, self.storage_options)
        base = context.snapshot(log)
        target = self._target(log, base)
        reach("read")
        plan = make_plan(base, target, runtime.new_id)
        plan, missing = self._without_missing(plan)
        handler = RestoreHandler(plan, runtime)
        ours = with_redone_runs(plan.transaction(self._parameters(target.version), runtime))
        reach("staged")
        if plan.is_nothing or self.dry_run:
            return RestoreResult(target.version, None, ours.info.metrics, missing, changes=not plan.is_nothing)
        committed = commit(ours, log, handler, context.policy(), runtime)
        return RestoreResult(target.version, committed, committed.metrics, missing)

    def _target(self, log: Log, base: Snapshot) -> Snapshot:
        if self.version is None and self.timestamp is None:
            reason = "say which version to restore, or give a timestamp."
            raise InvalidOption(option="version", value=None, reason=reason)
        try:
            _, version = AsOf(
                self.table, self.version, self.timestamp, self.zone, self.storage_options
            ).resolve_version()
            target = log.snapshot(version)
        except (VersionNotFound, TimestampBeforeEarliestCommit, TimestampAfterLatestCommit) as error:
            raise type(error)(**{**error.facts, "what": "restore table"}) from None
        if target.metadata.id != base.metadata.id:
            reason = "it belongs to another table, which the present one has replaced since."
            raise InvalidOption(option="version", value=version, reason=reason)
        return target

    def _without_missing(self, plan: RestorePlan) -> tuple[RestorePlan, tuple[str, ...]]:
        missing = find_missing(plan.base.store, plan.adds)
        if not missing:
            return plan, ()
        if not self.ignore_missing:
            raise missing_files(plan, [file.missing for file in missing])
        missing_paths = {file.path for file in missing}
        return plan.without(missing_paths), tuple(sorted(file.missing for file in missing))

    def _parameters(self, version: int) -> dict[str, Any]:
        """The operation parameters, as delta-spark writes them."""
        timestamp = None if self.timestamp is None else str(self.timestamp)
        return {"version": None if self.version is None else version, "timestamp": timestamp}


def missing_files(plan: RestorePlan, names: Sequence[str]) -> RestoreFilesMissing:
    """The error for missing files, with the version."""
    facts = {"version": plan.target.version, "files": sorted(names)[:_NAMED], "count": len(names)}
    return RestoreFilesMissing(table=plan.base.table, file=min(names), **facts)


# -- before the put ----------------------------------------------------------------------------------------------------


class RestoreHandler(NoRows):
    """The handler of one RESTORE (`RebaseHandler` and `FileGuard`), which has read every row."""

    def __init__(self, plan: RestorePlan, runtime: Runtime) -> None:
        self._plan, self._returning = plan, ReturningFiles(plan.base, plan.adds, runtime)

    def before_put(self, winners: Sequence[Commit]) -> Conflict | None:
        """Returns the conflict, or raises an error, unless the files that come back exist and stay.

        It is not enough that a file exists now: a VACUUM that committed its START before this RESTORE, and does not
        know of it, may delete the file a moment later. A VACUUM that starts after this commit sees the file as live. So
        an earlier VACUUM that has a START and no END, and whose retention does not spare a file that comes back, is a
        conflict; the RESTORE may be retried when it has ended. The files are looked up *after* that check, which
        notices what completed VACUUMs deleted. This holds because a VACUUM commits its END only when it can delete no
        file any more. The files that are left out are looked up again, too.
        """
        conflict = self._returning.conflict(winners) or self._clustering_conflict(winners)
        conflict = conflict or reappearance_conflict(self._plan.base.store, self._plan.left_out)
        if conflict is None:
            self.check_files()
        return conflict

    def check_files(self) -> None:
        """Raises RestoreFilesMissing unless each file that comes back exists, and the file of its vector."""
        missing = find_missing(self._plan.base.store, self._plan.adds)
        if missing:
            raise missing_files(self._plan, [file.missing for file in missing])

    def _clustering_conflict(self, winners: Sequence[Commit]) -> Conflict | None:
        """The conflict with a winner that changed the clustering, which RESTORE sets back as well."""
        for winner in winners:
            if any(domain.domain == clustering.DOMAIN for domain in winner.head.domains):
                explanation = f"both wrote the domain {clustering.DOMAIN}"
                return Conflict(ConcurrentWriteException, "METADATA_CHANGE", explanation, winner)
        return None

    def vector(self, file: FileRow) -> BitMap64:
        """The deleted positions of a file."""
        return vector_of(self._plan.base.store, file)

    def could_match(self, files: pa.Table) -> pa.Table:
        """Every file: a RESTORE has read all of them."""
        return files

    def matches(self, files: pa.Table) -> Marks:
        """Never called: a RESTORE is checked by files."""
        raise AssertionError("a RESTORE does not look at rows")
