"""The rows of a change feed, in Arrow.

Knows rows, and of versions only their numbers. Guarantee: each row is given with the version that inserted or deleted
it; what a vector hides is never given, and no file is left out. The rows of one file are held at once.

PROTOCOL.md, sections "Add CDC File" and "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
from pyroaring import BitMap64

from anabranch._arrow import finding
from anabranch._arrow.site import Site
from anabranch._protocol.actions import FILES
from anabranch._protocol.change_feed import CHANGE_TYPE, FIELDS, Feed, VersionChanges, change_data_columns
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.schema.types import Struct, arrow_type
from anabranch.errors import ChangeFilesMissing, MissingDataFile


def feed_schema(feed: Feed) -> pa.Schema:
    """The table's columns, and what became of a row, at which version, and when."""
    return pa.schema([(each.name, arrow_type(each.type)) for each in (*feed.schema, *FIELDS)])


def changes(site: Site, feed: Feed) -> Iterator[pa.RecordBatch]:
    """The rows that were inserted, updated and deleted, version by version.

    Raises:
        ChangeFilesMissing: a file is gone. Unsupported: only Spark reads these files.
    """
    for version in feed.versions:
        with _translate_missing_file(feed, version):
            yield from (_with_version_columns(rows, feed, version) for rows in _rows_of_version(site, feed, version))


def check(feed: Feed) -> None:
    """Raises Unsupported unless Arrow sees the same in the values of a feed as Spark."""
    finding.check_scanned(_files(feed, FILES.empty_table(), feed.schema), feed.schema.names)


def _rows_of_version(site: Site, feed: Feed, version: VersionChanges) -> Iterator[pa.RecordBatch]:
    """The changed rows of one version, with what became of each."""
    names, told = feed.schema.names, change_data_columns(feed.schema)
    for at, (path, change) in enumerate(_paths_and_changes(version.whole)):
        files = _files(feed, version.whole.slice(at, 1), feed.schema, {path: version.hidden.get(path, BitMap64())})
        yield from (_became(rows, change) for rows in finding.scan(site, files, names))
    for at, ((path, change), rows) in enumerate(zip(_paths_and_changes(version.partly), version.rows, strict=True)):
        files = _files(feed, version.partly.slice(at, 1), feed.schema)
        found = finding.fetch_file_rows(site, files, {path: rows}, names, nested=True)
        yield from (_became(each.rows, change) for each in found)
    for at in range(len(version.written)):
        yield from finding.scan(site, _files(feed, version.written.slice(at, 1), told), told.names)


def _paths_and_changes(files: pa.Table) -> Iterator[tuple[str, str]]:
    return zip(files["path"].to_pylist(), files["change"].to_pylist(), strict=True)


def _files(feed: Feed, files: pa.Table, schema: Struct, vectors: Mapping[str, BitMap64] | None = None) -> FileSet:
    columns = [
        files[each.name] if each.name in files.column_names else pa.nulls(len(files), each.type) for each in FILES
    ]
    whole = FileSet(feed.root, schema, feed.metadata.partition_columns, pa.table(columns, schema=FILES), vectors or {})
    return replace(whole, layouts=feed.layouts, allowed=feed.allowed)


def _became(rows: pa.RecordBatch, change: str) -> pa.RecordBatch:
    columns = [*rows.columns, pa.repeat(pa.scalar(change), rows.num_rows)]
    return pa.RecordBatch.from_arrays(columns, [*rows.schema.names, CHANGE_TYPE])


def _with_version_columns(rows: pa.RecordBatch, feed: Feed, version: VersionChanges) -> pa.RecordBatch:
    moment = pa.scalar(version.timestamp * 1000, pa.int64()).cast(arrow_type(FIELDS[2].type))
    said = [pa.repeat(pa.scalar(version.version, pa.int64()), rows.num_rows), pa.repeat(moment, rows.num_rows)]
    return pa.RecordBatch.from_arrays([*rows.columns, *said], schema=feed_schema(feed))


@contextmanager
def _translate_missing_file(feed: Feed, version: VersionChanges) -> Iterator[None]:
    try:
        yield
    except MissingDataFile as error:
        path = str(error.facts["file"])
        raise ChangeFilesMissing(table=feed.root, file=path, version=version.version, reason="is gone") from None
