"""Computes rows with Arrow in this process: the engine of commands without Spark, and the first attempt of each step
with Spark.

Knows rows, through the other modules of this package. Decides nothing, commits nothing, and never sees a conflict.
Guarantee: each method does what Spark's engine does, or raises `NeedsSpark` with the reason before anything is
committed. Memory is bounded by the rows of a few files; a MERGE holds its source and the rows that it changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, Self, TypeAlias, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._arrow import clustering, finding, orders, packing
from anabranch._arrow.assigned_values import AT_ONCE, assign_values, resolve_assignments
from anabranch._arrow.change_plans import check_copies, check_find, check_images, check_join, rewrite_step
from anabranch._arrow.fitting import fit_to_rules
from anabranch._arrow.merge_clauses import resolve_clauses
from anabranch._arrow.merge_images import OLD, images_of, inserts_of
from anabranch._arrow.merge_keys import join_by_keys, resolve_join
from anabranch._arrow.merge_outcome import JoinResult, build_joined, outcome_of_table, split_joined
from anabranch._arrow.merge_source import SourceRows, source_columns, to_source_rows
from anabranch._arrow.on_disk import on_disk
from anabranch._arrow.row_ids import without_versions
from anabranch._arrow.site import Site
from anabranch._arrow.writing import put_all, put_one, regroup
from anabranch._protocol.actions import empty_files
from anabranch._protocol.change_feed import CHANGE_TYPE, DELETE, POSTIMAGE, PREIMAGE, Images, change_data_files
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.curves import Curve
from anabranch._protocol.layout.file_sets import FileSet, Marks
from anabranch._protocol.merges import Joined, MergePlan
from anabranch._protocol.parquet_files import WrittenFile
from anabranch._protocol.row_rules import enforce_rules
from anabranch._protocol.rules.table_rules import NONE, Rules
from anabranch._protocol.schema.types import Struct, from_arrow
from anabranch._protocol.steps import (
    FIND_ROWS,
    INSERT_ROWS,
    JOIN,
    RECORD_CHANGES,
    WRITE_FILES_ANEW,
    WRITE_NEW_ROWS,
    WRITE_ROWS,
    Step,
    StepListener,
    ignore_step,
)
from anabranch._protocol.unsupported import Unsupported
from anabranch._storage.local import LocalStore
from anabranch.errors import InvalidOption, NeedsSpark
from anabranch.errors.rows import NOT_SHOWN, may_show_rows

Files: TypeAlias = list[WrittenFile]
_COMPUTED_BYTES = 16 << 20
"""Maximum bytes of the rows of several files whose values are computed together."""
RowUpdater = Callable[[pa.Table], pa.Table]
"""Computes new images of rows."""
_Method = TypeVar("_Method", bound=Callable[..., Any])


@contextmanager
def without_spark(what: str, table: str) -> Iterator[None]:
    """Translate errors of the block, which reads, computes and writes rows, to NeedsSpark.

    Raises:
        NeedsSpark: only Spark does part of it.
    """
    try:
        yield
    except Unsupported as error:
        raise NeedsSpark(what=what, table=table, reason=f"{error}") from None
    except pa.ArrowException as error:  # its words may hold values of rows
        reason = f"Arrow does not compute it, {type(error).__name__}"
        raise NeedsSpark(what=what, table=table, reason=reason) from None


def _reports_step(does: str) -> Callable[[_Method], _Method]:
    """Decorate a method so that it reports a step, done by Arrow, after it has run."""

    def decorate(method: _Method) -> _Method:
        @wraps(method)
        def run_and_tell(self: ArrowBackend, *args: Any) -> Any:
            result = method(self, *args)
            self.tell(Step(does))
            return result

        return cast(_Method, run_and_tell)

    return decorate


@dataclass(frozen=True)
class ArrowBackend:
    """Implements `anabranch.commands.engine.Engine` with Arrow, at one site. Each method promises what that protocol
    promises.

    Example:
        >>> Delete("/data/flights", where).run(ArrowBackend(site_without_spark(store))).rows
    """

    site: Site
    tell: StepListener = field(default=ignore_step, repr=False, compare=False, kw_only=True)

    def telling(self, tell: StepListener) -> Self:
        """The same backend, which reports each step."""
        return replace(self, tell=tell)

    # -- before anything is read ---------------------------------------------------------------------------------------

    def check(self, files: FileSet, condition: Condition, assignments: Mapping[str, Any] | None) -> None:
        """Raises NeedsSpark unless Arrow computes the condition and the values."""
        with without_spark(f"the condition {condition.text}", files.root):
            finding.check_condition(files.schema, condition)
        with without_spark("the values that are set", files.root):
            _ = resolve_assignments(assignments or {}, files.schema)

    def check_merge(self, files: FileSet, matching: MergePlan, source: pa.Table) -> None:
        """Raises NeedsSpark unless Arrow computes the join and its clauses."""
        columns = source_columns(source.schema)
        with without_spark(f"MERGE ON {matching.on}", files.root):
            _ = resolve_join(files, matching, columns)
            _ = resolve_clauses(matching, "not matched", files, columns)

    def check_rules(self, schema: Struct, rules: Rules, table: str) -> None:
        """Raises NeedsSpark: only Spark parses the expressions of new rules."""
        reason = "only Spark parses the expressions of new rules"
        raise NeedsSpark(what="a new rule", table=table, reason=reason)

    # -- DELETE and UPDATE ---------------------------------------------------------------------------------------------

    def find(self, files: FileSet, condition: Condition) -> dict[str, BitMap64]:
        """Positions of the live rows for which the condition is TRUE, by file."""
        with without_spark(f"the condition {condition.text}", files.root):
            check_find(self.site, files, condition)
            marks = finding.find(self.site, files, condition)
        self.tell(Step(FIND_ROWS, log=not len(files.files)))
        return marks

    @_reports_step(WRITE_NEW_ROWS)
    def update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str) -> Files:
        """Write the new images of the marked rows."""
        with without_spark("UPDATE", files.root):
            update_rows = self._row_updater(files, assignments)
            images = map(update_rows, self._marked_rows(files, marks))
            return put_all(self.site, folder, images, files.with_ids)

    @_reports_step(WRITE_FILES_ANEW)
    def rewrite(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any] | None, folder: str) -> Files:
        """Write the live rows again, with the marked ones updated, or left out if there are no assignments."""
        with without_spark("rewriting files", files.root):
            check_copies(self.site, files)
            update_rows = None if assignments is None else self._row_updater(files, assignments)
            rows = self._rewrite_rows(files, marks, update_rows)
            return put_all(self.site, folder, rows, files.with_ids, most_rows=None)

    def _rewrite_rows(self, files: FileSet, marks: Marks, update_rows: RowUpdater | None) -> Iterator[pa.Table]:
        is_marked = finding.make_mark_test(marks)
        for part in self._fetch_rows(files, None):
            flags = is_marked(part.path, part.positions)
            yield _table(part).filter(pa.array(~flags))
            if update_rows is not None and flags.any():
                yield update_rows(_table(part).filter(pa.array(flags)))

    def _fetch_rows(self, files: FileSet, marks: Marks | None) -> Iterator[finding.FileRows]:
        """The marked rows, or all live ones, with their ids if the table tracks its rows."""
        return finding.fetch_file_rows(self.site, files, marks, files.with_ids.schema.names, nested=True)

    def _marked_rows(self, files: FileSet, marks: Marks) -> Iterator[pa.Table]:
        """The marked rows, as `_fetch_rows`; those of small files together, since each computation has fixed costs."""
        return regroup(map(_table, self._fetch_rows(files, marks)), AT_ONCE, _COMPUTED_BYTES)

    def _row_updater(self, files: FileSet, assignments: Mapping[str, Any]) -> RowUpdater:
        """A function that computes new images of rows. Raises Unsupported if only Spark computes a value."""
        check_images(self.site, files, assignments)
        values, stored = resolve_assignments(assignments, files.schema), files.with_ids
        assigned = frozenset(values)

        def update_rows(rows: pa.Table) -> pa.Table:
            changed = assign_values(rows, stored.schema, values)
            return self._apply_rules(without_versions(changed, files), stored, assigned)

        return update_rows

    def _apply_rules(self, rows: pa.Table, files: FileSet, assigned: frozenset[str], *, new: bool = False) -> pa.Table:
        return enforce_rules(files.root, rows, files.schema, files.rules, assigned, self.site.altered, new=new)

    # -- change data ---------------------------------------------------------------------------------------------------

    @_reports_step(RECORD_CHANGES)
    def record(self, changes: Sequence[Images], folder: str) -> Files:
        """Write the rows of these changes."""
        with without_spark("recording changes", changes[0].files.root):
            rows = (table for images in changes for table in self._images(images))
            return put_all(self.site, folder, rows, change_data_files(changes[0].files))

    @_reports_step(RECORD_CHANGES)
    def record_update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str) -> Files:
        """Write each marked row as it was, and as it becomes."""
        whole = change_data_files(files).with_ids
        with without_spark("UPDATE", files.root):
            update_rows = self._row_updater(files, assignments)
            tables = (
                _with_change_type(rows, change, whole.schema)
                for old in self._marked_rows(files, marks)
                for change, rows in ((PREIMAGE, old), (POSTIMAGE, update_rows(old)))
            )
            return put_all(self.site, folder, tables, whole)

    @_reports_step(WRITE_NEW_ROWS)
    def write_postimages(self, files: FileSet, count: int, folder: str) -> Files:
        """Write the new images that `record_update` recorded in these files."""
        # The files hold the ids of their rows, so none are filled in.
        stored = replace(change_data_files(files).with_ids, tracked=None)
        with without_spark("UPDATE", files.root):
            return put_all(self.site, folder, map(_postimages, self._fetch_rows(stored, None)), files.with_ids)

    def _images(self, images: Images) -> Iterator[pa.Table]:
        files = replace(images.selected_files, tracked=None)
        columns = change_data_files(files).schema
        if images.joined is None:
            tables: Iterator[pa.Table] = (_table(part) for part in self._fetch_rows(files, images.rows))
        elif images.change == POSTIMAGE:
            tables = self._new_images(images.joined, files)
        else:
            tables = iter([_old_images(images.joined, files, deleted=images.change == DELETE)])
        return (_with_change_type(rows, images.change, columns) for rows in tables)

    # -- MERGE ---------------------------------------------------------------------------------------------------------

    def hold(self, source: pa.Table, schema: Struct, root: str, folder: str) -> SourceRows:
        """Keep the source in memory as it is. Raises InvalidOption if a value does not fit into Delta's types."""
        try:
            return to_source_rows(source)
        except pa.ArrowException as error:
            why = str(error) if may_show_rows(root) else NOT_SHOWN
            reason = f"a value does not fit into Delta's types ({why}). Cast it first."
            raise InvalidOption(option="source", value="these rows", reason=reason) from None

    def rows_of(self, held: SourceRows) -> pa.Table:
        """The held rows."""
        return held.named_rows.select(range(len(held.columns.names)))

    def with_numbers(self, held: SourceRows, values: Mapping[str, range]) -> pa.Table:
        """Assign the values to the rows in order."""
        rows = self.rows_of(held)
        for name, numbers in values.items():
            rows = rows.append_column(name, pa.array(numbers, pa.int64()))
        return rows

    def join(self, files: FileSet, matching: MergePlan, held: SourceRows, folder: str) -> Joined:
        """Look up the source's keys in the table, and compute what each clause does."""
        if not len(files.files):
            self.tell(Step(JOIN, log=True))
            return Joined({}, {})
        with without_spark(f"MERGE ON {matching.on}", files.root):
            check_join(self.site, files, matching, held.columns)
            pairs = join_by_keys(self.site, files, matching, held)
        self.tell(Step(JOIN))
        result = JoinResult(pairs, matching.columns_set(files.schema, "update"), matching.may_match_twice)
        return build_joined(outcome_of_table(pairs), result, files, matching)

    def split(self, files: FileSet, matching: MergePlan, joined: Joined, rows: Marks) -> tuple[Joined, Joined] | None:
        """See `merge_outcome.split_joined`."""
        return split_joined(joined, rows, files, matching)

    @_reports_step(WRITE_NEW_ROWS)
    def write_images(self, files: FileSet, joined: Joined, folder: str) -> Files:
        """Write the new images that `join` computed."""
        if joined.handle is None:  # no file was joined
            return []
        hidden = () if files.tracked is None else files.tracked.fields[:1]  # an image has no version of its own
        stored = replace(files, schema=Struct((*files.schema.fields, *hidden)))
        with without_spark("MERGE", files.root):
            return put_all(self.site, folder, self._new_images(joined.handle, stored), stored)

    def _new_images(self, result: JoinResult, files: FileSet) -> Iterator[pa.Table]:
        """The new images of updated rows, clause by clause."""
        for clause, assigned in result.updates.items():
            images = images_of(result.rows, [clause], files)
            if len(images):
                yield self._apply_rules(images, files, assigned)

    @_reports_step(INSERT_ROWS)
    def write_inserts(
        self, files: FileSet, matching: MergePlan, held: SourceRows, joined: Sequence[Joined], folder: str
    ) -> Files:
        """Write the inserts of the source rows that no join matched."""
        with without_spark("MERGE", files.root):
            unmatched = held.without([result.handle.rows["number"] for result in joined if result.handle is not None])
            tables = (
                self._apply_rules(rows, files, assigned, new=True)
                for rows, assigned in inserts_of(files, matching, unmatched)
            )
            return put_all(self.site, folder, tables, files)

    def few_values(self, held: SourceRows, column: str, limit: int) -> list[Any] | None:
        """The distinct values of a column; None if there are more than `limit`."""
        values = pc.unique(held.named_rows[column]).to_pylist()
        return values if len(values) <= limit else None

    # -- rows that are written -----------------------------------------------------------------------------------------

    @_reports_step(WRITE_ROWS)
    def write(
        self,
        source: pa.Table,
        schema: Struct,
        partition_columns: tuple[str, ...],
        root: str,
        folder: str,
        rules: Rules = NONE,
    ) -> Files:
        """Write a table's rows, fitted to the schema."""
        files = FileSet(root, schema, partition_columns, empty_files(), {}, rules)
        with without_spark("the rows to write", root):
            return put_all(self.site, folder, [fit_to_rules(root, source, schema, rules, self.site.altered)], files)

    def alias(self, source: pa.Table) -> None:
        """Always None: an Arrow table has no alias."""
        return None

    def describe(self, source: pa.Table) -> Struct:
        """The columns of an Arrow table."""
        return from_arrow(source.schema)

    # -- files that are written anew -----------------------------------------------------------------------------------

    def pack(self, files: FileSet, folder: str) -> None:
        """Write the live rows as one file, if `pack_together` did not pack them."""
        with without_spark("packing files", files.root):
            put_one(self.site, folder, finding.fetch_live(self.site, files, nested=True), files.with_ids)
        self.tell(rewrite_step(files, None))

    def pack_together(self, bins: Sequence[tuple[FileSet, str]]) -> frozenset[int]:
        """Pack bins on a local disk in threads; copy others to a local disk first, one by one."""
        numbered = ((number, *file_bin) for number, file_bin in enumerate(bins))
        candidates = [(number, files, folder) for number, files, folder in numbered if packing.fits(self.site, files)]
        if isinstance(self.site.store, LocalStore):
            packed = _pack_bins(self.site, candidates)
        else:
            packed = frozenset(number for candidate in candidates for number in self._pack_on_disk(*candidate))
        for number in packed:
            self.tell(rewrite_step(bins[number][0], None))
        return packed

    def _pack_on_disk(self, number: int, files: FileSet, folder: str) -> frozenset[int]:
        with on_disk(self.site, files, folder) as (site, copies):
            return _pack_bins(site, [(number, copies, folder)])

    def cluster(self, files: FileSet, curve: Curve, outputs: int, folder: str, moves: str | None) -> None:
        """Write the live rows in the order of a curve."""
        with without_spark("laying rows along a curve", files.root):
            clustering.check_ordered(self.site, files, curve)
            with on_disk(self.site, files, folder, moves) as (site, copies):
                task = clustering.ordering(site, copies, curve, outputs, folder, moves, {})
                if task is None:
                    raise Unsupported("some files lie on another store")
                task_values = {**task.said, "threads": clustering.threads(os.cpu_count() or 1)}
                if not clustering.adopt_outputs(orders.write_along_curve(task_values), task_values):
                    raise Unsupported("the new files cannot be renamed")
        self.tell(rewrite_step(files, curve))

    # -- questions about rows ---------------------------------------------------------------------------

    def extent(self, files: FileSet, column: str) -> tuple[Any, Any]:
        """Minimum and maximum of a column in the live rows."""
        with without_spark(f"the column {column}", files.root):
            rows = finding.fetch_live(self.site, replace(files, schema=Struct((files.schema.field(column),))))
        bounds = pc.min_max(rows.column(0)).as_py()
        return bounds["min"], bounds["max"]

    def source_versions(self, source: pa.Table, root: str, table_id: str) -> None:
        """Always None: an Arrow table does not record which table versions it was read from."""
        return None

    def query_versions(
        self, condition: Condition, values: Sequence[Any], schema: Struct, root: str, table_id: str
    ) -> None:
        """Always None: conditions and values that Arrow computes contain no query."""
        return None

    def merge_versions(self, source: pa.Table, matching: MergePlan, schema: Struct, root: str, table_id: str) -> None:
        """Always None, as for `query_versions`."""
        return None

    def settings(self) -> Mapping[str, str]:
        """Empty: there is no session."""
        return {}

    @contextmanager
    def beside(self, work: Callable[[], None]) -> Iterator[None]:
        """Run ``work`` before the block: without Spark nothing runs at the same time."""
        work()
        yield

    def for_other_thread(self, work: Callable[[], None]) -> Callable[[], None]:
        """The work itself: there is no session to pass on."""
        return work


# -- rows --------------------------------------------------------------------------------------------------------------


def _pack_bins(site: Site, bins: Sequence[tuple[int, FileSet, str]]) -> frozenset[int]:
    """Pack bins in threads, and return the numbers of those that were packed."""
    tasks_or_none = (packing.task_of(site, number, files, folder, {}) for number, files, folder in bins)
    tasks = [task for task in tasks_or_none if task is not None]
    return frozenset(packing.adopt_attempts(tasks, packing.run_here(tasks, os.cpu_count() or 1)))


def _table(part: finding.FileRows) -> pa.Table:
    return pa.Table.from_batches([part.rows])


def _with_change_type(rows: pa.Table, change: str, schema: Struct) -> pa.Table:
    """The rows with their change type, in the order of a schema's columns."""
    return rows.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(change), len(rows))).select(list(schema.names))


def _postimages(part: finding.FileRows) -> pa.Table:
    rows = _table(part)
    return rows.filter(pc.equal(rows[CHANGE_TYPE], POSTIMAGE)).drop_columns(CHANGE_TYPE)


def _old_images(result: JoinResult, files: FileSet, *, deleted: bool) -> pa.Table:
    """The old images of the updated, or deleted, rows, without duplicates."""
    rows = result.rows.filter(pc.is_valid(result.rows["clause"]))
    is_updated = pc.is_in(rows["clause"], value_set=pa.array([*result.updates], pa.int32()))
    rows = rows.filter(pc.invert(is_updated) if deleted else is_updated)
    places = pa.table({"path": rows["path"], "row": rows["row"], "at": pa.array(np.arange(len(rows)))})
    first = places.group_by(["path", "row"]).aggregate([("at", "min")])["at_min"]
    rows = rows.take(pc.take(first, pc.sort_indices(first)))
    names = [f"{OLD}{i}" for i in range(len(files.schema))]
    return rows.select(names).rename_columns(list(files.schema.names))
