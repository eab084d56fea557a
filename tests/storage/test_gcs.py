"""Google Cloud Storage keeps the contract, as fake-gcs-server decides it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import anabranch
from anabranch._storage import open_store
from anabranch.errors import AlreadyExists, NoSuchBucket, UnknownStore
from tests.storage import fake_gcs
from tests.storage.contract import StoreContract
from tests.storage.racing import wins
from tests.support.streams import Stream
from tests.support.worlds import World

pytestmark = pytest.mark.clouds

fresh = itertools.count()


@pytest.fixture(scope="module")
def gcs() -> Iterator[dict[str, str]]:
    if reason := fake_gcs.why_absent():
        pytest.skip(reason)
    with fake_gcs.serving() as environment:
        yield environment


@pytest.fixture
def environment(gcs: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in gcs.items():
        monkeypatch.setenv(key, value)


class TestGoogleCloudStorage(StoreContract):
    versions_raced = 40

    @pytest.fixture
    def location(self, environment: None) -> str:
        return f"gs://bucket/test {next(fresh)}/100%/table"


def test_a_whole_bucket_is_a_store(environment: None) -> None:
    store = open_store("gs://bucket")
    store.put_if_absent("whole/folder/name", b"x")
    store.put_if_absent("whole top", b"x")
    with pytest.raises(AlreadyExists):
        store.put_if_absent("whole top", b"y")
    assert [entry.name for entry in store.list_from("whole")] == ["whole top"]
    assert store.list_from("whole/folder/") == [store.head("whole/folder/name")]


def test_a_bucket_that_does_not_exist_is_a_definite_failure(environment: None) -> None:
    store = open_store("gs://elsewhere/table")
    for put in (store.put_if_absent, store.put):
        with pytest.raises(NoSuchBucket, match="gs://elsewhere/table"):
            put("name", b"x")
    with pytest.raises(NoSuchBucket):
        store.list_all()


def test_options_open_what_the_environment_opens(gcs: dict[str, str]) -> None:
    store = open_store("gs://bucket/by options", gcs)
    assert wins(store, "name", b"x")
    assert not wins(store, "name", b"x")


def test_a_key_that_is_none_is_refused_and_not_shown() -> None:
    with pytest.raises(UnknownStore) as told:
        open_store("gs://bucket/table", {"service_account_key": '{"private_key": "hidden"}'})
    assert "hidden" not in str(told.value)


@pytest.mark.parametrize("shallow", [True, False], ids=["shallow", "deep"])
def test_a_table_is_cloned_by_the_credentials_of_its_options(gcs: dict[str, str], shallow: bool) -> None:
    origin, target = (f"gs://bucket/clones {next(fresh)}/é 50%/{name}" for name in ("origin", "clone"))
    anabranch.append(origin, [{"id": i} for i in range(5)], storage_options=gcs)
    done = anabranch.clone(origin, target, shallow=shallow, storage_options=gcs)
    assert done.metrics["numCopiedFiles"] == (0 if shallow else 1)
    report = anabranch.check(target, deep=True, storage_options=gcs)
    assert (report.is_clean, report.rows) == (True, 5), str(report)


def test_a_stream_reads_a_table_in_a_bucket(environment: None) -> None:
    world = World(f"gs://bucket/stream {next(fresh)}/50%/table")
    world.create([{"id": 1, "g": "a/b"}, {"id": 2, "g": "c d"}, {"id": 3, "g": "c d"}], partition_by=("g",))
    world.delete("id = 3")
    stream = Stream(world.path)
    assert stream.ids() == [1, 2]
    world.append({"id": 4, "g": "%"})
    assert stream.ids() == [4]
