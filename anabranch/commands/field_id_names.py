"""Layouts: what the files of a table of column mapping mode ``id`` call its columns.

Knows PROTOCOL.md, section "Reader Requirements for Column Mapping": in that mode a column is found by the field id in
each Parquet file, whatever it is called there. Writers of Delta use physical names all the same, so that only files of
other origin (an Iceberg table that was converted) need names of their own. Guarantee: no setting of a session is
touched; a file that says no ids is refused. A file of a table never changes, so each footer is read once per process;
the same name in a table that was made again is another file.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from anabranch._log.file_locations import locate_in_store
from anabranch._log.footers import read_footer
from anabranch._protocol.actions import Metadata
from anabranch._protocol.schema.column_mapping import BY_ID, has_ids, mode_of, resolve_by_id
from anabranch._protocol.schema.types import Struct
from anabranch._storage.contract import Store
from anabranch._storage.told import bind_context
from anabranch.errors import CorruptLog, MissingDataFile
from anabranch.errors.process_state import cache

_READERS = 8
_REMEMBERED = 100_000
_schemas = cache("schemas of files", _REMEMBERED)


def is_by_id(metadata: Metadata) -> bool:
    """Whether columns are found by their numbers."""
    return mode_of(metadata.configuration) == BY_ID


def layouts_of(store: Store, metadata: Metadata, paths: Sequence[str]) -> dict[str, Struct]:
    """The columns as those of these files name them that do not use the physical names; see `FileSet.layouts`.

    Raises:
        MissingDataFile: a file is not there. CorruptLog: it says no ids.
    """
    with ThreadPoolExecutor(_READERS) as pool:
        layout = bind_context(lambda path: layout_of(metadata, schema_of(store, metadata, path), store.url, path))
        found = pool.map(layout, paths)
        named = dict(zip(paths, found, strict=True))
    return {path: layout for path, layout in named.items() if layout != metadata.schema}


def layout_of(metadata: Metadata, there: pa.Schema, table: str, path: str) -> Struct:
    """The table's columns with the names that a file of this Arrow schema has for physical ones. Raises CorruptLog: the
    file says no ids, and the table is of mode ``id``.
    """
    if not is_by_id(metadata):
        return metadata.schema
    if not has_ids(there):
        reason = "it has no Parquet field ids, by which alone a table of column mapping mode id can be read."
        raise CorruptLog(table=table, file=path, reason=reason)
    inside = resolve_by_id(metadata.schema, there)
    partitions = frozenset(metadata.partition_columns)  # their values are the log's, under their physical names
    both = zip(metadata.schema, inside, strict=True)
    return Struct(tuple(own if own.name in partitions else found for own, found in both))


def schema_of(store: Store, metadata: Metadata, path: str) -> pa.Schema:
    """The Arrow schema of a data file of a table, from its footer. Raises MissingDataFile: it is not there."""
    key = (store.url, metadata.id, path)
    found: pa.Schema | None = _schemas.get(key)
    if found is None:
        found = _schemas[key] = _read(store, path)
    return found


def _read(store: Store, path: str) -> pa.Schema:
    where, name = locate_in_store(store, path)
    entry = where.head(name)
    if entry is None:
        raise MissingDataFile(table=store.url, file=path, reason="is not there")
    return read_footer(where, entry).schema.to_arrow_schema()
