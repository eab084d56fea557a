"""Change data feeds: tables that record their changes, and what a feed says, row by row, read without Spark."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
from pyroaring import BitMap64

from anabranch._log.file_names import checksum_name, commit_name
from anabranch._log.log import forget
from anabranch._protocol.change_feed import CHANGE_TYPE, COLUMNS, COMMIT_VERSION, ENABLED, Feed
from anabranch._protocol.partitions import read_value

Row = Mapping[str, Any]


def record_changes(path: str, version: int = 0, value: str = "true") -> None:
    """Let the metadata of a version say that the table records its changes, as if it had from then on.

    What versions with files of change data would look like is for delta-spark to say.
    """
    file = Path(path, commit_name(version))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for action in lines:
        if "metaData" in action:
            action["metaData"]["configuration"][ENABLED] = value
        if "writerFeatures" in action.get("protocol", {}):
            action["protocol"]["writerFeatures"] += ["changeDataFeed"]
    written = file.stat().st_mtime_ns
    file.write_text("".join(json.dumps(action, separators=(",", ":")) + "\n" for action in lines))
    os.utime(file, ns=(written, written))
    for each in range(version, 100):
        Path(path, checksum_name(each)).unlink(missing_ok=True)
    forget()


def rows_of(feed: Feed) -> list[Row]:
    """The rows of a feed of a local table whose members of structs keep their names."""
    return [row for each in _pieces(feed) for row in each]


def _pieces(feed: Feed) -> Iterator[list[Row]]:
    for found in feed.versions:
        for place in found.whole.to_pylist():
            gone = found.hidden.get(place["path"], BitMap64())
            yield _read(feed, found.version, place, lambda position, gone=gone: position not in gone)
        for place, some in zip(found.partly.to_pylist(), found.rows, strict=True):
            yield _read(feed, found.version, place, lambda position, some=some: position in some)
        for place in found.written.to_pylist():
            yield _read(feed, found.version, {**place, "change": None}, lambda position: True)


def _read(feed: Feed, version: int, place: Row, shows: Any) -> list[Row]:
    values = dict(place["partitionValues"] or ())
    columns = [feed.schema.field(name) for name in feed.metadata.partition_columns]
    parts = {each.name: read_value(values.get(each.physical_name), str(each.type)) for each in columns}
    rows = pq.ParquetFile(f"{feed.root.removeprefix('file://')}/{unquote(place['path'])}").read().to_pylist()
    known = {COMMIT_VERSION: version} | ({} if place["change"] is None else {CHANGE_TYPE: place["change"]})
    return [{**_logical(feed, row), **parts, **known} for i, row in enumerate(rows) if shows(i)]


def _logical(feed: Feed, row: Row) -> Row:
    """A row of a file under the table's names, without the columns by which rows are tracked."""
    says = {CHANGE_TYPE: row[CHANGE_TYPE]} if CHANGE_TYPE in row else {}
    return {**{each.name: row.get(each.physical_name) for each in feed.schema}, **says}


def plain(row: Row) -> str:
    """A row without what a feed adds to it, as text."""
    return repr(sorted((name, value) for name, value in row.items() if name not in COLUMNS))


def applied(before: Iterable[Row], changes: Iterable[Row]) -> Counter[str]:
    """Rows, with the inserts of a feed put to them and its deletes taken away, each as often as it is there."""
    found = Counter(map(plain, before))
    for row in changes:
        found[plain(row)] += 1 if row[CHANGE_TYPE] in ("insert", "update_postimage") else -1
    return Counter({text: count for text, count in found.items() if count})
