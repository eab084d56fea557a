"""Checkpoints: the whole state of one version in one Parquet file.

Knows PROTOCOL.md, sections "Checkpoints" and "Checkpoint Schema"; classic checkpoints only. Guarantee: a checkpoint
is put whole under its final name (one file, atomically), so two writers of one version cannot mix; the hint
``_last_checkpoint`` is written after it, and may be wrong without harm.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch.errors import AlreadyExists, CorruptLog, InvalidSchema
from anabranch.log.names import LAST_CHECKPOINT, checkpoint_name
from anabranch.protocol.actions import FILES, REMOVES, AppTransaction, DomainMetadata, Metadata, Protocol
from anabranch.storage.contract import Store

_TEXT_MAP = pa.map_(pa.string(), pa.string())
_PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())),
        ("writerFeatures", pa.list_(pa.string())),
    ]
)
_METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _TEXT_MAP)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", _TEXT_MAP),
        ("createdTime", pa.int64()),
    ]
)
_TXN = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
_DOMAIN = pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())])
_HEAD_COLUMNS = ["protocol", "metaData", "txn", "domainMetadata"]


@dataclass(frozen=True)
class CheckpointHead:
    """What a checkpoint says besides files."""

    protocol: Protocol | None
    metadata: Metadata | None
    app_transactions: Mapping[str, AppTransaction]
    domains: Mapping[str, DomainMetadata]


class CheckpointFile:
    """One classic checkpoint; columns are read only when asked for.

    Raises:
        CorruptLog: the file is cut off or is no Parquet.
    """

    def __init__(self, store: Store, version: int) -> None:
        self._table, self._name = store.url, checkpoint_name(version)
        try:
            self._parquet = pq.ParquetFile(io.BytesIO(store.get(self._name)))
        except pa.ArrowException as error:
            raise CorruptLog(
                table=self._table, file=self._name, reason=f"it is not a whole Parquet file ({error})."
            ) from None

    def head(self) -> CheckpointHead:
        """Protocol, metadata, application transactions and domains, without reading any file action.

        Raises:
            CorruptLog: one of them is not as it must be.
        """
        table = self._read([name for name in _HEAD_COLUMNS if name in self._names])
        try:
            return self._head(table)
        except (KeyError, TypeError, ValueError, AttributeError, InvalidSchema) as error:
            reason = f"an action is not whole ({error!r})."
            raise CorruptLog(table=self._table, file=self._name, reason=reason) from error

    def _head(self, table: pa.Table) -> CheckpointHead:
        protocols, metadatas = self._values(table, "protocol"), self._values(table, "metaData")
        metadata = Metadata.from_json(_with_dicts(metadatas[0])) if metadatas else None
        _ = metadata and metadata.schema  # parsed now, so that a damaged one is refused by the file's name
        return CheckpointHead(
            protocol=Protocol.from_json(protocols[0]) if protocols else None,
            metadata=metadata,
            app_transactions={t["appId"]: AppTransaction.from_json(t) for t in self._values(table, "txn")},
            domains={d["domain"]: DomainMetadata.from_json(d) for d in self._values(table, "domainMetadata")},
        )

    def files(self) -> pa.Table:
        """The live files of that version."""
        return self._actions("add", FILES)

    def tombstones(self) -> pa.Table:
        """The files removed before that version that are still remembered."""
        return self._actions("remove", REMOVES)

    @property
    def _names(self) -> list[str]:
        return list(self._parquet.schema_arrow.names)

    def _read(self, columns: list[str]) -> pa.Table:
        try:
            return self._parquet.read(columns=columns)
        except (pa.ArrowException, OSError) as error:
            raise CorruptLog(table=self._table, file=self._name, reason=f"it cannot be read ({error}).") from None

    def _values(self, table: pa.Table, name: str) -> list[Any]:
        if name not in table.column_names:
            return []
        return list(table[name].drop_null().to_pylist())

    def _actions(self, kind: str, schema: pa.Schema) -> pa.Table:
        if kind not in self._names:
            return schema.empty_table()
        present = {field.name for field in self._parquet.schema_arrow.field(kind).type}
        wanted = [field.name for field in schema if field.name in present]
        column = self._read([f"{kind}.{name}" for name in wanted])[kind].combine_chunks()
        column = column.filter(column.is_valid())
        return _projected(column, schema)


def _projected(actions: pa.StructArray, schema: pa.Schema) -> pa.Table:
    """The struct's fields as a table of exactly this schema; what is not there is null."""
    found = {field.name: i for i, field in enumerate(actions.type)}
    arrays = [
        _conform(pc.struct_field(actions, [found[field.name]]), field.type)
        if field.name in found
        else pa.nulls(len(actions), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _conform(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Cast, also structs that lack fields or have further ones."""
    if not pa.types.is_struct(type_):
        return values if values.type == type_ else values.cast(type_)
    found = {field.name: i for i, field in enumerate(values.type)}
    parts = [
        _conform(pc.struct_field(values, [found[f.name]]), f.type) if f.name in found else pa.nulls(len(values), f.type)
        for f in type_
    ]
    return pa.StructArray.from_arrays(parts, fields=list(type_), mask=values.is_null())


def _with_dicts(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Arrow gives maps as lists of pairs."""
    format_ = dict(metadata.get("format") or {"provider": "parquet"})
    format_["options"] = dict(format_.get("options") or {})
    return {**metadata, "configuration": dict(metadata.get("configuration") or {}), "format": format_}


def checkpoint_bytes(head: CheckpointHead, files: pa.Table, tombstones: pa.Table) -> tuple[bytes, int]:
    """A classic checkpoint as Parquet, and its number of actions."""
    assert head.protocol is not None
    assert head.metadata is not None
    metadata = head.metadata.to_json()
    metadata["configuration"] = list(metadata["configuration"].items())
    metadata["format"] = {**metadata["format"], "options": list(metadata["format"]["options"].items())}
    parts = [
        _column("protocol", pa.array([head.protocol.to_json()], _PROTOCOL)),
        _column("metaData", pa.array([metadata], _METADATA)),
        _column("txn", pa.array([t.to_json() for t in head.app_transactions.values()], _TXN)),
        _column("domainMetadata", pa.array([d.to_json() for d in head.domains.values()], _DOMAIN)),
        _column("remove", _struct(tombstones, dataChange=False)),
        _column("add", _struct(files, dataChange=False)),
    ]
    table = pa.concat_tables(parts, promote_options="default")
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="snappy")
    return sink.getvalue(), table.num_rows


def _column(name: str, values: pa.Array) -> pa.Table:
    return pa.table({name: values})


def _struct(actions: pa.Table, *, dataChange: bool) -> pa.StructArray:
    """A table's rows as structs, with a constant ``dataChange``, as checkpoints want it."""
    actions = actions.combine_chunks().append_column("dataChange", pa.array([dataChange] * len(actions), pa.bool_()))
    columns = [column.combine_chunks() for column in actions.columns]
    return pa.StructArray.from_arrays(columns, fields=list(actions.schema))


def put_checkpoint(store: Store, version: int, data: bytes, *, actions: int, files: int) -> None:
    """Put a checkpoint and then the hint; one that is there already is left alone, since it says the same."""
    try:
        store.put_if_absent(checkpoint_name(version), data)
    except AlreadyExists:
        return
    hint = {"version": version, "size": actions, "sizeInBytes": len(data), "numOfAddFiles": files}
    store.put(LAST_CHECKPOINT, json.dumps(hint).encode())
