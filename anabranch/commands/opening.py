"""Opens a table: from a location to its log. The only place where commands use stores."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.file_locations import allowed_stores
from anabranch._log.file_names import FOLDER
from anabranch._log.log import Log
from anabranch._log.positions import LogPosition
from anabranch._log.snapshot import Snapshot
from anabranch._log.vectors import vectors_of
from anabranch._protocol.actions import Metadata
from anabranch._protocol.features.row_tracking import tracking_columns
from anabranch._protocol.features.table_features import writer_features
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.rules.table_rules import rules_of
from anabranch._protocol.stats.statistics import num_records
from anabranch._storage import open_store
from anabranch._transaction.open_transaction import open_transaction
from anabranch.commands.field_id_names import is_by_id, layouts_of
from anabranch.commands.file_sizes import check_sizes
from anabranch.errors import LocationNotEmpty
from anabranch.errors.secrets import without_secrets

Location = str | os.PathLike[str]

_SECRET = ("storage_options", "target_options")


def open_log(location: Location, storage_options: Mapping[str, str] | None = None) -> Log:
    """The log of the table at a path or URL, as this thread's open transaction sees it, if there is one. Raises
    UnknownStore: the location names no store.
    """
    store, transaction = open_store(location, storage_options), open_transaction()
    return Log(store if transaction is None else transaction.view(store))


OWNER = "_anabranch_name"
"""The file beside the log of a managed table that records under which of its names its files are dropped."""


def check_empty(log: Log) -> None:
    """Raises LocationNotEmpty if a new table's location holds files, which its VACUUM would remove as its own."""
    for list_names in (log.store.list_from, log.store.list_all):  # the first is cheap even with many files
        foreign_names = (
            entry.name for entry in list_names("") if entry.name != OWNER and not entry.name.startswith(f"{FOLDER}/")
        )
        if foreign := next(foreign_names, None):
            raise LocationNotEmpty(table=log.table, found=foreign)


class SecretFree:
    """A value whose text shows neither secrets of a location nor storage options."""

    def __init_subclass__(cls) -> None:
        cls.__repr__ = _without_options  # type: ignore[method-assign]


def _without_options(command: Any) -> str:
    values = ((field.name, getattr(command, field.name)) for field in fields(command) if field.repr)
    shown = ((name, "..." if name in _SECRET and value else value) for name, value in values)
    return without_secrets(f"{type(command).__name__}({', '.join(f'{name}={value!r}' for name, value in shown)})")


def file_set(snapshot: Snapshot, files: pa.Table | None = None, metadata: Metadata | None = None) -> FileSet:
    """The live files of a snapshot, or some files of its table, ready to read: with the snapshot's columns, or with
    those of new metadata, some of which files may lack.

    Raises:
        CorruptVector: a vector is damaged. CorruptLog: a file of a table of mode ``id`` has no ids. MissingDataFile:
        the size of a file differs from the log's.
    """
    files = snapshot.files if files is None else files
    check_sizes(snapshot.store, files, snapshot.version)
    metadata = metadata or snapshot.metadata
    return FileSet(
        snapshot.table,
        metadata.schema,
        metadata.partition_columns,
        files,
        vectors_of(snapshot.store, files),
        rules_of(metadata, writer_features(snapshot.protocol)),
        snapshot.version,
        metadata.id,
        layouts_of(snapshot.store, metadata, files["path"].to_pylist()) if is_by_id(metadata) else {},
        tracking_columns(snapshot.protocol, metadata),
        allowed_stores(snapshot.store),
        LogPosition.snapshot(snapshot).mark,
    )


def filter_files(files: pa.Table, mask: pa.BooleanArray) -> pa.Table:
    """The files that a mask selects."""
    return files if mask.true_count == len(files) else files.filter(mask)


def live_rows(files: pa.Table) -> int | None:
    """The number of live rows in these files; None if a file has no statistics."""
    counts = [num_records(stats) for stats in files["stats"].to_pylist()]
    if any(count is None for count in counts):
        return None
    deleted = pc.sum(pc.struct_field(files["deletionVector"], "cardinality")).as_py() or 0
    return sum(count for count in counts if count is not None) - int(deleted)
