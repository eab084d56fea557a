"""Auto compaction: a writer that leaves many small files compacts them after its own commit.

Knows when that is switched on and worth it. Guarantee: the write is committed, whether the compaction succeeds or not.

Source: Databricks documentation, "Auto compaction for Delta Lake".
"""

from __future__ import annotations

import logging

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.committers import private_committer
from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.layout import packing
from anabranch._protocol.session_settings import current
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.phases import mute_listeners
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import RunContext
from anabranch.commands.engine import Engine
from anabranch.commands.moving import Batch, Move
from anabranch.commands.rerunning import without_counting
from anabranch.commands.watching import report_step

_logger = logging.getLogger(__name__)
PARAMETERS = {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": "true"}


def compact_after(
    committed: CommitResult | None, base: Snapshot | None, log: Log, engine: Engine, runtime: Runtime
) -> None:
    """Compact the partitions that a commit wrote to, if auto compaction is on and they hold enough small files.

    ``base`` is the base version of the commit, None if it created the table. Inside a transaction of several
    statements nothing is compacted.
    """
    session_setting = current().compacts
    is_off = base is not None and (session_setting or base.properties.auto_compaction) == "false"
    if committed is None or private_committer(log.store) is not None or is_off:
        return
    try:
        with mute_listeners(), without_counting():  # the phases and the refused runs are those of the write
            _compact(committed, log, engine, runtime)
    except Exception as error:  # whatever it is, the write is committed
        message = "version %s of %s is committed; its small files are left to a later compaction: %s"
        _logger.warning(message, committed.version, log.table, error)


def _compact(committed: CommitResult, log: Log, engine: Engine, runtime: Runtime) -> None:
    snapshot = log.snapshot()
    commit = log.read(committed.version, snapshot.partition_keys)
    session, size = current(), pc.sum(snapshot.files["size"]).as_py() or 0
    target = packing.auto_compaction_target(snapshot.properties, size, session.compacts, session.compacts_to)
    if target is None or commit is None or snapshot.clustering_columns:
        return
    candidates = _files_beside(snapshot.files, commit.adds)
    minimum = () if session.compacts_from is None else (session.compacts_from,)
    batches = [Batch(group) for group in packing.bins_due(candidates, target, *minimum)]
    if batches:
        Move(snapshot, batches, "OPTIMIZE", PARAMETERS).run(
            engine, log, RunContext(runtime=runtime, progress=report_step)
        )


def _files_beside(files: pa.Table, adds: pa.Table) -> pa.Table:
    """The files in the partitions of these new files."""
    written = {_partition(values) for values in adds["partitionValues"].to_pylist()}
    return files.filter(pa.array([_partition(values) in written for values in files["partitionValues"].to_pylist()]))


def _partition(values: list[tuple[str, str | None]]) -> frozenset[tuple[str, str | None]]:
    return frozenset(values)
