"""DELETE deletes the rows that a condition selects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anabranch._log.log import Log
from anabranch._protocol.actions import compact_json
from anabranch._protocol.conditions import Condition, always
from anabranch.commands.context import NEWEST, RunContext, require_engine
from anabranch.commands.dml.auto_compaction import compact_after
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, SecretFree, open_log
from anabranch.commands.rerunning import rerunnable
from anabranch.commands.row_changes import Change, Outcome, run_change
from anabranch.commands.watching import watch

EVERY_ROW = always(True)
"""The condition of a command without one."""


@dataclass(frozen=True)
class Delete(SecretFree):
    """Delete the rows of ``table`` for which ``where`` is TRUE.

    Row-local: it may commit after any winner that changed none of its rows and added none that it should have read.

    Example:
        >>> Delete("/data/flights", where).run(engine).rows
    """

    table: Location
    where: Condition = EVERY_ROW
    operation: str = "DELETE"
    storage_options: Mapping[str, str] | None = None

    @watch("DELETE")
    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Outcome:
        """Run it at the version for which ``where`` was parsed, or at the newest.

        Raises:
            DeltaConcurrentModificationException: it conflicts with a winner.
        """
        parameters = {} if self.operation == "TRUNCATE" else {"predicate": compact_json([self.where.text])}
        change = Change(self.operation, self.where, None, parameters)
        engine, base = require_engine(engine, self), context.snapshot(open_log(self.table, self.storage_options))
        outcome = run_change(change, base, engine, context)
        compact_after(outcome.committed, base, Log(base.store), engine, context.runtime)
        return outcome
