"""What a command asks of the engine that knows rows, in six parts: a function that needs one part asks for that.

An engine finds rows, and writes Parquet files into a folder of the table that nobody else uses; it decides nothing
and commits nothing. ``anabranch._spark.engine.SparkEngine`` is one, ``anabranch._arrow.backend.ArrowBackend`` another.
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
from anabranch._protocol.merges import Joined, Matching
from anabranch._protocol.parquet_files import Written
from anabranch._protocol.rules.table_rules import NONE, Rules
from anabranch._protocol.schema.types import Struct
from anabranch._protocol.steps import Tell


class Told(Protocol):
    """Who does what."""

    def telling(self, tell: Tell) -> Self:
        """The same engine, which tells of each step that it has done, and what did it: of finding and joining, of
        writing, packing and ordering.
        """
        ...


class Backend(Protocol):
    """Rows that a condition or a source selects, and files that are written of them.

    What is written obeys the rules of the table (`FileSet.rules`), rows that are only copied apart. Who writes files
    gives them back where it knows them.
    """

    def find(self, files: FileSet, condition: Condition) -> Marks:
        """The live rows for which the condition is TRUE; a file without any is left out.

        Raises:
            InvalidCondition: the condition does not fit the columns.
            ExecutionFailed: it cannot be evaluated on some row.
        """
        ...

    def join(self, files: FileSet, matching: Matching, held: Any, folder: str) -> Joined:
        """Match the live rows of these files with the source's, once, and find what each clause does.

        Everything is evaluated here, once, new images too; they are written by `write_images`.

        Raises:
            InvalidCondition, SchemaMismatch: an expression does not fit the columns.
            AmbiguousMerge: several source rows would change one row.
            ExecutionFailed: something cannot be evaluated on some row.
        """
        ...

    def update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str) -> Written:
        """Write the new images of exactly the marked rows as Parquet files below ``folder``."""
        ...

    def rewrite(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any] | None, folder: str) -> Written:
        """Write every live row of these files below ``folder``: the marked ones changed, or left out without
        assignments.
        """
        ...

    def record_update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str) -> Written:
        """Write the marked rows as files of change data below ``folder``: each as it was, and its new image. Hidden ids
        lie there too.
        """
        ...

    def write_postimages(self, files: FileSet, count: int, folder: str) -> Written:
        """Write the ``count`` new images in these files of `record_update` as Parquet files below ``folder``."""
        ...

    def record(self, changes: Sequence[Images], folder: str) -> Written:
        """Write changed rows as files of change data (`change_data_columns`) below ``folder``, where they lie by their
        partitions, as data does.
        """
        ...

    def write_images(self, files: FileSet, joined: Joined, folder: str) -> Written:
        """Write the new images of the rows that `join` found to be updated as Parquet files below ``folder``."""
        ...

    def write_inserts(
        self, files: FileSet, matching: Matching, held: Any, joined: Sequence[Joined], folder: str
    ) -> Written:
        """Write what NOT MATCHED clauses make of the source rows that none of these joins matched, below ``folder``.

        ``files`` says how the table looks (root, schema, partition columns); its files do not matter.
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
    ) -> Written:
        """Write the source's rows below ``root/folder``, fitted to the schema, as the table's rules want them.

        Raises:
            SchemaMismatch: a column does not fit.
            RowViolation: a row breaks a rule.
        """
        ...

    def extent(self, files: FileSet, column: str) -> tuple[Any, Any]:
        """The least and the greatest value of a column in the live rows; None where no row has one."""
        ...


class Layouts(Protocol):
    """Rows that are written to other files as they are."""

    def pack(self, files: FileSet, folder: str) -> None:
        """Write the live rows of these files, which share their partition values, as one file in ``folder``, which is
        that partition's: file after file as they are listed, and of each the rows as they lie there.
        """
        ...

    def pack_together(self, bins: Sequence[tuple[FileSet, str]]) -> frozenset[int]:
        """Pack several such groups of files, each with its folder, at once, as far as the engine can: the numbers of
        those that it has packed, each as `pack` does; of the others nothing is left.
        """
        ...

    def cluster(self, files: FileSet, curve: Curve, outputs: int, folder: str, moves: str | None) -> None:
        """Write the live rows of these files, which share their partition values, in the order of a curve as at most so
        many files of about as many rows in ``folder``, which is that partition's.

        The n-th file's name begins with ``part-`` and five digits, n from 0 on. Unless ``moves`` is None, a Parquet
        file whose name begins so is written there for each: row by row, where the rows come from (`ORIGINS`).
        """
        ...


class Sources(Protocol):
    """What a user hands over as rows: a DataFrame, or rows in Arrow."""

    def describe(self, source: Any) -> Struct:
        """The columns of a source."""
        ...

    def alias(self, source: Any) -> str | None:
        """The name under which a source's columns are spoken of, if it was given one."""
        ...

    def hold(self, source: Any, schema: Struct, root: str, folder: str) -> Any:
        """Evaluate a MERGE's source once, and keep its rows for as long as the transaction runs.

        What is written for that lies in hidden folders (their names begin with ``_``) below ``root/folder``. Whatever
        is asked of the result later, the source itself is never evaluated again.
        """
        ...

    def with_numbers(self, held: Any, values: Mapping[str, range]) -> Any:
        """The rows of a source that was kept, as a source with one more column for each of these names, which holds one
        of its values for each row and none twice.
        """
        ...

    def few_values(self, held: Any, column: str, limit: int) -> list[Any] | None:
        """The distinct values of a held source's column; None where there are more than ``limit``."""
        ...

    def source_versions(self, source: Any, root: str, table_id: str) -> SourceVersions | None:
        """The versions of the table of this id, at ``root``, that the source's rows come from; None where they come
        from elsewhere, as far as the engine can tell.

        Raises:
            UnknownSourceVersion: they come from the table, and nothing says of which version.
        """
        ...


class Expressions(Protocol):
    """Conditions and values, before any row is read."""

    def check(self, files: FileSet, condition: Condition, assignments: Mapping[str, Any] | None) -> None:
        """Hold, before anything is read, that a change can be run on rows of these columns; the files do not matter.

        Raises:
            InvalidCondition, SchemaMismatch: an expression does not fit the columns, or no row decides it.
        """
        ...

    def check_merge(self, files: FileSet, matching: Matching, source: Any) -> None:
        """The same for a MERGE of a source, which is not evaluated."""
        ...

    def check_rules(self, schema: Struct, rules: Rules, table: str) -> None:
        """Raises InvalidCondition or SchemaMismatch unless a table's expressions fit its columns."""
        ...

    def query_versions(
        self, condition: Condition, values: Sequence[Any], schema: Struct, root: str, table_id: str
    ) -> SourceVersions | None:
        """The same of the rows that queries in a condition and in values read; all are over columns of this schema.

        Raises:
            InvalidCondition: it does not fit the columns, or a table that it names is not there.
            UnknownSourceVersion: as of `source_versions`.
        """
        ...

    def merge_versions(
        self, source: Any, matching: Matching, schema: Struct, root: str, table_id: str
    ) -> SourceVersions | None:
        """The same of the expressions of a MERGE, over columns of this schema and of the source.

        Raises:
            InvalidCondition, UnknownColumn: one does not fit the columns.
            UnknownSourceVersion: as of `source_versions`.
        """
        ...

    def settings(self) -> Mapping[str, str]:
        """What the value of an expression depends on besides the row, such as the session's time zone."""
        ...


class Jobs(Protocol):
    """Work of the engine in other threads."""

    def beside(self, work: Callable[[], None]) -> AbstractContextManager[None]:
        """Do some of the engine's work, which writes where nothing else does, before the block ends; what it raises is
        raised then, unless the block has failed itself.
        """
        ...

    def for_other_thread(self, work: Callable[[], None]) -> Callable[[], None]:
        """The same work for one call by another thread, to which goes what holds for this one: what was said of
        buckets, whether messages show rows, and by which name its jobs can be cancelled.
        """
        ...


class Engine(Backend, Layouts, Sources, Expressions, Jobs, Told, Protocol):
    """All of it, for commands that change or add rows."""
