"""The interface between commands and the engine that handles rows, in six parts, so that a function requires only one.

An engine finds rows, and writes Parquet files into a folder of the table that no other writer uses; it decides and
commits nothing. ``anabranch._spark.engine.SparkEngine`` is one, ``anabranch._arrow.backend.ArrowBackend`` another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self

from anabranch._log.positions import SourceVersions
from anabranch._protocol.change_feed import Images
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.curves import Curve
from anabranch._protocol.layout.file_sets import FileSet, Marks
from anabranch._protocol.merges import Joined, MergePlan
from anabranch._protocol.parquet_files import WrittenFiles
from anabranch._protocol.rules.table_rules import NONE, Rules
from anabranch._protocol.schema.types import Struct
from anabranch._protocol.steps import StepListener


class ReportsSteps(Protocol):
    """Reports which backend did each step."""

    def telling(self, tell: StepListener) -> Self:
        """The same engine, which reports each completed step to ``tell``, with the backend that did it: finding,
        joining, writing, packing and ordering.
        """
        ...


class Backend(Protocol):
    """Finds the rows that a condition or a source selects, and writes files of them.

    Written rows obey the rules of the table (`FileSet.rules`), except rows that are only copied. A method that writes
    files returns them if it knows them.
    """

    def find(self, files: FileSet, condition: Condition) -> Marks:
        """The live rows for which the condition is TRUE; a file without any is left out.

        Raises:
            InvalidCondition: the condition does not fit the columns.
            ExecutionFailed: it cannot be evaluated on some row.
        """
        ...

    def join(self, files: FileSet, matching: MergePlan, held: Any, folder: str) -> Joined:
        """Match the live rows of these files with the source's, once, and find the rows of each clause.

        This evaluates everything, once, including new images; `write_images` writes them.

        Raises:
            InvalidCondition, SchemaMismatch: an expression does not fit the columns.
            AmbiguousMerge: several source rows would change one row.
            ExecutionFailed: an expression cannot be evaluated on some row.
        """
        ...

    def split(self, files: FileSet, matching: MergePlan, joined: Joined, rows: Marks) -> tuple[Joined, Joined] | None:
        """The results of a join for all rows but these, and for these alone; None if it cannot separate them."""
        ...

    def update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str) -> WrittenFiles:
        """Write the new images of exactly the marked rows as Parquet files below ``folder``."""
        ...

    def rewrite(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any] | None, folder: str) -> WrittenFiles:
        """Write every live row of these files below ``folder``: the marked ones changed, or left out without
        assignments.
        """
        ...

    def record_update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str) -> WrittenFiles:
        """Write the marked rows as files of change data below ``folder``: each as it was, and its new image, with the
        hidden row ids.
        """
        ...

    def write_postimages(self, files: FileSet, count: int, folder: str) -> WrittenFiles:
        """Write the ``count`` new images in these files of `record_update` as Parquet files below ``folder``."""
        ...

    def record(self, changes: Sequence[Images], folder: str) -> WrittenFiles:
        """Write changed rows as files of change data (`change_data_columns`) below ``folder``, by their partitions."""
        ...

    def write_images(self, files: FileSet, joined: Joined, folder: str) -> WrittenFiles:
        """Write the new images of the rows that `join` updates as Parquet files below ``folder``."""
        ...

    def write_inserts(
        self, files: FileSet, matching: MergePlan, held: Any, joined: Sequence[Joined], folder: str
    ) -> WrittenFiles:
        """Write the rows that NOT MATCHED clauses insert for source rows that none of these joins matched, below
        ``folder``.

        ``files`` describes the table (root, schema, partition columns); its files do not matter.
        """
        ...

    def write(
        self,
        source: Any,
        schema: Struct,
        partition_columns: tuple[str, ...],
        root: str,
        folder: str,
        rules: Rules = NONE,
    ) -> WrittenFiles:
        """Write the source's rows below ``root/folder``, converted to the schema and checked by the table's rules.

        Raises:
            SchemaMismatch: a column does not fit.
            RowViolation: a row breaks a rule.
        """
        ...

    def extent(self, files: FileSet, column: str) -> tuple[Any, Any]:
        """The smallest and the largest value of a column in the live rows; None if no row has one."""
        ...


class Layouts(Protocol):
    """Writes rows unchanged to other files."""

    def pack(self, files: FileSet, folder: str) -> None:
        """Write the live rows of these files, which share their partition values, as one file in ``folder``, which is
        that partition's: in the order of the files, and of the rows in each.
        """
        ...

    def pack_together(self, bins: Sequence[tuple[FileSet, str]]) -> frozenset[int]:
        """Pack several such groups of files, each with its folder, at once, as far as the engine can. Returns the
        numbers of the groups that it packed, each as `pack` does; the others leave no trace.
        """
        ...

    def cluster(self, files: FileSet, curve: Curve, outputs: int, folder: str, moves: str | None) -> None:
        """Write the live rows of these files, which share their partition values, in the order of a curve, as at most
        ``outputs`` files of about equally many rows in ``folder``, which is that partition's.

        The n-th file's name begins with ``part-`` and five digits, n from 0 on. Unless ``moves`` is None, a Parquet
        file with the same beginning is written there for each: row by row, where the rows come from (`ORIGINS`).
        """
        ...


class Sources(Protocol):
    """Handles rows that a user passes: a DataFrame, or rows in Arrow."""

    def describe(self, source: Any) -> Struct:
        """The columns of a source."""
        ...

    def alias(self, source: Any) -> str | None:
        """The alias of a source in expressions, if it has one."""
        ...

    def hold(self, source: Any, schema: Struct, root: str, folder: str) -> Any:
        """Evaluate a MERGE's source once, and keep its rows for as long as the transaction runs.

        Temporary files lie in hidden folders (their names begin with ``_``) below ``root/folder``. Later uses of the
        result never evaluate the source again.
        """
        ...

    def rows_of(self, held: Any) -> Any:
        """The rows of a held source, as a source that may be written."""
        ...

    def with_numbers(self, held: Any, values: Mapping[str, range]) -> Any:
        """The rows of a held source, with one more column for each of these names, in which each row has a different
        value of the range.
        """
        ...

    def few_values(self, held: Any, column: str, limit: int) -> list[Any] | None:
        """The distinct values of a held source's column; None if there are more than ``limit``."""
        ...

    def source_versions(self, source: Any, root: str, table_id: str) -> SourceVersions | None:
        """The versions of the table with this id, at ``root``, from which the source's rows come; None if they come
        from elsewhere, as far as the engine can determine.

        Raises:
            UnknownSourceVersion: they come from the table, and the version is unknown.
        """
        ...


class Expressions(Protocol):
    """Checks conditions and values before any row is read."""

    def check(self, files: FileSet, condition: Condition, assignments: Mapping[str, Any] | None) -> None:
        """Check, before anything is read, that a change can run on rows of these columns; the files do not matter.

        Raises:
            InvalidCondition, SchemaMismatch: an expression does not fit the columns, or does not depend on rows alone.
        """
        ...

    def check_merge(self, files: FileSet, matching: MergePlan, source: Any) -> None:
        """Check the same for a MERGE of a source, which is not evaluated."""
        ...

    def check_rules(self, schema: Struct, rules: Rules, table: str) -> None:
        """Raises InvalidCondition or SchemaMismatch unless a table's expressions fit its columns."""
        ...

    def query_versions(
        self, condition: Condition, values: Sequence[Any], schema: Struct, root: str, table_id: str
    ) -> SourceVersions | None:
        """The versions that queries in a condition and in values read; all are over columns of this schema.

        Raises:
            InvalidCondition: it does not fit the columns, or names a table that does not exist.
            UnknownSourceVersion: as for `source_versions`.
        """
        ...

    def merge_versions(
        self, source: Any, matching: MergePlan, schema: Struct, root: str, table_id: str
    ) -> SourceVersions | None:
        """The versions that queries in the expressions of a MERGE read, over columns of this schema and of the source.

        Raises:
            InvalidCondition, UnknownColumn: an expression does not fit the columns.
            UnknownSourceVersion: as for `source_versions`.
        """
        ...

    def settings(self) -> Mapping[str, str]:
        """The settings on which values of expressions depend, such as the session's time zone."""
        ...


class Jobs(Protocol):
    """Runs work of the engine in other threads."""

    def beside(self, work: Callable[[], None]) -> AbstractContextManager[None]:
        """Run work of the engine, which writes where nothing else does, beside the block, and wait for it at its end.
        The block's end raises the work's error, unless the block itself failed.
        """
        ...

    def for_other_thread(self, work: Callable[[], None]) -> Callable[[], None]:
        """The work for one call by another thread, with this thread's context: storage options, whether messages show
        rows, and the job group for cancellation.
        """
        ...


class Engine(Backend, Layouts, Sources, Expressions, Jobs, ReportsSteps, Protocol):
    """The complete interface, for commands that change or add rows."""
