"""How Spark lists the files of a scan, and what its session says meanwhile and afterwards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from anabranch._spark.sessions.listing import SETTING, few_tasks
from anabranch._spark.sessions.setting_overrides import override_setting


class Settings(dict[str, str]):
    """What a session says, and each change of it."""

    def set(self, name: str, value: str) -> None:
        self[name] = value


class Session(SimpleNamespace):
    """A session as far as its settings go."""

    __hash__ = object.__hash__  # type: ignore[assignment]


@pytest.fixture
def session() -> Any:
    return Session(conf=Settings({SETTING: "10000"}))


@pytest.mark.parametrize(
    ("root", "paths", "expected"),
    [
        ("/data/t", 10_000, "5"),
        ("file:///data/t", 33, "1"),
        ("s3://lake/t", 10_000, "313"),
        ("hdfs://namenode:8020/t", 33, "2"),
        ("s3://lake/t", 1_000_000, "10000"),
        ("/data/t", 32, "10000"),
    ],
)
def test_many_paths_are_listed_in_few_tasks(session: Any, root: str, paths: int, expected: str) -> None:
    with few_tasks(session, root, paths):
        assert session.conf[SETTING] == expected
    assert session.conf[SETTING] == "10000"


def test_a_lower_setting_of_the_user_counts(session: Any) -> None:
    session.conf[SETTING] = "2"
    with few_tasks(session, "s3://lake/t", 10_000):
        assert session.conf[SETTING] == "2"


def test_the_last_of_several_blocks_puts_the_setting_back(session: Any) -> None:
    first, second = override_setting(session, SETTING, "1"), override_setting(session, SETTING, "2")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert session.conf[SETTING] == "2"
    second.__exit__(None, None, None)
    assert session.conf[SETTING] == "10000"


def test_a_block_that_fails_puts_the_setting_back(session: Any) -> None:
    with pytest.raises(InterruptedError), override_setting(session, SETTING, "1"):
        raise InterruptedError
    assert session.conf[SETTING] == "10000"
