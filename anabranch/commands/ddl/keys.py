"""PRIMARY KEY and FOREIGN KEY of a table that stands: said and unsaid. No row is looked at.

Knows that keys are information, never enforced. Guarantee: as for every change of what a table says of itself
(`anabranch.commands.ddl.alter`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.rules.table_rules import CONSTRAINT_PREFIX
from anabranch._protocol.schema.keys import KEY_PREFIX, Key, check_keys, keys_of
from anabranch._transaction.commit import Committed
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.ddl.alter import Alteration, run_alteration
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, Masked
from anabranch.errors import InvalidOption


def check_new_name(name: str, configuration: Mapping[str, str]) -> None:
    """Raises InvalidOption unless a constraint, or a key, may be given this name."""
    taken = {KEY_PREFIX + name.lower(), CONSTRAINT_PREFIX + name.lower()} & {each.lower() for each in configuration}
    if taken or not name.strip():
        exists = f"Constraint '{name}' already exists. Please delete the old constraint first."
        raise InvalidOption(option="constraint", value=name, reason=exists if taken else "this is no name.")


@dataclass(frozen=True)
class AddKey(Masked):
    """ALTER TABLE … ADD CONSTRAINT … PRIMARY KEY or FOREIGN KEY.

    Example:
        >>> AddKey("/data/flights", Key("flights_pk", PRIMARY, ("id",))).run()
    """

    table: Location
    key: Key

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Committed | None:
        """Run it.

        Raises:
            InvalidOption: there is a constraint of this name, or a primary key, or no such column, or a column of a
            primary key may be NULL. MetadataChangedException: the table was written meanwhile.
        """
        return run_alteration(self.table, self._on, context)

    def _on(self, base: Snapshot) -> Alteration:
        known = base.metadata.configuration
        check_new_name(self.key.name, known)
        configuration = {**known, self.key.property: self.key.text}
        check_keys(base.schema, configuration)
        parameters = {"name": self.key.name, "expr": self.key.text}
        return Alteration("ADD CONSTRAINT", parameters, replace(base.metadata, configuration=configuration))


@dataclass(frozen=True)
class DropKey(Masked):
    """ALTER TABLE … DROP PRIMARY KEY, and DROP FOREIGN KEY of these columns.

    Example:
        >>> DropKey("/data/flights", PRIMARY).run()
    """

    table: Location
    kind: str
    columns: tuple[str, ...] = ()
    if_exists: bool = False

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Committed | None:
        """Run it; None where there is none and this is ``if_exists``.

        Raises:
            InvalidOption: there is none. MetadataChangedException: the table was written meanwhile.
        """
        return run_alteration(self.table, self._on, context)

    def _on(self, base: Snapshot) -> Alteration:
        known = base.metadata.configuration
        found = [name for name, kind, columns in keys_of(known) if kind == self.kind and self._means(columns)]
        if not found and not self.if_exists:
            raise InvalidOption(option=self.kind, value=", ".join(self.columns), reason="the table has no such key.")
        gone = {KEY_PREFIX + name for name in found}
        left = {key: value for key, value in known.items() if key not in gone}
        return Alteration("DROP CONSTRAINT", {"name": ", ".join(found)}, replace(base.metadata, configuration=left))

    def _means(self, columns: tuple[str, ...]) -> bool:
        return not self.columns or [each.lower() for each in columns] == [each.lower() for each in self.columns]
