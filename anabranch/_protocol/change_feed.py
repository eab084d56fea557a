"""The change data feed: which rows of which files each version inserted and deleted.

Knows PROTOCOL.md, sections "Add CDC File" and "Change Data Files", and delta-spark's rule for versions without such
files. Pure: actions and vectors in, values out; nothing is read. Guarantee: the rows of a version, plus the inserts and
minus the deletes of the next, are the rows of the next, however vectors changed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._protocol.actions import FILES, FileRow, Metadata
from anabranch._protocol.layout.file_sets import FileSet, Marks
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct, kind_of
from anabranch.errors import InvalidSchema

ENABLED = "delta.enableChangeDataFeed"
INSERT, DELETE = "insert", "delete"
PREIMAGE, POSTIMAGE = "update_preimage", "update_postimage"
FOLDER = "_change_data"
"""The folder of change data files, inside the table's."""
CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
FIELDS = (Field(CHANGE_TYPE, "string"), Field(COMMIT_VERSION, "long"), Field(COMMIT_TIMESTAMP, "timestamp"))
COLUMNS = tuple(column.name for column in FIELDS)
"""The columns that a feed adds to the table's."""

PLACES = pa.schema([FILES.field(name) for name in ("path", "partitionValues", "size")])
"""The attributes of a file that are needed to read its changes."""
CHANGES = PLACES.append(pa.field("change", pa.string()))

_COUNTS = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


@dataclass(frozen=True)
class Images:
    """Rows that a transaction changed, and how.

    Attributes:
        change: `INSERT`, `DELETE`, `PREIMAGE` or `POSTIMAGE`.
        files: the files with the rows.
        rows: the positions of the rows; None: every live row of the files.
        joined: the engine's handle to the rows, if a MERGE changed them (`anabranch._protocol.merges.Joined.handle`).
    """

    change: str
    files: FileSet
    rows: Marks | None = None
    joined: Any = None

    @property
    def selected_files(self) -> FileSet:
        """The files that contain any of the rows."""
        return self.files if self.rows is None else self.files.restrict_to(dict(self.rows))


def change_data_columns(schema: Struct) -> Struct:
    """The columns of a change data file: the table's, and the change type."""
    return Struct((*schema, FIELDS[0]))


def change_data_files(files: FileSet) -> FileSet:
    """Change data files, with their columns."""
    layouts = {path: change_data_columns(layout) for path, layout in files.layouts.items()}
    return replace(files, schema=change_data_columns(files.schema), layouts=layouts)


@dataclass(frozen=True)
class VersionChanges:
    """The changes of one version.

    Attributes:
        version: its number.
        timestamp: when it was committed, in milliseconds since 1970.
        whole: files of which every row was inserted or deleted (`CHANGES`), except those deleted before.
        hidden: the rows of these files that were deleted before.
        partly: files of which some rows were inserted or deleted (`CHANGES`).
        rows: those rows, one set for each file.
        written: files of change data, whose rows have their own change type (`PLACES`).
    """

    version: int
    timestamp: int
    whole: pa.Table = field(default_factory=CHANGES.empty_table)
    hidden: Marks = field(default_factory=dict)
    partly: pa.Table = field(default_factory=CHANGES.empty_table)
    rows: tuple[BitMap64, ...] = ()
    written: pa.Table = field(default_factory=PLACES.empty_table)

    @property
    def paths(self) -> set[str]:
        """Its files."""
        return {path for table in (self.whole, self.partly, self.written) for path in table["path"].to_pylist()}


@dataclass(frozen=True)
class Feed:
    """The changes to read: of a table, with the columns of ``metadata``, version by version.

    ``read_at`` was the newest version when they were determined; ``layouts``, ``allowed`` and the newest version's
    ``commit`` are as in `anabranch._protocol.layout.file_sets.FileSet`.
    """

    root: str
    metadata: Metadata
    versions: tuple[VersionChanges, ...]
    read_at: int
    layouts: Mapping[str, Struct] = field(default_factory=dict)
    allowed: tuple[str, ...] = ()
    commit: str | None = None

    @property
    def schema(self) -> Struct:
        """The table's columns, without `COLUMNS`."""
        return self.metadata.schema

    @property
    def paths(self) -> list[str]:
        """Every file, once."""
        return list(dict.fromkeys(path for version in self.versions for path in version.paths))

    def version_of(self, path: str) -> int | None:
        """The first version whose changes use a file."""
        return next((changes.version for changes in self.versions if path in changes.paths), None)


# -- one version -------------------------------------------------------------------------------------------------------


def derive_changes(
    version: int, timestamp: int, adds: pa.Table, removes: pa.Table, vector: Callable[[FileRow], BitMap64]
) -> VersionChanges:
    """Derive the changes of a version without change data files.

    Its adds are inserts and its removes are deletes, if they declare a data change. A file that it removed and added
    again with another deletion vector stays: only rows in which the vectors differ were deleted or restored.

    Args:
        adds, removes: its actions (`anabranch._protocol.actions.ADDS`, `DROPS`).
        vector: returns the deleted rows of a file; called only for files that have a vector, or whose path is in both.
    """
    adds, removes = data_changes(adds), data_changes(removes)
    is_readded = pc.is_in(adds["path"], value_set=removes["path"].combine_chunks())
    is_kept = pc.is_in(removes["path"], value_set=adds["path"].combine_chunks())
    added, removed = adds.filter(pc.invert(is_readded)), removes.filter(pc.invert(is_kept))
    partly, rows = _differences(adds.filter(is_readded), removes.filter(is_kept), vector)
    return VersionChanges(
        version,
        timestamp,
        pa.concat_tables([_changes(added, INSERT), _changes(removed, DELETE)]),
        {**_vectors_by_path(added, vector), **_vectors_by_path(removed, vector)},
        partly,
        rows,
    )


def records_changes(metadata: Metadata) -> bool:
    """Whether a table records its changes."""
    return metadata.configuration.get(ENABLED, "").strip().lower() == "true"


def check_recordable(metadata: Metadata, before: Metadata | None = None) -> None:
    """Raises InvalidSchema if a table records its changes and has a column with a name that the feed needs; not if it
    already had one ``before``, so that a change of its metadata can correct it.
    """
    reserved = _conflicting_columns(metadata)
    if reserved and not (before is not None and _conflicting_columns(before)):
        reason = (
            f"The write contains reserved columns [{', '.join(reserved)}], which the change data feed needs; rename "
            f"them, or set {ENABLED} = false."
        )
        raise InvalidSchema(reason=reason, delta_condition="RESERVED_CDC_COLUMNS_ON_WRITE")


def _conflicting_columns(metadata: Metadata) -> list[str]:
    return [name for name in COLUMNS if metadata.schema.find(name) is not None] if records_changes(metadata) else []


def cdc_body(file: FileRow) -> dict[str, Any]:
    """The body of a ``cdc`` action for a new file of change data."""
    values = dict(file["partitionValues"] or {})
    return {"path": file["path"], "partitionValues": values, "size": file["size"], "dataChange": False}


def changes_from_cdc(version: int, timestamp: int, actions: list[Mapping[str, Any]]) -> VersionChanges:
    """The changes of a version with change data files, as its ``cdc`` actions alone declare them."""
    rows = [{**action, "partitionValues": list((action.get("partitionValues") or {}).items())} for action in actions]
    return VersionChanges(version, timestamp, written=pa.Table.from_pylist(rows, schema=PLACES))


def changes_nothing(info: Mapping[str, Any]) -> bool:
    """Whether a commit is a MERGE whose metrics report no changed rows. It may have rewritten rows, which delta-spark
    does not count as changes either.
    """
    counts = info.get("operationMetrics") or {}
    return info.get("operation") == "MERGE" and all(str(counts.get(name)) == "0" for name in _COUNTS)


def data_changes(actions: pa.Table) -> pa.Table:
    """The adds or removes that declare a data change; others only move rows."""
    return actions.filter(pc.fill_null(actions["dataChange"], False))


def _changes(actions: pa.Table, change: str) -> pa.Table:
    changes = actions.select(PLACES.names)
    return changes.append_column(CHANGES.field("change"), pa.array([change] * len(changes), pa.string())).cast(CHANGES)


def _vectors_by_path(actions: pa.Table, vector: Callable[[FileRow], BitMap64]) -> dict[str, BitMap64]:
    marked = actions.filter(pc.is_valid(actions["deletionVector"]))
    return {row["path"]: vector(row) for row in marked.to_pylist()}


def _differences(
    adds: pa.Table, removes: pa.Table, vector: Callable[[FileRow], BitMap64]
) -> tuple[pa.Table, tuple[BitMap64, ...]]:
    """The deleted rows and the restored rows of files that were removed and added in one version."""
    before = {row["path"]: vector(row) for row in removes.to_pylist()}
    changed: list[dict[str, Any]] = []
    sets: list[BitMap64] = []
    for row in adds.to_pylist():
        deleted, was_deleted = vector(row), before[row["path"]]
        for change, rows in ((DELETE, deleted - was_deleted), (INSERT, was_deleted - deleted)):
            if rows:
                changed.append({**{name: row[name] for name in PLACES.names}, "change": change})
                sets.append(rows)
    return pa.Table.from_pylist(changed, schema=CHANGES), tuple(sets)


# -- columns -----------------------------------------------------------------------------------------------------------


Fits = Callable[[DataType, DataType], bool]
"""Whether values of one type can be read as another one."""


def unreadable(older: DataType, newer: DataType, path: str = "", fits: Fits = operator.eq) -> str | None:
    """Why rows of one schema cannot be read with a newer one; None if they can: the newer one may only have more
    columns, which are NULL.

    Args:
        older, newer: the schemas.
        path: the path of the schemas, for the reason.
        fits: whether values of one type, neither struct, list nor map, can be read as another.

    Example:
        >>> unreadable(Struct((Field("id", "integer"),)), Struct((Field("id", "long"),)))
        'id is no longer of the type integer'
    """
    if isinstance(older, Struct) and isinstance(newer, Struct):
        return next((why for old_field in older if (why := _unreadable_field(old_field, newer, path, fits))), None)
    if isinstance(older, Array) and isinstance(newer, Array):
        return unreadable(older.element, newer.element, f"{path}.element", fits)
    if isinstance(older, Map) and isinstance(newer, Map):
        key = unreadable(older.key, newer.key, f"{path}.key", fits)
        return key or unreadable(older.value, newer.value, f"{path}.value", fits)
    if fits(older, newer):
        return None
    return f"{path} is no longer of the type {kind_of(older)}"


def _unreadable_field(older: Field, newer: Struct, prefix: str, fits: Fits) -> str | None:
    path = f"{prefix}.{older.name}" if prefix else older.name
    new_field = newer.find(older.name)
    if new_field is None or new_field.name != older.name or new_field.physical_name != older.physical_name:
        return f"{path} was dropped or renamed"
    return unreadable(older.type, new_field.type, path, fits)
