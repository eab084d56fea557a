"""Functions name their table first; the session goes by its name, or in front as delta-spark's hands write it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

import anabranch
from anabranch._api.session_first import takes_session_first


@takes_session_first
def called(path_or_name: Any, rows: Any = None, *, spark: Any = None) -> tuple[Any, Any, Any]:
    return path_or_name, rows, spark


@pytest.mark.parametrize("path", ["/data/flights", Path("/data/flights")])
def test_a_session_or_none_may_stand_before_the_table(path: str | Path) -> None:
    session, rows = object(), [{"id": 1}]
    assert cast(Any, called)(session, path, rows) == (path, rows, session)
    assert cast(Any, called)(None, path, rows) == (path, rows, None)
    assert cast(Any, called)(session, path) == (path, None, session)


def test_a_call_that_names_its_table_first_is_as_it_is() -> None:
    assert called("/data/flights", "id = 1", spark=7) == ("/data/flights", "id = 1", 7)
    assert called("/data/flights") == ("/data/flights", None, None)
    assert called(path_or_name="/data/flights", rows=1) == ("/data/flights", 1, None)
    assert called(None, [1]) == (None, [1], None)


def test_rows_are_appended_in_both_spellings(tmp_path: Path) -> None:
    path = str(tmp_path)
    assert anabranch.append(path, [{"id": 1}]) == 0
    assert cast(Any, anabranch.append)(None, path, [{"id": 2}]) == 1
    with cast(Any, anabranch.appender)(None, path) as rows:
        assert rows.append([{"id": 3}]) == 2
    assert sorted(anabranch.table(path).to_arrow()["id"].to_pylist()) == [1, 2, 3]


@pytest.mark.spark
def test_a_table_is_read_by_the_active_session_unless_another_is_named(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path)
    anabranch.append(path, [{"id": 1}], properties={"delta.enableChangeDataFeed": "true"})
    read, changes = cast(Any, anabranch.read), cast(Any, anabranch.changes)
    for frame in (read(path), read(spark, path), read(path, spark=spark)):
        assert [row.id for row in frame.collect()] == [1]
    for frame in (changes(path, 0), changes(spark, path, 0), changes(path, 0, spark=spark)):
        assert [row._change_type for row in frame.collect()] == ["insert"]
