"""What is no session, or no place of a table, is refused by a sentence that says what is wanted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch import DeltaTable, errors

PATH = "/data/flights"
WITHOUT_SESSION: dict[str, Callable[[Any], Any]] = {
    "forPath": lambda spark: DeltaTable.forPath(PATH, spark),  # type: ignore[arg-type]
    "forName": lambda spark: DeltaTable.forName("flights", spark),  # type: ignore[arg-type]
    "isDeltaTable": lambda spark: DeltaTable.isDeltaTable(PATH, spark),  # type: ignore[arg-type]
    "convertToDelta": lambda spark: DeltaTable.convertToDelta("parquet.`/data`", spark),  # type: ignore[arg-type]
    "create": lambda spark: DeltaTable.create(PATH),  # type: ignore[arg-type]
    "append": lambda spark: anabranch.append(PATH, [{"id": 1}], spark="local"),
    "append by name": lambda spark: anabranch.append("flights", [{"id": 1}], spark="local"),
    "appender": lambda spark: anabranch.appender(PATH, spark="local"),
    "read": lambda spark: anabranch.read(PATH, spark="local"),  # type: ignore[arg-type]
    "changes": lambda spark: anabranch.changes(PATH, spark="local"),  # type: ignore[arg-type]
    "sql": lambda spark: anabranch.sql("SELECT 1", spark),
    "install": lambda spark: anabranch.install("spark"),  # type: ignore[arg-type]
}


@pytest.mark.spark
@pytest.mark.parametrize("call", WITHOUT_SESSION.values(), ids=WITHOUT_SESSION.keys())
def test_what_is_no_session_is_refused(spark: Any, call: Callable[[Any], Any]) -> None:
    with pytest.raises(errors.InvalidArgument) as refused:
        call(spark)
    assert "of the type str: it takes a SparkSession; anabranch.session()" in refused.value.message
    assert PATH not in refused.value.message


@pytest.mark.parametrize("location", [None, 7, b"/data/flights", ["/data/flights"]], ids=repr)
def test_what_is_no_path_is_refused_by_its_type(location: Any) -> None:
    with pytest.raises(errors.InvalidArgument) as refused:
        anabranch.history(location)
    assert "it takes the path or URL of a table, as text or as a pathlib.Path." in refused.value.message
    assert isinstance(refused.value, TypeError)


EMPTY: dict[str, Callable[[], Any]] = {
    "history": lambda: anabranch.history(""),
    "check": lambda: anabranch.check(""),
    "append": lambda: anabranch.append("", [{"id": 1}]),
    "vacuum": lambda: anabranch.vacuum(""),
}


@pytest.mark.parametrize("call", EMPTY.values(), ids=EMPTY.keys())
def test_an_empty_path_is_refused_and_is_not_this_folder(
    call: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.UnknownStore) as refused:
        call()
    said = "An empty text names no store that Anabranch knows: a table is named by its path or URL."
    assert refused.value.message.endswith(said)
    assert not list(tmp_path.iterdir())


@pytest.mark.spark
def test_an_empty_path_is_refused_with_a_session_just_so(spark: Any) -> None:
    anabranch.install(spark)
    for call in (
        lambda: DeltaTable.forPath(spark, ""),
        lambda: spark.read.format("delta").load(""),
        lambda: spark.range(1).write.format("delta").save(""),
        lambda: anabranch.read("", spark=spark),
    ):
        with pytest.raises(errors.UnknownStore, match="An empty text names no store"):
            call()
