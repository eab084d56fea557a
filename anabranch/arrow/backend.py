"""The engine of commands without Spark: rows in Arrow, in this process.

Knows rows, through the other modules of this room. Decides nothing, commits nothing, and never sees a conflict.
Guarantee: each method does what Spark's engine does, or raises `NeedsSpark` before anything is committed, and says why.
Memory is bounded by rows of some files at a time; a MERGE holds its source and the rows that it changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch.arrow import clustering, finding, orders, packing
from anabranch.arrow.fitting import fitted_to_rules
from anabranch.arrow.merge_clauses import computed_clauses
from anabranch.arrow.merge_images import OLD, images_of, inserts_of
from anabranch.arrow.merge_keys import computed_join, outcome
from anabranch.arrow.merge_outcome import counted_here, joined_of
from anabranch.arrow.merge_source import SourceRows, held, source_columns
from anabranch.arrow.row_ids import without_versions
from anabranch.arrow.site import Site
from anabranch.arrow.values import assigned
from anabranch.arrow.writing import FILE_ROWS, put_one, put_rows
from anabranch.errors import InvalidOption, NeedsSpark
from anabranch.errors.rows import NOT_SHOWN, may_show_rows
from anabranch.protocol.actions import empty_files
from anabranch.protocol.change_feed import CHANGE_TYPE, DELETE, POSTIMAGE, PREIMAGE, Images, recorded
from anabranch.protocol.conditions import Condition
from anabranch.protocol.expressions.computation import Computation
from anabranch.protocol.layout.curves import Curve
from anabranch.protocol.layout.file_sets import FileSet, Marks, count_of, difference_of
from anabranch.protocol.merges import Joined, Matching
from anabranch.protocol.row_rules import obedient
from anabranch.protocol.rules.table_rules import NONE, Rules
from anabranch.protocol.schema.types import Struct, from_arrow
from anabranch.protocol.stats.statistics import num_records
from anabranch.protocol.storing import stored_values
from anabranch.protocol.unsupported import Unsupported


@contextmanager
def without_spark(what: str, table: str) -> Iterator[None]:
    """Within the block rows are read, computed and written. Raises NeedsSpark: only Spark does some of it."""
    try:
        yield
    except Unsupported as error:
        raise NeedsSpark(what=what, table=table, reason=f"{error}") from None
    except pa.ArrowException as error:  # its words may hold values of rows
        reason = f"Arrow does not compute it, {type(error).__name__}"
        raise NeedsSpark(what=what, table=table, reason=reason) from None


@dataclass(frozen=True)
class JoinResult:
    """What the join of a MERGE leaves behind.

    Attributes:
        place: a row for each pair that matched, and for each row changed because it did not.
        updates: number of an updating clause -> the columns that it sets.
    """

    place: pa.Table
    updates: Mapping[int, frozenset[str]]


@dataclass(frozen=True)
class ArrowBackend:
    """`anabranch.commands.engine.Engine` over Arrow, at a site. Each method promises what that protocol says.

    Example:
        >>> Delete("/data/flights", where).run(ArrowBackend(alone(store))).rows
    """

    site: Site

    # -- before anything is read ---------------------------------------------------------------------------------------

    def check(self, files: FileSet, condition: Condition, assignments: Mapping[str, Any] | None) -> None:
        """Raises NeedsSpark unless the condition and the values are computed here."""
        with without_spark(f"the condition {condition.text}", files.root):
            finding.check_condition(files.schema, condition)
        with without_spark("the values that are set", files.root):
            _ = {} if assignments is None else _computed(assignments, files.schema)

    def check_merge(self, files: FileSet, matching: Matching, source: pa.Table) -> None:
        """Raises NeedsSpark unless the join and its clauses are computed here."""
        columns = source_columns(source.schema)
        with without_spark(f"MERGE ON {matching.on}", files.root):
            _ = computed_join(files, matching, columns)
            _ = computed_clauses(matching, "not matched", files, columns)

    def check_rules(self, schema: Struct, rules: Rules, table: str) -> None:
        """Raises NeedsSpark: Spark reads the expressions of new rules."""
        reason = "it reads the expressions of rules as they are made"
        raise NeedsSpark(what="a new rule", table=table, reason=reason)

    # -- DELETE and UPDATE ---------------------------------------------------------------------------------------------

    def find(self, files: FileSet, condition: Condition) -> dict[str, BitMap64]:
        """The live rows for which the condition is TRUE."""
        with without_spark(f"the condition {condition.text}", files.root):
            return finding.find(self.site, files, condition) if len(files.files) else {}

    def find_changed(self, files: FileSet, condition: Condition, assignments: Mapping[str, Any]) -> None:
        """Never in one pass."""
        return

    def write_changed(self, files: FileSet, changed: Any, folder: str) -> None:
        """Never asked for."""
        raise AssertionError("nothing was found in one pass")

    def update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str) -> None:
        """Write the new images of the marked rows, some at a time."""
        with without_spark("UPDATE", files.root):
            for rows in self._fetched(files, marks):
                self._put(self._updated(files, rows, assignments), files.with_ids, folder)

    def rewrite(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any] | None, folder: str) -> None:
        """Write the live rows, the marked ones changed or left out, some at a time."""
        with without_spark("rewriting files", files.root):
            for rows in self._fetched(files, difference_of(_live(files), marks)):
                self._put(rows, files.with_ids, folder)
        if assignments is not None:
            self.update(files, marks, assignments, folder)

    def _fetched(self, files: FileSet, marks: Marks) -> Iterator[pa.Table]:
        """The marked rows, so many at a time as may be held, with their ids where the table tracks its rows."""
        for some in _pieces(marks):
            yield from self._fetched_at_once(files, some)

    def _fetched_at_once(self, files: FileSet, marks: Marks) -> Iterator[pa.Table]:
        """These rows at once, or half as many at a time where that is too much."""
        try:
            found = finding.fetch(self.site, files, marks, files.with_ids.schema.names, nested=True)
        except finding.TooManyRows:
            if count_of(marks) == 1:
                raise
            for some in _pieces(marks, -(-count_of(marks) // 2)):
                yield from self._fetched_at_once(files, some)
            return
        yield found

    def _updated(self, files: FileSet, rows: pa.Table, assignments: Mapping[str, Any]) -> pa.Table:
        values, whole = _computed(assignments, files.schema), files.with_ids
        changed = without_versions(assigned(rows, whole.schema, values), files)
        return obedient(files.root, changed, whole.schema, files.rules, frozenset(values))

    def _put(self, rows: pa.Table, files: FileSet, folder: str) -> None:
        put_rows(self.site.store, folder, rows, files, {})

    # -- change data ---------------------------------------------------------------------------------------------------

    def record(self, changes: Sequence[Images], folder: str) -> None:
        """Write changed rows, some at a time."""
        for images in changes:
            files = recorded(images.files)
            with without_spark("recording changes", files.root):
                for rows in self._images(images):
                    self._put(_saying(rows, images.change, files.schema), files, folder)

    def record_update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str) -> None:
        """Write the marked rows, each as it was and as it becomes, some at a time."""
        whole = recorded(files).with_ids
        with without_spark("UPDATE", files.root):
            for old in self._fetched(files, marks):
                both = {PREIMAGE: old, POSTIMAGE: self._updated(files, old, assignments)}
                rows = [_saying(each, kind, whole.schema) for kind, each in both.items()]
                self._put(pa.concat_tables(rows), whole, folder)

    def write_postimages(self, files: FileSet, count: int, folder: str) -> None:
        """Write the new images in these files of `record_update`, file by file."""
        whole = recorded(files).with_ids
        with without_spark("UPDATE", files.root):
            for path in whole.files["path"].to_pylist():
                rows = finding.live(self.site, whole.restricted({path}), nested=True)
                images = rows.filter(pc.equal(rows[CHANGE_TYPE], POSTIMAGE)).drop_columns(CHANGE_TYPE)
                self._put(images, files.with_ids, folder)

    def _images(self, images: Images) -> Iterator[pa.Table]:
        files = replace(images.chosen, tracked=None)
        if images.joined is None:
            yield from self._fetched(files, _live(files) if images.rows is None else images.rows)
        elif images.change == POSTIMAGE:
            yield from _new_images(images.joined, files)
        else:
            yield _old_images(images.joined, files, deleted=images.change == DELETE)

    # -- MERGE ---------------------------------------------------------------------------------------------------------

    def hold(self, source: pa.Table, schema: Struct, root: str, folder: str) -> SourceRows:
        """Rows in memory are kept as they are. Raises InvalidOption: a value has no place in Delta's types."""
        try:
            return held(source)
        except pa.ArrowException as error:
            why = str(error) if may_show_rows(root) else NOT_SHOWN
            reason = f"a value has no place in Delta's types ({why}). Cast it first."
            raise InvalidOption(option="source", value="these rows", reason=reason) from None

    def with_numbers(self, held: SourceRows, values: Mapping[str, range]) -> pa.Table:
        """The values in the order of the rows."""
        rows = held.named.select(range(len(held.columns.names)))
        for name, some in values.items():
            rows = rows.append_column(name, pa.array(some, pa.int64()))
        return rows

    def join(self, files: FileSet, matching: Matching, held: SourceRows, folder: str) -> Joined:
        """Look for the source's keys, and compute what each clause does."""
        if not len(files.files):
            return Joined({}, {})
        with without_spark(f"MERGE ON {matching.on}", files.root):
            found = outcome(self.site, files, matching, held)
        result = JoinResult(found, matching.columns_set(files.schema, "update"))
        return joined_of(counted_here(found), result, files, matching)

    def write_images(self, files: FileSet, joined: Joined, folder: str) -> None:
        """Write the new images that `join` computed."""
        hidden = () if files.tracked is None else files.tracked.fields[:1]  # an image has no version of its own
        whole = replace(files, schema=Struct((*files.schema.fields, *hidden)))
        with without_spark("MERGE", files.root):
            for rows in _new_images(joined.handle, whole) if joined.updated or joined.updated_alone else ():
                self._put(rows, whole, folder)

    def write_inserts(
        self, files: FileSet, matching: Matching, held: SourceRows, joined: Sequence[Joined], folder: str
    ) -> None:
        """Write what becomes of the source rows that no join matched."""
        left = held.without([each.handle.place["number"] for each in joined if each.handle is not None])
        with without_spark("MERGE", files.root):
            made = [
                obedient(files.root, rows, files.schema, files.rules, given, new=True)
                for rows, given in inserts_of(files, matching, left)
            ]
            if len(rows := pa.concat_tables(made)):
                self._put(rows, files, folder)

    def few_values(self, held: SourceRows, column: str, limit: int) -> list[Any] | None:
        """The distinct values of a column."""
        found = pc.unique(held.named[column]).to_pylist()
        return found if len(found) <= limit else None

    # -- rows that are written -----------------------------------------------------------------------------------------

    def write(
        self,
        source: pa.Table,
        schema: Struct,
        partition_columns: tuple[str, ...],
        root: str,
        folder: str,
        rules: Rules = NONE,
    ) -> None:
        """Write a table's rows, fitted to the schema."""
        files = FileSet(root, schema, partition_columns, empty_files(), {}, rules)
        with without_spark("the rows to write", root):
            self._put(fitted_to_rules(root, source, schema, rules), files, folder)

    def alias(self, source: pa.Table) -> None:
        """A table in memory has no name."""
        return None

    def describe(self, source: pa.Table) -> Struct:
        """A table's columns."""
        return from_arrow(source.schema)

    # -- files that are written anew -----------------------------------------------------------------------------------

    def pack(self, files: FileSet, folder: str) -> None:
        """Write the live rows as one file, where they are not packed row group by row group (`pack_together`)."""
        with without_spark("packing files", files.root):
            rows = finding.live(self.site, files.with_ids, nested=True)
            put_one(self.site.store, folder, rows, files.with_ids)

    def pack_together(self, bins: Sequence[tuple[FileSet, str]]) -> frozenset[int]:
        """Pack those that lie on a disk, by threads."""
        likely = ((number, *each) for number, each in enumerate(bins) if packing.fits(each[0]))
        found = (packing.task_of(self.site, number, files, folder, {}) for number, files, folder in likely)
        tasks = [each for each in found if each is not None]
        return frozenset(packing.adopted(tasks, packing.run_here(tasks, os.cpu_count() or 1)))

    def cluster(self, files: FileSet, curve: Curve, outputs: int, folder: str, moves: str | None) -> None:
        """Write the live rows in the order of a curve."""
        with without_spark("laying rows along a curve", files.root):
            task = clustering.ordering(self.site, files, curve, outputs, folder, moves, {})
            if task is None:
                raise Unsupported("the files lie on no disk, are too large, or hold columns of other types")
            said = {**task.said, "threads": clustering.threads(os.cpu_count() or 1)}
            if not clustering.adopted(orders.ordered(said), said):
                raise Unsupported("what was written cannot be moved")

    # -- what the table's rows are to others ---------------------------------------------------------------------------

    def extent(self, files: FileSet, column: str) -> tuple[Any, Any]:
        """The least and the greatest value of a column in the live rows."""
        with without_spark(f"the column {column}", files.root):
            rows = finding.live(self.site, replace(files, schema=Struct((files.schema.field(column),))))
        both = pc.min_max(rows.column(0)).as_py()
        return both["min"], both["max"]

    def source_versions(self, source: pa.Table, root: str, table_id: str) -> None:
        """Rows in memory do not say what they were read from."""
        return None

    def query_versions(
        self, condition: Condition, values: Sequence[Any], schema: Struct, root: str, table_id: str
    ) -> None:
        """What is computed here holds no query."""
        return None

    def merge_versions(self, source: pa.Table, matching: Matching, schema: Struct, root: str, table_id: str) -> None:
        """As `query_versions`."""
        return None

    def settings(self) -> Mapping[str, str]:
        """There is no session."""
        return {}

    @contextmanager
    def beside(self, work: Callable[[], None]) -> Iterator[None]:
        """Before the block."""
        work()
        yield

    def carried(self, work: Callable[[], None]) -> Callable[[], None]:
        """As it is: there is no session to be carried."""
        return work


# -- rows --------------------------------------------------------------------------------------------------------------


def _computed(assignments: Mapping[str, Any], schema: Struct) -> Mapping[str, Computation]:
    values = stored_values(assignments, schema)
    if values is None:
        raise Unsupported("a value is computed by Spark")
    return values


def _live(files: FileSet) -> dict[str, BitMap64]:
    """The live rows of some files. Raises Unsupported: nothing says how many rows a file has."""
    found = {}
    for path, stats in zip(*(files.files[name].to_pylist() for name in ("path", "stats")), strict=True):
        count = num_records(stats)
        if count is None:
            raise Unsupported("nothing says how many rows a file has")
        found[path] = BitMap64(range(count))
    return difference_of(found, files.vectors)


def _pieces(marks: Marks, most: int = FILE_ROWS) -> Iterator[dict[str, BitMap64]]:
    """The rows, at most so many at a time."""
    piece, left = dict[str, BitMap64](), most
    for path, rows in marks.items():
        start = 0
        while start < len(rows):
            some = rows[start : start + left]
            piece[path], start, left = some, start + len(some), left - len(some)
            if not left:
                yield piece
                piece, left = {}, most
    if piece:
        yield piece


def _saying(rows: pa.Table, change: str, schema: Struct) -> pa.Table:
    """The rows with what became of them, and the columns in the order of a schema."""
    return rows.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(change), len(rows))).select(list(schema.names))


def _new_images(result: JoinResult, files: FileSet) -> Iterator[pa.Table]:
    """By clause, the rows that are updated as they become."""
    for clause, given in result.updates.items():
        images = images_of(result.place, [clause], files)
        if len(images):
            yield obedient(files.root, images, files.schema, files.rules, given)


def _old_images(result: JoinResult, files: FileSet, *, deleted: bool) -> pa.Table:
    """The rows that are updated, or deleted, as they were; each once."""
    rows = result.place.filter(pc.is_valid(result.place["clause"]))
    is_updated = pc.is_in(rows["clause"], value_set=pa.array([*result.updates], pa.int32()))
    rows = rows.filter(pc.invert(is_updated) if deleted else is_updated)
    places = pa.table({"path": rows["path"], "row": rows["row"], "at": pa.array(np.arange(len(rows)))})
    first = places.group_by(["path", "row"]).aggregate([("at", "min")])["at_min"]
    rows = rows.take(pc.take(first, pc.sort_indices(first)))
    names = [f"{OLD}{i}" for i in range(len(files.schema))]
    return rows.select(names).rename_columns(list(files.schema.names))
