"""Feeds: what the product says that each version changed, row by row.

Knows the product's plan of a feed, and reads the rows that it names. Judges nothing (`laboratory.feed_verdicts` does).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyroaring import BitMap64

from anabranch._log.changes import changes
from anabranch._log.log import Log
from anabranch._protocol.change_feed import VersionChanges
from anabranch.commands.opening import open_log
from anabranch.errors import AnabranchError
from laboratory.log_reader import Changes, Reader, stored_rows
from laboratory.statements import Row


@dataclass(frozen=True)
class Feeds:
    """The feed of every version from 0 on, in two tellings.

    Attributes:
        plain: as the plain reader finds it in the log.
        derived: the same, without files of change data.
        takes: whether a version takes rows away.
        ours: as the product reads it, where the table has a feed.
        part: a part of it, which the product was asked for alone, from the version ``first`` on.
        error: why the product did not read it.
    """

    plain: tuple[Changes, ...]
    derived: tuple[Changes, ...]
    takes: tuple[bool, ...]
    ours: tuple[Changes, ...] | None = None
    first: int = 0
    part: tuple[Changes, ...] = ()
    error: AnabranchError | None = None


def plain_feeds(reader: Reader, versions: int) -> Feeds:
    """The feeds of a table with so many versions, which the reader has read."""
    derived = tuple(reader.derived(number) for number in range(versions))
    takes = tuple(reader.takes(number) for number in range(versions))
    return Feeds(tuple(reader.changes(number) for number in range(versions)), derived, takes)


def with_ours(feeds: Feeds, location: str, dice: random.Random) -> Feeds:
    """The same, and what the product says of all versions and of some."""
    first = dice.randrange(len(feeds.plain))
    last = dice.randrange(first, len(feeds.plain))
    try:
        log = open_log(location)
        return replace(feeds, ours=_read(log, 0, len(feeds.plain)), first=first, part=_read(log, first, last))
    except AnabranchError as error:
        return replace(feeds, error=error)


def _read(log: Log, first: int, last: int) -> tuple[Changes, ...]:
    feed = changes(log, log.snapshot(), first, last)
    return tuple(tuple(_rows(log, version)) for version in feed.versions)


def _rows(log: Log, version: VersionChanges) -> Iterator[tuple[str, Row]]:
    for file in version.whole.to_pylist():
        hidden = version.hidden.get(file["path"], BitMap64())
        yield from ((file["change"], row) for i, (row, _) in enumerate(_stored(log, file)) if i not in hidden)
    for file, chosen in zip(version.partly.to_pylist(), version.rows, strict=True):
        yield from ((file["change"], row) for i, (row, _) in enumerate(_stored(log, file)) if i in chosen)
    for file in version.written.to_pylist():
        yield from ((change, row) for row, change in _stored(log, file))


def _stored(log: Log, file: Mapping[str, Any]) -> list[tuple[Row, str]]:
    return stored_rows(log.store, file["path"], dict(file["partitionValues"] or ()))
