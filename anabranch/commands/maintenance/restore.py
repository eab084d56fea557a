"""RESTORE: the table is again what it was at an older version.

Knows two versions of one table, and what of a table never goes back. Guarantees: rows, columns, partitioning,
clustering and properties are those of the old version, in one commit behind all others; no ``add`` is committed whose
data file or vector's file is not there, or may yet be deleted by a VACUUM that runs; what only ever goes on stays at
its farther mark: the protocol, identity values, numbers of columns, row ids.

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
from anabranch._transaction.commit import Committed, commit
from anabranch._transaction.conflict_errors import Conflict
from anabranch._transaction.phases import reach
from anabranch._transaction.rebase_handler import NoRows
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.engine import Engine
from anabranch.commands.maintenance.file_existence import absent, came_back
from anabranch.commands.maintenance.restore_plan import Plan, make_plan
from anabranch.commands.maintenance.returning_files import ReturningFiles
from anabranch.commands.opening import Location, Masked, open_log
from anabranch.commands.queries.time_travel import AsOf
from anabranch.commands.watching import watched
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
"""So many missing files are named at most."""

METRICS = {
    "table_size_after_restore": "tableSizeAfterRestore",
    "num_of_files_after_restore": "numOfFilesAfterRestore",
    "num_removed_files": "numRemovedFiles",
    "num_restored_files": "numRestoredFiles",
    "removed_files_size": "removedFilesSize",
    "restored_files_size": "restoredFilesSize",
}
"""The columns of what RESTORE returns, as delta-spark calls them -> the same in the history."""

RESULT = pa.schema([(name, pa.int64()) for name in METRICS])


@dataclass(frozen=True)
class Restored(ShownAsTable):
    """What a RESTORE did.

    Attributes:
        version: the one that it went back to.
        committed: where it stands, None where the table was that already, or with ``dry_run``.
        metrics: Delta's, as the history has them.
        missing: the files that it did without.
        changes: whether the table was not that already.
    """

    version: int
    committed: Committed | None
    metrics: Mapping[str, int]
    missing: tuple[str, ...] = ()
    changes: bool = True

    @property
    def row(self) -> dict[str, int]:
        """The one row of `RESULT`."""
        return {column: self.metrics[name] for column, name in METRICS.items()}


@dataclass(frozen=True)
class Restore(Masked):
    """Make the table again what it was at ``version``, or at ``timestamp``.

    It has read the whole table and puts another in its place: whoever changed rows meanwhile, or the metadata, is in
    its way. At WriteSerializable blind appends are not, unless the metadata goes back too: they stand behind it.

    Attributes:
        ignore_missing: do without the files that are not there, instead of raising.
        zone: of timestamps which say none.
        dry_run: refuse what would be refused, say what would be done, and commit nothing.

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

    @watched("RESTORE")
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Restored:
        """Run it.

        Raises:
            InvalidOption: no version is named, or the newest, or one of another table that stood here.
            AmbiguousTimeTravel, InvalidTimestamp: it is named twice, or by something that is none.
            VersionNotFound, TimestampBeforeEarliestCommit, TimestampAfterLatestCommit: there is no such version.
            RestoreFilesMissing: a file of it is not there any more.
            AppendOnlyTable, UnsupportedFeature: the table may not be changed so.
            DeltaConcurrentModificationException: a winner stands in the way, or a VACUUM that runs.
        """
        runtime, log = context.runtime, open_log(self.table, self.storage_options)
        base = context.snapshot(log)
        target = self._target(log, base)
        reach("read")
        plan = make_plan(base, target, runtime.new_id)
        plan, missing = self._without_missing(plan)
        handler = RestoreHandler(plan, runtime)
        ours = plan.transaction(self._parameters(target.version), runtime)
        reach("staged")
        if plan.is_nothing or self.dry_run:
            return Restored(target.version, None, ours.info.metrics, missing, changes=not plan.is_nothing)
        committed = commit(ours, log, handler, context.policy(), runtime)
        return Restored(target.version, committed, committed.metrics, missing)

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
            reason = "it is of another table, which was replaced since by the one that stands here now."
            raise InvalidOption(option="version", value=version, reason=reason)
        return target

    def _without_missing(self, plan: Plan) -> tuple[Plan, tuple[str, ...]]:
        found = absent(plan.base.store, plan.adds)
        if not found:
            return plan, ()
        if not self.ignore_missing:
            raise missing_files(plan, [each.missing for each in found])
        gone = {each.path for each in found}
        return plan.without(gone), tuple(sorted(each.missing for each in found))

    def _parameters(self, version: int) -> dict[str, Any]:
        """What was asked for, as delta-spark says it."""
        said = None if self.timestamp is None else str(self.timestamp)
        return {"version": None if self.version is None else version, "timestamp": said}


def missing_files(plan: Plan, names: Sequence[str]) -> RestoreFilesMissing:
    """The error that names them and the version."""
    facts = {"version": plan.target.version, "files": sorted(names)[:_NAMED], "count": len(names)}
    return RestoreFilesMissing(table=plan.base.table, file=min(names), **facts)


# -- before the put ----------------------------------------------------------------------------------------------------


class RestoreHandler(NoRows):
    """The handler of one RESTORE (`RebaseHandler`, and `Guarded`): every row matters to it."""

    def __init__(self, plan: Plan, runtime: Runtime) -> None:
        self._plan, self._returning = plan, ReturningFiles(plan.base, plan.adds, runtime)

    def before_put(self, winners: Sequence[Commit]) -> Conflict | None:
        """Returns the conflict, or raises an error, unless what comes back is there and stays.

        That a file is there now is not enough: a VACUUM that has said its START before this RESTORE stands, and knows
        nothing of it, may delete the file a moment later. One whose START comes behind this commit sees the file live.
        So, of all that is committed up to the version before: a VACUUM that has a START and no END, and whose retention
        does not spare what comes back, is a conflict, to be tried again when it has ended; and the files are looked at
        *after* that, so that what VACUUMs that have ended deleted is noticed. This holds as long as a VACUUM says its
        END only when nothing that it does can delete a file any more. What is done without is looked for again, too.
        """
        conflict = self._returning.conflict(winners) or self._clustering_conflict(winners)
        conflict = conflict or came_back(self._plan.base.store, self._plan.left_out)
        if conflict is None:
            self.check_files()
        return conflict

    def check_files(self) -> None:
        """Raises RestoreFilesMissing unless each file that comes back, and the file of its vector, is there."""
        found = absent(self._plan.base.store, self._plan.adds)
        if found:
            raise missing_files(self._plan, [each.missing for each in found])

    def _clustering_conflict(self, winners: Sequence[Commit]) -> Conflict | None:
        """How the table is clustered goes back as well, so nobody may change it meanwhile."""
        for winner in winners:
            if any(each.domain == clustering.DOMAIN for each in winner.head.domains):
                said = f"both wrote the domain {clustering.DOMAIN}"
                return Conflict(ConcurrentWriteException, "METADATA_CHANGE", said, winner)
        return None

    def vector(self, file: FileRow) -> BitMap64:
        """The deleted positions of a file."""
        return vector_of(self._plan.base.store, file)

    def could_match(self, files: pa.Table) -> pa.Table:
        """Every file matters."""
        return files

    def matches(self, files: pa.Table) -> Marks:
        """Never asked for: it is judged by files."""
        raise AssertionError("a RESTORE does not look at rows")
