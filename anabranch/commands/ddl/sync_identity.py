"""ALTER TABLE … ALTER COLUMN … SYNC IDENTITY continues an identity column after the values that users provided.

Knows PROTOCOL.md, section "Identity Columns". Reads the column of every row; writes no row. Guarantee: the mark only
moves forward, so no number is assigned twice; rows that were added meanwhile are a conflict, since they were not read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import compact_json
from anabranch._protocol.rules.identity import Identity, identities, with_marks
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.rebase_handler import RebaseHandler
from anabranch._transaction.transaction import ReadSet
from anabranch.commands.context import NEWEST, RunContext, require_engine
from anabranch.commands.ddl.alter import Alteration, NewColumn, run_alteration
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.dml.replaced_rows import EveryRow
from anabranch.commands.engine import Backend, Engine
from anabranch.commands.opening import Location, SecretFree, file_set, open_log
from anabranch.commands.rerunning import rerunnable
from anabranch.errors import InvalidOption


@dataclass(frozen=True)
class SyncIdentity(SecretFree):
    """Continue an identity column after the farthest value of any row.

    Example:
        >>> SyncIdentity("/data/flights", "id").run(engine)
    """

    table: Location
    column: str

    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it; None if no row has a value beyond the mark.

        Raises:
            UnknownColumn: there is no such column. InvalidOption: it is not an identity column.
            InvalidSchema: no value is left after the farthest one.
            MetadataChangedException, ConcurrentAppendException: the table was written meanwhile.
        """
        base = context.snapshot(open_log(self.table))
        farthest = _farthest(base, self._identity(base), require_engine(engine, self))
        altered = partial(self._on, farthest=farthest)
        return run_alteration(self.table, altered, replace(context, at=base), _read_all)

    def _identity(self, base: Snapshot) -> Identity:
        name = base.schema.field(self.column).name
        identity = next((candidate for candidate in identities(base.schema) if candidate.column == name), None)
        if identity is None:
            raise not_an_identity(name)
        return identity

    def _on(self, base: Snapshot, farthest: int | None) -> Alteration:
        identity = self._identity(base)
        marks = {} if farthest is None else {identity.column: identity.reaching(farthest)}
        metadata = with_marks(base.metadata, marks)
        shown = NewColumn(base.schema.field(identity.column)).to_history()["column"]
        return Alteration("CHANGE COLUMN", {"column": compact_json(shown)}, metadata)


def _farthest(base: Snapshot, identity: Identity, engine: Backend) -> int | None:
    """The farthest value of the column in the direction of its step; None if no row has one."""
    lowest, highest = engine.extent(file_set(base), identity.column)
    return highest if identity.step > 0 else lowest


def _read_all(base: Snapshot) -> tuple[ReadSet, RebaseHandler]:
    return ReadSet(EVERY_ROW, frozenset(base.files["path"].to_pylist())), EveryRow(base)


def not_an_identity(column: str) -> InvalidOption:
    """The error for a column that is not an identity column."""
    reason = "it is not an identity column: SYNC IDENTITY cannot be called on non IDENTITY columns."
    condition = "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN"
    return InvalidOption(option="SYNC IDENTITY", value=column, reason=reason, delta_condition=condition)
