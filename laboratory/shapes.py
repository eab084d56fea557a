"""Shapes: a real table in memory, and the forms that its log can take: checkpoints of every kind, compactions.

The table is made by the product's own commands, by a clock and names of its own, so that each process makes the same
bytes. It has files that came, went and were marked; each version has its checksum file.
"""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._expressions import Context, condition
from anabranch._log import checkpointing
from anabranch._log.file_names import (
    checkpoint_file,
    checkpoint_name,
    checkpoint_version,
    checksum_version,
    commit_name,
    commit_version,
    part_name,
)
from anabranch._log.log import forget
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import RunContext
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.delete import Delete
from anabranch.commands.dml.update import Update
from anabranch.commands.opening import open_log
from anabranch.testing import ArrowEngine, DictStore, mounted

Files = Mapping[str, bytes]
NOW_MS = 1_767_225_600_000
"""When everything in these tables happened."""
CHECKPOINT = 4
NEWEST = 7
_V2_ID = "80a083e8-7026-4e79-81be-64bd76c43a11"
_SIDECAR_ACTIONS = 4
_MOMENT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

_CHECKPOINTS = ("classic", "parts", "v2", "v2 json")
KINDS = ("commits", "compacted", *(kind + end for kind in _CHECKPOINTS for end in ("", " alone")))
"""The forms of logs; ``alone``: the commits up to the checkpoint were cleaned up."""


def contents(store: DictStore) -> dict[str, bytes]:
    """What a store holds."""
    return {name: kept.data for name, kept in store.kept.items()}


def store_of(files: Files, now_ms: int = NOW_MS) -> DictStore:
    """A store that holds these files."""
    store = DictStore("memory://laboratory/damaged", now_ms=lambda: now_ms)
    for name, data in files.items():
        store.put(name, data)
    return store


@contextmanager
def opened(files: Files) -> Iterator[tuple[str, DictStore]]:
    """A table of these files: its location within the block, and its store; nothing is remembered of another one."""
    store = store_of(files)
    with mounted(store) as location:
        forget()
        try:
            yield location, store
        finally:
            forget()


@cache
def table(kind: str) -> Files:
    """All files of the table, with a log of this kind."""
    if kind in ("commits", "compacted"):
        plain = _made("classic")
        return plain if kind == "commits" else compacted(plain)
    files = checkpointed(_made("v2" if kind.startswith("v2") else "classic"))
    if "parts" in kind:
        files = in_parts(files)
    if "json" in kind:
        files = in_json(files)
    return without_commits_before(files, CHECKPOINT) if kind.endswith("alone") else files


@cache
def _made(policy: str) -> Files:
    """The table with its commits alone."""
    store = store_of({})
    ids = count(1)
    runtime = Runtime(now_ms=lambda: NOW_MS, random=lambda: 1.0, new_id=lambda: UUID(int=next(ids)), user=lambda: None)
    engine = ArrowEngine(runtime.new_id)
    properties = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "100"}
    properties |= {"delta.checkpointPolicy": policy} if policy == "v2" else {}
    with mounted(store) as location:
        forget()

        def append(*ids: int) -> None:
            Append(location, _rows(*ids), ("p",), properties if ids[0] == 0 else {}).run(
                context=RunContext(runtime=runtime)
            )

        append(*range(8))
        append(*range(8, 14))
        append(*range(14, 20))
        Delete(location, _where(location, "id in (1, 6, 11, 16)")).run(engine, RunContext(runtime=runtime))
        Update(location, {"x": -1}, _where(location, "id in (2, 9)")).run(engine, RunContext(runtime=runtime))
        Delete(location, _where(location, "p = 'a' AND id < 8")).run(engine, RunContext(runtime=runtime))
        append(*range(20, 30))
        Delete(location, _where(location, "id = 22")).run(engine, RunContext(runtime=runtime))
        assert open_log(location).snapshot().version == NEWEST
        forget()
    return contents(store)


def _rows(*ids: int) -> pa.Table:
    rows = [{"id": i, "x": i * i, "s": f"é{i}" * 5, "p": "ab"[i % 2]} for i in ids]
    return pa.Table.from_pylist(rows)


def _where(location: str, text: str) -> Any:
    snapshot = open_log(location).snapshot()
    return condition(text, Context(snapshot.table, snapshot.schema, _MOMENT, "UTC", lambda names: True))


def checkpointed(files: Files, version: int = CHECKPOINT) -> dict[str, bytes]:
    """With a checkpoint, as the table asks for it; sidecars are small, so that there are several."""
    ids = (UUID(int=i) for i in range(1, 100))
    usual, checkpointing.SIDECAR_ACTIONS = checkpointing.SIDECAR_ACTIONS, _SIDECAR_ACTIONS
    try:
        with opened(files) as (location, store):
            log = open_log(location)
            log.write_checkpoint(log.snapshot(version), now_ms=NOW_MS, new_id=lambda: next(ids))
            return contents(store)
    finally:
        checkpointing.SIDECAR_ACTIONS = usual


def without_commits_before(files: Files, version: int) -> dict[str, bytes]:
    """Cleaned up: without the commits before a version, and their checksum files."""
    return {name: data for name, data in files.items() if (v := _version_of(name)) is None or v >= version}


def _version_of(name: str) -> int | None:
    version = commit_version(name)
    return checksum_version(name) if version is None else version


def in_parts(files: Files, parts: int = 3) -> dict[str, bytes]:
    """The classic checkpoint cut into parts."""
    (own,) = (name for name in files if (v := checkpoint_version(name)) is not None and name == checkpoint_name(v))
    version = checkpoint_version(own) or 0
    rows = pq.read_table(io.BytesIO(files[own]))
    found = {name: data for name, data in files.items() if name != own}
    for part in range(parts):
        sink = io.BytesIO()
        some = rows.take([row for row in range(len(rows)) if row % parts == part])
        pq.write_table(some, sink, write_page_checksum=True)
        found[part_name(version, part + 1, parts)] = sink.getvalue()
    return found


def in_json(files: Files) -> dict[str, bytes]:
    """The V2 checkpoint in JSON, with the sidecars that it has."""
    (own,) = (name for name in files if (said := checkpoint_file(name)) is not None and said.id)
    rows = pq.read_table(io.BytesIO(files[own])).to_pylist()
    actions: list[Any] = [{k: v for k, v in row.items() if v is not None} for row in rows]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"] = dict(action["metaData"]["configuration"])
            action["metaData"]["format"]["options"] = {}
    found = {name: data for name, data in files.items() if name != own}
    return {**found, f"_delta_log/{checkpoint_version(own):020d}.checkpoint.{_V2_ID}.json": _lines(actions)}


def compacted(files: Files, first: int = 1, last: int = 3) -> dict[str, bytes]:
    """With the commits from one version to another in one log compaction file, too."""
    lines = [line for v in range(first, last + 1) for line in files[commit_name(v)].splitlines() if line.strip()]
    actions = [json.loads(line) for line in lines]
    newest: dict[str, Any] = {}
    for action in actions:
        for body in (action[kind] for kind in ("add", "remove") if kind in action):
            vector = body.get("deletionVector") or {}
            newest[f"{body['path']} {vector.get('pathOrInlineDv')} {vector.get('offset')}"] = action
    others = {next(iter(action)): action for action in actions if next(iter(action)) in ("metaData", "protocol")}
    name = f"_delta_log/{first:020d}.{last:020d}.compacted.json"
    return {**files, name: _lines([*others.values(), *newest.values()])}


def _lines(actions: list[Any]) -> bytes:
    return b"".join(json.dumps(action, separators=(",", ":")).encode() + b"\n" for action in actions)
