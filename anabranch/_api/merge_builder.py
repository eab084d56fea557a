"""``DeltaMergeBuilder``, with the names of ``delta.tables``.

Collects the clauses of a MERGE, and runs one command when executed. Guarantee: nothing is read before `execute`, and
each step leaves the builder that it is called on unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from anabranch._api.arguments import assignments
from anabranch._api.arguments import condition as check_condition
from anabranch._protocol.merges import Action, When
from anabranch._spark.sessions.file_settings import uses_session_settings
from anabranch._spark.sessions.settings import honours
from anabranch._sql.merge_request import ClauseRequest, Condition, MergeRequest, Values
from anabranch.commands.context import RunContext
from anabranch.commands.opening import open_log
from anabranch.errors.rows import statement

__all__ = ["DeltaMergeBuilder"]


@uses_session_settings
@dataclass(frozen=True, eq=False)
class DeltaMergeBuilder(MergeRequest):
    """Builds a MERGE clause by clause; each step returns a builder with one more clause.

    Of the clauses of one kind the first whose condition is TRUE acts; only the last of a kind may lack a condition.
    `anabranch.DeltaTable.merge` begins one. It calls ``reshaped`` when the table's columns may have changed.

    Example:
        >>> (
        ...     table.alias("t")
        ...     .merge(updates.alias("s"), "t.id = s.id")
        ...     .whenMatchedUpdate("s.gone = false", {"x": "s.x", "count": "t.count + 1"})
        ...     .whenMatchedDelete()
        ...     .whenNotMatchedInsertAll()
        ...     .execute()
        ... )
    """

    reshaped: Callable[[], None] | None = None
    _file_settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def whenMatchedUpdate(self, condition: Condition = None, set: Values = None) -> DeltaMergeBuilder:
        """Sets columns of a matched row, if the condition is TRUE for the pair.

        Args:
            condition: SQL text or a Column over both sides; None: always.
            set: column, or member of a struct such as ``s.a`` -> SQL text or a Column over both sides, evaluated on the
                old row.
        """
        return self._with("matched", "update", condition, dict(assignments("set", set)))

    def whenMatchedUpdateAll(self, condition: Condition = None) -> DeltaMergeBuilder:
        """Sets every column of the table to the source's column of the same name. Additional columns of the source are
        ignored, or added to the table with `withSchemaEvolution`; then columns that the source lacks keep their
        values.
        """
        return self._with("matched", "update", condition, None)

    def whenMatchedDelete(self, condition: Condition = None) -> DeltaMergeBuilder:
        """Deletes a matched row, if the condition is TRUE for the pair."""
        return self._with("matched", "delete", condition, {})

    def whenNotMatchedInsert(self, condition: Condition = None, values: Values = None) -> DeltaMergeBuilder:
        """Inserts a row for an unmatched source row, if the condition is TRUE for it.

        Args:
            condition: SQL text or a Column over the source; None: always.
            values: column -> SQL text or a Column over the source; other columns get their default value, else NULL,
                and generated columns are computed.
        """
        return self._with("not matched", "insert", condition, dict(assignments("values", values)), "values")

    def whenNotMatchedInsertAll(self, condition: Condition = None) -> DeltaMergeBuilder:
        """Inserts the source's columns that the table has. Additional columns of the source are ignored, or added to
        the table with `withSchemaEvolution`; then columns that the source lacks are NULL.
        """
        return self._with("not matched", "insert", condition, None, option="values")

    def whenNotMatchedBySourceUpdate(self, condition: Condition = None, set: Values = None) -> DeltaMergeBuilder:
        """Sets columns of a row that no source row matches, if the condition is TRUE for it.

        Args:
            condition: SQL text or a Column over the table; None: always.
            set: column -> SQL text or a Column over the table, evaluated on the old row.
        """
        return self._with("not matched by source", "update", condition, dict(assignments("set", set)))

    def whenNotMatchedBySourceDelete(self, condition: Condition = None) -> DeltaMergeBuilder:
        """Deletes a row that no source row matches, if the condition is TRUE for it."""
        return self._with("not matched by source", "delete", condition, {})

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Adds the source's additional columns to the table: all of them for the All forms, else those that a clause
        assigns; members of structs too, at any depth. An All form also widens columns to the source's types, if the
        table has ``delta.enableTypeWidening``. The session's autoMerge setting does the same.
        """
        return replace(self, evolves=True)

    @honours("MERGE")
    def execute(self) -> DataFrame:
        """Runs the MERGE in one transaction.

        Returns:
            one row: num_affected_rows, num_updated_rows, num_deleted_rows, num_inserted_rows.

        Raises:
            InvalidOption: there is no clause, or one that is not the last of its kind has no condition.
            UnknownColumn, SchemaMismatch, InvalidCondition: the command does not fit the table or the source.
            AmbiguousMerge: several source rows would change one row.
            ConcurrentDeleteReadException, ConcurrentAppendException: a winner stands in the way.
        """
        snapshot = open_log(self.table).snapshot()
        command = self.substitute_variables().command(snapshot)
        with statement():
            outcome = command.run(self.engine, RunContext(at=snapshot))
        if self.reshaped is not None and command.schema not in (None, snapshot.schema):
            self.reshaped()
        return self.engine.rows(pa.Table.from_pylist([outcome.counts]))

    def _with(
        self, when: When, action: Action, condition: Condition, values: Values, option: str = "set"
    ) -> DeltaMergeBuilder:
        if condition is not None:
            check_condition("condition", condition)
        return replace(self, clauses=(*self.clauses, ClauseRequest(when, action, condition, values, option)))
