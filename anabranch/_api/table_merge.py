"""The builder of a MERGE without Spark, under the names of ``deltalake`` and of ``delta.tables``.

A door: each step gives a builder with one more clause, and leaves the builder that it is called on as it is.
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
from anabranch.commands.dml.merge import Merged

Values = Mapping[str, str] | None


@dataclass(frozen=True)
class TableClause:
    """A WHEN clause as the user asked for it; ``values`` is None for all columns."""

    when: When
    action: Action
    condition: str | None
    values: Values


class MergedTable(Protocol):
    """The table that a MERGE changes."""

    def run_merge(self, asked: TableMerge) -> Merged:
        """Run it."""
        ...

    def explain_merge(self, asked: TableMerge) -> RowPlan:
        """Say what does each step of it."""
        ...


@dataclass(frozen=True, eq=False)
class TableMerge:
    """Says clause by clause what a MERGE does; `anabranch._api.table.Table.merge` begins one.

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
        """Set columns of a row that matches: column -> SQL text over both sides, evaluated on the old row."""
        return self._with("matched", "update", predicate, _check_updates(updates))

    def when_matched_update_all(self, predicate: str | None = None) -> TableMerge:
        """Set every column to the source's column of the same name."""
        return self._with("matched", "update", predicate, None)

    def when_matched_delete(self, predicate: str | None = None) -> TableMerge:
        """Delete a row that matches."""
        return self._with("matched", "delete", predicate, {})

    def when_not_matched_insert(self, updates: Mapping[str, str], predicate: str | None = None) -> TableMerge:
        """Insert a row for a source row that matches nothing: column -> SQL text over the source."""
        return self._with("not matched", "insert", predicate, _check_updates(updates))

    def when_not_matched_insert_all(self, predicate: str | None = None) -> TableMerge:
        """Insert the source's columns of the table's names."""
        return self._with("not matched", "insert", predicate, None)

    def when_not_matched_by_source_update(self, updates: Mapping[str, str], predicate: str | None = None) -> TableMerge:
        """Set columns of a row that no source row matches: column -> SQL text over the table."""
        return self._with("not matched by source", "update", predicate, _check_updates(updates))

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> TableMerge:
        """Delete a row that no source row matches."""
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

    def execute(self) -> Merged:
        """Run the MERGE in one transaction.

        Returns:
            how many ``rows``, and Delta's ``metrics``.

        Raises:
            InvalidOption: there is no clause, or one that is not the last of its kind has no condition.
            UnknownColumn, SchemaMismatch, InvalidCondition, NeedsSpark: it does not fit, or takes Spark.
            AmbiguousMerge: several source rows would change one row.
            ConcurrentDeleteReadException, ConcurrentAppendException: a winner stands in the way.
        """
        check_order(self.clauses)
        return self.table.run_merge(self)

    def explain(self) -> RowPlan:
        """What does each step, Arrow or Spark, and why; nothing is read but the log. Raises as `execute`."""
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
