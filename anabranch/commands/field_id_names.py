"""Layouts: the column names in the files of a table of column mapping mode ``id``.

Knows PROTOCOL.md, section "Reader Requirements for Column Mapping": in that mode a column is matched by the field id in
each Parquet file, whatever its name there. Delta writers use physical names all the same, so only files of other origin
(a converted Iceberg table) need their own names. Guarantee: no setting of a session is changed; a file without ids is
refused. A file of a table never changes, so each footer is read once per process; the same name in a recreated table is
another file.
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
from anabranch._storage.store_settings import bind_context
from anabranch.errors import CorruptLog, MissingDataFile
from anabranch.errors.process_state import cache

_READERS = 8
_REMEMBERED = 100_000
_schemas = cache("schemas of files", _REMEMBERED)


def is_by_id(metadata: Metadata) -> bool:
    """Whether columns are matched by field id."""
    return mode_of(metadata.configuration) == BY_ID


def layouts_of(store: Store, metadata: Metadata, paths: Sequence[str]) -> dict[str, Struct]:
    """The columns as named in each of these files that does not use the physical names; see `FileSet.layouts`.

    Raises:
        MissingDataFile: a file does not exist. CorruptLog: it has no ids.
    """
    with ThreadPoolExecutor(_READERS) as pool:
        layout = bind_context(lambda path: layout_of(metadata, schema_of(store, metadata, path), store.url, path))
        layouts = pool.map(layout, paths)
        by_path = dict(zip(paths, layouts, strict=True))
    return {path: layout for path, layout in by_path.items() if layout != metadata.schema}


def layout_of(metadata: Metadata, there: pa.Schema, table: str, path: str) -> Struct:
    """The table's columns, with the names in a file of this Arrow schema as physical names. Raises CorruptLog: the file
    has no ids, and the table is of mode ``id``.
    """
    if not is_by_id(metadata):
        return metadata.schema
    if not has_ids(there):
        reason = "it has no Parquet field ids, by which alone a table of column mapping mode id can be read."
        raise CorruptLog(table=table, file=path, reason=reason)
    resolved_columns = resolve_by_id(metadata.schema, there)
    partitions = frozenset(metadata.partition_columns)  # their values are the log's, under their physical names
    pairs = zip(metadata.schema, resolved_columns, strict=True)
    return Struct(tuple(column if column.name in partitions else resolved for column, resolved in pairs))


def schema_of(store: Store, metadata: Metadata, path: str) -> pa.Schema:
    """The Arrow schema of a data file, from its footer. Raises MissingDataFile: the file does not exist."""
    key = (store.url, metadata.id, path)
    schema: pa.Schema | None = _schemas.get(key)
    if schema is None:
        schema = _schemas[key] = _read(store, path)
    return schema


def _read(store: Store, path: str) -> pa.Schema:
    file_store, name = locate_in_store(store, path)
    entry = file_store.head(name)
    if entry is None:
        raise MissingDataFile(table=store.url, file=path, reason="is not there")
    return read_footer(file_store, entry).schema.to_arrow_schema()
