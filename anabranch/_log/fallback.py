"""How a version is read when a file of its segment is broken or missing.

Knows segments and errors, not what the files hold. Guarantee: another segment gives the same version of the same table,
or there is none and the first error is raised; a checkpoint is never replaced by commits that are not all there
(PROTOCOL.md, "Checkpoints": a reader may use any complete one; "Metadata Cleanup").
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from anabranch._log.file_names import commit_version, first_name
from anabranch._log.segment import Segment, earliest_version, find_segment
from anabranch._storage.contract import Store
from anabranch.errors import AnabranchError, CorruptLog, VersionCleanedUp

T = TypeVar("T")
_logger = logging.getLogger(__name__)


def read_with_fallback(store: Store, segment: Segment, read: Callable[[Segment], T]) -> T:
    """The result of ``read`` for the segment, or for another one of the same version if a file of this one fails.

    Raises:
        VersionCleanedUp: the version's files were cleaned up since the segment was found.
        CorruptLog: a file is damaged, and no other segment is left.
    """
    current, broken = segment, segment.but
    first: CorruptLog | None = None
    while True:
        try:
            return read(current)
        except CorruptLog as error:
            is_compacted = (
                current.entries_to_replay != current.commits
            )  # then the commits give the same files in any case
            first = first if is_compacted else first or error
            broken |= {name} if (name := error.facts.get("checkpoint")) else frozenset()
            other = _other_segment(store, current, error, broken)
            if other is None:
                raise _final_error(store, segment, first or error) from error
            _logger.warning(
                "version %s of %s is read from another segment: %s", current.version, store.url, error.message
            )
            current = other


def error_if_cleaned_up(store: Store, version: int) -> VersionCleanedUp | None:
    """The error for a version that was cleaned up; None if it was not."""
    earliest = earliest_version(store)
    if earliest <= version:
        return None
    commits = [v for e in store.list_from(first_name(0)) if (v := commit_version(e.name)) is not None]
    return VersionCleanedUp(table=store.url, version=version, earliest=earliest, latest=max([earliest, *commits]))


def _other_segment(store: Store, current: Segment, error: CorruptLog, broken: frozenset[str]) -> Segment | None:
    """The segment with commits in place of compactions, with another checkpoint, or as the log is now."""
    is_compacted = current.entries_to_replay != current.commits
    if is_compacted and not error.facts.get("checkpoint"):
        return current.without_compacted()
    try:
        other = find_segment(store, current.version, broken)
    except AnabranchError:
        return None
    other = other if is_compacted else other.without_compacted()
    return None if (other.checkpoint, other.commits) == (current.checkpoint, current.commits) else other


def _final_error(store: Store, segment: Segment, error: CorruptLog) -> AnabranchError:
    try:
        return error_if_cleaned_up(store, segment.version) or error
    except AnabranchError:
        return error
