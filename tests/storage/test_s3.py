"""S3 keeps the contract, as moto's server speaks it."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from moto.s3.responses import S3Response

import anabranch
from anabranch._storage import open_store
from anabranch.commands.maintenance.clone import Clone
from anabranch.errors import AlreadyExists, NoSuchBucket, PutOutcomeUnknown
from tests.storage import moto_s3
from tests.storage.contract import StoreContract
from tests.storage.racing import wins
from tests.support.patience import PATIENCE
from tests.support.streams import Stream
from tests.support.worlds import World

pytestmark = pytest.mark.clouds

fresh = itertools.count()


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    with moto_s3.serving() as environment:
        yield environment


@pytest.fixture
def environment(s3: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in s3.items():
        monkeypatch.setenv(key, value)


class TestS3(StoreContract):
    versions_raced = 12

    @pytest.fixture
    def location(self, environment: None) -> str:
        return f"s3://bucket/test {next(fresh)}/100%/table"


def test_a_whole_bucket_is_a_store(environment: None) -> None:
    store = open_store("s3://bucket")
    store.put_if_absent("whole/folder/name", b"x")
    store.put_if_absent("whole top", b"x")
    with pytest.raises(AlreadyExists):
        store.put_if_absent("whole top", b"y")
    assert [entry.name for entry in store.list_from("whole")] == ["whole top"]
    assert store.list_from("whole/folder/") == [store.head("whole/folder/name")]


def test_a_bucket_that_does_not_exist_is_a_definite_failure(environment: None) -> None:
    store = open_store("s3://elsewhere/table")
    for put in (store.put_if_absent, store.put):
        with pytest.raises(NoSuchBucket, match="s3://elsewhere/table"):
            put("name", b"x")
    with pytest.raises(NoSuchBucket):
        store.list_all()


def test_options_open_what_the_environment_opens(s3: dict[str, str]) -> None:
    store = open_store("s3://bucket/by options", s3)
    assert wins(store, "name", b"x")
    assert not wins(store, "name", b"x")


def test_moto_alone_gives_one_name_to_two_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, moto decides at once as S3 does, and the server here need no longer make each PUT wait."""
    both_have_looked = threading.Barrier(2, timeout=PATIENCE)
    looked = S3Response._get_checksum

    def wait_for_the_other(self: S3Response, headers: dict[str, object]) -> object:
        both_have_looked.wait()
        return looked(self, headers)

    monkeypatch.setattr(S3Response, "_get_checksum", wait_for_the_other)
    with moto_s3.serving(turn=contextlib.nullcontext()) as environment, ThreadPoolExecutor(2) as pool:
        store = open_store("s3://bucket/moto alone", environment)

        def won_by(name: str, data: bytes) -> bool:
            try:
                return wins(store, name, data)
            except PutOutcomeUnknown:
                both_have_looked.abort()  # else the other would wait for it
                raise

        for name in ("first", "second", "third"):  # without turns moto fails of itself, too, at times
            both_have_looked.reset()
            with contextlib.suppress(PutOutcomeUnknown):
                won = list(pool.map(partial(won_by, name), [b"one", b"two"]))
                break
    assert won == [True, True]


# -- clones ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shallow", [True, False], ids=["shallow", "deep"])
def test_a_table_in_a_bucket_is_cloned_by_the_credentials_of_its_options(s3: dict[str, str], shallow: bool) -> None:
    """No environment names the server: what lies outside the clone's folder is found through the clone's own store."""
    options = {key.removeprefix("AWS_").lower(): value for key, value in s3.items()}
    origin, target = (f"s3a://bucket/clones {next(fresh)}/é 50%/{name}" for name in ("origin", "clone"))
    anabranch.append(origin, [{"id": i} for i in range(5)], storage_options=options)
    done = anabranch.clone(origin, target, shallow=shallow, storage_options=options)
    assert done.metrics["numCopiedFiles"] == (0 if shallow else 1)
    (path,) = anabranch.files(target, storage_options=options)["path"].to_pylist()
    assert path.startswith("s3a://bucket/") is shallow
    report = anabranch.check(target, deep=True, storage_options=options)
    assert (report.is_clean, report.rows) == (True, 5), str(report)


def test_a_table_on_disk_is_cloned_into_a_bucket_and_back(environment: None, tmp_path: Path) -> None:
    origin, away, back = (
        World(str(tmp_path / "o")),
        World(f"s3://bucket/away {next(fresh)}"),
        World(str(tmp_path / "b")),
    )
    origin.create([{"id": i, "p": f"a {i % 2}"} for i in range(6)], partition_by=("p",)).delete("id = 3")
    Clone(origin.path, away.path).run()
    assert away.rows() == origin.rows()
    away.delete("id = 0")
    Clone(away.path, back.path).run()
    assert back.rows() == away.rows()
    back.assert_clean()


def test_a_stream_reads_a_table_in_a_bucket(environment: None) -> None:
    world = World(f"s3://bucket/stream {next(fresh)}/50%/table")
    world.create([{"id": 1, "g": "a/b"}, {"id": 2, "g": "c d"}, {"id": 3, "g": "c d"}], partition_by=("g",))
    world.delete("id = 3")
    stream = Stream(world.path)
    assert stream.ids() == [1, 2]
    world.append({"id": 4, "g": "%"})
    assert stream.ids() == [4]
