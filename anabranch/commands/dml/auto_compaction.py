"""Automatic compaction: a writer that has left many small files puts them together, behind its own commit.

Knows when that is wished for and worth it. Guarantee: the write stands, whatever becomes of the compaction.

Source: Databricks documentation, "Auto compaction for Delta Lake".
"""

from __future__ import annotations

import logging

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.layout import packing
from anabranch._protocol.session_says import current
from anabranch._transaction.commit import Committed
from anabranch._transaction.phases import mute_listeners
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import RunContext
from anabranch.commands.engine import Engine
from anabranch.commands.moving import Batch, Move
from anabranch.commands.watching import tell

_logger = logging.getLogger(__name__)
PARAMETERS = {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": "true"}


def compact_after(
    committed: Committed | None, base: Snapshot | None, log: Log, engine: Engine, runtime: Runtime
) -> None:
    """Compact the partitions that a commit wrote to, where the table wishes for that and enough small files lie there;
    ``base`` is the version that the commit was based on, None where it made the table.
    """
    wished = current().compacts
    if committed is None or (base is not None and (wished or base.properties.auto_compaction) == "false"):
        return
    try:
        with mute_listeners():  # the phases are those of the write
            _compact(committed, log, engine, runtime)
    except Exception as error:  # whatever it is, the commit stands
        said = "version %s of %s is committed; its small files are left to a later compaction: %s"
        _logger.warning(said, committed.version, log.table, error)


def _compact(committed: Committed, log: Log, engine: Engine, runtime: Runtime) -> None:
    snapshot = log.snapshot()
    commit = log.read(committed.version, snapshot.partition_keys)
    said, size = current(), pc.sum(snapshot.files["size"]).as_py() or 0
    target = packing.auto_target(snapshot.properties, size, said.compacts, said.compacts_to)
    if target is None or commit is None or snapshot.clustering_columns:
        return
    beside = _beside(snapshot.files, commit.adds)
    least = () if said.compacts_from is None else (said.compacts_from,)
    batches = [Batch(each) for each in packing.due(beside, target, *least)]
    if batches:
        Move(snapshot, batches, "OPTIMIZE", PARAMETERS).run(engine, log, RunContext(runtime=runtime, progress=tell))


def _beside(files: pa.Table, adds: pa.Table) -> pa.Table:
    """The files of the partitions that these were added to."""
    written = {_partition(each) for each in adds["partitionValues"].to_pylist()}
    return files.filter(pa.array([_partition(each) in written for each in files["partitionValues"].to_pylist()]))


def _partition(values: list[tuple[str, str | None]]) -> frozenset[tuple[str, str | None]]:
    return frozenset(values)
