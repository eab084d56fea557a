"""Reading: selects the files of a version that a condition cannot rule out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.conditions import Condition, may_hold
from anabranch._protocol.features.row_tracking import ENABLED
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.predicates import Always, Predicate, Value
from anabranch._protocol.schema.types import INTEGERS
from anabranch._protocol.stats.statistics import num_records
from anabranch._transaction.open_transaction import Query, open_transaction, uncommitted_paths
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, SecretFree, file_set, filter_files, live_rows, open_log
from anabranch.errors import CorruptLog, InvalidOption

EVERY_ROW = Always(True)


@dataclass(frozen=True)
class Read(SecretFree):
    """Read ``table`` at its newest version, or at ``version``.

    Example:
        >>> Read("/data/flights", version=0).run().files.num_rows
    """

    table: Location
    version: int | None = None
    where: Predicate | None = None
    storage_options: Mapping[str, str] | None = None

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> FileSet:
        """The files to scan, with their vectors, pinned to one version.

        Raises:
            NotATable, VersionNotFound, UnsupportedFeature, CorruptLog, CorruptVector.
        """
        snapshot = self.snapshot() if self.version is not None else context.snapshot(self._log)
        return file_set(snapshot, files_to_read(snapshot, self.where))

    def snapshot(self) -> Snapshot:
        """The snapshot that is read."""
        return self._log.snapshot(self.version)

    @property
    def _log(self) -> Log:
        return open_log(self.table, self.storage_options)


def count_from_log(snapshot: Snapshot, where: Predicate = EVERY_ROW) -> int | None:
    """The number of live rows for which a predicate is TRUE, from the log alone; None if that takes reading a file."""
    could, must = snapshot.facts.could_match(where), snapshot.facts.must_match(where)
    note_query(snapshot, where)
    if pc.any(pc.and_not(could, must)).as_py():
        return None
    return live_rows(filter_files(snapshot.files, could))


_EXACT = (*INTEGERS, "date")
"""Types whose bounds writers neither truncate nor round."""


def extent_from_log(snapshot: Snapshot, column: str) -> tuple[Value | None, Value | None] | None:
    """The smallest and the largest value of a column in the live rows, from the log alone; both are None if every row
    is null. None if that takes reading a file.
    """
    field, files = snapshot.schema.find(column), snapshot.files
    note_query(snapshot, EVERY_ROW)
    if field is None or field.type not in _EXACT:
        return None
    facts = snapshot.facts.column(field.name)
    if facts is None:
        return None
    if field.name in snapshot.partition_columns:
        has_rows = _have_rows(files)
    else:
        has_rows = None if _has_wide_bounds(files) else pa.array([True] * len(files), pa.bool_())
    is_known = pc.or_(facts.all_null, pc.and_(pc.is_valid(facts.low), pc.is_valid(facts.high)))
    if has_rows is None or not pc.all(is_known, min_count=0).as_py():
        return None
    return pc.min(facts.low.filter(has_rows)).as_py(), pc.max(facts.high.filter(has_rows)).as_py()


def _have_rows(files: pa.Table) -> pa.BooleanArray | None:
    """Whether each file has live rows; None if one has no row count."""
    counts, deleted = _counts(files)
    return None if counts.null_count else pc.greater(counts, deleted)


def _counts(files: pa.Table) -> tuple[pa.Int64Array, pa.Int64Array]:
    """The number of rows of each file, null if the log has no count, and how many of them are deleted."""
    rows = pa.array([num_records(stats) for stats in files["stats"].to_pylist()], pa.int64())
    deleted = [(vector or {}).get("cardinality") or 0 for vector in files["deletionVector"].to_pylist()]
    return rows, pa.array(deleted, pa.int64())


def _has_wide_bounds(files: pa.Table) -> bool:
    """Whether a file has deleted rows, or declares that its bounds may be wider than its values."""
    is_wide = pc.match_substring_regex(files["stats"], r'"tightBounds"\s*:\s*false')
    return bool(pc.any(pc.or_(pc.is_valid(files["deletionVector"]), pc.fill_null(is_wide, True)), min_count=0).as_py())


def files_to_read(snapshot: Snapshot, where: Predicate | None, condition: Condition | None = None) -> pa.Table:
    """The live files that may hold rows for which the predicate is TRUE. An open transaction has read these rows, or
    those that satisfy the condition whose predicate it is.
    """
    note_query(snapshot, EVERY_ROW if where is None else where, condition)
    return snapshot.files if where is None else _files_that_could_match(snapshot, where)


def all_files(snapshot: Snapshot) -> pa.Table:
    """The live files, for a reader of which nothing tells what it does with them: the program may see their names."""
    note_whole_table(snapshot)
    return snapshot.files


def _files_that_could_match(snapshot: Snapshot, where: Predicate) -> pa.Table:
    return filter_files(snapshot.files, snapshot.facts.could_match(where))


def note_whole_table(snapshot: Snapshot) -> None:
    """Let this thread's open transaction, if there is one, know that its program learns something of all files."""
    note_files(snapshot, EVERY_ROW)


def note_query(snapshot: Snapshot, where: Predicate, condition: Condition | None = None) -> None:
    """Let this thread's open transaction, if there is one, know that its program reads such rows: those that satisfy
    the condition, if it is given and needs no Spark, else those for which the predicate may be TRUE.
    """
    if open_transaction() is not None:
        is_computed = condition is not None and condition.row_local and is_computable(condition)
        note_files(snapshot, where, condition if is_computed else may_hold(where, snapshot.schema, "of a query"))


def note_files(snapshot: Snapshot, where: Predicate, condition: Condition | None = None) -> None:
    """Let this thread's open transaction, if there is one, know that its program learns something of the files that may
    hold such rows; or of the rows alone that satisfy the condition.
    """
    transaction = open_transaction()
    if transaction is not None:
        paths = frozenset(_files_that_could_match(snapshot, where)["path"].to_pylist())
        transaction.note_query(snapshot, Query(snapshot.table, where, paths, condition))


def is_computable(condition: Condition) -> bool:
    """Whether rows can be tested without Spark."""
    return condition.computation is not None and condition.computation.is_condition


def note_named_version(snapshot: Snapshot) -> None:
    """Let this thread's open transaction know that a statement reads a version by its number: one that its own
    statements have made holds rows of the table, and is another one when they run again.
    """
    transaction = open_transaction()
    if transaction is not None and transaction.has_made(snapshot):
        transaction.note_whole_tables()


def _partition_values(snapshot: Snapshot, files: pa.Table) -> pa.ChunkedArray:
    """The partition values as written in the log, by the logical names of their columns."""
    if snapshot.partition_keys == snapshot.partition_columns:
        return files["partitionValues"]
    names = dict(zip(snapshot.partition_keys, snapshot.partition_columns, strict=True))
    renamed = [[(names[key], value) for key, value in pairs or ()] for pairs in files["partitionValues"].to_pylist()]
    return pa.chunked_array([pa.array(renamed, files["partitionValues"].type)])


FILE_COLUMNS = ("path", "size", "rows", "partition_values", "vector")


def files(
    table: Location,
    where: Predicate | None = None,
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> pa.Table:
    """The live files that may hold matching rows, as an Arrow table; needs no Spark.

    Columns: ``path`` (as in the log), ``size`` (bytes), ``rows`` (physical rows, null if the log has no count),
    ``partition_values`` (map of strings) and ``vector`` (number of deleted rows, 0 without a deletion vector).
    """
    snapshot = Read(table, version, where, storage_options).snapshot()
    note_files(snapshot, EVERY_ROW if where is None else where)
    selected = snapshot.files if where is None else _files_that_could_match(snapshot, where)
    rows, deleted = _counts(selected)
    columns = [selected["path"], selected["size"], rows, _partition_values(snapshot, selected), deleted]
    return pa.Table.from_arrays(columns, names=list(FILE_COLUMNS))


ROW_ID, ROW_COMMIT_VERSION = "_row_id", "_row_commit_version"
"""The names under which row ids, and the versions that last changed the rows, are shown."""


def row_id_columns(files: FileSet) -> dict[str, str]:
    """The hidden columns of row tracking, and the names under which they are shown.

    Raises:
        InvalidOption: the table does not track its rows, or has a column of such a name.
        CorruptLog: a file has no ids, though row tracking is enabled.
    """
    if files.tracked is None:
        reason = f"the table at {files.root} does not track its rows; set {ENABLED} = true."
        raise InvalidOption(option="row_ids", value=True, reason=reason)
    for name in (ROW_ID, ROW_COMMIT_VERSION):
        if files.schema.find(name) is not None:
            reason = f"the table at {files.root} has a column {name} of its own."
            raise InvalidOption(option="row_ids", value=True, reason=reason)
    lacking, uncommitted = files.files.filter(pc.is_null(files.files["baseRowId"])), uncommitted_paths(files.root)
    for row in [row for row in lacking.to_pylist() if row["path"] not in uncommitted][:1]:
        raise CorruptLog(table=files.root, file=row["path"], reason="row tracking is enabled, but it has no row ids.")
    return {files.tracked.row_id: ROW_ID, files.tracked.commit_version: ROW_COMMIT_VERSION}
