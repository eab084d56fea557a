"""A log that was damaged anywhere gives exactly the truth, or a typed error: never another exception, never other rows.

``ANABRANCH_FUZZ`` is how many mutations are tried for each log (30), ``ANABRANCH_FUZZ_SEED`` where they begin (0).
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import time
from collections.abc import Iterator
from functools import cache
from typing import Any
from uuid import UUID

import pytest

from anabranch._log import checkpointing
from anabranch._log.file_names import checksum_name, commit_name
from anabranch._log.history import history
from anabranch._log.log import Log, forget
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.errors import AnabranchError, CorruptLog
from anabranch.testing import DictStore, mounted
from laboratory.damage import Files, mutate, undecidable
from laboratory.shapes import contents, in_json, in_parts, without_commits_before
from tests.support.raw_logs import Action, add, info, metadata, remove, text_of
from tests.support.tiers import examples

MUTATIONS = int(os.environ.get("ANABRANCH_FUZZ", str(examples(30, 6))))
SEED = int(os.environ.get("ANABRANCH_FUZZ_SEED", "0"))
NEWEST = 6
PROTOCOL: Action = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors", "v2Checkpoint"],
        "writerFeatures": ["deletionVectors", "v2Checkpoint", "domainMetadata"],
    }
}


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Each way around something broken is a warning, and there are thousands."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)
    forget()


def vector(cardinality: int) -> dict[str, Any]:
    return {
        "storageType": "u",
        "pathOrInlineDv": f"ab^-aqEH.-t@S}}K{{vb[*k^{cardinality}",
        "offset": cardinality,
        "sizeInBytes": 40,
        "cardinality": cardinality,
    }


def stats(i: int) -> str:
    return json.dumps({"numRecords": i, "minValues": {"id": i, "s": f"é{i}"}, "maxValues": {"id": i}})


def commits(policy: str) -> dict[int, list[Action]]:
    """Files that come, go, and are marked; an application, a domain, a property."""
    settings = {"delta_checkpointPolicy": policy}
    files = [
        add(f"part-{i}.parquet", partitionValues={"x": str(i % 3)}, size=100 + i, stats=stats(i)) for i in range(9)
    ]
    domain = {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}}
    return {
        0: [info(), PROTOCOL, metadata(partition_by=("x",), **settings), *files[:4]],
        1: [info(), *files[4:], {"txn": {"appId": "a", "version": 1}}],
        2: [info(), remove("part-0.parquet", size=100), domain],
        3: [info(), remove("part-1.parquet", size=101), {"add": {**files[1]["add"], "deletionVector": vector(3)}}],
        4: [info(), metadata(partition_by=("x",), delta_appendOnly="false", **settings)],
        5: [info(), remove("part-1.parquet", size=101, deletionVector=vector(3)), add("late.parquet", stats=stats(9))],
        NEWEST: [info(), remove("part-2.parquet"), {"txn": {"appId": "a", "version": 2}}],
    }


def written(policy: str = "classic") -> DictStore:
    store = DictStore("memory://fuzz/base")
    for version, actions in commits(policy).items():
        store.put(commit_name(version), text_of(*actions).encode())
    return store


def checkpointed(policy: str, version: int = 4) -> dict[str, bytes]:
    """With a checkpoint, and the newest version's checksum file."""
    store = written(policy)
    forget()
    log = Log(store)
    ids = (UUID(int=i) for i in range(1, 100))
    log.write_checkpoint(log.snapshot(version), now_ms=0, new_id=lambda: next(ids))
    store.put_hint(checksum_name(NEWEST), log.snapshot().checksum().to_json())
    return contents(store)


def compacted(files: Files) -> dict[str, bytes]:
    lines: list[Action | str] = []
    for version in (1, 2, 3):
        lines += [line for line in commits("classic")[version] if "commitInfo" not in line]
    sums = Log(written()).snapshot().checksum().to_json()
    name = f"_delta_log/{1:020d}.{3:020d}.compacted.json"
    return {**files, name: text_of(*lines).encode(), checksum_name(NEWEST): sums}


@cache
def log_files(kind: str) -> Files:
    """The files of a log of this kind."""
    plain = contents(written())
    if kind == "commits":
        return plain
    if kind == "compacted":
        return compacted(plain)
    policy = "v2" if kind.startswith("v2") else "classic"
    files = checkpointed(policy)
    if "parts" in kind:
        files = in_parts(files)
    if "json" in kind:
        files = in_json(files)
    return without_commits_before(files, 4) if kind.endswith("alone") else files


KINDS = ["commits", "compacted"]
KINDS += [kind + end for kind in ("classic", "parts", "v2", "v2 json") for end in ("", " alone")]


def read(files: Files) -> tuple[Any, ...]:
    """The newest version: what decides which rows a table has."""
    store = DictStore("memory://fuzz/mutated", now_ms=lambda: 1)
    for name, data in files.items():
        store.put(name, data)
    forget()
    log = Log(store)
    snapshot = log.snapshot()
    live = snapshot.files.select(["path", "deletionVector", "partitionValues"]).to_pylist()
    _ = snapshot.tombstones
    list(history(log))
    bodies = sorted(json.dumps(file, sort_keys=True) for file in live)
    return snapshot.version, snapshot.metadata.partition_columns, bodies


@pytest.fixture(autouse=True)
def small_sidecars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpointing, "SIDECAR_ACTIONS", 4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_log_gives_the_truth_or_a_typed_error(kind: str) -> None:
    files = log_files(kind)
    truth = read(files)
    assert truth == read(contents(written()))
    for number in range(SEED, SEED + MUTATIONS):
        mutation = mutate(files, random.Random(f"{kind} {number}"))
        case = f"{kind}, mutation {number}: {mutation}"
        try:
            found = read(mutation.files)
        except AnabranchError as error:  # an unknown feature, say; whatever is corrupt is named
            named = not isinstance(error, CorruptLog) or error.file.startswith("_delta_log/")
            found = truth if named else error
        except Exception as error:
            raise AssertionError(f"{case}: {error!r}") from error
        assert found == truth or undecidable(files, mutation), case


def summed(kind: str) -> dict[str, bytes]:
    """The files of a log of this kind, with the checksum files of its newest versions, as each commit of ours has."""
    files, store = dict(log_files(kind)), DictStore("memory://fuzz/summed")
    for name, data in files.items():
        store.put(name, data)
    forget()
    log = Log(store)
    return files | {checksum_name(v): log.snapshot(v).checksum().to_json() for v in range(4, NEWEST + 1)}


def left_by_vacuum(files: Files, paths: set[str]) -> set[str]:
    """Which of these data files a VACUUM leaves that retains nothing, whatever it says."""
    store = DictStore("memory://fuzz/vacuumed", now_ms=lambda: time.time_ns() // 1_000_000 - 60_000)
    for name, data in {**files, **dict.fromkeys(paths, b"data")}.items():
        store.put(name, data)
    forget()
    with mounted(store) as location, contextlib.suppress(AnabranchError):
        Vacuum(location, 0, check_retention=False, threads=1).run()
    return paths & set(store.kept)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_vacuum_of_a_damaged_log_removes_no_live_file(kind: str) -> None:
    files = summed(kind)
    live = {json.loads(body)["path"] for body in read(files)[2]}
    stray = {"part-0.parquet", "part-1.parquet", "part-2.parquet"}
    assert left_by_vacuum(files, live | stray) == live, "a whole log is vacuumed"
    for number in range(SEED, SEED + MUTATIONS):
        mutation = mutate(files, random.Random(f"vacuum {kind} {number}"))
        lost = live - left_by_vacuum(mutation.files, live | stray)
        assert not lost, f"{kind}, mutation {number}: {mutation}: {lost}"
