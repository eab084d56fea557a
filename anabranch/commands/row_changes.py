"""Changes rows: the common part of DELETE and UPDATE.

Selects the files that a condition may match, lets the engine find the rows, and stages their marks and new images. With
deletion vectors rows are *marked* and files stay; without them files are rewritten. The same steps run again on rows of
blind appends, if the transaction has to be ordered after those (`ChangeHandler.redo`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._log.file_locations import locate_in_store
from anabranch._log.footers import read_footer
from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._log.vectors import vector_of
from anabranch._protocol.actions import AppTransaction, FileRow, files_table
from anabranch._protocol.change_feed import DELETE
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.file_sets import FileSet, Marks, count_of
from anabranch._protocol.layout.paths import store_name
from anabranch._protocol.predicates import Always, columns_of
from anabranch._protocol.rules.allowed import check_metadata
from anabranch._protocol.stats.skipping import FileFacts
from anabranch._protocol.stats.statistics import num_records, with_num_records
from anabranch._protocol.steps import FOUND_BY_LOG, Step
from anabranch._transaction.commit import CommitResult, commit, give_up
from anabranch._transaction.lost_rows import with_buried, without_rows
from anabranch._transaction.phases import reach
from anabranch._transaction.relocation import NothingLeft
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import Changes, CommitInfo, ReadSet, Source, Transaction
from anabranch.commands import conflict_details
from anabranch.commands.change_recorder import ChangeRecorder
from anabranch.commands.clustering import check_changeable
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.engine import Engine
from anabranch.commands.equal_rows import find_equal_rows
from anabranch.commands.idempotence import application_of, is_written, with_txn
from anabranch.commands.opening import file_set, filter_files
from anabranch.commands.rerunning import with_redone_runs
from anabranch.commands.sources import check_newest, versions_read, whole_table
from anabranch.commands.staging import Staging, remove
from anabranch.commands.watching import report_step
from anabranch.errors import AnabranchError, ExecutionFailed, MissingDataFile
from anabranch.errors.html import ShownAsTable


@dataclass(frozen=True)
class Change:
    """A change of the rows that ``where`` selects: an update with ``assignments``, a deletion without."""

    operation: str
    where: Condition
    assignments: Mapping[str, Any] | None
    parameters: Mapping[str, Any]

    @property
    def changed_rows_metric(self) -> str:
        """Delta's metric for the number of selected rows."""
        return "numDeletedRows" if self.assignments is None else "numUpdatedRows"


@dataclass(frozen=True)
class Outcome(ShownAsTable):
    """The result of a change: the number of changed rows, and its commit; ``committed`` is None if no row matched."""

    rows: int
    committed: CommitResult | None
    metrics: Mapping[str, int] = field(default_factory=dict)


def run_change(
    change: Change, snapshot: Snapshot, engine: Engine, context: RunContext = NEWEST, declared: int | None = None
) -> Outcome:
    """Read at this version, stage, validate and commit; ``declared`` as in `versions_read`.

    Raises:
        DeltaConcurrentModificationException: it conflicts with a winner.
        AppendOnlyTable, UnsupportedFeature, InvalidCondition, ExecutionFailed: nothing was written.
    """
    runtime, log = context.runtime, Log(snapshot.store)
    check_changeable(snapshot, change.operation, changes_rows=True)
    if change.assignments is not None or change.where.predicate != Always(True):
        engine.check(file_set(snapshot, snapshot.files.slice(0, 0)), change.where, change.assignments)
    txn = application_of()
    if is_written(txn, snapshot, runtime.now_ms()):
        return Outcome(0, None)
    if change.assignments is not None:
        check_metadata(snapshot.metadata, snapshot.table)
    read = versions_read(engine, snapshot, where=change.where, values=change.assignments, declared=declared)
    check_newest(read, log, snapshot, change.operation, runtime)
    reach("read")
    staging = Staging(log.store, str(runtime.new_id()))
    handler = ChangeHandler(change, snapshot, engine, staging, reads_table=read.oldest is not None)
    _, committed = stage_and_commit(handler, log, context, txn)
    if committed is None:
        return Outcome(0, None)
    return Outcome(committed.metrics.get(change.changed_rows_metric, 0), committed, committed.metrics)


class RowRebaseHandler(ABC):
    """The common part of the handlers of commands that change rows (`RebaseHandler`)."""

    def __init__(self, where: Condition, snapshot: Snapshot, engine: Engine, staging: Staging) -> None:
        self._steps = list[Step]()
        self._where, self._snapshot, self._staging = where, snapshot, staging
        self._engine = engine.telling(self._steps.append)
        self._metadata = snapshot.metadata  # of the files that it writes
        self._settings = dict(engine.settings())
        self._staged = list[str]()

    @abstractmethod
    def stage(self, runtime: Runtime) -> Transaction:
        """Do all work on the snapshot; return the transaction as it is before any winner is read."""

    def vector(self, file: FileRow) -> BitMap64:
        """The deleted positions of a file."""
        return vector_of(self._snapshot.store, file)

    def could_match(self, files: pa.Table) -> pa.Table:
        """The files that statistics and partition values cannot rule out."""
        facts = FileFacts(files, self._snapshot.schema, self._snapshot.partition_columns)
        return filter_files(files, facts.could_match(self._where.predicate))

    @abstractmethod
    def matches(self, files: pa.Table) -> Marks:
        """See `RebaseHandler.matches`."""

    @abstractmethod
    def redo(self, files: pa.Table, rows: Marks) -> Transaction:
        """See `RebaseHandler.redo`."""

    def sample(self, file: FileRow, rows: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        """The values of a few rows of a file, those of the condition's columns first."""
        return conflict_details.sample_rows(
            self._snapshot, file, rows, (self._where.columns or columns_of(self._where.predicate))
        )

    def narrower(self, ours: Transaction, file: FileRow | None) -> str | None:
        """A condition on the partitions that hold all selected rows, if this file lies in another partition."""
        return conflict_details.partition_condition(self._snapshot, ours, file)

    def discard(self) -> None:
        """Remove what was staged."""
        self._staging.discard()

    def finish(self) -> None:
        """Close the job folder's markers."""
        self._staging.finish()

    def check_settings(self) -> None:
        """Raises ExecutionFailed if a setting of the session on which the condition depends was changed since the start
        of the command.
        """
        if dict(self._engine.settings()) != self._settings:
            reason = "the session's time zone, or another setting that values depend on, was changed meanwhile."
            raise ExecutionFailed(what=f"the condition {self._where.text}", reason=reason)

    def _with_steps(self, ours: Transaction) -> Transaction:
        """The transaction with the backend of each step so far."""
        return ours.with_steps(self._steps)

    def _collect_new_files(self) -> pa.Table:
        """The files written since the last call."""
        files = self._staging.collect(self._metadata, self._staged)
        self._staged += files["path"].to_pylist()
        return files


class WholeFilesHandler(RowRebaseHandler):
    """The common part of the handlers of commands that rewrite whole files, and select no row."""

    def matches(self, files: pa.Table) -> Marks:
        """No rows: it selects none."""
        return {}

    def redo(self, files: pa.Table, rows: Marks) -> Transaction:
        """Never called."""
        raise AssertionError("it selects no new row")

    def sample(self, file: FileRow, rows: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        """No rows: the file alone explains a conflict."""
        return ()


def stage_and_commit(
    handler: RowRebaseHandler, log: Log, context: RunContext, txn: AppTransaction | None = None
) -> tuple[Transaction, CommitResult | None]:
    """Stage and commit; None if there was nothing to do, or is nothing left to do. Removes the staged files if nothing
    is committed. ``txn`` is committed with it, even alone. Raises DeltaConcurrentModificationException: it conflicts
    with a winner.
    """
    try:
        ours = with_redone_runs(handler.stage(context.runtime))
        ours = with_txn(ours, txn, context.runtime.now_ms())
        reach("staged")
    except BaseException:  # an interrupt too: no commit references the staged files
        handler.discard()
        raise
    if not ours.touched_paths and len(ours.changes.adds) == 0 and ours.declarations.metadata is None and txn is None:
        give_up(ours, handler)
        return ours, None
    try:
        committed = commit(ours, log, handler, context.policy(), context.runtime)
    except NothingLeft:
        return ours, None
    return ours, committed


def candidates_of(snapshot: Snapshot, where: Condition, *, deletes: bool) -> tuple[pa.Table, pa.Table, pa.Table]:
    """The files that may hold rows which a condition selects; those whose every row a DELETE certainly deletes, by the
    log alone; and the remaining ones, which have to be read.
    """
    files, facts = snapshot.files, snapshot.facts
    could = facts.could_match(where.predicate)
    candidates = filter_files(files, could)
    if not deletes:
        return candidates, files.slice(0, 0), candidates
    must = facts.must_match(where.predicate)
    return candidates, filter_files(files, pc.and_(could, must)), filter_files(files, pc.and_not(could, must))


class ChangeHandler(RowRebaseHandler):
    """The handler of one running change; ``reads_table``: its expressions read the table's own rows."""

    def __init__(
        self, change: Change, snapshot: Snapshot, engine: Engine, staging: Staging, *, reads_table: bool = False
    ) -> None:
        super().__init__(change.where, snapshot, engine, staging)
        self._change = change
        self._recorder = ChangeRecorder(snapshot, snapshot.metadata, self._engine, staging)
        self._reads_table = reads_table
        self._replaced = list[str]()

    def stage(self, runtime: Runtime) -> Transaction:
        """Do all work on the snapshot; return the transaction as it is before any winner is read."""
        began, snapshot, change = runtime.now_ms(), self._snapshot, self._change
        report_step("finding rows")
        candidates, whole, rest = candidates_of(snapshot, change.where, deletes=change.assignments is None)
        log_suffices = len(whole) > 0 and len(rest) == 0  # else the engine runs, if only to check the condition
        marks = {} if log_suffices else self._engine.find(file_set(snapshot, rest), change.where)
        if log_suffices:
            self._steps.append(FOUND_BY_LOG)
        scanned = runtime.now_ms()
        report_step("writing")
        part = self._stage_part(rest, marks, whole)
        reads = ReadSet(change.where, frozenset(candidates["path"].to_pylist()))
        reads = whole_table(snapshot, change.where) if self._reads_table else reads
        ours = self._with_steps(replace(part, reads=reads))
        times = {"scanTimeMs": scanned - began, "rewriteTimeMs": runtime.now_ms() - scanned}
        return ours.with_metrics(**times, executionTimeMs=runtime.now_ms() - began)

    def could_match(self, files: pa.Table) -> pa.Table:
        """The files that may hold selected rows; all files if the condition reads the table by a subquery."""
        return files if self._reads_table else super().could_match(files)

    def matches(self, files: pa.Table) -> Marks:
        """The rows of these files that the condition selects, evaluated as at the start of the command."""
        self.check_settings()
        return self._engine.find(file_set(self._snapshot, files), self._change.where)

    def redo(self, files: pa.Table, rows: Marks) -> Transaction:
        """The same change on exactly these rows of files that were added since."""
        return self._with_steps(self._stage_part(files, rows, files.slice(0, 0)))

    def let_go(self, ours: Transaction, lost: Marks) -> Transaction | None:
        """Ours without these rows, their new images and the record of both; None where no row would be left."""
        less = without_rows(ours, lost)
        if not less.touched_paths:
            return None
        less = less.with_metrics(**{self._change.changed_rows_metric: -count_of(lost)})
        if self._change.assignments is None:
            return less
        try:
            return self._without_images(less, ours, lost)
        except (AnabranchError, pa.ArrowException, ValueError):  # the whole runs again, and fails if it must
            return None

    def _without_images(self, less: Transaction, ours: Transaction, lost: Marks) -> Transaction | None:
        """Ours without the new images of these rows, found by computing them again; None if they are not found."""
        self.check_settings()
        snapshot, sources = self._snapshot, ours.changes.sources
        store, files = snapshot.store, file_set(snapshot, files_table([sources[path].row for path in lost]))
        images, recorded = self._images(with_row_counts(snapshot, files), lost, keeps_files=True)
        try:
            buried = find_equal_rows(store, ours.changes.adds, images, ours.changes.buried)
            records = find_equal_rows(store, ours.changes.change_files, recorded, {})
        finally:
            remove(store, self._names(images["path"].to_pylist() + recorded["path"].to_pylist()))
        if buried is None or records is None:
            return None
        less, emptied = with_buried(less, buried)
        self._replaced += self._names([*emptied, *records])
        change_files = self._recorder.leave_out(ours.changes.change_files, records)
        return replace(less, changes=replace(less.changes, change_files=change_files))

    def _names(self, paths: Sequence[str]) -> list[str]:
        """The names of staged files."""
        return [store_name(self._snapshot.table, path) or path for path in paths]

    def finish(self) -> None:
        """Close the job folder's markers, and remove the new files from which rows were let go."""
        super().finish()
        remove(self._snapshot.store, self._replaced)

    def _stage_part(self, files: pa.Table, marks: Marks, whole: pa.Table) -> Transaction:
        """Marks, removals and new files for these rows, as a transaction without reads."""
        snapshot, change = self._snapshot, self._change
        marked_files = with_row_counts(snapshot, file_set(snapshot, files).restrict_to(set(marks)))
        whole = _fill_row_counts(snapshot, whole)
        selected = count_of(marks) + _count_live_rows(whole)
        emptied = find_emptied(marked_files, marks)
        keeps_files = snapshot.properties.vectors
        images, change_files = self._images(marked_files, marks, keeps_files=keeps_files)
        copies, copied = self._copies(marked_files, marks, emptied=emptied, keeps_files=keeps_files)
        removed = (emptied if keeps_files else set(marks)) | set(whole["path"].to_pylist())
        changed_files = pa.concat_tables([marked_files.files, whole]).to_pylist()
        if not len(change_files):
            change_files = self._record_deletions(marked_files.files, marks, whole, copies)
        return Transaction.on(
            snapshot,
            self._staging.txn_id,
            CommitInfo(
                change.operation,
                change.parameters,
                metrics={change.changed_rows_metric: selected, "numCopiedRows": copied},
            ),
            changes=Changes(
                marks={path: rows for path, rows in marks.items() if path not in removed},
                removes=frozenset(removed),
                sources={row["path"]: Source(row, self.vector(row)) for row in changed_files},
                adds=pa.concat_tables([images, copies]),
                change_files=change_files,
            ),
        )

    def _images(self, files: FileSet, marks: Marks, *, keeps_files: bool) -> tuple[pa.Table, pa.Table]:
        """Files of new images only, if files stay or changes are recorded; and their files of change data."""
        updates, no_files = self._change.assignments, files.files.slice(0, 0)
        change_files, selected = no_files, count_of(marks)
        if updates is None or not selected or not (keeps_files or self._recorder.is_on):
            return no_files, no_files
        self._staging.start()
        if self._recorder.is_on:
            change_files, recorded = self._recorder.update(files, marks, updates)
            written = self._engine.write_postimages(recorded, selected, self._staging.folder)
        else:
            written = self._engine.update(files, marks, updates, self._staging.folder)
        self._staging.note(written)
        images = self._collect_new_files()
        if (count := count_rows(images)) != selected:
            reason = f"{selected} rows were selected, but {count} new ones were written."
            raise ExecutionFailed(what=self._change.operation, reason=reason)
        return images, change_files

    def _copies(self, files: FileSet, marks: Marks, *, emptied: set[str], keeps_files: bool) -> tuple[pa.Table, int]:
        """Rewritten files if files do not stay, with the new images that have no files of their own; and the number of
        rows that were only copied.
        """
        updates = None if self._recorder.is_on else self._change.assignments
        rewritten = files if updates is not None else files.restrict_to(set(marks) - emptied)
        if keeps_files or len(rewritten.files) == 0:
            return files.files.slice(0, 0), 0
        self._staging.start()
        self._staging.note(self._engine.rewrite(rewritten, marks, updates, self._staging.folder))
        copies = self._collect_new_files()
        return copies, max(count_rows(copies) - (count_of(marks) if updates is not None else 0), 0)

    def _record_deletions(self, files: pa.Table, marks: Marks, whole: pa.Table, copies: pa.Table) -> pa.Table:
        """Files of change data for the rows that a DELETE deletes, if it has copied rows."""
        self._recorder.note(DELETE, files, marks)
        self._recorder.note(DELETE, whole)
        return self._recorder.write_noted(needed=len(copies) > 0)


def with_row_counts(snapshot: Snapshot, files: FileSet) -> FileSet:
    """The files, each with its row count: PROTOCOL.md requires one for every file with a deletion vector.

    Counts that the log does not have are read from the footers.
    """
    return replace(files, files=_fill_row_counts(snapshot, files.files))


def _fill_row_counts(snapshot: Snapshot, files: pa.Table) -> pa.Table:
    rows = files.to_pylist()
    if all(num_records(row["stats"]) is not None for row in rows):
        return files
    return files_table([_with_row_count(snapshot, row) for row in rows])


def _with_row_count(snapshot: Snapshot, row: FileRow) -> FileRow:
    if num_records(row["stats"]) is not None:
        return row
    store, name = locate_in_store(snapshot.store, row["path"])
    entry = store.head(name)
    if entry is None:
        raise MissingDataFile(table=snapshot.table, file=row["path"], reason="is not there")
    return {**row, "stats": with_num_records(row["stats"], read_footer(store, entry).num_rows)}


def find_emptied(chosen: FileSet, marks: Marks) -> set[str]:
    """The files in which no live row remains after these marks."""
    counts = zip(chosen.files["path"].to_pylist(), map(num_records, chosen.files["stats"].to_pylist()), strict=True)
    no_marks = BitMap64()
    return {path for path, records in counts if records == len(marks[path] | chosen.vectors.get(path, no_marks))}


def _count_live_rows(files: pa.Table) -> int:
    """The number of live rows in these files, as far as statistics record it."""
    deleted = pc.sum(pc.struct_field(files["deletionVector"], "cardinality")).as_py() or 0
    return count_rows(files) - int(deleted)


def count_rows(files: pa.Table) -> int:
    """The number of rows in these files, deleted ones included, as far as statistics record it."""
    return sum(num_records(stats) or 0 for stats in files["stats"].to_pylist())
