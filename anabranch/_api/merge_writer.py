"""``df.mergeInto(name, condition)``: PySpark's ``MergeIntoWriter``, name for name, for tables of ours.

A door in front of `anabranch._api.merge_builder`. Guarantee: as with PySpark's own, each step adds its clause to the
writer, whether or not the steps are chained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame, SparkSession

from anabranch._api.delta_table import DeltaTable
from anabranch._api.merge_builder import DeltaMergeBuilder
from anabranch._catalog.names import Name, parts_of
from anabranch._sql.executor import frame_views
from anabranch._sql.executor.running import Running
from anabranch.errors import InvalidOption

Assignments = Mapping[str, Column]


class MergeWriter:
    """Says clause by clause what a MERGE does; `merge` runs it.

    Example:
        >>> on = F.expr("flights.id = s.id")
        >>> updates.alias("s").mergeInto("flights", on).whenMatched().updateAll().whenNotMatched().insertAll().merge()
    """

    def __init__(self, builder: DeltaMergeBuilder, after: Callable[[], None] = lambda: None) -> None:
        self._builder, self._after = builder, after

    @classmethod
    def of(cls, spark: SparkSession, rows: DataFrame, table: str, condition: Column) -> MergeWriter:
        """The writer of these rows to the table of a name, which conditions call by the last part of that name.

        Raises:
            InvalidArgument: the condition is none.
        """
        target = DeltaTable.forName(spark, table).alias((parts_of(table) or (table,))[-1])
        return cls(target.merge(rows, condition))

    @classmethod
    def through(cls, spark: SparkSession, rows: DataFrame, shown: tuple[Name, str], condition: Column) -> MergeWriter:
        """As `of`, by the name of a temporary view, to the table that this shows."""
        name, location = shown
        merge = DeltaTable.forPath(spark, location).alias(name[-1]).merge(rows, condition)
        return cls(merge, lambda: frame_views.follow(Running(spark), name, location))

    def whenMatched(self, condition: Column | None = None) -> _Matched:
        """What to do with a row that matches, where the condition is TRUE of the pair."""
        return _Matched(self, condition)

    def whenNotMatched(self, condition: Column | None = None) -> _NotMatched:
        """What to do with a source row that matches nothing, where the condition is TRUE of it."""
        return _NotMatched(self, condition)

    def whenNotMatchedBySource(self, condition: Column | None = None) -> _NotMatchedBySource:
        """What to do with a row of the table that no source row matches, where the condition is TRUE of it."""
        return _NotMatchedBySource(self, condition)

    def withSchemaEvolution(self) -> MergeWriter:
        """Add to the table what only the source has: `DeltaMergeBuilder.withSchemaEvolution`."""
        return self._with(self._builder.withSchemaEvolution())

    def merge(self) -> None:
        """Run it, as one transaction. Raises as `DeltaMergeBuilder.execute`."""
        self._builder.execute()
        self._after()

    def _with(self, builder: DeltaMergeBuilder) -> MergeWriter:
        self._builder = builder
        return self


class _Clause:
    """A kind of rows, and a condition on them."""

    def __init__(self, writer: MergeWriter, condition: Column | None) -> None:
        self._writer, self._builder, self._condition = writer, writer._builder, condition


class _Matched(_Clause):
    def updateAll(self) -> MergeWriter:
        """Set every column to the source's of the same name."""
        return self._writer._with(self._builder.whenMatchedUpdateAll(self._condition))

    def update(self, assignments: Assignments) -> MergeWriter:
        """Set these columns."""
        return self._writer._with(self._builder.whenMatchedUpdate(self._condition, dict(assignments)))

    def delete(self) -> MergeWriter:
        """Delete the row."""
        return self._writer._with(self._builder.whenMatchedDelete(self._condition))


class _NotMatched(_Clause):
    def insertAll(self) -> MergeWriter:
        """Insert the source's columns."""
        return self._writer._with(self._builder.whenNotMatchedInsertAll(self._condition))

    def insert(self, assignments: Assignments) -> MergeWriter:
        """Insert a row with these values."""
        return self._writer._with(self._builder.whenNotMatchedInsert(self._condition, dict(assignments)))


class _NotMatchedBySource(_Clause):
    def updateAll(self) -> MergeWriter:
        """Refuse it: there is no source row whose columns could be taken.

        Raises:
            InvalidOption: always.
        """
        reason = "there is no source row whose columns could be taken: say update of columns."
        raise InvalidOption(option="whenNotMatchedBySource", value="updateAll", reason=reason)

    def update(self, assignments: Assignments) -> MergeWriter:
        """Set these columns."""
        return self._writer._with(self._builder.whenNotMatchedBySourceUpdate(self._condition, dict(assignments)))

    def delete(self) -> MergeWriter:
        """Delete the row."""
        return self._writer._with(self._builder.whenNotMatchedBySourceDelete(self._condition))
