"""Adds and drops PRIMARY KEY and FOREIGN KEY of an existing table. It reads no row.

Keys are information and never enforced. The guarantees of `anabranch.commands.ddl.alter` hold here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.rules.table_rules import CONSTRAINT_PREFIX
from anabranch._protocol.schema.keys import KEY_PREFIX, Key, check_keys, keys_of
from anabranch._transaction.commit import CommitResult
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.ddl.alter import Alteration, run_alteration
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, SecretFree
from anabranch.commands.rerunning import rerunnable
from anabranch.errors import InvalidOption


def check_new_name(name: str, configuration: Mapping[str, str]) -> None:
    """Raises InvalidOption unless a new constraint or key may have this name."""
    existing = {KEY_PREFIX + name.lower(), CONSTRAINT_PREFIX + name.lower()} & {key.lower() for key in configuration}
    if existing or not name.strip():
        exists = f"Constraint '{name}' already exists. Please delete the old constraint first."
        raise InvalidOption(option="constraint", value=name, reason=exists if existing else "the name is empty.")


@dataclass(frozen=True)
class AddKey(SecretFree):
    """ALTER TABLE … ADD CONSTRAINT … PRIMARY KEY or FOREIGN KEY.

    Example:
        >>> AddKey("/data/flights", Key("flights_pk", PRIMARY, ("id",))).run()
    """

    table: Location
    key: Key

    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it.

        Raises:
            InvalidOption: there is a constraint of this name, or a primary key already, or no such column, or a column
            of a primary key may be NULL. MetadataChangedException: the table was written meanwhile.
        """
        return run_alteration(self.table, self._on, context)

    def _on(self, base: Snapshot) -> Alteration:
        present = base.metadata.configuration
        check_new_name(self.key.name, present)
        configuration = {**present, self.key.property: self.key.text}
        check_keys(base.schema, configuration)
        parameters = {"name": self.key.name, "expr": self.key.text}
        return Alteration("ADD CONSTRAINT", parameters, replace(base.metadata, configuration=configuration))


@dataclass(frozen=True)
class DropKey(SecretFree):
    """ALTER TABLE … DROP PRIMARY KEY, and DROP FOREIGN KEY of these columns.

    Example:
        >>> DropKey("/data/flights", PRIMARY).run()
    """

    table: Location
    kind: str
    columns: tuple[str, ...] = ()
    if_exists: bool = False

    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it; None if there is no such key, with ``if_exists``.

        Raises:
            InvalidOption: there is no such key. MetadataChangedException: the table was written meanwhile.
        """
        return run_alteration(self.table, self._on, context)

    def _on(self, base: Snapshot) -> Alteration:
        configuration = base.metadata.configuration
        names = [name for name, kind, columns in keys_of(configuration) if kind == self.kind and self._means(columns)]
        if not names and not self.if_exists:
            raise InvalidOption(option=self.kind, value=", ".join(self.columns), reason="the table has no such key.")
        dropped = {KEY_PREFIX + name for name in names}
        remaining = {key: value for key, value in configuration.items() if key not in dropped}
        return Alteration(
            "DROP CONSTRAINT", {"name": ", ".join(names)}, replace(base.metadata, configuration=remaining)
        )

    def _means(self, columns: tuple[str, ...]) -> bool:
        return not self.columns or [column.lower() for column in columns] == [column.lower() for column in self.columns]
