"""Row ids for a table that is there: every file gets its own before the property may say that rows have them.

Knows the log, not rows. The feature is listed first, from when on every writer gives new files their ids; then the
files that have none are named again, in commits that change no data (PROTOCOL.md, "Writer Requirements for Row
Tracking"). Guarantee: whatever is written meanwhile, no file gets two ranges and no two files share an id.
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
from anabranch._transaction.commit import Committed, commit
from anabranch._transaction.phases import mute_listeners, reach
from anabranch._transaction.rebase_handler import NoRows
from anabranch._transaction.transaction import Changes, CommitInfo, Declarations, Source, Transaction
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.row_changes import with_counts
from anabranch.errors import InvalidProperty

BATCH_FILES = 100_000
"""So many files are named in one commit, as delta-spark does."""


def backfill_all(log: Log, context: RunContext) -> Snapshot:
    """A version in which row tracking is supported and every file has its ids; commits what is missing for that.

    Raises:
        ProtocolChangedException, MetadataChangedException: the table was changed meanwhile.
        InvalidProperty: row tracking is suspended, so that no file may get ids.
        UnsupportedFeature: this version cannot write the table.
    """
    with mute_listeners():  # the phases that others wait for are those of the command
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
    """Files cannot be filled up with ids while none may be given; that would never end."""
    if is_suspended(snapshot.metadata):
        reason = f"row tracking is suspended; unset {SUSPENDED} first, by a command of its own."
        raise InvalidProperty(property=ENABLED, value="true", reason=reason)


def without_ids(snapshot: Snapshot) -> pa.Table:
    """The live files that have no row ids yet."""
    files = snapshot.files
    return files.filter(pc.or_(pc.is_null(files["baseRowId"]), pc.is_null(files["defaultRowCommitVersion"])))


def backfill(snapshot: Snapshot, files: pa.Table, batch: int, log: Log, context: RunContext = NEWEST) -> Committed:
    """Name these live files again, so that they get ids; those that a winner takes away are left out.

    Raises:
        ProtocolChangedException, MetadataChangedException: the table was changed meanwhile.
    """
    check_writable(snapshot.table, snapshot.protocol, snapshot.metadata)
    named = FileSet(snapshot.table, snapshot.schema, snapshot.partition_columns, files, {})  # no row is looked at
    rows = with_counts(snapshot, named).files.to_pylist()
    info = CommitInfo("ROW TRACKING BACKFILL", {"batchId": str(batch)})
    sources = {row["path"]: Source(row, BitMap64()) for row in rows}
    does = Changes(recommits=frozenset(sources), sources=sources)
    ours = Transaction.on(snapshot, str(context.runtime.new_id()), info, does=does)
    reach("staged")
    return commit(ours, log, NoRows(), context.policy(), context.runtime)


def _support(snapshot: Snapshot, log: Log, context: RunContext) -> None:
    """List the feature."""
    check_writable(snapshot.table, snapshot.protocol, snapshot.metadata)
    protocol = with_features(snapshot.protocol, frozenset({ROW_TRACKING}))
    info = CommitInfo("SET TBLPROPERTIES", {"properties": f'{{"delta.feature.{ROW_TRACKING}":"supported"}}'})
    ours = Transaction.on(snapshot, str(context.runtime.new_id()), info, says=Declarations(protocol=protocol))
    commit(ours, log, NoRows(), context.policy(), context.runtime)
