"""Assigns row ids to the files of an existing table, before a property may enable row tracking.

Knows the log, not rows. First it lists the feature, so that every writer assigns ids to new files; then it commits the
files without ids again, without changing data (PROTOCOL.md, "Writer Requirements for Row Tracking"). Guarantee:
whatever is written meanwhile, no file gets two ranges and no two files share an id.
"""

from __future__ import annotations

from itertools import count

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.features.known import ROW_TRACKING
from anabranch._protocol.features.row_tracking import ENABLED, SUSPENDED, is_suspended
from anabranch._protocol.features.table_features import check_writable, with_features, writer_features
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._transaction.commit import CommitResult, commit
from anabranch._transaction.phases import mute_listeners, reach
from anabranch._transaction.rebase_handler import NoRows
from anabranch._transaction.transaction import Changes, CommitInfo, Declarations, Source, Transaction
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.row_changes import with_row_counts
from anabranch.errors import InvalidProperty

BATCH_FILES = 100_000
"""Maximum number of files in one commit, as in delta-spark."""


def backfill_all(log: Log, context: RunContext) -> Snapshot:
    """Commit what is missing until row tracking is supported and every file has row ids; return that version.

    Raises:
        ProtocolChangedException, MetadataChangedException: the table was changed meanwhile.
        InvalidProperty: row tracking is suspended, so no file may get ids.
        UnsupportedFeature: the table cannot be written.
    """
    with mute_listeners():  # listeners wait for the phases of the command
        snapshot = log.snapshot()
        _refuse_suspended(snapshot)
        if ROW_TRACKING not in writer_features(snapshot.protocol):
            _support(snapshot, log, context)
        for batch in count():
            snapshot = log.snapshot()
            _refuse_suspended(snapshot)
            lacking = without_ids(snapshot)
            if not len(lacking):
                return snapshot
            backfill(snapshot, lacking.slice(0, BATCH_FILES), batch, log, context)
    raise AssertionError("the loop ends by returning")


def _refuse_suspended(snapshot: Snapshot) -> None:
    """Raises InvalidProperty if row tracking is suspended: no ids may be assigned, so the backfill would never end."""
    if is_suspended(snapshot.metadata):
        reason = f"row tracking is suspended; unset {SUSPENDED} first, by a command of its own."
        raise InvalidProperty(property=ENABLED, value="true", reason=reason)


def without_ids(snapshot: Snapshot) -> pa.Table:
    """The live files that have no row ids yet."""
    files = snapshot.files
    return files.filter(pc.or_(pc.is_null(files["baseRowId"]), pc.is_null(files["defaultRowCommitVersion"])))


def backfill(snapshot: Snapshot, files: pa.Table, batch: int, log: Log, context: RunContext = NEWEST) -> CommitResult:
    """Commit these live files again, so that they get ids; files that a winner removes are left out.

    Raises:
        ProtocolChangedException, MetadataChangedException: the table was changed meanwhile.
    """
    check_writable(snapshot.table, snapshot.protocol, snapshot.metadata)
    file_set = FileSet(snapshot.table, snapshot.schema, snapshot.partition_columns, files, {})  # no row is read
    rows = with_row_counts(snapshot, file_set).files.to_pylist()
    info = CommitInfo("ROW TRACKING BACKFILL", {"batchId": str(batch)})
    sources = {row["path"]: Source(row, BitMap64()) for row in rows}
    changes = Changes(recommits=frozenset(sources), sources=sources)
    ours = Transaction.on(snapshot, str(context.runtime.new_id()), info, changes=changes)
    reach("staged")
    return commit(ours, log, NoRows(), context.policy(), context.runtime)


def _support(snapshot: Snapshot, log: Log, context: RunContext) -> None:
    """List the feature in the protocol."""
    check_writable(snapshot.table, snapshot.protocol, snapshot.metadata)
    protocol = with_features(snapshot.protocol, frozenset({ROW_TRACKING}))
    info = CommitInfo("SET TBLPROPERTIES", {"properties": f'{{"delta.feature.{ROW_TRACKING}":"supported"}}'})
    ours = Transaction.on(snapshot, str(context.runtime.new_id()), info, declarations=Declarations(protocol=protocol))
    commit(ours, log, NoRows(), context.policy(), context.runtime)
