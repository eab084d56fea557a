"""UPDATE changes columns of the rows that a condition selects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.conditions import Condition
from anabranch.commands.context import NEWEST, RunContext, require_engine
from anabranch.commands.dml.auto_compaction import compact_after
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.dml.identity_values import check_not_assigned
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, SecretFree, open_log
from anabranch.commands.rerunning import rerunnable
from anabranch.commands.row_changes import Change, Outcome, run_change
from anabranch.commands.watching import watch
from anabranch.errors import InvalidOption, UnknownColumn


@dataclass(frozen=True)
class Update(SecretFree):
    """Set columns of the rows of ``table`` for which ``where`` is TRUE.

    ``assignments`` maps columns to expressions, which the engine evaluates on the old row, all at once.
    ``reads_target`` is the version of this table from which constants among them were computed.

    Example:
        >>> Update("/data/flights", {"dep_delay": "dep_delay + 1"}, where).run(engine).rows
    """

    table: Location
    assignments: Mapping[str, Any]
    where: Condition = EVERY_ROW
    storage_options: Mapping[str, str] | None = None
    reads_target: int | None = None

    @watch("UPDATE")
    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Outcome:
        """Run it at the version for which it was parsed, or at the newest.

        Raises:
            UnknownColumn: an assigned column is not in the table.
            DeltaConcurrentModificationException: it conflicts with a winner.
        """
        engine, base = require_engine(engine, self), context.snapshot(open_log(self.table, self.storage_options))
        change = Change("UPDATE", self.where, self._resolve_assignments(base), {"predicate": self.where.text})
        outcome = run_change(change, base, engine, context, self.reads_target)
        compact_after(outcome.committed, base, Log(base.store), engine, context.runtime)
        return outcome

    def _resolve_assignments(self, snapshot: Snapshot) -> dict[str, Any]:
        """The assignments with column names in the table's spelling."""
        if not self.assignments:
            raise InvalidOption(option="set", value="{}", reason="it names no column to set.")
        spelled: dict[str, Any] = {}
        for name, value in self.assignments.items():
            column = snapshot.schema.find(name)
            if column is None:
                names = ", ".join(snapshot.schema.names)
                raise UnknownColumn(table=snapshot.table, column=name, columns=names)
            if column.name in spelled:
                raise InvalidOption(
                    option="set",
                    value=name,
                    reason=f"There is a conflict from these SET columns: [{name}], which is set twice.",
                )
            spelled[column.name] = value
        check_not_assigned(snapshot.schema, list(spelled), snapshot.table)
        return spelled
