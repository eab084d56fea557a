"""In-commit timestamps: since which version a table's commits say themselves when they were made.

Knows PROTOCOL.md, section "In-Commit Timestamps", as far as it concerns metadata. Pure. Guarantee: a table whose older
commits have no such timestamp says where they begin, by the very version and timestamp of the commit that began.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from anabranch.errors import InvalidProperty
from anabranch.protocol.actions import Metadata

IN_COMMIT = "inCommitTimestamp"
"""The feature, and the field of ``commitInfo``."""

ENABLED = "delta.enableInCommitTimestamps"
SINCE_VERSION = "delta.inCommitTimestampEnablementVersion"
SINCE_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"
KEPT_BY_WRITERS = (SINCE_VERSION, SINCE_TIMESTAMP)
"""Properties that no user sets: each writer keeps them true."""


@dataclass(frozen=True)
class Boundary:
    """The first commit of a table that has an in-commit timestamp; ``timestamp`` is that, in milliseconds."""

    version: int
    timestamp: int | None


FROM_THE_BEGINNING = Boundary(0, None)
"""Of a table that was created with in-commit timestamps."""


def is_enabled(metadata: Metadata | None) -> bool:
    """Whether commits under this metadata have to say when they were made."""
    return metadata is not None and metadata.configuration.get(ENABLED, "").strip().lower() == "true"


def boundary(metadata: Metadata) -> Boundary | None:
    """Where in-commit timestamps begin; None where the newest commits have none.

    Raises:
        InvalidProperty: what the table says of it is not whole.

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


def bounded(metadata: Metadata, before: Metadata | None, *, version: int, timestamp: int | None) -> Metadata:
    """Metadata that says where in-commit timestamps begin, as it is to stand in the commit of ``version``.

    Args:
        before: the metadata until then; None for a new table, none of whose commits lacks a timestamp.
        timestamp: the in-commit timestamp of that commit, if it has one.
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
