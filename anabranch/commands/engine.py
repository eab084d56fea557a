"""What a command asks of the engine that knows rows.

An engine finds rows, and writes Parquet files into a folder of the table that nobody else uses; it decides nothing
and commits nothing. ``anabranch.spark.engine.SparkEngine`` is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from anabranch.protocol.filesets import FileSet, Marks
from anabranch.protocol.predicates import Condition
from anabranch.protocol.schema import Struct


class Engine(Protocol):
    """Rows, for commands that change or add them."""

    def find(self, files: FileSet, condition: Condition) -> Marks:
        """The live rows for which the condition is TRUE; a file without any is left out.

        Raises:
            InvalidCondition: the condition does not fit the columns.
            ExecutionFailed: it cannot be evaluated on some row.
        """
        ...

    def update(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any], folder: str) -> None:
        """Write the new images of exactly the marked rows as Parquet files below ``folder``."""
        ...

    def rewrite(self, files: FileSet, marks: Marks, assignments: Mapping[str, Any] | None, folder: str) -> None:
        """Write every live row of these files below ``folder``: the marked ones changed, or left out without
        assignments.
        """
        ...

    def write(self, source: Any, schema: Struct, partition_columns: tuple[str, ...], root: str, folder: str) -> None:
        """Write the source's rows below ``root/folder``, fitted to the schema.

        Raises:
            SchemaMismatch: a column does not fit.
        """
        ...

    def describe(self, source: Any) -> Struct:
        """The columns of a source."""
        ...

    def reads(self, source: Any, root: str) -> bool:
        """Whether the source's rows come from the table at ``root``, as far as the engine can tell."""
        ...

    def settings(self) -> Mapping[str, str]:
        """What the value of an expression depends on besides the row, such as the session's time zone."""
        ...
