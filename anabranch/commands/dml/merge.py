"""MERGE changes, deletes and inserts rows by a source.

Selects the files that a condition may match, lets the engine join them with the source, and stages marks and new files.
The source is evaluated once and its rows are held: the check of a winner's new rows, and any redo, use the held rows.
Guarantee: after its winners, a MERGE has acted on every row that its source matches there, and has inserted only source
rows that match none there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import FileRow, Metadata
from anabranch._protocol.change_feed import DELETE, INSERT, POSTIMAGE, PREIMAGE
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.file_sets import FileSet, Marks, count_of, difference_of, union_of
from anabranch._protocol.layout.paths import store_name
from anabranch._protocol.merges import Joined, MergePlan
from anabranch._protocol.parquet_files import WrittenFiles
from anabranch._protocol.rules.allowed import check_metadata
from anabranch._protocol.schema.types import Struct
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.lost_rows import with_buried, with_files_replaced, without_files, without_rows
from anabranch._transaction.phases import reach
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import Changes, CommitInfo, IdentityUse, ReadSet, Source, Transaction
from anabranch.commands import conflict_details
from anabranch.commands.change_recorder import ChangeRecorder
from anabranch.commands.clustering import check_changeable
from anabranch.commands.context import NEWEST, RunContext, require_engine
from anabranch.commands.dml.auto_compaction import compact_after
from anabranch.commands.dml.identity_values import (
    omitted_identity_columns,
    provided_columns,
    reserve,
    with_reserved_values,
)
from anabranch.commands.dml.insert import with_metadata
from anabranch.commands.dml.new_table import merge_columns
from anabranch.commands.engine import Engine
from anabranch.commands.equal_rows import find_equal_rows
from anabranch.commands.idempotence import application_of, is_written
from anabranch.commands.opening import Location, SecretFree, file_set, filter_files, open_log
from anabranch.commands.rerunning import rerunnable
from anabranch.commands.row_changes import RowRebaseHandler, count_rows, find_emptied, stage_and_commit, with_row_counts
from anabranch.commands.sources import NO_VERSIONS, VersionsRead, check_newest, versions_read, whole_table
from anabranch.commands.staging import Staging, remove
from anabranch.commands.watching import report_step, watch
from anabranch.errors import AnabranchError, ExecutionFailed
from anabranch.errors.html import ShownAsTable


@dataclass(frozen=True)
class Merge(SecretFree):
    """Merge ``source`` into ``table``.

    Attributes:
        matching: the condition over both sides and the clauses, in the engine's expressions.
        where: the part of the condition on the table's rows alone: its predicate holds for every row that can match.
            Its text is the whole condition's, and it is row-local if all expressions of the command are.
        parameters: the parameters in the history.
        schema: the table's new columns, if the MERGE may add some; then it counts as a change of the schema.
        reads_target: the version of this table from which the source was computed, for sources that do not show it.
        reads_anew: whether a second run computes the source's rows again.

    Example:
        >>> Merge("/data/flights", updates, matching, where).run(engine).metrics["numTargetRowsUpdated"]
    """

    table: Location
    source: Any = field(repr=False)
    matching: MergePlan
    where: Condition
    parameters: Mapping[str, Any] = field(default_factory=dict)
    schema: Struct | None = None
    reads_target: int | None = None
    reads_anew: bool = field(default=False, compare=False)
    storage_options: Mapping[str, str] | None = None

    @watch("MERGE")
    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> MergeResult:
        """Run it at the version for which it was parsed, or at the newest.

        Raises:
            AmbiguousMerge: several source rows would change one row.
            InvalidCondition, SchemaMismatch: an expression does not fit.
            DeltaConcurrentModificationException: it conflicts with a winner.
            UnknownSourceVersion: the source reads the table, and the version is unknown.
        """
        engine, runtime = require_engine(engine, self), context.runtime
        log = open_log(self.table, self.storage_options)
        snapshot = context.snapshot(log)
        read = versions_read(
            engine,
            snapshot,
            source=self.source,
            where=self.where,
            matching=self.matching,
            declared=self.reads_target,
            held=not self.reads_anew,
        )
        changes_rows = any(clause.action != "insert" for clause in self.matching.clauses)
        check_changeable(snapshot, "MERGE", changes_rows=changes_rows)
        txn = application_of()
        if is_written(txn, snapshot, runtime.now_ms()):
            return MergeResult(None, {})
        check_newest(read, log, snapshot, "MERGE", runtime)
        if any(clause.action != "delete" for clause in self.matching.clauses):
            check_metadata(snapshot.metadata, snapshot.table)
        reach("read")
        staging = Staging(log.store, str(runtime.new_id()))
        handler = MergeHandler(self, snapshot, engine, staging, _evolve_metadata(self, snapshot, runtime), read)
        ours, committed = stage_and_commit(handler, log, context, txn)
        compact_after(committed, snapshot, log, engine, runtime)
        return MergeResult(committed, committed.metrics if committed else ours.info.metrics)


@dataclass(frozen=True)
class MergeResult(ShownAsTable):
    """The result of a MERGE, with Delta's metrics; ``committed`` is None if it had nothing to do."""

    committed: CommitResult | None
    metrics: Mapping[str, int]

    @property
    def rows(self) -> int:
        """The number of rows updated, deleted and inserted."""
        return self.counts["num_affected_rows"]

    @property
    def counts(self) -> dict[str, int]:
        """The columns of Delta's result of a MERGE."""
        kinds = ("updated", "deleted", "inserted")
        counts = {f"num_{kind}_rows": int(self.metrics.get(f"numTargetRows{kind.title()}", 0)) for kind in kinds}
        return {"num_affected_rows": sum(counts.values()), **counts}


def _evolve_metadata(merge: Merge, snapshot: Snapshot, runtime: Runtime) -> Metadata:
    """The table's metadata after the MERGE."""
    if merge.schema is None:
        return snapshot.metadata
    return merge_columns(snapshot.metadata, merge.schema, snapshot.table, runtime)


class MergeHandler(RowRebaseHandler):
    """The handler of one running MERGE, with the metadata that the table has after it.

    If its source was computed from the table's rows, any row may conflict with it.
    """

    def __init__(
        self,
        merge: Merge,
        snapshot: Snapshot,
        engine: Engine,
        staging: Staging,
        metadata: Metadata,
        read: VersionsRead = NO_VERSIONS,
    ) -> None:
        super().__init__(merge.where, snapshot, engine, staging)
        self._merge, self._reads_table, self._source_is_fixed = merge, read.oldest is not None, read.held
        self._source_rows: Any = None
        self._joins: list[Joined] = []
        self._last_join: Joined | None = None
        self._cached_file_set: tuple[pa.Table, FileSet] | None = None
        self._files_to_withdraw: frozenset[str] = frozenset()
        self._insert_count = 0
        self._replaced = list[str]()
        self._plan_for(metadata)

    def _plan_for(self, metadata: Metadata) -> None:
        """Plan the rows and the changes to record for a table that has this metadata afterwards."""
        snapshot, plan = self._snapshot, self._merge.matching
        added = tuple(name for name in metadata.schema.names if name not in set(snapshot.schema.names))
        self._metadata = metadata
        self._recorder = ChangeRecorder(snapshot, metadata, self._engine, self._staging)
        recorded = self._recorder.is_on and plan.writes_anew(vectors=snapshot.properties.vectors)
        self._matching = replace(plan, added=added, recorded=recorded)

    def stage(self, runtime: Runtime) -> Transaction:
        """Do all work on the snapshot; return the transaction as it is before any winner is read."""
        began, snapshot = runtime.now_ms(), self._snapshot
        self._engine.check_merge(self._file_set(snapshot.files.slice(0, 0)), self._matching, self._merge.source)
        self._hold_source()
        self._matching = self._with_identities(runtime)
        candidates = self._candidates()
        report_step("joining")
        joined = self._join(candidates)
        scanned = runtime.now_ms()
        report_step("writing")
        ours = self._stage_part(candidates, joined)
        inserted_columns = [
            name for clause in self._merge.matching.clauses if clause.action == "insert" for name in clause.values
        ]
        provided = provided_columns(snapshot.schema, inserted_columns)
        identity = IdentityUse(frozenset({self._staging.txn_id}), provided)
        ours = replace(with_metadata(ours, self._metadata), identity=identity)
        ours = self._with_steps(ours.with_metrics(numSourceRows=self._source_rows.rows))
        times = {"scanTimeMs": scanned - began, "rewriteTimeMs": runtime.now_ms() - scanned}
        return ours.with_metrics(**times, executionTimeMs=runtime.now_ms() - began)

    def _hold_source(self) -> None:
        """Evaluate the source, once."""
        self._staging.start()
        report_step("reading the source")
        schema, table = self._metadata.schema, self._snapshot.table
        self._source_rows = self._engine.hold(self._merge.source, schema, table, self._staging.folder)

    def could_match(self, files: pa.Table) -> pa.Table:
        """The files that may hold a row which the source matches, or which changes because it has no match."""
        needs_all = self._matching.acts_without_match or self._reads_table
        return files if needs_all else super().could_match(files)

    def matches(self, files: pa.Table) -> Marks:
        """The rows on which the result depends: those that match, and those that change because they do not."""
        self.check_settings()
        self._last_join = self._join(files)
        self._staging.check_alive()  # the held rows of the source were complete
        return union_of([self._last_join.matched, self._last_join.marks])

    def redo(self, files: pa.Table, rows: Marks) -> Transaction:
        """Merge into these rows too; write the inserts again, since source rows may match these rows."""
        inserted_before = self._insert_count
        part = self._stage_again(files)
        written = part.info.metrics["numOutputRows"] - inserted_before
        counts = {"numTargetRowsInserted": self._insert_count - inserted_before, "numOutputRows": written}
        return replace(part, info=replace(part.info, metrics={**part.info.metrics, **counts}))

    def let_go(self, ours: Transaction, lost: Marks) -> Transaction | None:
        """Ours without these rows and their new images, and with all inserts written anew, since source rows may have
        matched these rows alone. None where Spark keeps the join's result, where changes are recorded, or where no row
        would be left.
        """
        less = without_rows(ours, lost)
        if not less.touched_paths or ours.reads is None or self._reads_table or self._recorder.is_on:
            return None
        table = self._file_set(self._snapshot.files.slice(0, 0))
        parts = [self._engine.split(table, self._matching, joined, lost) for joined in self._joins]
        separate = [part for part in parts if part is not None]
        gone = [these for _, these in separate]
        if len(separate) < len(parts) or sum(count_of(these.marks) for these in gone) != count_of(lost):
            return None  # or they were moved since
        matched = difference_of(ours.reads.matched, union_of(these.matched for these in gone))
        try:
            smaller = self._without_images(replace(less, reads=replace(ours.reads, matched=matched)), table, gone)
            if smaller is None:
                return None
            self._joins = [others for others, _ in separate]
            return self._with_inserts(smaller, table, gone)
        except (AnabranchError, pa.ArrowException, ValueError):  # the whole runs again, and fails if it must
            return None

    def _without_images(self, less: Transaction, table: FileSet, gone: Sequence[Joined]) -> Transaction | None:
        """Ours without the new images that these joins computed; None if they are not found."""
        store, updates = self._snapshot.store, [joined for joined in gone if joined.updated + joined.updated_alone]
        for joined in updates:
            self._staging.note(self._engine.write_images(table, joined, self._staging.folder))
        images = self._collect_new_files() if updates else table.files
        inserted = frozenset(less.changes.restaged.get(path, path) for path in self._files_to_withdraw)
        try:
            adds = without_files(less.changes.adds, inserted)  # these are written anew
            buried = find_equal_rows(store, adds, images, less.changes.buried)
        finally:
            remove(store, self._names(images["path"].to_pylist()))
        if buried is None:
            return None
        smaller, emptied = with_buried(less, buried)
        self._replaced += self._names(emptied)
        return smaller

    def _with_inserts(self, ours: Transaction, table: FileSet, gone: Sequence[Joined]) -> Transaction:
        """Ours with the inserts of all joins that are left, and the numbers of what it does."""
        inserted_before, withdrawn = self._insert_count, self._files_to_withdraw
        if self._matching.inserts:
            ours = with_files_replaced(ours, withdrawn, self._inserts(table))
            remove(self._snapshot.store, self._names(withdrawn))
        more = self._insert_count - inserted_before
        ours = ours.with_metrics(numTargetRowsInserted=more, numOutputRows=more) if more else ours
        for joined in gone:
            counts = self._counts(joined, copied=0)
            less = {name: -count for name, count in counts.items() if name != "numTargetRowsInserted" and count}
            if "numOutputRows" in less:
                less["numOutputRows"] += self._insert_count
            ours = ours.with_metrics(**less)
        return ours

    def _names(self, paths: Collection[str]) -> list[str]:
        """The names of staged files."""
        return [store_name(self._snapshot.table, path) or path for path in paths]

    def _stage_again(self, files: pa.Table) -> Transaction:
        """The changes of the last join, of these files, with the files that replace those to withdraw."""
        assert self._last_join is not None, "redo is called after matches"
        withdrawn = self._files_to_withdraw
        part = self._with_steps(self._stage_part(files, self._last_join))
        names = (store_name(self._snapshot.table, path) for path in withdrawn)
        remove(self._staging.store, [name for name in names if name])
        return replace(part, changes=replace(part.changes, withdraws=withdrawn))

    def narrower(self, ours: Transaction, file: FileRow | None) -> str | None:
        """A condition with the source's values in the columns that ON compares."""
        return conflict_details.source_condition(self._snapshot, self._merge.matching, self._where, self._few_values)

    def _few_values(self, column: str) -> Sequence[Any] | None:
        return self._engine.few_values(self._source_rows, column, conflict_details.MAX_VALUES)

    def finish(self) -> None:
        """Remove temporary files, close the job folder's markers, and remove files whose rows were all let go."""
        self._staging.sweep()
        super().finish()
        remove(self._snapshot.store, self._replaced)

    def _with_identities(self, runtime: Runtime) -> MergePlan:
        """The clauses with values for the identity columns that inserts leave out, one for each source row."""
        snapshot, matching = self._snapshot, self._matching
        missing = omitted_identity_columns(matching, snapshot.schema, snapshot.table)
        log = Log(snapshot.store)
        return with_reserved_values(
            matching, reserve(log, missing, self._source_rows.rows, self._staging.txn_id, runtime)
        )

    def _candidates(self) -> pa.Table:
        if self._matching.acts_without_match:
            return self._snapshot.files
        return filter_files(self._snapshot.files, self._snapshot.facts.could_match(self._where.predicate))

    def _join(self, files: pa.Table) -> Joined:
        return self._engine.join(self._file_set(files), self._matching, self._source_rows, self._staging.folder)

    def _file_set(self, files: pa.Table) -> FileSet:
        """The files with the table's new columns, NULL where files lack them. Remembers the last result, since a bucket
        has to look up the size of each file.
        """
        if self._cached_file_set is None or self._cached_file_set[0] is not files:
            self._cached_file_set = files, file_set(self._snapshot, files, self._metadata)
        return self._cached_file_set[1]

    def _stage_part(self, files: pa.Table, joined: Joined) -> Transaction:
        """Marks, removals and new files of one join, with all inserts after it."""
        snapshot, matching = self._snapshot, self._matching
        self._joins.append(joined)
        changed = with_row_counts(snapshot, self._file_set(files).restrict_to(set(joined.marks)))
        keeps_files = snapshot.properties.vectors
        removed = find_emptied(changed, joined.marks) if keeps_files else set(joined.marks)
        with self._recording(changed.files, joined):
            images, copies = self._new_files(changed, joined, keeps_files=keeps_files)
            inserts = self._inserts(changed)
        change_files = self._change_files(inserts, needed=len(images) + len(copies) > 0)
        return Transaction.on(
            snapshot,
            self._staging.txn_id,
            CommitInfo(
                "MERGE",
                self._merge.parameters,
                metrics=self._counts(joined, copied=count_rows(copies)),
            ),
            reads=self._reads(files, joined.matched if matching.inserts else {}),
            changes=Changes(
                marks={path: rows for path, rows in joined.marks.items() if path not in removed},
                removes=frozenset(removed),
                sources={row["path"]: Source(row, self.vector(row)) for row in changed.files.to_pylist()},
                adds=pa.concat_tables([images, copies, inserts]),
                change_files=change_files,
            ),
        )

    def _recording(self, files: pa.Table, joined: Joined) -> AbstractContextManager[None]:
        """Note the changes of all joins so far, and record them while new files are written; inserts come later."""
        self._recorder.take_back({INSERT})
        self._recorder.note(DELETE, files, joined.deletes, joined.handle)
        self._recorder.note(PREIMAGE, files, joined.updates, joined.handle)
        self._recorder.note(POSTIMAGE, files, joined.updates, joined.handle)
        return self._recorder.ahead(needed=joined.updated + joined.updated_alone > 0)

    def _change_files(self, inserts: pa.Table, *, needed: bool) -> pa.Table:
        """The files of change data for all joins so far and all inserts; earlier ones are withdrawn."""
        self._recorder.note(INSERT, inserts)
        changes = self._recorder.write_noted(needed=needed)
        self._files_to_withdraw |= frozenset(changes["path"].to_pylist())
        return changes

    def _reads(self, files: pa.Table, matched: Marks) -> ReadSet:
        if self._reads_table:
            return whole_table(self._snapshot, held=self._source_is_fixed)
        return ReadSet(self._merge.where, frozenset(files["path"].to_pylist()), matched)

    def _new_files(self, files: FileSet, joined: Joined, *, keeps_files: bool) -> tuple[pa.Table, pa.Table]:
        """Files of new images and, without vectors, rewritten files with the remaining rows."""
        updated = joined.updated + joined.updated_alone
        self._staging.note(self._engine.write_images(files, joined, self._staging.folder) if updated else [])
        images = self._collect_new_files()
        if (written := count_rows(images)) != updated:
            raise ExecutionFailed(
                what="MERGE", reason=f"{updated} rows were to be updated, but {written} new ones were written."
            )
        if keeps_files or not len(files.files):
            return images, images.slice(0, 0)
        self._staging.note(self._engine.rewrite(files, joined.marks, None, self._staging.folder))
        return images, self._collect_new_files()

    def _inserts(self, table: FileSet) -> pa.Table:
        """Files of all rows to insert, by every join so far."""
        matching = self._matching
        written: WrittenFiles = []
        if matching.inserts:
            written = self._engine.write_inserts(table, matching, self._source_rows, self._joins, self._staging.folder)
        self._staging.note(written)
        files = self._collect_new_files()
        self._files_to_withdraw, self._insert_count = frozenset(files["path"].to_pylist()), count_rows(files)
        return files

    def _counts(self, joined: Joined, *, copied: int) -> dict[str, int]:
        """Delta's metrics of a MERGE."""
        inserted = self._insert_count
        return {
            "numTargetRowsInserted": inserted,
            "numTargetRowsUpdated": joined.updated + joined.updated_alone,
            "numTargetRowsDeleted": joined.deleted + joined.deleted_alone,
            "numTargetRowsMatchedUpdated": joined.updated,
            "numTargetRowsMatchedDeleted": joined.deleted,
            "numTargetRowsNotMatchedBySourceUpdated": joined.updated_alone,
            "numTargetRowsNotMatchedBySourceDeleted": joined.deleted_alone,
            "numTargetRowsCopied": copied,
            "numOutputRows": inserted + joined.updated + joined.updated_alone + copied,
        }
