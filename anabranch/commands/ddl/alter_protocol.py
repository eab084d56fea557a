"""Changing what a table demands of readers and writers: its protocol's versions and features. No row is written.

Guarantee: a protocol only ever gains here; what `anabranch.commands.ddl.alter` promises of every change holds of these
    too.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import compact_json
from anabranch._protocol.features.table_features import upgrade_to_versions
from anabranch._protocol.properties import FEATURE_PREFIX
from anabranch._transaction.commit import Committed
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.ddl.alter import Alteration, SetProperties, run_alteration
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, Masked


@dataclass(frozen=True)
class UpgradeProtocol(Masked):
    """Raise the versions of the protocol that a table demands; they never go down.

    Example:
        >>> UpgradeProtocol("/data/flights", 3, 7).run()
    """

    table: Location
    reader_version: int
    writer_version: int

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Committed | None:
        """Run it; None where the table has these versions, or higher ones.

        Raises:
            InvalidOption: one version is lower than the table's and the other higher, or there is none such.
            ProtocolChangedException, MetadataChangedException: the table was written meanwhile.
        """
        return run_alteration(self.table, self._on, context)

    def _on(self, base: Snapshot) -> Alteration:
        protocol = upgrade_to_versions(base.protocol, self.reader_version, self.writer_version)
        parameters = {"newProtocol": compact_json(protocol.to_json())}
        return Alteration("UPGRADE PROTOCOL", parameters, protocol=protocol)


@dataclass(frozen=True)
class AddFeatureSupport(Masked):
    """List a feature in the protocol of a table; Delta's history shows it as the property that stands for it.

    Example:
        >>> AddFeatureSupport("/data/flights", "deletionVectors").run()
    """

    table: Location
    feature: str

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Committed | None:
        """Run it; None where the table has it.

        Raises:
            UnsupportedFeature: this version does not know it, or does not hold what it asks.
            ProtocolChangedException, MetadataChangedException: the table was written meanwhile.
        """
        return SetProperties(self.table, {f"{FEATURE_PREFIX}{self.feature}": "supported"}).run(engine, context)
