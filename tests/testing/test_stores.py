"""The dictionary store keeps the stores' contract; the watched one tells of every call."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from anabranch._storage import Store, open_store
from anabranch.errors import NotFound, PutOutcomeUnknown, StoreError
from anabranch.testing import DictStore, ObservedStore, mounted
from anabranch.testing.faults import always, once, unanswered_put_error
from tests.storage.contract import StoreContract

_numbers = count()


class TestDictStore(StoreContract):
    """A dictionary, under the whole contract."""

    bound_to_one_process = "a dictionary lives in one process"

    @pytest.fixture
    def location(self) -> Iterator[str]:
        with mounted(DictStore(f"memory://tests/dict-{next(_numbers)}")) as location:
            yield location


def test_a_copy_of_what_is_kept_goes_its_own_way() -> None:
    store = DictStore("memory://tests/first")
    store.put("a", b"1")
    other = DictStore("memory://tests/second", store.kept)
    other.put("b", b"2")
    assert [e.name for e in store.list_all()] == ["a"]
    assert [e.name for e in other.list_all()] == ["a", "b"]
    assert other.head("a") == store.head("a")


def test_a_mounted_store_is_there_within_the_block_only() -> None:
    inner, outer = DictStore("memory://tests/place"), DictStore("memory://tests/place")
    with mounted(outer):
        with mounted(inner):
            assert open_store("memory://tests/place") is inner
        assert open_store("memory://tests/place") is outer
    assert open_store("memory://tests/place") is not outer


def test_a_watched_store_tells_of_each_call_and_fails_where_it_is_told_to() -> None:
    store = ObservedStore(
        DictStore("memory://tests/watched"), after=once(lambda call: call.is_put, unanswered_put_error)
    )
    with pytest.raises(PutOutcomeUnknown):
        store.put("name", b"data")
    assert store.get("name") == b"data"
    assert [(call.number, call.method, call.about) for call in store.calls] == [(1, "put", "name"), (2, "get", "name")]


def test_an_error_before_a_call_comes_instead_of_its_effect() -> None:
    store = ObservedStore(
        DictStore("memory://tests/watched2"), before=always(lambda call: call.is_put, unanswered_put_error)
    )
    with pytest.raises(StoreError):
        store.put_if_absent("name", b"data")
    with pytest.raises(NotFound):
        store.get("name")


def test_every_call_of_the_contract_is_watched() -> None:
    promised = {name for name in vars(Store) if not name.startswith("_") and name != "url"}
    assert promised <= vars(ObservedStore).keys()
