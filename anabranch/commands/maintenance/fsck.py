"""FSCK REPAIR TABLE removes files from the table that the log names and that do not exist.

Knows which files are live and which of them exist. Guarantees: it removes a file only if the store reported, right
before the commit, that its data or its vector does not exist; an inconclusive lookup is an error; readable rows stay.
It brings nothing back: a copy of a lost file can be put where the file was, and then needs no repair.

Source: Databricks documentation, "FSCK REPAIR TABLE".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._log.commits import Commit
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import FileRow
from anabranch._protocol.features.table_features import check_writable
from anabranch._transaction.commit import CommitResult, commit
from anabranch._transaction.conflict_errors import Conflict
from anabranch._transaction.phases import reach
from anabranch._transaction.rebase_handler import NoRows
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import Changes, CommitInfo, Source, Transaction
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.engine import Engine
from anabranch.commands.maintenance.file_existence import MissingFile, find_missing, reappearance_conflict
from anabranch.commands.opening import Location, SecretFree, open_log
from anabranch.commands.watching import watch
from anabranch.errors import AppendOnlyTable
from anabranch.errors.html import ShownAsTable

MISSING = pa.schema(
    [
        pa.field("dataFilePath", pa.string(), nullable=False),
        pa.field("dataFileMissing", pa.bool_(), nullable=False),
        pa.field("deletionVectorPath", pa.string()),
        pa.field("deletionVectorFileMissing", pa.bool_(), nullable=False),
    ]
)
"""The columns of FSCK REPAIR TABLE … DRY RUN, as Databricks names them."""


@dataclass(frozen=True)
class Repair(ShownAsTable):
    """What a FSCK found and did.

    Attributes:
        version: the version that it examined.
        files: number of live files that it looked up.
        missing: the live files that cannot be read because a file is gone.
        committed: the commit that removed them; None for a dry run, and if none was missing.
    """

    version: int
    files: int
    missing: tuple[MissingFile, ...]
    committed: CommitResult | None

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each missing file, with the columns of `MISSING`."""
        return [
            dict(zip(MISSING.names, (file.path, file.data, file.vector, file.vector_missing), strict=True))
            for file in self.missing
        ]


@dataclass(frozen=True)
class Fsck(SecretFree):
    """Remove the files from the table that do not exist or, with ``dry_run``, only report them.

    Example:
        >>> Fsck("/data/flights", dry_run=True).run().missing
    """

    table: Location
    dry_run: bool = False
    storage_options: Mapping[str, str] | None = None

    @watch("FSCK")
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Repair:
        """Run it.

        Raises:
            StoreError, UnknownStore: a file could not be looked up.
            AppendOnlyTable, UnsupportedFeature: the table does not allow the change.
            DeltaConcurrentModificationException: one of the files was changed, or came back, meanwhile.
        """
        log = open_log(self.table, self.storage_options)
        base = context.snapshot(log)
        reach("read")
        missing = tuple(find_missing(log.store, base.files))
        if self.dry_run or not missing:
            reach("staged")
            return Repair(base.version, len(base.files), missing, None)
        _check_removable(base)
        ours, handler = _transaction(base, missing, context.runtime), FsckHandler(base, missing)
        reach("staged")
        committed = commit(ours, log, handler, context.policy(), context.runtime)
        return Repair(base.version, len(base.files), missing, committed)


def _check_removable(base: Snapshot) -> None:
    """Raises an error unless files may be removed; a change of single rows would have to meet more conditions."""
    check_writable(base.table, base.protocol, base.metadata)
    if base.properties.append_only:
        raise AppendOnlyTable(table=base.table, operation="FSCK REPAIR TABLE")


def _transaction(base: Snapshot, missing: Sequence[MissingFile], runtime: Runtime) -> Transaction:
    """The removal of these files. It reads no vector, which may be missing: a transaction that touches one of the files
    meanwhile is a conflict.
    """
    files = _select_absent(base.files, missing)
    return Transaction.on(
        base,
        str(runtime.new_id()),
        CommitInfo(
            "FSCK", metrics={"numRemovedFiles": len(files), "removedFilesSize": int(pc.sum(files["size"]).as_py() or 0)}
        ),
        changes=Changes(
            removes=frozenset(files["path"].to_pylist()),
            sources={row["path"]: Source(row, BitMap64()) for row in files.to_pylist()},
            means_files=True,
        ),
    )


def _select_absent(files: pa.Table, missing: Sequence[MissingFile]) -> pa.Table:
    return files.filter(pc.is_in(files["path"], value_set=pa.array([file.path for file in missing], pa.string())))


class FsckHandler(NoRows):
    """The handler of one repair: it reads no row, and looks up the missing files again right before each put."""

    def __init__(self, base: Snapshot, missing: Sequence[MissingFile]) -> None:
        self._base, self._files = base, _select_absent(base.files, missing)

    def before_put(self, winners: Sequence[Commit]) -> Conflict | None:
        """Returns the conflict if one of the files can be read again: its rows must stay."""
        return reappearance_conflict(self._base.store, self._files)

    def vector(self, file: FileRow) -> BitMap64:
        """Never called: a repair is checked by files."""
        raise AssertionError("a repair does not look at vectors")
