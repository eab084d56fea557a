"""``df.mergeInto(name, condition)``: PySpark's ``MergeIntoWriter``, with the same names, for Delta tables.

Wraps `anabranch._api.merge_builder`. Guarantee: as with PySpark's own, each step adds its clause to the writer,
whether or not the steps are chained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame, SparkSession

from anabranch._api.delta_table import DeltaTable
from anabranch._api.merge_builder import DeltaMergeBuilder
from anabranch._catalog.table_names import Name, parts_of
from anabranch._sql.executor import view_changes
from anabranch._sql.executor.running import StatementContext
from anabranch.errors import InvalidOption

Assignments = Mapping[str, Column]


class MergeWriter:
    """Builds a MERGE clause by clause; `merge` runs it.

    Example:
        >>> on = F.expr("flights.id = s.id")
        >>> updates.alias("s").mergeInto("flights", on).whenMatched().updateAll().whenNotMatched().insertAll().merge()
    """

    def __init__(self, builder: DeltaMergeBuilder, after: Callable[[], None] = lambda: None) -> None:
        self._builder, self._after = builder, after

    @classmethod
    def of(cls, spark: SparkSession, rows: DataFrame, table: str, condition: Column) -> MergeWriter:
        """A writer of these rows to the table of a name, whose last part is the alias in conditions.

        Raises:
            InvalidArgument: the condition is not valid.
        """
        target = DeltaTable.forName(spark, table).alias((parts_of(table) or (table,))[-1])
        return cls(target.merge(rows, condition))

    @classmethod
    def through(cls, spark: SparkSession, rows: DataFrame, view: tuple[Name, str], condition: Column) -> MergeWriter:
        """As `of`, for the name of a temporary view that shows a table."""
        name, location = view
        merge = DeltaTable.forPath(spark, location).alias(name[-1]).merge(rows, condition)
        return cls(merge, lambda: view_changes.follow(StatementContext(spark), name, location))

    def whenMatched(self, condition: Column | None = None) -> _Matched:
        """The action for a matched row, if the condition is TRUE for the pair."""
        return _Matched(self, condition)

    def whenNotMatched(self, condition: Column | None = None) -> _NotMatched:
        """The action for an unmatched source row, if the condition is TRUE for it."""
        return _NotMatched(self, condition)

    def whenNotMatchedBySource(self, condition: Column | None = None) -> _NotMatchedBySource:
        """The action for a row of the table that no source row matches, if the condition is TRUE for it."""
        return _NotMatchedBySource(self, condition)

    def withSchemaEvolution(self) -> MergeWriter:
        """Adds the source's additional columns to the table: `DeltaMergeBuilder.withSchemaEvolution`."""
        return self._with(self._builder.withSchemaEvolution())

    def merge(self) -> None:
        """Runs the MERGE in one transaction. Raises as `DeltaMergeBuilder.execute`."""
        self._builder.execute()
        self._after()

    def _with(self, builder: DeltaMergeBuilder) -> MergeWriter:
        self._builder = builder
        return self


class _Clause:
    """The kind of rows of a clause, and its condition."""

    def __init__(self, writer: MergeWriter, condition: Column | None) -> None:
        self._writer, self._builder, self._condition = writer, writer._builder, condition


class _Matched(_Clause):
    def updateAll(self) -> MergeWriter:
        """Sets every column to the source's of the same name."""
        return self._writer._with(self._builder.whenMatchedUpdateAll(self._condition))

    def update(self, assignments: Assignments) -> MergeWriter:
        """Sets these columns."""
        return self._writer._with(self._builder.whenMatchedUpdate(self._condition, dict(assignments)))

    def delete(self) -> MergeWriter:
        """Deletes the row."""
        return self._writer._with(self._builder.whenMatchedDelete(self._condition))


class _NotMatched(_Clause):
    def insertAll(self) -> MergeWriter:
        """Inserts the source's columns."""
        return self._writer._with(self._builder.whenNotMatchedInsertAll(self._condition))

    def insert(self, assignments: Assignments) -> MergeWriter:
        """Inserts a row with these values."""
        return self._writer._with(self._builder.whenNotMatchedInsert(self._condition, dict(assignments)))


class _NotMatchedBySource(_Clause):
    def updateAll(self) -> MergeWriter:
        """Refuses the clause: there is no source row to take columns from.

        Raises:
            InvalidOption: always.
        """
        reason = "there is no source row to take columns from: use update with columns."
        raise InvalidOption(option="whenNotMatchedBySource", value="updateAll", reason=reason)

    def update(self, assignments: Assignments) -> MergeWriter:
        """Sets these columns."""
        return self._writer._with(self._builder.whenNotMatchedBySourceUpdate(self._condition, dict(assignments)))

    def delete(self) -> MergeWriter:
        """Deletes the row."""
        return self._writer._with(self._builder.whenNotMatchedBySourceDelete(self._condition))
