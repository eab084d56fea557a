"""Unsupported features that are refused with a specific reason.

Knows PROTOCOL.md and proposals that engines already use. Pure data. A feature neither here nor in
`anabranch._protocol.features.known` is refused as unknown. If a feature binds writers only, the table can still be
read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

UNKNOWN_FEATURE = "it is not known here."


@dataclass(frozen=True)
class RefusedFeature:
    """Why a feature is refused. ``binds_readers``: it is a reader feature, so reading is refused too."""

    reason: str
    binds_readers: bool = False


COLLATED = (
    "its conditions, constraints and keys of MERGE would have to compare collated strings by their collations, and "
    "here strings are compared by their bytes."
)
"""Why a table that has a column with a collation is not written."""
_IN_A_CATALOG = "a catalog decides which commit wins, and the newest ones may not be in the log."
COORDINATED = "a coordinator outside the log decides which commit wins."
"""Why a table whose commits a coordinator takes is not written."""
_REDIRECTED = "reads and writes of it may have to go to another table, to which it redirects."
_WRITES_REDIRECTED = "writes of it may have to go to another table, to which it redirects."
_TREE = "its files are listed in a tree of manifests, which is neither read nor written."
_ICEBERG = "writes would not keep the files readable as an Iceberg table."

REFUSED: Mapping[str, RefusedFeature] = {
    "adaptiveMetadata": RefusedFeature(_TREE, True),
    "adaptiveMetadata-preview": RefusedFeature(_TREE, True),
    "timestampNanos": RefusedFeature("timestamps with nanoseconds are not supported.", True),
    "catalogManaged": RefusedFeature(_IN_A_CATALOG, True),
    "catalogOwned-preview": RefusedFeature(_IN_A_CATALOG, True),
    "managed-commit": RefusedFeature(COORDINATED),
    "multiTableTransaction": RefusedFeature("a catalog decides about the commits of several tables at once."),
    "redirectReaderWriter-preview": RefusedFeature(_REDIRECTED, True),
    "redirectWriterOnly-preview": RefusedFeature(_WRITES_REDIRECTED),
    "columnMappingUsageTracking": RefusedFeature(
        "writers have to record whether a column was ever renamed or dropped, and choose physical names by that."
    ),
    "icebergWriterCompatV1": RefusedFeature(_ICEBERG),
    "icebergWriterCompatV3": RefusedFeature(_ICEBERG),
}
"""By name, as in the protocol action."""


def why_refused(feature: str) -> str:
    """The reason for refusing a feature, for people.

    Example:
        >>> why_refused("catalogManaged")
        'a catalog decides which commit wins, and the newest ones may not be in the log.'
    """
    return REFUSED[feature].reason if feature in REFUSED else UNKNOWN_FEATURE
