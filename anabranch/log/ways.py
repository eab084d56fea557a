"""Ways: how a version is read all the same when a file on the way to it is broken or gone.

Knows segments and errors, not what the files hold. Guarantee: another way leads to the same version of the same table,
or there is none, and then the first error is raised; a checkpoint is never passed by for commits that are not all
there (PROTOCOL.md, "Checkpoints": a reader may use any complete one; "Metadata Cleanup").
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from anabranch.errors import AnabranchError, CorruptLog, VersionCleanedUp
from anabranch.log.names import commit_version, first_name
from anabranch.log.segment import Segment, earliest_version, find_segment
from anabranch.storage.contract import Store

T = TypeVar("T")
_logger = logging.getLogger(__name__)


def by_some_way(store: Store, segment: Segment, read: Callable[[Segment], T]) -> T:
    """What ``read`` makes of the segment, or of another one of the same version where a file of this one fails.

    Raises:
        VersionCleanedUp: the version's files were cleaned up since the segment was found.
        CorruptLog: a file is damaged, and there is no way around it.
    """
    way, broken = segment, segment.but
    first: CorruptLog | None = None
    while True:
        try:
            return read(way)
        except CorruptLog as error:
            is_compacted = way.replayed != way.commits  # then there is another way to the same files in any case
            first = first if is_compacted else first or error
            broken |= {name} if (name := error.facts.get("checkpoint")) else frozenset()
            other = _other_way(store, way, error, broken)
            if other is None:
                raise _said(store, segment, first or error) from error
            _logger.warning("version %s of %s is read by another way: %s", way.version, store.url, error.message)
            way = other


def cleaned_up(store: Store, version: int) -> VersionCleanedUp | None:
    """The error that a version was cleaned up, or None where it was not."""
    earliest = earliest_version(store)
    if earliest <= version:
        return None
    commits = [v for e in store.list_from(first_name(0)) if (v := commit_version(e.name)) is not None]
    return VersionCleanedUp(table=store.url, version=version, earliest=earliest, latest=max([earliest, *commits]))


def _other_way(store: Store, way: Segment, error: CorruptLog, broken: frozenset[str]) -> Segment | None:
    """By the commits themselves in place of compactions, by another checkpoint, or by what is there by now."""
    is_compacted = way.replayed != way.commits
    if is_compacted and not error.facts.get("checkpoint"):
        return way.without_compacted()
    try:
        other = find_segment(store, way.version, broken)
    except AnabranchError:
        return None
    other = other if is_compacted else other.without_compacted()
    return None if (other.checkpoint, other.commits) == (way.checkpoint, way.commits) else other


def _said(store: Store, segment: Segment, error: CorruptLog) -> AnabranchError:
    try:
        return cleaned_up(store, segment.version) or error
    except AnabranchError:
        return error
