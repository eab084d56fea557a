"""Locations as users of Spark write them, and where credentials come from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from anabranch._storage import open_store
from anabranch._storage.local import LocalStore
from anabranch._storage.open import open_beside
from anabranch.errors import UnknownStore
from tests.storage.fake_s3 import serving


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in list(os.environ):
        if key.startswith(("AWS_", "AZURE_", "GOOGLE_")):
            monkeypatch.delenv(key)


@pytest.mark.parametrize(
    "location",
    ["/data/t", "/data/t/", "//data//t", "/data/x/../t", "file:/data/t", "file:///data/t/", "file://localhost/data/t"],
)
def test_every_spelling_of_a_path_is_one_store(location: str) -> None:
    assert open_store(location) == open_store(Path("/data/t")) == LocalStore("/data/t")
    assert open_store(location).url == "file:///data/t"


def test_a_relative_path_counts_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_store("t").url == open_store("./t/").url == open_store(Path("t")).url == f"file://{tmp_path}/t"
    assert open_store("a:b").url == f"file://{tmp_path}/a:b"
    assert open_store(Path("s3:/bucket")).url == f"file://{tmp_path}/s3:/bucket"


@pytest.mark.parametrize("odd", ["a b", "a%20b", "100%", "what?", "x#1", "é", "s3:"])
def test_nothing_in_a_location_is_decoded(odd: str) -> None:
    assert open_store(f"/data/{odd}").url == open_store(f"file:///data/{odd}").url == f"file:///data/{odd}"
    assert open_store(open_store(f"/data/{odd}").url) == LocalStore(f"/data/{odd}")
    assert open_store(f"memory://m/{odd}/t").url == f"memory://m/{odd}/t"
    assert open_store(f"s3a://bucket/{odd}/t/").url == f"s3://bucket/{odd}/t"


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("memory://m", "memory://m"),
        ("memory://m//a//b/", "memory://m/a/b"),
        ("s3://bucket", "s3://bucket"),
        ("s3a://bucket/t/", "s3://bucket/t"),
        ("S3A://bucket/t", "s3://bucket/t"),
        ("gs://bucket/t", "gs://bucket/t"),
        ("abfs://c@acc.dfs.core.windows.net/t", "abfss://c@acc.dfs.core.windows.net/t"),
        ("abfss://c@acc.dfs.core.windows.net/t/", "abfss://c@acc.dfs.core.windows.net/t"),
        ("https://example.com/t/", "https://example.com/t"),
    ],
)
def test_a_url_is_canonical(location: str, url: str) -> None:
    store = open_store(location)
    assert store.url == url
    assert open_store(store.url) == store


def test_an_azure_container_finds_its_account_in_the_environment_or_the_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UnknownStore, match="Account must be specified"):
        open_store("az://container/t")
    options = {"AZURE_STORAGE_ACCOUNT_NAME": "acc"}
    assert open_store("azure://container/t", options).url == "az://container/t"
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "acc")
    assert open_store("az://container/t").url == "az://container/t"


@pytest.mark.parametrize(
    "location",
    [
        "swebhdfs://host/t",
        "dbfs:/t",
        "wasbs://c@acc.blob.core.windows.net/t",
        "file://elsewhere/t",
        "s3://",
        "s3:///t",
        "s3:/bucket/t",
        "memory:///t",
        "s3://bucket/a/../t",
        "s3://bucket/./t",
        "abfss://c@acc.dfs.core.windows.net/back\\slash",
        "nul\0byte",
    ],
)
def test_any_other_location_is_refused_by_name(location: str) -> None:
    with pytest.raises(UnknownStore) as told:
        open_store(location)
    assert told.value.location == location


def test_an_option_that_the_service_does_not_have_is_refused() -> None:
    with pytest.raises(UnknownStore, match="'colour' is not valid"):
        open_store("s3://bucket/t", {"colour": "red"})
    with pytest.raises(UnknownStore, match='parse "soon"'):
        open_store("s3://bucket/t", {"timeout": "soon"})


def test_opening_makes_and_reads_nothing(tmp_path: Path) -> None:
    assert open_store(tmp_path / "t").list_all() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("spelling", [str.lower, str.upper, lambda key: f"aws_{key}", lambda key: f"AWS_{key}".upper()])
def test_options_may_be_spelled_as_in_the_environment(spelling: object) -> None:
    assert callable(spelling)
    with serving() as s3:
        store = open_store("s3://bucket/t", {spelling(key): value for key, value in s3.options.items()})
        store.put_if_absent("name", b"x")
        assert store.get("name") == b"x"


def test_the_environment_opens_a_store_and_options_count_more(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as one, serving() as other:
        for key, value in one.options.items():
            monkeypatch.setenv(f"AWS_{key}".upper(), value)
        open_store("s3://bucket/t").put("name", b"x")
        open_store("s3://bucket/t", {"endpoint": other.options["endpoint"]}).put("name", b"x")
        open_store("s3://bucket/t", {"timeout": "20s"}).put("third", b"x")
        assert (one.puts(), other.puts()) == (2, 1)


def test_a_changed_environment_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        with serving() as s3:
            for key, value in s3.options.items():
                monkeypatch.setenv(f"AWS_{key}".upper(), value)
            open_store("s3://bucket/t").put("name", b"x")
            assert s3.puts() == 1


# -- locations beside a store ------------------------------------------------------------------------------------------


def test_a_location_in_the_same_bucket_is_opened_by_the_same_credentials() -> None:
    """Which stand nowhere but in the options of the first: a shallow clone's files lie in the bucket of its origin."""
    clone = open_store("s3://lake/clones/t", {"region": "eu-west-1", "access_key_id": "me", "secret_access_key": "x"})
    origin = open_beside(clone, "s3a://lake/origin/day=1")
    assert origin.url == "s3://lake/origin/day=1"
    assert getattr(origin, "bucket") is getattr(clone, "bucket")  # noqa: B009
    assert open_beside(origin, "s3://lake").url == "s3://lake"
    assert open_beside(open_beside(origin, "s3://lake"), "s3://lake/a").url == "s3://lake/a"


@pytest.mark.parametrize("other", ["s3://lake2/origin", "memory://lake/origin", "file:///origin", "/origin"])
def test_a_location_elsewhere_is_opened_as_any_other(other: str) -> None:
    clone = open_store("s3://lake/clones/t", {"region": "eu-west-1", "access_key_id": "me", "secret_access_key": "x"})
    assert open_beside(clone, other) == open_store(other)


def test_a_location_of_the_same_memory_is_opened() -> None:
    open_store("memory://beside/origin").put("a", b"1")
    assert open_beside(open_store("memory://beside/clone"), "memory://beside/origin").get("a") == b"1"
