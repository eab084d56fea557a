"""The builder of a MERGE without Spark, with the names of ``deltalake`` and of ``delta.tables``.

Each step returns a builder with one more clause, and leaves the builder that it is called on unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from anabranch._api.table_texts import check_text, check_texts
from anabranch._expressions import check_order
from anabranch._protocol.merges import Action, When
from anabranch._protocol.steps import RowPlan
from anabranch.commands.dml.merge import MergeResult

Values = Mapping[str, str] | None


@dataclass(frozen=True)
class TableClause:
    """A WHEN clause as specified by the user; ``values`` is None for all columns."""

    when: When
    action: Action
    condition: str | None
    values: Values


class MergedTable(Protocol):
    """The table that a MERGE changes."""

    def run_merge(self, merge: TableMerge) -> MergeResult:
        """Runs a MERGE."""
        ...

    def explain_merge(self, merge: TableMerge) -> RowPlan:
        """Plans the steps of a MERGE."""
        ...


@dataclass(frozen=True, eq=False)
class TableMerge:
    """Builds a MERGE clause by clause; `anabranch._api.table.Table.merge` begins one.

    Of the clauses of one kind the first whose condition is TRUE acts; only the last of a kind may lack a condition.

    Example:
        >>> merge = flights.merge(updates, "source.id = target.id")
        >>> merge.when_matched_update_all().when_not_matched_insert_all().execute().metrics["numTargetRowsInserted"]
        3
    """

    source: pa.Table = field(repr=False)
    on: str
    source_alias: str | None
    target_alias: str | None
    table: MergedTable = field(repr=False)
    clauses: tuple[TableClause, ...] = ()

    def when_matched_update(self, updates: Mapping[str, str], predicate: str | None = None) -> TableMerge:
        """Sets columns of a matched row: column -> SQL text over both sides, evaluated on the old row."""
        return self._with("matched", "update", predicate, _check_updates(updates))

    def when_matched_update_all(self, predicate: str | None = None) -> TableMerge:
        """Sets every column to the source's column of the same name."""
        return self._with("matched", "update", predicate, None)

    def when_matched_delete(self, predicate: str | None = None) -> TableMerge:
        """Deletes a matched row."""
        return self._with("matched", "delete", predicate, {})

    def when_not_matched_insert(self, updates: Mapping[str, str], predicate: str | None = None) -> TableMerge:
        """Inserts a row for an unmatched source row: column -> SQL text over the source."""
        return self._with("not matched", "insert", predicate, _check_updates(updates))

    def when_not_matched_insert_all(self, predicate: str | None = None) -> TableMerge:
        """Inserts the source's columns that the table has."""
        return self._with("not matched", "insert", predicate, None)

    def when_not_matched_by_source_update(self, updates: Mapping[str, str], predicate: str | None = None) -> TableMerge:
        """Sets columns of a row that no source row matches: column -> SQL text over the table."""
        return self._with("not matched by source", "update", predicate, _check_updates(updates))

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> TableMerge:
        """Deletes a row that no source row matches."""
        return self._with("not matched by source", "delete", predicate, {})

    def whenMatchedUpdate(self, condition: str | None = None, set: Values = None) -> TableMerge:
        """As `when_matched_update`."""
        return self._with("matched", "update", condition, set or {})

    def whenMatchedUpdateAll(self, condition: str | None = None) -> TableMerge:
        """As `when_matched_update_all`."""
        return self.when_matched_update_all(condition)

    def whenMatchedDelete(self, condition: str | None = None) -> TableMerge:
        """As `when_matched_delete`."""
        return self.when_matched_delete(condition)

    def whenNotMatchedInsert(self, condition: str | None = None, values: Values = None) -> TableMerge:
        """As `when_not_matched_insert`."""
        return self._with("not matched", "insert", condition, values or {})

    def whenNotMatchedInsertAll(self, condition: str | None = None) -> TableMerge:
        """As `when_not_matched_insert_all`."""
        return self.when_not_matched_insert_all(condition)

    def whenNotMatchedBySourceUpdate(self, condition: str | None = None, set: Values = None) -> TableMerge:
        """As `when_not_matched_by_source_update`."""
        return self._with("not matched by source", "update", condition, set or {})

    def whenNotMatchedBySourceDelete(self, condition: str | None = None) -> TableMerge:
        """As `when_not_matched_by_source_delete`."""
        return self.when_not_matched_by_source_delete(condition)

    def execute(self) -> MergeResult:
        """Runs the MERGE in one transaction.

        Returns:
            the number of ``rows``, and Delta's ``metrics``.

        Raises:
            InvalidOption: there is no clause, or one that is not the last of its kind has no condition.
            UnknownColumn, SchemaMismatch, InvalidCondition, NeedsSpark: it does not fit, or needs Spark.
            AmbiguousMerge: several source rows would change one row.
            ConcurrentDeleteReadException, ConcurrentAppendException: a winner stands in the way.
        """
        check_order(self.clauses)
        return self.table.run_merge(self)

    def explain(self) -> RowPlan:
        """Whether Arrow or Spark does each step, and why; reads only the log. Raises as `execute`."""
        check_order(self.clauses)
        return self.table.explain_merge(self)

    def _with(self, when: When, action: Action, condition: str | None, values: Values) -> TableMerge:
        if condition is not None:
            check_text("condition", condition)
        if values is not None:
            check_texts("set", values)
        return replace(self, clauses=(*self.clauses, TableClause(when, action, condition, values)))


def _check_updates(values: Mapping[str, str]) -> Mapping[str, str]:
    check_texts("updates", values)
    return values
