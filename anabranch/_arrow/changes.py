"""Reads the rows of a change feed with Arrow.

Knows rows, and the numbers of versions. Guarantee: each row comes with the version that inserted or deleted it; rows
that a deletion vector hides are left out, and no file is. Holds the rows of one file at once.

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
    """The table's columns, and the change type, version and timestamp of each row."""
    return pa.schema([(field.name, arrow_type(field.type)) for field in (*feed.schema, *FIELDS)])


def changes(site: Site, feed: Feed) -> Iterator[pa.RecordBatch]:
    """Rows that were inserted, updated and deleted, version by version.

    Raises:
        ChangeFilesMissing: a file is gone.
        Unsupported: only Spark reads these files.
    """
    for version in feed.versions:
        with _translate_missing_file(feed, version):
            yield from (_with_version_columns(rows, feed, version) for rows in _rows_of_version(site, feed, version))


def check(feed: Feed) -> None:
    """Raises Unsupported unless Arrow reads the values of a feed just as Spark does."""
    finding.check_scanned(_files(feed, FILES.empty_table(), feed.schema), feed.schema.names)


def _rows_of_version(site: Site, feed: Feed, version: VersionChanges) -> Iterator[pa.RecordBatch]:
    """The changed rows of one version, with their change types."""
    names, written_columns = feed.schema.names, change_data_columns(feed.schema)
    for at, (path, change) in enumerate(_paths_and_changes(version.whole)):
        files = _files(feed, version.whole.slice(at, 1), feed.schema, {path: version.hidden.get(path, BitMap64())})
        yield from (_with_change_type(rows, change) for rows in finding.scan(site, files, names))
    for at, ((path, change), rows) in enumerate(zip(_paths_and_changes(version.partly), version.rows, strict=True)):
        files = _files(feed, version.partly.slice(at, 1), feed.schema)
        parts = finding.fetch_file_rows(site, files, {path: rows}, names, nested=True)
        yield from (_with_change_type(part.rows, change) for part in parts)
    for at in range(len(version.written)):
        files = _files(feed, version.written.slice(at, 1), written_columns)
        yield from finding.scan(site, files, written_columns.names)


def _paths_and_changes(files: pa.Table) -> Iterator[tuple[str, str]]:
    return zip(files["path"].to_pylist(), files["change"].to_pylist(), strict=True)


def _files(feed: Feed, files: pa.Table, schema: Struct, vectors: Mapping[str, BitMap64] | None = None) -> FileSet:
    columns = [
        files[field.name] if field.name in files.column_names else pa.nulls(len(files), field.type) for field in FILES
    ]
    file_set = FileSet(
        feed.root, schema, feed.metadata.partition_columns, pa.table(columns, schema=FILES), vectors or {}
    )
    return replace(file_set, layouts=feed.layouts, allowed=feed.allowed)


def _with_change_type(rows: pa.RecordBatch, change: str) -> pa.RecordBatch:
    columns = [*rows.columns, pa.repeat(pa.scalar(change), rows.num_rows)]
    return pa.RecordBatch.from_arrays(columns, [*rows.schema.names, CHANGE_TYPE])


def _with_version_columns(rows: pa.RecordBatch, feed: Feed, version: VersionChanges) -> pa.RecordBatch:
    moment = pa.scalar(version.timestamp * 1000, pa.int64()).cast(arrow_type(FIELDS[2].type))
    version_columns = [
        pa.repeat(pa.scalar(version.version, pa.int64()), rows.num_rows),
        pa.repeat(moment, rows.num_rows),
    ]
    return pa.RecordBatch.from_arrays([*rows.columns, *version_columns], schema=feed_schema(feed))


@contextmanager
def _translate_missing_file(feed: Feed, version: VersionChanges) -> Iterator[None]:
    try:
        yield
    except MissingDataFile as error:
        path = str(error.facts["file"])
        raise ChangeFilesMissing(table=feed.root, file=path, version=version.version, reason="is gone") from None
