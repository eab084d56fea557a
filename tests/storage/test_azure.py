"""Azure keeps the contract, as Azurite speaks it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from anabranch._storage import open_store
from anabranch.errors import AlreadyExists, NoSuchBucket, StorePermissionDenied
from tests.storage import azurite
from tests.storage.contract import StoreContract
from tests.storage.racing import wins

pytestmark = pytest.mark.clouds

fresh = itertools.count()


@pytest.fixture(scope="module")
def azure() -> Iterator[dict[str, str]]:
    if reason := azurite.why_absent():
        pytest.skip(reason)
    with azurite.serving() as environment:
        yield environment


@pytest.fixture
def environment(azure: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in azure.items():
        monkeypatch.setenv(key, value)


class TestAzure(StoreContract):
    versions_raced = 40
    confused = "\\"

    @pytest.fixture
    def location(self, environment: None) -> str:
        return f"az://container/test {next(fresh)}/100%/table"


def test_a_whole_container_is_a_store(environment: None) -> None:
    store = open_store("az://container")
    store.put_if_absent("whole/folder/name", b"x")
    store.put_if_absent("whole top", b"x")
    with pytest.raises(AlreadyExists):
        store.put_if_absent("whole top", b"y")
    assert [entry.name for entry in store.list_from("whole")] == ["whole top"]
    assert store.list_from("whole/folder/") == [store.head("whole/folder/name")]


def test_a_container_may_be_named_with_its_account(environment: None) -> None:
    store = open_store(f"abfss://container@{azurite.ACCOUNT}.dfs.core.windows.net/with account")
    store.put_if_absent("name", b"x")
    assert open_store("az://container/with account").get("name") == b"x"


def test_a_container_that_does_not_exist_is_a_definite_failure(environment: None) -> None:
    store = open_store("az://elsewhere/table")
    for put in (store.put_if_absent, store.put):
        with pytest.raises(NoSuchBucket, match="az://elsewhere/table"):
            put("name", b"x")


def test_a_wrong_key_is_no_permission(environment: None) -> None:
    store = open_store("az://container/table", {"account_key": "bm90IHRoaXM="})
    for put in (store.put_if_absent, store.put):
        with pytest.raises(StorePermissionDenied):
            put("name", b"x")


def test_options_open_what_the_environment_opens(azure: dict[str, str]) -> None:
    store = open_store("az://container/by options", azure)
    assert wins(store, "name", b"x")
    assert not wins(store, "name", b"x")
