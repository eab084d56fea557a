"""Raises the protocol of a table: its versions and features. It writes no row.

Guarantee: the protocol never loses a version or feature here. The guarantees of `anabranch.commands.ddl.alter` hold.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import compact_json
from anabranch._protocol.features.table_features import upgrade_to_versions
from anabranch._protocol.properties import FEATURE_PREFIX
from anabranch._transaction.commit import CommitResult
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.ddl.alter import Alteration, SetProperties, run_alteration
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, SecretFree
from anabranch.commands.rerunning import rerunnable


@dataclass(frozen=True)
class UpgradeProtocol(SecretFree):
    """Raise the versions of a table's protocol; they never go down.

    Example:
        >>> UpgradeProtocol("/data/flights", 3, 7).run()
    """

    table: Location
    reader_version: int
    writer_version: int

    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it; None if the table has these versions or higher ones.

        Raises:
            InvalidOption: one version is lower than the table's and the other higher, or there is no such version.
            ProtocolChangedException, MetadataChangedException: the table was written meanwhile.
        """
        return run_alteration(self.table, self._on, context)

    def _on(self, base: Snapshot) -> Alteration:
        protocol = upgrade_to_versions(base.protocol, self.reader_version, self.writer_version)
        parameters = {"newProtocol": compact_json(protocol.to_json())}
        return Alteration("UPGRADE PROTOCOL", parameters, protocol=protocol)


@dataclass(frozen=True)
class AddFeatureSupport(SecretFree):
    """List a feature in the protocol of a table; Delta's history shows it as a property.

    Example:
        >>> AddFeatureSupport("/data/flights", "deletionVectors").run()
    """

    table: Location
    feature: str

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it; None if the table has the feature.

        Raises:
            UnsupportedFeature: the feature is unknown, or its requirements are not met.
            ProtocolChangedException, MetadataChangedException: the table was written meanwhile.
        """
        return SetProperties(self.table, {f"{FEATURE_PREFIX}{self.feature}": "supported"}).run(engine, context)
