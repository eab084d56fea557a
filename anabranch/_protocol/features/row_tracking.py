"""Row tracking: stable row ids, and the version that last changed each row.

Knows PROTOCOL.md, section "Row Tracking". Pure. A row's *default* id is its file's ``baseRowId`` plus its position, its
default commit version the file's ``defaultRowCommitVersion``; if a row moved into another file, two hidden columns of
that file have its former values (they are *materialised*). Guarantee: new ids are above the given high-water mark, and
no two rows get one id.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.actions import DomainMetadata, Metadata, Protocol
from anabranch._protocol.features.known import ROW_TRACKING
from anabranch._protocol.features.table_features import writer_features
from anabranch._protocol.iceberg import hidden_ids
from anabranch._protocol.schema.column_mapping import FIELD_ID
from anabranch._protocol.schema.types import Field, Struct
from anabranch._protocol.stats.statistics import num_records
from anabranch.errors import InvalidOption, InvalidProperty

DOMAIN = "delta.rowTracking"
ENABLED = "delta.enableRowTracking"
SUSPENDED = "delta.rowTrackingSuspended"
PREFIX = "delta.rowTracking."
ROW_ID_COLUMN = f"{PREFIX}materializedRowIdColumnName"
COMMIT_VERSION_COLUMN = f"{PREFIX}materializedRowCommitVersionColumnName"
PRESERVED = "delta.rowTracking.preserved"
"""The tag of a commit in which all changed and copied rows kept their ids."""

FILE_FIELDS = ("baseRowId", "defaultRowCommitVersion")
"""The fields of a file action with its row ids and commit version."""

NOTHING = -1
"""The high-water mark of a table without ids."""
MOST = (1 << 63) - 1
_MARK = "rowIdHighWaterMark"
_PREFIXES = {ROW_ID_COLUMN: "_row-id-col-", COMMIT_VERSION_COLUMN: "_row-commit-version-col-"}


@dataclass(frozen=True)
class HiddenColumns:
    """The names of the hidden columns of a table with row tracking enabled; their field ids in new files, if any."""

    row_id: str
    commit_version: str
    field_ids: tuple[int, int] | None = None

    @property
    def fields(self) -> tuple[Field, Field]:
        """The columns as stored in files."""
        row_id, commit_version = ({}, {}) if self.field_ids is None else ({FIELD_ID: each} for each in self.field_ids)
        return Field(self.row_id, "long", metadata=row_id), Field(self.commit_version, "long", metadata=commit_version)

    def beside(self, schema: Struct) -> Struct:
        """A table's columns followed by these."""
        return Struct((*schema.fields, *self.fields))


# -- metadata ----------------------------------------------------------------------------------------------------------


def is_supported(protocol: Protocol) -> bool:
    """Whether the protocol lists row tracking."""
    return ROW_TRACKING in writer_features(protocol)


def assigns(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether writers assign ids to every file: row tracking is *supported* and not suspended."""
    return is_supported(protocol) and not _is_true(metadata.configuration, SUSPENDED)


def tracking_columns(protocol: Protocol, metadata: Metadata) -> HiddenColumns | None:
    """The hidden columns if row tracking is *enabled*, so that rows keep their ids; else None."""
    configuration = metadata.configuration
    if not is_supported(protocol) or not _is_true(configuration, ENABLED):
        return None
    row_id, commit_version = configuration.get(ROW_ID_COLUMN), configuration.get(COMMIT_VERSION_COLUMN)
    if not row_id or not commit_version:
        return None
    return HiddenColumns(row_id, commit_version, hidden_ids(configuration))


def is_enabled(metadata: Metadata) -> bool:
    """Whether the property enables row tracking."""
    return _is_true(metadata.configuration, ENABLED)


def is_suspended(metadata: Metadata) -> bool:
    """Whether assigning ids is suspended."""
    return _is_true(metadata.configuration, SUSPENDED)


def with_columns(metadata: Metadata, new_id: Callable[[], object], old: Metadata | None = None) -> Metadata:
    """The metadata with names for the hidden columns, if it needs them: each a ``new_id`` that no column has; a table
    keeps the names of the ``old`` metadata.

    Raises:
        InvalidProperty: row tracking would be enabled and suspended at once.
        InvalidOption: a column of the table has the name of a hidden column.
    """
    configuration = metadata.configuration
    if is_enabled(metadata) and _is_true(configuration, SUSPENDED):
        reason = f"row tracking cannot be enabled while {SUSPENDED} is true."
        raise InvalidProperty(property=ENABLED, value=configuration[ENABLED], reason=reason)
    before = old.configuration if old is not None else configuration
    names = {key: before[key] for key in _PREFIXES if key in before}
    for key, prefix in _PREFIXES.items() if is_enabled(metadata) else ():
        if key not in names:
            names[key] = f"{prefix}{new_id()}"
    named = (
        metadata
        if names.items() <= configuration.items()
        else replace(metadata, configuration={**configuration, **names})
    )
    check_columns(named)
    return named


def with_present_columns(metadata: Metadata, present: Metadata, new_id: Callable[[], object]) -> Metadata:
    """An older metadata of a table, with the hidden columns of the present one, or new ones: the contents of the older
    hidden columns do not count. Raises as `with_columns`.
    """
    configuration = {key: value for key, value in metadata.configuration.items() if key not in _PREFIXES}
    return with_columns(replace(metadata, configuration=configuration), new_id, present)


def check_columns(metadata: Metadata) -> None:
    """Raises `InvalidOption` if a column has the name of a hidden column."""
    hidden = {metadata.configuration.get(key, "").lower() for key in _PREFIXES} - {""}
    for column in metadata.schema if hidden else ():
        if not hidden.isdisjoint({column.name.lower(), column.physical_name.lower()}):
            raise InvalidOption(option="columns", value=column.name, reason="row tracking uses this name.")


def hidden_names(metadata: Metadata) -> tuple[str, ...]:
    """The names of the hidden columns, of row ids and of commit versions; empty if the table has none."""
    names = tuple(metadata.configuration.get(key, "") for key in _PREFIXES)
    return names if all(names) else ()


def without_hidden_columns(file_schema: pa.Schema, metadata: Metadata) -> pa.Schema:
    """The columns of a file without the hidden ones, which are not the table's."""
    hidden = hidden_names(metadata)
    return pa.schema([field for field in file_schema if field.name not in hidden])


def _is_true(configuration: Mapping[str, str], key: str) -> bool:
    return configuration.get(key, "").strip().lower() == "true"


# -- the mark and the numbers ------------------------------------------------------------------------------------------


def mark_of(domain: DomainMetadata) -> int:
    """The high-water mark in the row tracking domain.

    Raises:
        ValueError: it has no mark.

    Example:
        >>> mark_of(domain_of(41))
        41
    """
    body = json.loads(domain.configuration)
    mark = body.get(_MARK) if isinstance(body, dict) else None
    if type(mark) is not int or not NOTHING <= mark <= MOST:
        raise ValueError(f"it holds no {_MARK}")
    return mark


def domain_of(mark: int) -> DomainMetadata:
    """The row tracking domain with a high-water mark."""
    return DomainMetadata(DOMAIN, json.dumps({_MARK: mark}, separators=(",", ":")))


def highest(files: pa.Table) -> int:
    """The highest default id in these files (`FILES`); `NOTHING` if none has one."""
    numbered = files.filter(pc.is_valid(files["baseRowId"]))
    ranges = zip(numbered["baseRowId"].to_pylist(), numbered["stats"].to_pylist(), strict=True)
    return max((base + (num_records(stats) or 0) - 1 for base, stats in ranges), default=NOTHING)


def without_ids(files: pa.Table) -> pa.Table:
    """The files (`FILES`) without row ids."""
    for name in FILE_FIELDS:
        files = _with_column(files, name, pa.nulls(len(files), pa.int64()))
    return files


def assign_row_ids(files: pa.Table, mark: int, version: int) -> tuple[pa.Table, int]:
    """Assign row ids to the files (`FILES`, each with its ``numRecords``) without them, above the highest mark so far,
    for a commit of ``version``; return the files and the new mark. Raises OverflowError: not enough ids are left.
    """
    bases: list[int] = []
    for base_id, stats in zip(files["baseRowId"].to_pylist(), files["stats"].to_pylist(), strict=True):
        count = num_records(stats)
        if base_id is None:
            assert count is not None, "a file without numRecords cannot be given row ids"
            base_id, mark = mark + 1, mark + count
        bases.append(base_id)
    if mark > MOST:
        raise OverflowError("not enough row ids are left")
    versions = pc.fill_null(files["defaultRowCommitVersion"], version)
    with_bases = _with_column(files, "baseRowId", pa.array(bases, pa.int64()))
    return _with_column(with_bases, "defaultRowCommitVersion", versions), mark


def _with_column(files: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return files.set_column(files.schema.get_field_index(name), files.schema.field(name), values)
