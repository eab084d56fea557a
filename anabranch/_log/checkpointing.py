"""Writes checkpoints: classic in one file, or V2 under a fresh UUID, with sidecars for many file actions.

Knows PROTOCOL.md, sections "V2 Spec", "UUID-named checkpoint", "Sidecar Files" and "Last Checkpoint File". Guarantee: a
checkpoint is put whole under its final name (one file, atomically), after everything that it names, so two writers of
one version cannot mix and a crash leaves at most unreferenced files; never in parts. The hint is written last, and may
be wrong without harm.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._log.checkpoint import CheckpointHead
from anabranch._log.file_names import LAST_CHECKPOINT, SIDECARS, checkpoint_name, v2_checkpoint_name
from anabranch._log.last_checkpoint import hint_bytes
from anabranch._protocol.compression import arrow_options, codec_text, parse_codec
from anabranch._storage.contract import Store
from anabranch.errors import AlreadyExists

SIDECAR_ACTIONS = 100_000
"""Maximum number of file actions in a V2 checkpoint itself, and in each sidecar."""

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
_CHECKPOINT = pa.struct([("version", pa.int64()), ("tags", _TEXT_MAP)])
_SIDECAR = pa.struct(
    [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", _TEXT_MAP)]
)
_NOT_IN_TOMBSTONES = ["stats", "tags"]
"""PROTOCOL.md, "Checkpoints": the ``remove`` struct does not contain them."""


@dataclass(frozen=True)
class State:
    """The whole content of a checkpoint of ``version``."""

    version: int
    head: CheckpointHead
    files: pa.Table
    tombstones: pa.Table


@dataclass(frozen=True)
class _Sidecar:
    path: str
    size: int
    modified_ms: int

    def body(self) -> dict[str, object]:
        return {"path": self.path, "sizeInBytes": self.size, "modificationTime": self.modified_ms}


def put_classic(store: Store, state: State) -> None:
    """Put a classic checkpoint and then the hint; an existing one stays, since it is equivalent."""
    data, actions = checkpoint_bytes(state)
    try:
        store.put_if_absent(checkpoint_name(state.version), data)
    except AlreadyExists:
        return
    _put_hint(store, state, actions=actions, size=len(data))


def put_v2(store: Store, state: State, *, now_ms: int, new_id: Callable[[], UUID]) -> None:
    """Put a V2 checkpoint under a fresh UUID, its sidecars first, and then the hint."""
    sidecars = _put_sidecars(store, state, now_ms, new_id)
    name = v2_checkpoint_name(state.version, new_id())
    data, actions = v2_bytes(state, sidecars)
    store.put_if_absent(name, data)
    total = actions if not sidecars else actions + len(state.files) + len(state.tombstones)
    size = len(data) + sum(sidecar.size for sidecar in sidecars)
    path = {"path": name.rpartition("/")[2], "sizeInBytes": len(data), "modificationTime": now_ms}
    _put_hint(store, state, actions=total, size=size, v2Checkpoint=path)


def checkpoint_bytes(state: State) -> tuple[bytes, int]:
    """A classic checkpoint as Parquet, and its number of actions."""
    return _parquet([*_heads(state.head), *_file_columns(state.tombstones, state.files)], state.head)


def v2_bytes(state: State, sidecars: list[_Sidecar]) -> tuple[bytes, int]:
    """A V2 checkpoint as Parquet, and its number of actions; it holds the files, or names their sidecars."""
    metadata = _column("checkpointMetadata", pa.array([{"version": state.version}], _CHECKPOINT))
    references = _column("sidecar", pa.array([sidecar.body() for sidecar in sidecars], _SIDECAR))
    actions = (state.tombstones.slice(0, 0), state.files.slice(0, 0)) if sidecars else (state.tombstones, state.files)
    return _parquet([metadata, *_heads(state.head), references, *_file_columns(*actions)], state.head)


def _put_sidecars(store: Store, state: State, now_ms: int, new_id: Callable[[], UUID]) -> list[_Sidecar]:
    if len(state.files) + len(state.tombstones) <= SIDECAR_ACTIONS:
        return []
    sidecars = []
    for kind, actions in (("add", state.files), ("remove", state.tombstones.drop_columns(_NOT_IN_TOMBSTONES))):
        for start in range(0, len(actions), SIDECAR_ACTIONS):
            column = _column(kind, _struct(actions.slice(start, SIDECAR_ACTIONS)))
            data, _ = _parquet([column], state.head)
            path = f"{new_id()}.parquet"
            store.put_if_absent(f"{SIDECARS}/{path}", data)
            sidecars.append(_Sidecar(path, len(data), now_ms))
    return sidecars


def _heads(head: CheckpointHead) -> list[pa.Table]:
    assert head.protocol is not None
    assert head.metadata is not None
    metadata = head.metadata.to_json()
    metadata["configuration"] = list(metadata["configuration"].items())
    metadata["format"] = {**metadata["format"], "options": list(metadata["format"]["options"].items())}
    return [
        _column("protocol", pa.array([head.protocol.to_json()], _PROTOCOL)),
        _column("metaData", pa.array([metadata], _METADATA)),
        _column("txn", pa.array([t.to_json() for t in head.app_transactions.values()], _TXN)),
        _column("domainMetadata", pa.array([d.to_json() for d in head.domains.values()], _DOMAIN)),
    ]


def _file_columns(tombstones: pa.Table, files: pa.Table) -> list[pa.Table]:
    removes = tombstones.drop_columns(_NOT_IN_TOMBSTONES)
    return [_column("remove", _struct(removes)), _column("add", _struct(files))]


def _parquet(parts: list[pa.Table], head: CheckpointHead) -> tuple[bytes, int]:
    """One table of all parts, compressed as the table says; file actions, if any, in row groups of their own."""
    assert head.metadata is not None
    options = arrow_options(parse_codec(codec_text(head.metadata.configuration)))
    table = pa.concat_tables(parts, promote_options="default")
    head_rows = sum(len(part) for part in parts if not {"add", "remove"} & set(part.column_names))
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, write_page_checksum=True, **options) as writer:
        for rows in (table.slice(0, head_rows), table.slice(head_rows)):
            if len(rows) or not len(table):
                writer.write_table(rows)
    return sink.getvalue(), table.num_rows


def _column(name: str, values: pa.Array) -> pa.Table:
    return pa.table({name: values})


def _struct(actions: pa.Table) -> pa.StructArray:
    """A table's rows as structs, with ``dataChange`` false, as checkpoints require."""
    actions = actions.combine_chunks().append_column("dataChange", pa.array([False] * len(actions), pa.bool_()))
    columns = [column.combine_chunks() for column in actions.columns]
    return pa.StructArray.from_arrays(columns, fields=list(actions.schema))


def _put_hint(store: Store, state: State, *, actions: int, size: int, **more: object) -> None:
    fields = {"version": state.version, "size": actions, "sizeInBytes": size, "numOfAddFiles": len(state.files)}
    store.put(LAST_CHECKPOINT, hint_bytes({**fields, **more}))
