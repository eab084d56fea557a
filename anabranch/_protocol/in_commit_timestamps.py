"""In-commit timestamps: the version since which the commits of a table contain their own time.

Knows PROTOCOL.md, section "In-Commit Timestamps", as far as metadata is concerned. Pure. Guarantee: the metadata of a
table whose older commits have no such timestamp has the version and timestamp of the first commit with one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from anabranch._protocol.actions import Metadata
from anabranch.errors import InvalidProperty

IN_COMMIT = "inCommitTimestamp"
"""The feature, and the field of ``commitInfo``."""

ENABLED = "delta.enableInCommitTimestamps"
SINCE_VERSION = "delta.inCommitTimestampEnablementVersion"
SINCE_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"
KEPT_BY_WRITERS = (SINCE_VERSION, SINCE_TIMESTAMP)
"""Properties that only writers set."""


@dataclass(frozen=True)
class Boundary:
    """The first commit with an in-commit timestamp; ``timestamp`` is its value, in milliseconds."""

    version: int
    timestamp: int | None


FROM_THE_BEGINNING = Boundary(0, None)
"""For a table created with in-commit timestamps."""


def is_enabled(metadata: Metadata | None) -> bool:
    """Whether commits under this metadata need an in-commit timestamp."""
    return metadata is not None and metadata.configuration.get(ENABLED, "").strip().lower() == "true"


def boundary(metadata: Metadata) -> Boundary | None:
    """The boundary from which on commits have in-commit timestamps; None if the newest commits have none.

    Raises:
        InvalidProperty: the properties of the boundary are incomplete.

    Example:
        >>> boundary(Metadata("id", "", configuration={"delta.enableInCommitTimestamps": "true"}))
        Boundary(version=0, timestamp=None)
    """
    if not is_enabled(metadata):
        return None
    boundary_properties = {key: metadata.configuration[key] for key in KEPT_BY_WRITERS if key in metadata.configuration}
    if not boundary_properties:
        return FROM_THE_BEGINNING
    try:
        return Boundary(int(boundary_properties[SINCE_VERSION]), int(boundary_properties[SINCE_TIMESTAMP]))
    except (KeyError, ValueError):
        key = next(
            (key for key in KEPT_BY_WRITERS if not boundary_properties.get(key, "").strip().isdigit()), SINCE_VERSION
        )
        reason = "it takes a whole number, and requires the other property of the boundary."
        raise InvalidProperty(property=key, value=boundary_properties.get(key, "left out"), reason=reason) from None


def with_boundary(metadata: Metadata, before: Metadata | None, *, version: int, timestamp: int | None) -> Metadata:
    """Metadata for the commit of ``version`` with the boundary of in-commit timestamps. ``before`` is the metadata
    until then, None for a new table, all of whose commits have a timestamp; ``timestamp`` is that of the commit, if it
    has one.
    """
    if not is_enabled(metadata) and not is_enabled(before):
        return metadata
    rest = {key: value for key, value in metadata.configuration.items() if key not in KEPT_BY_WRITERS}
    properties: dict[str, str] = {}
    if is_enabled(metadata) and before is not None:
        former = before.configuration if is_enabled(before) else {}
        began = {SINCE_VERSION: str(version), SINCE_TIMESTAMP: str(timestamp)}
        properties = {key: former[key] for key in KEPT_BY_WRITERS if key in former} if is_enabled(before) else began
    configuration = {**rest, **properties}
    return metadata if configuration == dict(metadata.configuration) else replace(metadata, configuration=configuration)
