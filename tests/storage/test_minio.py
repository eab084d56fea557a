"""A second implementation of S3 keeps the contract: MinIO, which decides each conditional put by itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import anabranch
from anabranch._storage import open_store
from anabranch.errors import NoSuchBucket, StorePermissionDenied
from tests.storage import minio_s3
from tests.storage.contract import StoreContract
from tests.support.streams import Stream
from tests.support.worlds import World

pytestmark = pytest.mark.clouds

fresh = itertools.count()


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    if reason := minio_s3.why_absent():
        pytest.skip(reason)
    with minio_s3.serving(tmp_path_factory.mktemp("minio")) as environment:
        yield environment


@pytest.fixture
def environment(minio: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in minio.items():
        monkeypatch.setenv(key, value)


class TestMinio(StoreContract):
    versions_raced = 40

    @pytest.fixture
    def location(self, environment: None) -> str:
        return f"s3://bucket/test {next(fresh)}/100%/table"


def test_a_bucket_that_does_not_exist_is_a_definite_failure(environment: None) -> None:
    store = open_store("s3://elsewhere/table")
    for put in (store.put_if_absent, store.put):
        with pytest.raises(NoSuchBucket, match="s3://elsewhere/table"):
            put("name", b"x")


def test_a_wrong_key_is_no_permission(environment: None) -> None:
    store = open_store("s3://bucket/table", {"secret_access_key": "another"})
    for put in (store.put_if_absent, store.put):
        with pytest.raises(StorePermissionDenied):
            put("name", b"x")


@pytest.mark.parametrize("shallow", [True, False], ids=["shallow", "deep"])
def test_a_table_is_cloned_by_the_credentials_of_its_options(minio: dict[str, str], shallow: bool) -> None:
    origin, target = (f"s3://bucket/clones {next(fresh)}/é 50%/{name}" for name in ("origin", "clone"))
    anabranch.append(origin, [{"id": i} for i in range(5)], storage_options=minio)
    anabranch.clone(origin, target, shallow=shallow, storage_options=minio)
    report = anabranch.check(target, deep=True, storage_options=minio)
    assert (report.is_clean, report.rows) == (True, 5), str(report)


def test_a_stream_reads_a_table_in_a_bucket(environment: None) -> None:
    world = World(f"s3://bucket/stream {next(fresh)}/50%/table")
    world.create([{"id": 1, "g": "a/b"}, {"id": 2, "g": "c d"}, {"id": 3, "g": "c d"}], partition_by=("g",))
    world.delete("id = 3")
    assert Stream(world.path).ids() == [1, 2]
