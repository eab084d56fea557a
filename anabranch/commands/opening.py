"""Opening a table: from a location to its log. The one place where commands meet stores."""

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
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.rules.table_rules import rules_of
from anabranch._protocol.stats.statistics import num_records
from anabranch._storage import open_store
from anabranch.commands.field_id_names import is_by_id, layouts_of
from anabranch.commands.file_sizes import hold_sizes
from anabranch.errors import LocationNotEmpty
from anabranch.errors.secrets import without_secrets

Location = str | os.PathLike[str]

_SECRET = ("storage_options", "target_options")


def open_log(location: Location, storage_options: Mapping[str, str] | None = None) -> Log:
    """The log of the table at a path or URL; nothing is read yet. Raises UnknownStore: the location names no store."""
    return Log(open_store(location, storage_options))


OWNER = "_anabranch_name"
"""Beside the log of a managed table: with which of its names its files go."""


def check_empty(log: Log) -> None:
    """Raises LocationNotEmpty: files lie where a table is to be, which VACUUM would take for its own and remove."""
    for listed in (log.store.list_from, log.store.list_all):  # the first is cheap where there are many files
        others = (each.name for each in listed("") if each.name != OWNER and not each.name.startswith(f"{FOLDER}/"))
        if found := next(others, None):
            raise LocationNotEmpty(table=log.table, found=found)


class Masked:
    """A value whose text shows no secret of a location and none of its storage options."""

    def __init_subclass__(cls) -> None:
        cls.__repr__ = _without_options  # type: ignore[method-assign]


def _without_options(command: Any) -> str:
    values = ((each.name, getattr(command, each.name)) for each in fields(command) if each.repr)
    told = ((name, "..." if name in _SECRET and value else value) for name, value in values)
    return without_secrets(f"{type(command).__name__}({', '.join(f'{name}={value!r}' for name, value in told)})")


def file_set(snapshot: Snapshot, files: pa.Table | None = None, metadata: Metadata | None = None) -> FileSet:
    """The live files of a snapshot, or some files of its table, ready to be read: under its own columns, or under those
    of metadata to come, of which files lack some.

    Raises:
        CorruptVector: a vector is damaged. CorruptLog: a file of a table of mode ``id`` has no ids. MissingDataFile: a
        file has another size than the log says.
    """
    files = snapshot.files if files is None else files
    hold_sizes(snapshot.store, files, snapshot.version)
    metadata = metadata or snapshot.metadata
    return FileSet(
        snapshot.table,
        metadata.schema,
        metadata.partition_columns,
        files,
        vectors_of(snapshot.store, files),
        rules_of(metadata),
        snapshot.version,
        metadata.id,
        layouts_of(snapshot.store, metadata, files["path"].to_pylist()) if is_by_id(metadata) else {},
        tracking_columns(snapshot.protocol, metadata),
        allowed_stores(snapshot.store),
        LogPosition.snapshot(snapshot).mark,
    )


def only(files: pa.Table, mask: pa.BooleanArray) -> pa.Table:
    """The files under a mask."""
    return files if mask.true_count == len(files) else files.filter(mask)


def live_rows(files: pa.Table) -> int | None:
    """How many live rows these files hold, or None where some file has no statistics."""
    counts = [num_records(stats) for stats in files["stats"].to_pylist()]
    if any(count is None for count in counts):
        return None
    deleted = pc.sum(pc.struct_field(files["deletionVector"], "cardinality")).as_py() or 0
    return sum(count for count in counts if count is not None) - int(deleted)
