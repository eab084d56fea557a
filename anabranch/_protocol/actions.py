"""The actions of the transaction log, as values and as JSON lines.

Knows PROTOCOL.md, section "Actions". Knows nothing of stores, versions in flight or rows. Guarantee: the ``*_line``
functions write what the section says, and leave out every field without a value.

Files are columnar: one Arrow table with the columns of `FILES` (``add``) or `REMOVES` (``remove``), never an object per
file. The few other actions are frozen values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property  # noqa: TID251 - what it computes waits for nobody
from typing import Any
from uuid import UUID

import pyarrow as pa

from anabranch._protocol.schema.column_mapping import apply_mapping_mode, assign_ids_and_names
from anabranch._protocol.schema.types import Struct, parse_schema, schema_json

_TEXT_MAP = pa.map_(pa.string(), pa.string())


class MalformedAction(TypeError, ValueError):
    """An action does not conform to PROTOCOL.md; the message names the field, without its value."""


VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)

FILES = pa.schema(
    [
        ("path", pa.string()),
        ("partitionValues", _TEXT_MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("stats", pa.string()),
        ("tags", _TEXT_MAP),
        ("deletionVector", VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
        ("clusteringProvider", pa.string()),
    ]
)
"""One live file: PROTOCOL.md "Add File and Remove File", without ``dataChange``, which belongs to a commit and not to a
state.
"""

REMOVES = pa.schema(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", _TEXT_MAP),
        ("size", pa.int64()),
        ("stats", pa.string()),
        ("tags", _TEXT_MAP),
        ("deletionVector", VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
    ]
)
"""One tombstone."""

ADDS = FILES.append(pa.field("dataChange", pa.bool_()))
"""``add`` actions of commits."""

DROPS = REMOVES.append(pa.field("dataChange", pa.bool_()))
"""``remove`` actions of commits."""

FileRow = Mapping[str, Any]
"""One row of a `FILES` table as a mapping, for the few files that a change touches."""


_FEATURES_FOR_READERS, _FEATURES_FOR_WRITERS = 3, 7
_WRONG_NAMES = {"timestampWithoutTimezone": "timestampNtz"}
"""Names that tables list in place of a feature's own, which a protocol that is written has (delta-kernel-rs #2557)."""
_DIGITS = 20


@dataclass(frozen=True)
class Protocol:
    """What readers and writers must support (PROTOCOL.md "Protocol Evolution").

    The feature sets are None where the version numbers alone define them (reader below 3, writer below 7). They have
    the features' own names, also if the action lists ``timestampWithoutTimezone`` for ``timestampNtz``.
    """

    min_reader: int = 1
    min_writer: int = 2
    reader_features: frozenset[str] | None = None
    writer_features: frozenset[str] | None = None

    @classmethod
    def from_json(cls, action: Mapping[str, Any]) -> Protocol:
        """Parse a ``protocol`` action. Raises ValueError: it is malformed: versions are integers from 1 on, and a list
        of features is present with exactly those versions that have features, 3 for readers and 7 for writers
        (PROTOCOL.md, "Table Features").
        """
        reader, writer = _version(action, "minReaderVersion"), _version(action, "minWriterVersion")
        if reader == _FEATURES_FOR_READERS and writer < _FEATURES_FOR_WRITERS:
            raise MalformedAction(f"reader version {reader} needs writer version {_FEATURES_FOR_WRITERS}, not {writer}")
        return cls(
            min_reader=reader,
            min_writer=writer,
            reader_features=_features(action, "readerFeatures", reader, _FEATURES_FOR_READERS),
            writer_features=_features(action, "writerFeatures", writer, _FEATURES_FOR_WRITERS),
        )

    def to_json(self) -> dict[str, Any]:
        """The body of a ``protocol`` action."""
        body: dict[str, Any] = {"minReaderVersion": self.min_reader, "minWriterVersion": self.min_writer}
        if self.reader_features is not None:
            body["readerFeatures"] = sorted(self.reader_features)
        if self.writer_features is not None:
            body["writerFeatures"] = sorted(self.writer_features)
        return body


@dataclass(frozen=True)
class Metadata:
    """The table's schema, partitioning and properties (PROTOCOL.md "Change Metadata")."""

    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_time: int | None = None
    format: Mapping[str, Any] = field(default_factory=lambda: {"provider": "parquet", "options": {}})

    @classmethod
    def from_json(cls, action: Mapping[str, Any]) -> Metadata:
        """Parse a ``metaData`` action. Without a schema, as in new tables of pipelines, it has no columns."""
        return cls(
            id=_text_in(action, "id"),
            schema_string=_NO_COLUMNS if (text := _optional_text_in(action, "schemaString")) is None else text,
            partition_columns=_once(_list_in(action, "partitionColumns") or [], "partitionColumns"),
            configuration=_texts(action.get("configuration") or {}),
            name=_optional_text_in(action, "name"),
            description=_optional_text_in(action, "description"),
            created_time=optional_number_in(action, "createdTime"),
            format=_format(action.get("format") or {}),
        )

    def to_json(self) -> dict[str, Any]:
        """The body of a ``metaData`` action."""
        return _without_none(
            {
                "id": self.id,
                "name": self.name,
                "description": self.description,
                "format": {"provider": self.format["provider"], "options": dict(self.format.get("options") or {})},
                "schemaString": self.schema_string,
                "partitionColumns": list(self.partition_columns),
                "configuration": dict(self.configuration),
                "createdTime": self.created_time,
            }
        )

    @cached_property
    def schema(self) -> Struct:
        """The logical columns; under a column mapping each has its physical name."""
        return apply_mapping_mode(parse_schema(self.schema_string), self.configuration)

    def with_schema(self, schema: Struct, new_id: Callable[[], UUID], *, named: bool = False) -> Metadata:
        """The same metadata with these columns; under a column mapping new columns get an id and a physical name, or
        keep their present name if files already use it (``named``).
        """
        whole, configuration = assign_ids_and_names(schema, self.configuration, new_id, named=named)
        return replace(self, schema_string=schema_json(whole), configuration=configuration)

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """The keys of ``partitionValues`` and of folder names: physical names of the partition columns."""
        fields = {name: self.schema.find(name) for name in self.partition_columns}
        return tuple(name if field is None else field.physical_name for name, field in fields.items())


@dataclass(frozen=True)
class AppTransaction:
    """The progress of an application (PROTOCOL.md "Transaction Identifiers")."""

    app_id: str
    version: int
    last_updated: int | None = None

    @classmethod
    def from_json(cls, action: Mapping[str, Any]) -> AppTransaction:
        """The value of a ``txn`` action."""
        version = _number(action["version"], "version")
        return cls(_text_in(action, "appId"), version, optional_number_in(action, "lastUpdated"))

    def is_older_than(self, now_ms: int, retention_ms: int | None) -> bool:
        """Whether it is past the retention that a table may set."""
        if self.last_updated is None or retention_ms is None:
            return False
        return self.last_updated <= now_ms - retention_ms

    def to_json(self) -> dict[str, Any]:
        """The body of a ``txn`` action."""
        return _without_none({"appId": self.app_id, "version": self.version, "lastUpdated": self.last_updated})


@dataclass(frozen=True)
class DomainMetadata:
    """A named piece of configuration (PROTOCOL.md "Domain Metadata")."""

    domain: str
    configuration: str
    removed: bool = False

    @classmethod
    def from_json(cls, action: Mapping[str, Any]) -> DomainMetadata:
        """The value of a ``domainMetadata`` action."""
        configuration = _text_in(action, "configuration")
        return cls(_text_in(action, "domain"), configuration, bool(action.get("removed")))

    def to_json(self) -> dict[str, Any]:
        """The body of a ``domainMetadata`` action."""
        return {"domain": self.domain, "configuration": self.configuration, "removed": self.removed}


def line(kind: str, body: Mapping[str, Any]) -> str:
    """One action as a line of a commit file, without the newline."""
    return compact_json({kind: body})


compact_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""A value as compact JSON, as Delta writes it into a log."""


def add_body(file: FileRow, *, data_change: bool) -> dict[str, Any]:
    """The body of an ``add`` action for one row of a `FILES` table."""
    body = _without_none({name: file.get(name) for name in FILES.names})
    body["partitionValues"] = dict(file.get("partitionValues") or {})
    body["dataChange"] = data_change
    return _with_plain_parts(body)


def remove_body(file: FileRow, *, deletion_timestamp: int, data_change: bool) -> dict[str, Any]:
    """The body of the ``remove`` action for one live file, a row of a `FILES` table.

    It has the file's deletion vector, since a logical file is a path *with* its vector.
    """
    names = ("path", "size", "stats", "tags", "deletionVector", "baseRowId", "defaultRowCommitVersion")
    body = _without_none({name: file.get(name) for name in names})
    body["partitionValues"] = dict(file.get("partitionValues") or {})
    body |= {"deletionTimestamp": deletion_timestamp, "dataChange": data_change, "extendedFileMetadata": True}
    return _with_plain_parts(body)


def add_lines(files: pa.Table, *, data_change: bool) -> Iterator[str]:
    """``add`` lines for a `FILES` table."""
    return (line("add", add_body(file, data_change=data_change)) for file in files.to_pylist())


def empty_files() -> pa.Table:
    """No files."""
    return _NO_FILES


_NO_COLUMNS = '{"type":"struct","fields":[]}'
_NO_FILES = pa.Table.from_batches([], FILES)  # `empty_table` would import pandas, a third of our import time


def files_table(rows: list[Mapping[str, Any]]) -> pa.Table:
    """A `FILES` table of these rows; absent fields are null."""
    if not rows:
        return empty_files()
    full = [{name: row.get(name) for name in FILES.names} for row in rows]
    for row in full:
        row["partitionValues"] = _pairs(row["partitionValues"] or {})
        row["tags"] = None if row["tags"] is None else _pairs(row["tags"])
    return table_of(full, FILES)


def table_of(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """A table of rows that have every column, built at once; building it per column is slower for a few rows."""
    whole = pa.array(rows, pa.struct(list(schema)))
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(whole)])


def _text_in(action: Mapping[str, Any], name: str) -> str:
    value = action[name]
    if isinstance(value, str):
        return value
    raise MalformedAction(f"{name} is no text")


def _optional_text_in(action: Mapping[str, Any], name: str) -> str | None:
    return None if action.get(name) is None else _text_in(action, name)


def optional_number_in(action: Mapping[str, Any], name: str) -> int | None:
    """A 64-bit integer that an action may have. Raises MalformedAction: the value is not one."""
    value = action.get(name)
    return None if value is None else _number(value, name)


def _number(value: Any, name: str) -> int:
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        return value
    raise MalformedAction(f"{name} is no whole number of 64 bits")


def _format(parsed: Any) -> dict[str, Any]:
    whole = {"provider": "parquet", "options": {}, **parsed}
    return {**whole, "provider": _text_in(whole, "provider"), "options": _texts(whole["options"] or {})}


def _version(action: Mapping[str, Any], name: str) -> int:
    """A protocol version: a 32-bit integer from 1 on, or its text."""
    value = action[name]
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _DIGITS:
        value = int(value)
    if type(value) is not int or not 1 <= value < 1 << 31:
        raise MalformedAction(f"{name} is no version of the protocol")
    return value


def _features(action: Mapping[str, Any], name: str, version: int, listing: int) -> frozenset[str] | None:
    """The features of a list under their own names; an empty list counts as absent where no list is allowed."""
    listed = _list_in(action, name)
    if version == listing and listed is None:
        raise MalformedAction(f"version {version} comes with {name}")
    if version < listing and listed:
        raise MalformedAction(f"{name} come with version {listing}, not {version}")
    return None if listed is None or version < listing else frozenset(_WRONG_NAMES.get(each, each) for each in listed)


def _once(names: list[str], field: str) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise MalformedAction(f"{field} name a column twice")
    return tuple(names)


def _list_in(action: Mapping[str, Any], name: str) -> list[str] | None:
    value = action.get(name)
    if value is None or (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        return value
    raise MalformedAction(f"{name} is no list of texts")


def _texts(configuration: Mapping[str, Any]) -> dict[str, str]:
    """Properties as texts; one without a value counts as unset, and a bare true or 5 becomes text."""
    for key, value in configuration.items():
        if not isinstance(value, str | bool | int | float | None):
            raise MalformedAction(f"the property {key} is no text")
    bare = {key: value for key, value in configuration.items() if value is not None}
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in bare.items()}


def _with_plain_parts(body: dict[str, Any]) -> dict[str, Any]:
    if "tags" in body:
        body["tags"] = dict(body["tags"])
    if "deletionVector" in body:
        body["deletionVector"] = _without_none(body["deletionVector"])
    return body


def _pairs(mapping: Any) -> list[tuple[str, str | None]]:
    return list(dict(mapping).items())


def _without_none(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}
