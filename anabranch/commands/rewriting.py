"""Rewrites files with the same rows, as a REORG does, so that they suit the table's metadata.

Its callers choose the files; this stages and commits them. Guarantees: the number of live rows stays the same, or
nothing is committed; deleted rows are left out; the commit declares that no data changed; if it changes metadata, it
directly follows the version that was read, or fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import Metadata, Protocol
from anabranch._protocol.conditions import always
from anabranch._protocol.layout.file_sets import FileSet, count_of
from anabranch._protocol.schema.column_mapping import fields_of
from anabranch._protocol.schema.types import Struct
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import Changes, CommitInfo, Declarations, ReadSet, Source, Transaction
from anabranch.commands.clustering import with_clustering
from anabranch.commands.context import RunContext
from anabranch.commands.engine import Engine
from anabranch.commands.opening import file_set
from anabranch.commands.row_changes import WholeFilesHandler, count_rows, stage_and_commit, with_row_counts
from anabranch.commands.staging import Staging
from anabranch.errors import ExecutionFailed

NO_ROW = always(False)
PURGE = {"predicate": "[]", "applyPurge": "true"}


@dataclass(frozen=True)
class Rewrite:
    """The files to rewrite, and the new metadata of the table.

    Attributes:
        base: the version that was read.
        files: the live files to rewrite.
        metadata, protocol: the new ones; None: unchanged.
        operation, parameters: operation and parameters in the history.
    """

    base: Snapshot
    files: pa.Table
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    operation: str = "REORG"
    parameters: Mapping[str, str] = field(default_factory=lambda: PURGE)

    def run(self, engine: Engine, log: Log, context: RunContext) -> CommitResult | None:
        """Run it; None if there is nothing to do.

        Raises:
            DeltaConcurrentModificationException: one of the files was changed meanwhile; or the table was changed in
                any way, and this changes its metadata.
            ExecutionFailed: the engine did not write exactly the live rows.
        """
        staging = Staging(log.store, str(context.runtime.new_id()))
        return stage_and_commit(RewriteHandler(self, engine, staging), log, context)[1]

    def to_read(self) -> FileSet:
        """The files to rewrite: read by their present column names, written by the new ones."""
        current = with_row_counts(self.base, file_set(self.base, self.files))
        if self.metadata is None:
            return current
        files, old, new = current.files, self.base.metadata, self.metadata
        target = file_set(self.base, files.slice(0, 0), new)
        if old.partition_keys != new.partition_keys:
            files = _rename_partition_keys(files, dict(zip(old.partition_keys, new.partition_keys, strict=True)))
        renamed = _names(old.schema) != _names(new.schema)
        layouts = {path: current.layouts.get(path, old.schema) for path in files["path"].to_pylist()} if renamed else {}
        return replace(target, files=files, vectors=current.vectors, layouts=layouts)


def _names(schema: Struct) -> list[str]:
    """The names of the columns in files, nested fields included; types and field ids do not matter."""
    return [field.physical_name for field in fields_of(schema)]


def _rename_partition_keys(files: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """The files with their partition values under other names."""
    values = [[(names[key], value) for key, value in pairs] for pairs in files["partitionValues"].to_pylist()]
    place = files.schema.get_field_index("partitionValues")
    values_field = files.schema.field(place)
    return files.set_column(place, values_field, pa.array(values, values_field.type))


class RewriteHandler(WholeFilesHandler):
    """The handler of one rewriting."""

    def __init__(self, plan: Rewrite, engine: Engine, staging: Staging) -> None:
        super().__init__(NO_ROW, plan.base, engine, staging)
        self._plan = plan
        self._metadata = plan.metadata or plan.base.metadata

    def stage(self, runtime: Runtime) -> Transaction:
        """Rewrite the files. Raises ExecutionFailed unless the number of live rows stays the same."""
        plan, snapshot = self._plan, self._snapshot
        files = plan.to_read()
        paths = frozenset(files.files["path"].to_pylist())
        adds, live = self._rewrite_files(files) if paths else (files.files, 0)
        rows = plan.files.to_pylist()
        ours = Transaction.on(
            snapshot,
            self._staging.txn_id,
            CommitInfo(plan.operation, plan.parameters, metrics={"numCopiedRows": live}),
            reads=ReadSet(NO_ROW, paths),
            changes=Changes(
                removes=paths,
                sources={row["path"]: Source(row, self.vector(row)) for row in rows},
                adds=adds,
                data_change=False,
                means_files=True,
            ),
            declarations=Declarations(metadata=plan.metadata, protocol=plan.protocol),
        )
        columns = snapshot.clustering_columns
        ours = self._with_steps(ours)
        return (
            with_clustering(ours, columns) if columns else ours
        )  # the domain holds physical names, which may have changed

    def _rewrite_files(self, files: FileSet) -> tuple[pa.Table, int]:
        self._staging.start()
        self._staging.note(self._engine.rewrite(files, {}, None, self._staging.folder))
        adds, live = self._collect_new_files(), count_rows(files.files) - count_of(files.vectors)
        if count_rows(adds) != live:
            reason = f"{live} rows were expected, but {count_rows(adds)} were written."
            raise ExecutionFailed(what=self._plan.operation, reason=reason)
        return adds, live
