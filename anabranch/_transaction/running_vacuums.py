"""Vacuums: which of them may still be deleting, according to the log.

Knows the commits VACUUM START and VACUUM END, of any engine, and never a file in the store. Pure. Guarantee: of several
that run at once without naming their END, those that may delete most count as running.

A VACUUM deletes files that it had listed before its START, but nothing that is live in a version at or behind its
START, nor files removed from the table within its retention. So a writer that restores an old file *behind* a START
without END has to check whether that VACUUM may delete it: that the file exists now is not enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

START, END = "VACUUM START", "VACUUM END"
"""The operations at the beginning and end of a VACUUM, in Delta's words."""

CUTOFF = "anabranch.removesBefore"
"""Tag of a START of ours: it only removes files last written before this time, by the store's clock."""

DEAD_AFTER_MS = 7 * 86_400_000
"""Time after which a VACUUM without END counts as killed: none deletes for longer than this."""

MARGIN_MS = 3_600_000
"""Tolerance: clocks differ between a VACUUM and a writer, and a VACUUM may read the table a while after its START."""


@dataclass(frozen=True)
class Event:
    """The START or END of a VACUUM.

    Attributes:
        version, timestamp: of the commit, the latter in milliseconds.
        starts: whether it is a START.
        retention_ms: that of a START; None where it does not state it, so that no file is known to be safe.
        cutoff_ms: the time up to which a START of ours deletes, by its own clock, which may be ahead of others.
    """

    version: int
    timestamp: int
    starts: bool
    retention_ms: int | None = None
    cutoff_ms: int | None = None

    @property
    def spares_since_ms(self) -> int | None:
        """Files removed from the table later than this are not deleted; None: unknown."""
        if self.retention_ms is None:
            return None
        since = self.timestamp - self.retention_ms
        return (since if self.cutoff_ms is None else max(since, self.cutoff_ms)) + MARGIN_MS

    def may_delete(self, removed_ms: int | None) -> bool:
        """Whether it may delete a file that was removed from the table at this time; None: the time is unknown."""
        since = self.spares_since_ms
        return since is None or removed_ms is None or removed_ms <= since


def event_of(version: int, timestamp: int, info: Mapping[str, Any]) -> Event | None:
    """The START or END in a ``commitInfo``; None where the commit is another operation's.

    Example:
        >>> event_of(7, 1000, {"operation": "VACUUM END"})
        Event(version=7, timestamp=1000, starts=False, retention_ms=None, cutoff_ms=None)
    """
    operation = info.get("operation")
    if operation == END:
        return Event(version, timestamp, starts=False)
    if operation != START:
        return None
    parameters, tags = (info.get(name) for name in ("operationParameters", "tags"))
    retention = retention_of(parameters if isinstance(parameters, Mapping) else {})
    return Event(version, timestamp, True, retention, whole(tags.get(CUTOFF) if isinstance(tags, Mapping) else None))


def whole(text: object) -> int | None:
    """A text as a whole number; None where it is none."""
    try:
        return int(str(text))
    except ValueError:
        return None


def retention_of(parameters: Mapping[str, Any]) -> int | None:
    """The retention of files that a START states, in milliseconds; None where it states none."""
    for key in ("specifiedRetentionMillis", "defaultRetentionMillis"):
        retention = parameters.get(key)
        if retention is not None:
            try:
                return int(retention)
            except (TypeError, ValueError, OverflowError):
                return None
    return None


def under_way(events: Iterable[Event], now_ms: int) -> tuple[Event, ...]:
    """The VACUUMs that may still be deleting, according to the log, oldest first.

    Example:
        >>> under_way([Event(3, 1000, True, 0), Event(4, 2000, False)], 3000)
        ()
    """
    running: list[Event] = []
    for event in events:
        if event.starts:
            running.append(event)
        elif running:
            running.remove(min(running, key=_deletes_until))
    return tuple(vacuum for vacuum in running if now_ms - vacuum.timestamp <= DEAD_AFTER_MS)


def _deletes_until(event: Event) -> float:
    """How close to the present it deletes; an END without a name counts as that of the VACUUM that deletes least."""
    since = event.spares_since_ms
    return float("inf") if since is None else since
