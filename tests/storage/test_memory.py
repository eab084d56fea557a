"""Process memory keeps the contract, so that every other room can be tested on it."""

from __future__ import annotations

import itertools
import pickle

import pytest

from anabranch._storage import open_store
from tests.storage.contract import StoreContract

ONE_PROCESS = "a memory lives in one process, and no other can see it"

fresh = itertools.count()


class TestMemory(StoreContract):
    bound_to_one_process = ONE_PROCESS

    @pytest.fixture
    def location(self) -> str:
        return f"memory://test-{next(fresh)}"


class TestFolderInMemory(StoreContract):
    bound_to_one_process = ONE_PROCESS

    @pytest.fixture
    def location(self) -> str:
        return f"memory://test-{next(fresh)}/a b/100%/table"


def test_one_name_is_one_memory_and_two_names_are_two() -> None:
    open_store("memory://shared").put("t/name", b"x")
    assert open_store("memory://shared/t").get("name") == b"x"
    assert open_store("memory://other").list_all() == []


def test_memory_cannot_be_sent_to_another_process() -> None:
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(open_store("memory://here"))
