"""The rows that an insert replaces: none, every row, those that a condition selects, or the partitions of the new rows.

Conflicts are checked as for a DELETE of exactly those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._log.snapshot import Snapshot
from anabranch._log.vectors import vector_of
from anabranch._protocol.actions import FileRow
from anabranch._protocol.change_feed import INSERT
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.file_sets import Marks
from anabranch._protocol.partitions import has_zone, map_column, partition_arrays
from anabranch._protocol.predicates import Unknown
from anabranch._protocol.stats.statistics import num_records
from anabranch._protocol.steps import FOUND_BY_LOG
from anabranch._transaction.rebase import join_transactions
from anabranch._transaction.rebase_handler import NoRows, RebaseHandler
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import Changes, CommitInfo, ReadSet, Source, Transaction
from anabranch.commands import conflict_details
from anabranch.commands.change_recorder import ChangeRecorder
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.engine import Engine
from anabranch.commands.opening import filter_files
from anabranch.commands.row_changes import Change, ChangeHandler
from anabranch.commands.staging import Staging
from anabranch.errors import ExecutionFailed

_SHOWN = 10
"""Maximum number of partitions that a message names."""


class ReplacedRows(RebaseHandler, Protocol):
    """The rows that an insert replaces, as a handler of its transaction."""

    def with_removals(self, ours: Transaction, runtime: Runtime) -> Transaction:
        """The transaction, whose new rows are staged, with marks, removals and rewritten files for the rows of its base
        that they replace, and with the read set of these.
        """
        ...


class NothingReplaced(NoRows):
    """Replaces no row, as an append."""

    def with_removals(self, ours: Transaction, runtime: Runtime) -> Transaction:
        """The same transaction."""
        return ours


class SelectedRows(ChangeHandler):
    """Deletes the rows that a condition selects, as DELETE does: the handler of ``replaceWhere``."""

    def __init__(self, where: Condition, snapshot: Snapshot, engine: Engine, staging: Staging) -> None:
        super().__init__(Change("WRITE", where, None, {}), snapshot, engine, staging)

    def with_removals(self, ours: Transaction, runtime: Runtime) -> Transaction:
        """The transaction with the changes of a DELETE; its own metrics include their time."""
        self.check_settings()
        assert ours.metadata is not None, "there is a table, whose rows are replaced"
        self._recorder = ChangeRecorder(self._snapshot, ours.metadata, self._engine, self._staging)
        self._recorder.note(INSERT, ours.changes.adds)
        part = self.stage(runtime)
        return with_replaced(ours, part.with_metrics(executionTimeMs=-part.info.metrics["executionTimeMs"]))


class EveryRow:
    """Deletes every row: the handler of a plain overwrite. It removes whole files, and reads none."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def with_removals(self, ours: Transaction, runtime: Runtime) -> Transaction:
        """The transaction, which removes every file."""
        return self._with_removed_files(ours, EVERY_ROW)

    def vector(self, file: FileRow) -> BitMap64:
        """The deleted positions of a file."""
        return vector_of(self._snapshot.store, file)

    def could_match(self, files: pa.Table) -> pa.Table:
        """The files to remove: all of them."""
        return files

    def matches(self, files: pa.Table) -> Marks:
        """The live rows of the files to remove."""
        rows = {row["path"]: self._live(row) for row in self.could_match(files).to_pylist()}
        return {path: live for path, live in rows.items() if live}

    def redo(self, files: pa.Table, rows: Marks) -> Transaction:
        """Remove these files too, which blind appends added that come before this overwrite in the serial order."""
        return self._removal(files)

    def sample(self, file: FileRow, rows: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        """The values of a few rows that would have been deleted."""
        return conflict_details.sample_rows(self._snapshot, file, rows, frozenset(self._snapshot.partition_columns))

    def narrower(self, ours: Transaction, file: FileRow | None) -> str | None:
        """None: such an overwrite has no condition that could be narrower."""
        return None

    def discard(self) -> None:
        """Nothing was staged."""

    def finish(self) -> None:
        """Nothing was staged."""

    def _with_removed_files(self, ours: Transaction, where: Condition) -> Transaction:
        """The transaction, which removes the files to remove, and has read them by a condition."""
        part = self._removal(self.could_match(self._snapshot.files))
        return with_replaced(ours, replace(part, reads=ReadSet(where, part.changes.removes)))

    def _removal(self, files: pa.Table) -> Transaction:
        """A transaction that only removes these files."""
        sources = {row["path"]: Source(row, self.vector(row)) for row in files.to_pylist()}
        changes = Changes(removes=frozenset(sources), sources=sources)
        return Transaction.on(self._snapshot, "", CommitInfo(""), changes=changes).with_steps([FOUND_BY_LOG])

    def _live(self, row: FileRow) -> BitMap64:
        records = num_records(row.get("stats"))
        if records is None:
            return BitMap64([0])  # unknown: some row may be live, whatever the vector
        return BitMap64(range(records)) - self.vector(row)


Partition = tuple[Any, ...]


class WrittenPartitions(EveryRow):
    """Deletes the partitions of the new rows: the handler of a dynamic overwrite."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self._written: frozenset[Partition] = frozenset()
        self._schema = snapshot.schema

    def with_removals(self, ours: Transaction, runtime: Runtime) -> Transaction:
        """The transaction, which removes every file of these partitions."""
        adds = ours.changes.adds
        assert ours.metadata is not None, "there is a table, whose rows are replaced"
        self._schema = ours.metadata.schema  # these rows may widen a partition column
        self._written = frozenset(self._partitions(adds))
        columns = self._snapshot.partition_columns
        names = dict(zip(self._snapshot.partition_keys, columns, strict=True))
        written: list[Mapping[str, str | None]] = [
            {names[key]: value for key, value in values} for values in adds["partitionValues"].to_pylist()
        ]
        text, partition_columns = _condition_text(written), frozenset(columns)
        # The log decides, file by file; the expression is only shown, never evaluated.
        where = Condition(text, predicate=Unknown(), row_local=True, expression=text, columns=partition_columns)
        return self._with_removed_files(ours, where)

    def could_match(self, files: pa.Table) -> pa.Table:
        """The files of these partitions."""
        mask = pa.array([partition in self._written for partition in self._partitions(files)], pa.bool_())
        return filter_files(files, mask)

    def _partitions(self, files: pa.Table) -> Iterator[Partition]:
        """The partition of each file, in values for which equality is the same; NULL is a value."""
        snapshot = self._snapshot
        for name in snapshot.partition_columns:
            self._refuse_unzoned(files, name)
        values = partition_arrays(files, self._schema, snapshot.partition_columns, snapshot.table)
        columns = [["NaN" if value != value else value for value in column.to_pylist()] for column in values.values()]
        return zip(*columns, strict=True)

    def _refuse_unzoned(self, files: pa.Table, name: str) -> None:
        """Raises ExecutionFailed for a ``timestamp`` without a zone: its partition depends on the writer's zone."""
        column = self._schema.field(name)
        if column.type != "timestamp":
            return
        texts = map_column(files["partitionValues"], column.physical_name)
        unzoned = texts.filter(pc.and_(pc.not_equal(texts, ""), pc.invert(has_zone(texts))))
        if len(unzoned):
            reason = f"the value {unzoned[0]} of the partition column {name} names no time zone. Use replaceWhere."
            raise ExecutionFailed(what="a dynamic overwrite", reason=reason)


def with_replaced(ours: Transaction, removals: Transaction) -> Transaction:
    """The transaction with the removals of the rows that its own replace, and with the read set of these."""
    return replace(join_transactions(ours, removals), reads=removals.reads)


def _condition_text(partitions: list[Mapping[str, str | None]]) -> str:
    """The condition of these partitions, for people."""
    distinct = sorted({" AND ".join(_equality(*pair) for pair in values.items()) for values in partitions})
    if len(distinct) > _SHOWN:
        return f"the partition is one of the {len(distinct)} written"
    return " OR ".join(distinct) or "false"


def _equality(column: str, value: str | None) -> str:
    return f"{column} IS NULL" if value is None else f"{column} = '{value}'"
