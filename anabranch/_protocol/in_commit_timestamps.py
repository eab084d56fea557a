"""In-commit timestamps: from which version on a table's commits hold their own time.

Knows PROTOCOL.md, section "In-Commit Timestamps", as far as metadata is concerned. Pure. Guarantee: a table whose older
commits have no such timestamp states where they begin, with the version and timestamp of the first such commit.
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
"""Properties that no user sets: writers maintain them."""


@dataclass(frozen=True)
class Boundary:
    """The first commit with an in-commit timestamp; ``timestamp`` is that, in milliseconds."""

    version: int
    timestamp: int | None


FROM_THE_BEGINNING = Boundary(0, None)
"""For a table created with in-commit timestamps."""


def is_enabled(metadata: Metadata | None) -> bool:
    """Whether commits under this metadata need an in-commit timestamp."""
    return metadata is not None and metadata.configuration.get(ENABLED, "").strip().lower() == "true"


def boundary(metadata: Metadata) -> Boundary | None:
    """Where in-commit timestamps begin; None where the newest commits have none.

    Raises:
        InvalidProperty: the table states it incompletely.

    Example:
        >>> boundary(Metadata("id", "", configuration={"delta.enableInCommitTimestamps": "true"}))
        Boundary(version=0, timestamp=None)
    """
    if not is_enabled(metadata):
        return None
    given = {key: metadata.configuration[key] for key in KEPT_BY_WRITERS if key in metadata.configuration}
    if not given:
        return FROM_THE_BEGINNING
    try:
        return Boundary(int(given[SINCE_VERSION]), int(given[SINCE_TIMESTAMP]))
    except (KeyError, ValueError):
        key = next((key for key in KEPT_BY_WRITERS if not given.get(key, "").strip().isdigit()), SINCE_VERSION)
        reason = "it takes a whole number, and stands together with the other one of its kind."
        raise InvalidProperty(property=key, value=given.get(key, "left out"), reason=reason) from None


def with_boundary(metadata: Metadata, before: Metadata | None, *, version: int, timestamp: int | None) -> Metadata:
    """Metadata for the commit of ``version`` that states where in-commit timestamps begin. ``before`` is the metadata
    until then, None for a new table, all of whose commits have a timestamp; ``timestamp`` is that of the commit, if it
    has one.
    """
    if not is_enabled(metadata) and not is_enabled(before):
        return metadata
    rest = {key: value for key, value in metadata.configuration.items() if key not in KEPT_BY_WRITERS}
    said: dict[str, str] = {}
    if is_enabled(metadata) and before is not None:
        known = before.configuration if is_enabled(before) else {}
        began = {SINCE_VERSION: str(version), SINCE_TIMESTAMP: str(timestamp)}
        said = {key: known[key] for key in KEPT_BY_WRITERS if key in known} if is_enabled(before) else began
    configuration = {**rest, **said}
    return metadata if configuration == dict(metadata.configuration) else replace(metadata, configuration=configuration)
