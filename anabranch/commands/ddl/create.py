"""CREATE TABLE and REPLACE TABLE make a table without rows."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import compact_json
from anabranch._protocol.layout.clustering import sql_names
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.transaction import CommitInfo
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.dml.insert import Insert, run_insert
from anabranch.commands.dml.new_rows import NewRows
from anabranch.commands.dml.new_table import NewTable, with_session_defaults
from anabranch.commands.dml.replaced_rows import EveryRow, ReplacedRows
from anabranch.commands.engine import Engine
from anabranch.commands.opening import OWNER, Location, SecretFree, check_empty, open_log


@dataclass(frozen=True)
class Create(SecretFree):
    """Create an empty table with these columns, partitioning and properties.

    If several writers create one table at once, one wins; the others get `ProtocolChangedException`.

    Example:
        >>> Create("/data/flights", NewTable(schema)).run()
    """

    table: Location
    new: NewTable
    if_not_exists: bool = False

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it; None if there is a table already and ``if_not_exists`` is set.

        Raises:
            TableAlreadyExists: there is a table.
            LocationNotEmpty: there are files, but no table.
            ProtocolChangedException: another writer created it meanwhile.
        """
        log = open_log(self.table)
        if not log.exists():
            check_empty(log)
        mode = "ignore" if self.if_not_exists else "error"
        info = CommitInfo("CREATE TABLE", _parameters(self.new, log))
        return run_insert(Insert(log, mode, self.new, NewRows(), info), context)


@dataclass(frozen=True)
class Replace(SecretFree):
    """Replace the table by an empty one with these columns, partitioning and properties.

    One commit removes all rows, properties and the description; the history, the table's id and the features of its
    protocol stay.

    Example:
        >>> Replace("/data/flights", NewTable(schema), or_create=True).run()
    """

    table: Location
    new: NewTable
    or_create: bool = False

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it.

        Raises:
            NotATable: there is no table, without ``or_create``. AppendOnlyTable: its rows may not be deleted.
            LocationNotEmpty: there are files, but no table.
            DeltaConcurrentModificationException: the table was written meanwhile.
        """
        log, new = open_log(self.table), with_session_defaults(self.new)
        at = context.snapshot_if_any(log) if self.or_create else context.snapshot(log)
        if at is None:
            check_empty(log)
        operation = "CREATE OR REPLACE TABLE" if self.or_create else "REPLACE TABLE"
        info = CommitInfo(operation, _parameters(new, log))
        return run_insert(Insert(log, "overwrite", new, _EmptyReplacement(), info, at=at, change="replace"), context)


class _EmptyReplacement(NewRows):
    """No rows, which replace every row."""

    def replaced_rows(self, base: Snapshot) -> ReplacedRows:
        """Every row of the table."""
        return EveryRow(base)


def _parameters(new: NewTable, log: Log) -> dict[str, str]:
    """The parameters in the history; the folder of a managed table holds its owner's file before there is a log."""
    is_managed = log.store.head(OWNER) is not None
    lists = {"partitionBy": list(new.partition_columns or ()), "clusterBy": sql_names(new.cluster_by or ())}
    texts = {key: compact_json(value) for key, value in {**lists, "properties": dict(new.properties)}.items()}
    return {"description": new.description or "", "isManaged": str(is_managed).lower(), **texts}
