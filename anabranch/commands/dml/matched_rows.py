"""The rows that an insert replaces because its own source matches them: REPLACE ON and REPLACE USING.

Finds and deletes them as a MERGE with the one clause WHEN MATCHED THEN DELETE does, and is checked for conflicts as
that MERGE is. Guarantee: the source is evaluated once; the rows that are inserted are the ones that were matched.

Source: delta-spark 4.4, the options ``replaceOn`` and ``replaceUsing``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import FileRow, empty_files
from anabranch._protocol.conditions import Condition
from anabranch._protocol.merges import Joined, MergePlan
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import Transaction
from anabranch.commands import conflict_details
from anabranch.commands.dml.merge import Merge, MergeHandler
from anabranch.commands.dml.replaced_rows import with_replaced
from anabranch.commands.engine import Engine
from anabranch.commands.staging import Staging
from anabranch.commands.watching import report_step


def _as_they_are(rows: Any) -> Any:
    return rows


@dataclass(frozen=True)
class Matching:
    """How the rows of a write's source say which rows of the table they replace.

    Attributes:
        option: how the user asks for it, for messages.
        source: the rows with the columns that the condition names.
        plan: how they are matched; its one clause deletes each matched row.
        where: the condition, as of `anabranch.commands.dml.merge.Merge`.
        parameters: the parameters in the history.
        alias: the table's alias in the user's text of the condition.
        to_write: makes the rows to write, with the table's columns, of those of the source.
    """

    option: str
    source: Any = field(repr=False)
    plan: MergePlan
    where: Condition
    parameters: Mapping[str, str] = field(default_factory=dict)
    alias: str | None = None
    to_write: Callable[[Any], Any] = field(default=_as_they_are, repr=False, compare=False)


class MatchedRows(MergeHandler):
    """Deletes the rows that some row of the source matches."""

    def __init__(self, matching: Matching, snapshot: Snapshot, engine: Engine, staging: Staging) -> None:
        merge = Merge(snapshot.table, matching.source, matching.plan, matching.where)
        super().__init__(merge, snapshot, engine, staging, snapshot.metadata)
        self._asked, self._inserted = matching, empty_files()

    def hold(self) -> Any:
        """Evaluate the source, once, and return the rows to write."""
        self._hold_source()
        return self._asked.to_write(self._engine.rows_of(self._source_rows))

    def with_removals(self, ours: Transaction, runtime: Runtime) -> Transaction:
        """The transaction with the marks, removals and rewritten files of a MERGE that deletes the matched rows."""
        assert ours.metadata is not None, "there is a table, whose rows are replaced"
        self.check_settings()
        self._plan_for(ours.metadata)
        self._inserted, began = ours.changes.adds, runtime.now_ms()
        candidates = self._candidates()
        report_step("joining")
        joined = self._join(candidates)
        scanned = runtime.now_ms()
        part = self._with_steps(self._stage_part(candidates, joined))
        times = {"scanTimeMs": scanned - began, "rewriteTimeMs": runtime.now_ms() - scanned}
        return with_replaced(ours, part.with_metrics(**times))

    def redo(self, files: pa.Table, rows: Mapping[str, Any]) -> Transaction:
        """Delete these rows too; all source rows are inserted already."""
        return self._stage_again(files)

    def narrower(self, ours: Transaction, file: FileRow | None) -> str | None:
        """A condition with the source's values in the columns that are compared."""
        plan = replace(self._merge.matching, target=self._asked.alias)
        return conflict_details.source_condition(self._snapshot, plan, self._where, self._few_values)

    def _change_files(self, inserts: pa.Table, *, needed: bool) -> pa.Table:
        return super()._change_files(self._inserted, needed=needed)

    def _counts(self, joined: Joined, *, copied: int) -> dict[str, int]:
        """Delta's metrics of an insert that replaces rows by a condition."""
        return {"numDeletedRows": joined.deleted, "numCopiedRows": copied}
