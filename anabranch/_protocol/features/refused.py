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
_GEOSPATIAL = "columns of geometry and geography are not supported."
_IN_A_CATALOG = "a catalog decides which commit wins, and the newest ones may not be in the log."
_COORDINATED = "a coordinator outside the log decides which commit wins."
_GEOSPATIAL = "the protocol does not say how geometries are stored, and PySpark 4.0 has no type for them."
_ICEBERG = "writes would not keep the files readable as an Iceberg table."

REFUSED: Mapping[str, RefusedFeature] = {
    "geospatial": RefusedFeature(_GEOSPATIAL, True),
    "geospatial-dev": RefusedFeature(_GEOSPATIAL, True),
    "catalogManaged": RefusedFeature(_IN_A_CATALOG, True),
    "catalogOwned-preview": RefusedFeature(_IN_A_CATALOG, True),
    "coordinatedCommits-preview": RefusedFeature(_COORDINATED),
    "managed-commit": RefusedFeature(_COORDINATED),
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
