"""Reads checkpoints: the whole state of one version, in one file, in parts, or in sidecars.

Knows PROTOCOL.md, sections "Checkpoints", "Sidecar Files" and "Checkpoint Schema". Guarantee: what cannot be a whole
checkpoint of that version raises ``CorruptLog`` with the file and, as the fact ``checkpoint``, the checkpoint that it
belongs to, so that the caller can read another segment; file actions are read only on request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.checkpoint_parts import CheckpointFiles
from anabranch._log.commit_files import Raw, content_of
from anabranch._log.commits import parse_commit, parse_head
from anabranch._log.file_names import LAST_CHECKPOINT, SIDECARS, checkpoint_file
from anabranch._log.lazy import lazy
from anabranch._log.parquet import LogParquet
from anabranch._log.typed_stats import partition_maps, stats_texts
from anabranch._protocol.actions import FILES, REMOVES, AppTransaction, DomainMetadata, Metadata, Protocol
from anabranch._storage.contract import Entry, Store
from anabranch.errors import CorruptLog, InvalidSchema, NotFound
from anabranch.errors.rows import cause, detail

_HEAD_COLUMNS = ("protocol", "metaData", "txn", "domainMetadata")
_V2_COLUMNS = ("checkpointMetadata", "sidecar")
_READERS = 8
_REQUIRED = {"add": ("path", "size"), "remove": ("path",)}
_KNOWN_FIELDS = {*FILES.names, *REMOVES.names, "dataChange", "stats_parsed", "partitionValues_parsed"}
_NOT_WHOLE = (KeyError, TypeError, ValueError, AttributeError, IndexError, InvalidSchema, pa.ArrowException)


@dataclass(frozen=True)
class CheckpointHead:
    """The content of a checkpoint apart from files."""

    protocol: Protocol | None
    metadata: Metadata | None
    app_transactions: Mapping[str, AppTransaction]
    domains: Mapping[str, DomainMetadata]


class Checkpoint:
    """One whole checkpoint; columns are read on request.

    Example:
        >>> listed = checkpoints_in(store.list_from(first_name(0)))[-1]
        >>> Checkpoint(store, listed).files().num_rows
        1000000

    Raises:
        CorruptLog: a file of it is missing, truncated or garbled; also from each method.
    """

    def __init__(self, store: Store, listed: CheckpointFiles) -> None:
        self._store, self._listed = store, listed

    def head(self) -> CheckpointHead:
        """Protocol, metadata, application transactions and domains, without reading any file action."""
        return self._translate_errors(self._head)

    def files(self) -> pa.Table:
        """The live files of that version."""
        return pa.concat_tables([part.actions("add", FILES) for part in self._all_parts()])

    def check_hint(self, files: pa.Table) -> None:
        """Raises `CorruptLog` unless the number of its ``files`` is the one in ``_last_checkpoint``."""
        hint = self._listed.hint
        if hint is not None and hint.adds is not None and hint.adds != len(files):
            raise self._corrupt(f"it holds {len(files)} live files, and {LAST_CHECKPOINT} says {hint.adds}.")

    def tombstones(self) -> pa.Table:
        """The removed files that it lists."""
        return pa.concat_tables([part.actions("remove", REMOVES) for part in self._all_parts()])

    def sidecars(self) -> tuple[str, ...]:
        """The names of the sidecars, if its file actions are in sidecars."""
        return self._translate_errors(self._sidecars)

    @property
    def is_replaced(self) -> bool:
        """Whether one of the files was replaced between its listing and its reading."""
        return "_parts" in self.__dict__ and any(part.file.is_replaced for part in self._parts)

    def _head(self) -> CheckpointHead:
        if self._lines is not None:
            parsed = parse_head(self._store.url, self._lines.raw)
            apps = {a.app_id: a for a in parsed.app_transactions}
            return CheckpointHead(
                parsed.protocol, parsed.metadata, apps, {domain.domain: domain for domain in parsed.domains}
            )
        values = self._values
        self._check_rows()
        metadatas, protocols = values["metaData"], values["protocol"]
        if len(metadatas) > 1 or len(protocols) > 1:
            raise ValueError("it has several protocols or metadatas")
        metadata = Metadata.from_json(_with_dicts(metadatas[0])) if metadatas else None
        _ = metadata and metadata.schema  # parsed now, so that a damaged one is refused by the file's name
        return CheckpointHead(
            protocol=Protocol.from_json(protocols[0]) if protocols else None,
            metadata=metadata,
            app_transactions={t["appId"]: AppTransaction.from_json(t) for t in values["txn"]},
            domains={d["domain"]: DomainMetadata.from_json(d) for d in values["domainMetadata"]},
        )

    def _check_rows(self) -> None:
        """Raises ValueError unless it has as many actions as a hint with a checksum states. (Engines differ in how they
        count sidecars.)
        """
        hint, rows = self._listed.hint, sum(part.file.rows for part in self._parts)
        is_plain = not self._values["sidecar"] and not self._values["checkpointMetadata"]
        if hint is not None and hint.sealed and is_plain and hint.actions not in (None, rows):
            raise ValueError(f"it has {rows} actions, and {LAST_CHECKPOINT} says {hint.actions}")

    def _sidecars(self) -> tuple[str, ...]:
        values = self._lines.others if self._lines is not None else self._read_kinds(_V2_COLUMNS)
        name = checkpoint_file(self._listed.name)
        versions = [action["version"] for action in values.get("checkpointMetadata", ())]
        if versions != [self._listed.version] and (versions or (name is not None and name.id)):
            raise ValueError(f"its checkpointMetadata has the versions {versions}")
        return tuple(_sidecar_name(action["path"]) for action in values.get("sidecar", ()))

    @lazy
    def _values(self) -> Mapping[str, list[Any]]:
        """The actions that are not about files, by kind."""
        return self._read_kinds((*_HEAD_COLUMNS, *_V2_COLUMNS))

    def _read_kinds(self, kinds: Sequence[str]) -> Mapping[str, list[Any]]:
        """The actions of these kinds, from all parts."""
        actions: dict[str, list[Any]] = {kind: [] for kind in kinds}
        for part in self._parts:
            present = [kind for kind in actions if kind in part.file.columns]
            table = part.file.read(present) if present else pa.table({})
            for kind in present:
                actions[kind] += table[kind].drop_null().to_pylist()
        return actions

    @lazy
    def _lines(self) -> _Lines | None:
        if not self._listed.name.endswith(".json"):
            return None
        entry = self._listed.files[0]
        try:
            data = content_of(self._store, entry)
        except NotFound:
            raise self._corrupt("the file is missing.") from None
        except CorruptLog as error:
            raise self._corrupt(error.facts["reason"]) from error
        return _Lines(self._store.url, Raw(self._listed.version, data, name=entry.name))

    @lazy
    def _parts(self) -> list[_Part]:
        return self._open_parts(self._listed.files)

    def _all_parts(self) -> list[_Part | _Lines]:
        sidecars = self.sidecars()
        own: list[_Part | _Lines] = [self._lines] if self._lines is not None else [*self._parts]
        return [*own, *self._open_parts(map(self._sidecar, sidecars))]

    def _open_parts(self, entries: Iterable[Entry]) -> list[_Part]:
        return _in_parallel(lambda entry: _Part(LogParquet(self._store, entry, self._listed.name)), entries)

    def _sidecar(self, name: str) -> Entry:
        entry = self._store.head(name)
        if entry is None:
            raise CorruptLog(
                table=self._store.url, file=name, reason="this sidecar is missing.", checkpoint=self._listed.name
            )
        return entry

    def _translate_errors(self, read: Callable[[], Any]) -> Any:
        """The result of ``read``; any malformed content raises `CorruptLog` with this checkpoint."""
        try:
            return read()
        except CorruptLog as error:
            raise CorruptLog(**{**error.facts, "checkpoint": self._listed.name}) from error
        except _NOT_WHOLE as error:
            raise self._corrupt(f"an action is not whole ({detail(error)}).") from cause(error)

    def _corrupt(self, reason: str) -> CorruptLog:
        return CorruptLog(table=self._store.url, file=self._listed.name, reason=reason, checkpoint=self._listed.name)


class _Part:
    """The file actions of one Parquet file."""

    def __init__(self, file: LogParquet) -> None:
        self.file = file

    def actions(self, kind: str, schema: pa.Schema) -> pa.Table:
        type_ = self.file.columns.get(kind)
        if type_ is None:
            return schema.empty_table()
        self._check(kind, type_)
        present = {field.name for field in type_}
        pieces = self._read_chunks(kind, [f.name for f in schema if f.name in present])
        try:
            actions = pa.concat_tables([schema.empty_table(), *(_project(piece, schema) for piece in pieces)])
            actions = self._fill_missing_texts(actions, kind, present)
        except _NOT_WHOLE as error:
            raise self.file.refuse(f"an action {kind} is not as it must be ({detail(error, str)}).") from cause(error)
        stated = self.file.values(f"{kind}.path")
        if stated not in (None, len(actions)):
            raise self.file.refuse(f"it holds {len(actions)} actions {kind}, and its footer says {stated}.")
        for name in _REQUIRED[kind]:
            if actions[name].null_count:
                raise self.file.refuse(f"an action {kind} has no {name}.")
        return actions

    def _check(self, kind: str, type_: pa.DataType) -> None:
        """Raises if a field has a garbled name, which would count as absent like a field that the writer left out."""
        if not pa.types.is_struct(type_):
            raise self.file.refuse(f"its column {kind} is no struct.")
        present = {field.name for field in type_}
        lacks = {"path", *(() if kind == "remove" else ("size", "deletionVector"))} - present
        if lacks - {"deletionVector"} or (lacks and present - _KNOWN_FIELDS):
            raise self.file.refuse(f"an action {kind} has the fields {sorted(present)}.")

    def _read_chunks(self, kind: str, names: list[str]) -> list[pa.StructArray]:
        """The actions with these fields, one array per chunk."""
        column = self.file.read([f"{kind}.{name}" for name in names])[kind]
        return [_valid(chunk) for chunk in column.chunks]

    def _fill_missing_texts(self, actions: pa.Table, kind: str, present: set[str]) -> pa.Table:
        """Fill missing texts from typed columns where the writer left only those."""
        for name, parsed, texts in (
            ("stats", "stats_parsed", stats_texts),
            ("partitionValues", "partitionValues_parsed", partition_maps),
        ):
            if parsed in present and kind == "add" and actions[name].null_count:
                typed = [pc.struct_field(chunk, parsed) for chunk in self._read_chunks(kind, ["path", parsed])]
                own = actions[name]
                made = pa.chunked_array([_make_texts(values, texts, own.type) for values in typed], own.type)
                filled = made if own.null_count == len(own) else pc.if_else(own.is_valid(), own, made)
                actions = actions.set_column(actions.column_names.index(name), actions.schema.field(name), filled)
        return actions


class _Lines:
    """A checkpoint in JSON."""

    def __init__(self, table: str, raw: Raw) -> None:
        self.table, self.raw = table, raw

    @lazy
    def others(self) -> Mapping[str, list[Any]]:
        """The actions that exist only in checkpoints."""
        return parse_head(self.table, self.raw).others

    def actions(self, kind: str, schema: pa.Schema) -> pa.Table:
        try:
            commit = parse_commit(self.table, self.raw, ())
            actions = commit.adds if kind == "add" else commit.removes
        except CorruptLog as error:
            raise CorruptLog(**{**error.facts, "checkpoint": self.raw.file}) from error
        return actions.select(schema.names)


def _in_parallel(open_: Callable[[Entry], _Part], entries: Iterable[Entry]) -> list[_Part]:
    all_ = list(entries)
    if len(all_) < 2:
        return [open_(entry) for entry in all_]
    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(open_, all_))


def _sidecar_name(path: str) -> str:
    """The name of a sidecar: always in the log's sidecar folder, whatever folder its path names."""
    name = unquote(path).rpartition("/")[2]
    if name in ("", ".", ".."):
        raise ValueError(f"{path!r} is no name of a sidecar")
    return f"{SIDECARS}/{name}"


def _valid(actions: pa.StructArray) -> pa.StructArray:
    """The valid actions; not copied where they are contiguous, as most writers leave them."""
    valid = actions.is_valid()
    count = valid.true_count
    first = pc.index(valid, True).as_py() if count else 0
    together = actions.slice(first, count)
    return together if together.null_count == 0 else actions.filter(valid)


def _make_texts(typed: pa.Array, texts: Callable[[pa.StructArray], pa.Array], type_: pa.DataType) -> pa.Array:
    """The texts of typed values; NULL where the values are no struct, which no writer should write."""
    return texts(typed) if pa.types.is_struct(typed.type) else pa.nulls(len(typed), type_)


def _project(actions: pa.StructArray, schema: pa.Schema) -> pa.Table:
    """The struct's fields as a table of exactly this schema; missing ones are null."""
    positions = {field.name: i for i, field in enumerate(actions.type)}
    arrays = [
        _conform(pc.struct_field(actions, [positions[field.name]]), field.type)
        if field.name in positions
        else pa.nulls(len(actions), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _conform(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """A cast that accepts structs with missing or additional fields."""
    if not pa.types.is_struct(type_):
        return values if values.type == type_ else values.cast(type_)
    positions = {field.name: i for i, field in enumerate(values.type)}
    parts = [
        _conform(pc.struct_field(values, [positions[f.name]]), f.type)
        if f.name in positions
        else pa.nulls(len(values), f.type)
        for f in type_
    ]
    return pa.StructArray.from_arrays(parts, fields=list(type_), mask=values.is_null())


def _with_dicts(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata with maps as dicts; Arrow gives lists of pairs."""
    format_ = dict(metadata.get("format") or {"provider": "parquet"})
    format_["options"] = dict(format_.get("options") or {})
    return {**metadata, "configuration": dict(metadata.get("configuration") or {}), "format": format_}
