"""Vacuums: which of them may still be deleting, as far as the log says it.

Knows the commits VACUUM START and VACUUM END, of whatever engine, and never a file that is there. Pure. Guarantee: of
several that run at once and do not say whose END it is, those that may delete most are taken for the ones that run.

A VACUUM deletes what it had listed before its START, but nothing that is live in a version at or behind its START, nor
what was removed from the table within its retention. So who brings an old file back *behind* a START that has no END
yet has to ask whether that VACUUM may delete it: that the file is there now is not enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

START, END = "VACUUM START", "VACUUM END"
"""The operations by which a VACUUM frames its work, in Delta's words."""

CUTOFF = "anabranch.removesBefore"
"""Tag of a START of ours: the moment before which a file was last written that it may remove, by the store's clock."""

DEAD_AFTER_MS = 7 * 86_400_000
"""A VACUUM that has not said its END by then was killed: none deletes for longer than this."""

MARGIN_MS = 3_600_000
"""Its clock may differ from that of whoever removed a file, and it may have looked at it a while after its START."""


@dataclass(frozen=True)
class Event:
    """What one version says of a VACUUM.

    Attributes:
        version, timestamp: of the commit, the latter in milliseconds.
        starts: whether it is a START.
        retention_ms: that of a START; None where it does not say it, so that nothing is known to be safe.
        cutoff_ms: the moment that a START of ours deletes up to, by its own clock, which may be ahead of others.
    """

    version: int
    timestamp: int
    starts: bool
    retention_ms: int | None = None
    cutoff_ms: int | None = None

    @property
    def spares_since_ms(self) -> int | None:
        """What was removed from the table later than this is not deleted; None: nothing is known of that."""
        if self.retention_ms is None:
            return None
        since = self.timestamp - self.retention_ms
        return (since if self.cutoff_ms is None else max(since, self.cutoff_ms)) + MARGIN_MS

    def may_delete(self, removed_ms: int | None) -> bool:
        """Whether it may delete a file that was removed from the table at a moment; None: nobody knows when."""
        since = self.spares_since_ms
        return since is None or removed_ms is None or removed_ms <= since


def event_of(version: int, timestamp: int, info: Mapping[str, Any]) -> Event | None:
    """What a commit says of a VACUUM by its ``commitInfo``; None where it is another one's.

    Example:
        >>> event_of(7, 1000, {"operation": "VACUUM END"})
        Event(version=7, timestamp=1000, starts=False, retention_ms=None)
    """
    operation = info.get("operation")
    if operation == END:
        return Event(version, timestamp, starts=False)
    if operation != START:
        return None
    parameters, tags = (info.get(name) for name in ("operationParameters", "tags"))
    retention = retention_of(parameters if isinstance(parameters, Mapping) else {})
    return Event(version, timestamp, True, retention, whole(tags.get(CUTOFF) if isinstance(tags, Mapping) else None))


def whole(said: object) -> int | None:
    """A whole number in a text; None where it is none."""
    try:
        return int(str(said))
    except ValueError:
        return None


def retention_of(parameters: Mapping[str, Any]) -> int | None:
    """How long a START says that files are retained, in milliseconds; None where it does not say it."""
    for key in ("specifiedRetentionMillis", "defaultRetentionMillis"):
        found = parameters.get(key)
        if found is not None:
            try:
                return int(found)
            except (TypeError, ValueError, OverflowError):
                return None
    return None


def under_way(events: Iterable[Event], now_ms: int) -> tuple[Event, ...]:
    """The VACUUMs that may still be deleting, by what the log says of them, oldest first.

    Example:
        >>> under_way([Event(3, 1000, True, 0), Event(4, 2000, False)], 3000)
        ()
    """
    running: list[Event] = []
    for event in events:
        if event.starts:
            running.append(event)
        elif running:
            running.remove(min(running, key=_reach))
    return tuple(each for each in running if now_ms - each.timestamp <= DEAD_AFTER_MS)


def _reach(event: Event) -> float:
    """How far to the present it deletes; an END that names nobody is taken for that of the mildest."""
    since = event.spares_since_ms
    return float("inf") if since is None else since
