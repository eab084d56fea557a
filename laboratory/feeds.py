"""Feeds: what the product says that each version changed, row by row.

Knows the product's plan of a feed, and reads the rows that it names. Judges nothing (`laboratory.feed_verdicts` does).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyroaring import BitMap64

from anabranch.commands.opening import open_log
from anabranch.errors import AnabranchError
from anabranch.log.changes import changes
from anabranch.log.log import Log
from anabranch.protocol.change_feed import VersionChanges
from laboratory.log_reader import Changes, Reader, row_of, rows_in


@dataclass(frozen=True)
class Feeds:
    """The feed of every version from 0 on, in two tellings.

    Attributes:
        plain: as the plain reader finds it in the log.
        ours: as the product reads it.
        part: a part of it, which the product was asked for alone, from the version ``first`` on.
        error: why the product did not read it.
    """

    plain: tuple[Changes, ...]
    ours: tuple[Changes, ...] = ()
    first: int = 0
    part: tuple[Changes, ...] = ()
    error: AnabranchError | None = None


def feeds_of(location: str, reader: Reader, versions: int, dice: random.Random) -> Feeds:
    """The feeds of a table with so many versions, which the reader has read."""
    plain = tuple(reader.changes(number) for number in range(versions))
    first = dice.randrange(versions)
    try:
        log = open_log(location)
        part = _read(log, first, dice.randrange(first, versions))
        return Feeds(plain, _read(log, 0, versions - 1), first, part)
    except AnabranchError as error:
        return Feeds(plain, error=error)


def _read(log: Log, first: int, last: int) -> tuple[Changes, ...]:
    feed = changes(log, log.snapshot(), first, last)
    return tuple(tuple(_rows(log, version)) for version in feed.versions)


def _rows(log: Log, version: VersionChanges) -> Iterator[tuple[str, Any]]:
    for file in version.whole.to_pylist():
        hidden = version.hidden.get(file["path"], BitMap64())
        yield from ((file["change"], row) for i, (row, _) in enumerate(_stored(log, file)) if i not in hidden)
    for file, chosen in zip(version.partly.to_pylist(), version.rows, strict=True):
        yield from ((file["change"], row) for i, (row, _) in enumerate(_stored(log, file)) if i in chosen)
    for file in version.written.to_pylist():
        yield from ((change, row) for row, change in _stored(log, file))


def _stored(log: Log, file: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    values = dict(file["partitionValues"] or ())
    return [(row_of(row, values), row.get("_change_type")) for row in rows_in(log.store.get(unquote(file["path"])))]
