"""Files of a table lie in a bucket of which only the session, or who calls, knows the server and the keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch._storage import open_store
from anabranch._storage.store_settings import use_settings
from anabranch.commands.field_id_names import layouts_of
from anabranch.commands.maintenance.clone import Clone
from anabranch.commands.maintenance.fsck import Fsck
from anabranch.commands.opening import open_log
from tests.storage import moto_s3
from tests.support.planted import SECRET
from tests.support.raw_logs import WITH_VECTORS, add, metadata, put_commit, put_rows
from tests.support.worlds import World

COUNT = 6
ROWS = [{"id": 1, "x": 1}]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The settings by which a bucket is reached, of which the environment says nothing."""
    for key in list(os.environ):
        if key.startswith("AWS_"):
            monkeypatch.delenv(key)
    monkeypatch.setenv("ANABRANCH_ALLOWED_STORES", "s3://bucket")
    with moto_s3.serving() as server:
        yield {
            "fs.s3a.access.key": "any",
            "fs.s3a.secret.key": SECRET,
            "fs.s3a.endpoint": server["AWS_ENDPOINT"],
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.path.style.access": "true",
        }


@pytest.fixture
def world(tmp_path: Path, said: dict[str, str]) -> World:
    """A table on the disk whose files lie in the bucket, as after a shallow clone."""
    table, adds = tmp_path / "t", []
    for number in range(COUNT):
        name = f"{number}.parquet"
        put_rows(table, name, ROWS)
        data = (table / name).read_bytes()
        (table / name).unlink()
        with use_settings(None, lambda _: said):
            open_store("s3://bucket/origin").put(name, data)
        adds.append(add(f"s3://bucket/origin/{name}", size=len(data), stats='{"numRecords": 1}'))
    put_commit(table, 0, WITH_VECTORS, metadata(), *adds)
    return World(str(table))


def by_ids(world: World) -> Any:
    snapshot = open_log(world.path).snapshot()
    return layouts_of(snapshot.store, snapshot.metadata, snapshot.files["path"].to_pylist())


def cloned(world: World, *, shallow: bool) -> int:
    Clone(world.path, f"{world.path}-copy", shallow).run()
    return len(open_log(f"{world.path}-copy").snapshot().files)


DOORS: dict[str, tuple[Callable[[World], Any], Any]] = {
    "fsck": (lambda world: Fsck(world.path, dry_run=True).run().missing, ()),
    "check": (lambda world: anabranch.check(world.path, deep=True).findings, ()),
    "shallow clone": (lambda world: cloned(world, shallow=True), COUNT),
    "deep clone": (lambda world: cloned(world, shallow=False), COUNT),
    "names by numbers": (by_ids, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_every_thread_asks_the_server_that_the_session_names(door: str, world: World, said: dict[str, str]) -> None:
    """Another one knows no such file: FSCK would take all of them out of the table."""
    ask, found = DOORS[door]
    with use_settings(None, lambda _: said):
        assert ask(world) == found
