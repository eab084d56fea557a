"""Writing a DataFrame: append, overwrite, or creation, by the engine's own bulk writer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from anabranch.commands.engine import Engine
from anabranch.commands.insert import MODES, Insert, NewTable, run_insert
from anabranch.commands.opening import Location, open_log
from anabranch.commands.staging import Staging
from anabranch.errors import InvalidOption, NotBuilt
from anabranch.log.log import Log
from anabranch.protocol.actions import Metadata
from anabranch.protocol.schema import Array, DataType, Map, Struct
from anabranch.transaction.commit import Committed
from anabranch.transaction.patience import Chance, Patience


@dataclass(frozen=True)
class Write:
    """Write a source's rows to ``table``.

    Modes: ``append`` (a blind append: it conflicts with nothing), ``overwrite`` (replaces every row), ``error`` and
    ``ignore`` (create the table only).

    Example:
        >>> Write("/data/flights", "append").run(engine, df)
    """

    table: Location
    mode: str = "error"
    partition_by: tuple[str, ...] | None = None
    properties: dict[str, str] = field(default_factory=dict)
    user_metadata: str | None = None

    def run(
        self, engine: Engine, source: Any, *, patience: Patience | None = None, chance: Chance | None = None
    ) -> Committed | None:
        """Run it; None where the mode is ``ignore`` and there is a table.

        Raises:
            SchemaMismatch: a column does not fit the table.
            TableAlreadyExists: mode ``error`` and there is a table.
            DeltaConcurrentModificationException: a winner stands in the way.
        """
        chance = chance or Chance()
        if self.mode not in MODES:
            raise InvalidOption(option="mode", value=self.mode, reason="it takes " + ", ".join(MODES) + ".")
        log = open_log(self.table)
        _refuse_own_rows(log, engine, source)
        jobs = _Jobs(log, chance)
        insert = Insert(
            log=log,
            mode=self.mode,
            new=NewTable(all_nullable(engine.describe(source)), self.partition_by, self.properties),
            stage=lambda metadata: jobs.stage(engine, source, metadata),
            discard=jobs.discard,
            finish=jobs.finish,
            operation="WRITE" if self.mode in ("append", "overwrite") else "CREATE TABLE AS SELECT",
            user_metadata=self.user_metadata,
        )
        return run_insert(insert, patience=patience, chance=chance)


class _Jobs:
    """The job folders of one write: one, or two when a creation race was lost."""

    def __init__(self, log: Log, chance: Chance) -> None:
        self._log, self._chance = log, chance
        self._staging: Staging | None = None

    def stage(self, engine: Engine, source: Any, metadata: Metadata) -> pa.Table:
        """Write the rows into a new folder and give its files."""
        staging = self._staging = Staging(self._log.store, str(self._chance.new_id()))
        staging.start()
        engine.write(source, metadata.schema, metadata.partition_columns, self._log.table, staging.folder)
        return staging.collect(metadata)

    def discard(self) -> None:
        """Remove the present folder."""
        if self._staging is not None:
            self._staging.discard()

    def finish(self) -> None:
        """Close its markers."""
        if self._staging is not None:
            self._staging.finish()


def _refuse_own_rows(log: Log, engine: Engine, source: Any) -> None:
    """A source that reads the table must be judged like a MERGE, with the version that it reads; not built yet."""
    if engine.reads(source, log.table):
        what = f"writing rows to {log.table} that were read from it"
        raise NotBuilt(what=what, instead="Write them elsewhere first, or use update() and delete().")


def all_nullable(type_: Struct) -> Struct:
    """A DataFrame's columns as Delta creates them: a DataFrame promises no NOT NULL, so none is declared."""
    fields = (replace(f, nullable=True, type=_nullable_type(f.type)) for f in type_.fields)
    return Struct(tuple(fields))


def _nullable_type(type_: DataType) -> DataType:
    if isinstance(type_, Struct):
        return all_nullable(type_)
    if isinstance(type_, Array):
        return Array(_nullable_type(type_.element), True)
    return Map(_nullable_type(type_.key), _nullable_type(type_.value), True) if isinstance(type_, Map) else type_
