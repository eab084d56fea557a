"""A table that is dropped is none from the first step on, and nothing of it is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch._storage.local import LocalStore
from anabranch.commands.ddl.drop import Drop


def test_the_log_goes_first_so_that_a_drop_that_is_cut_short_leaves_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    anabranch.append(str(path), [{"id": 1}])
    delete = LocalStore.delete

    def cut_short(self: LocalStore, name: str, *rest: Any, **named: Any) -> Any:
        if name.endswith(".parquet"):
            raise KeyboardInterrupt
        return delete(self, name, *rest, **named)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "delete", cut_short)
        with pytest.raises(KeyboardInterrupt):
            Drop(str(path)).run()
    assert list(path.glob("*.parquet"))
    assert not list(path.glob("_delta_log/*.json"))


def test_nothing_is_left_and_what_went_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for number in range(3):
        anabranch.append(str(path), [{"id": number, "p": number}], partition_by="p")
    count = sum(each.is_file() for each in path.rglob("*"))
    assert Drop(str(path)).run() == count
    assert not path.exists()
    assert Drop(str(path)).run() == 0
