"""What is no session, or no place of a table, is refused by a sentence that says what is wanted, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch import DeltaTable, errors

PATH = "/data/flights"
SWAPPED: dict[str, Callable[[Any], Any]] = {
    "forPath": lambda spark: DeltaTable.forPath(PATH, spark),  # type: ignore[arg-type]
    "forName": lambda spark: DeltaTable.forName("flights", spark),  # type: ignore[arg-type]
    "isDeltaTable": lambda spark: DeltaTable.isDeltaTable(PATH, spark),  # type: ignore[arg-type]
    "convertToDelta": lambda spark: DeltaTable.convertToDelta("parquet.`/data`", spark),  # type: ignore[arg-type]
    "create": lambda spark: DeltaTable.create(PATH),  # type: ignore[arg-type]
    "append": lambda spark: anabranch.append(PATH, spark, [{"id": 1}]),
    "append by name": lambda spark: anabranch.append("flights", spark, [{"id": 1}]),
    "appender": lambda spark: anabranch.appender(PATH, spark),
    "read": lambda spark: anabranch.read(PATH, spark),
    "changes": lambda spark: anabranch.changes(PATH, spark),
    "sql": lambda spark: anabranch.sql("SELECT 1", spark),
    "install": lambda spark: anabranch.install("spark"),  # type: ignore[arg-type]
}


@pytest.mark.spark
@pytest.mark.parametrize("call", SWAPPED.values(), ids=SWAPPED.keys())
def test_swapped_arguments_are_told_that_the_session_comes_first(spark: Any, call: Callable[[Any], Any]) -> None:
    with pytest.raises(errors.InvalidArgument) as refused:
        call(spark)
    assert "of the type str: it takes a SparkSession, which comes first; anabranch.session()" in refused.value.message
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
    "append": lambda: anabranch.append(None, "", [{"id": 1}]),
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
        lambda: anabranch.read(spark, ""),
    ):
        with pytest.raises(errors.UnknownStore, match="An empty text names no store"):
            call()
