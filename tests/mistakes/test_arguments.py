"""Wrong arguments of functions: a typed error that says what would be right. None of them needs a JVM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch.errors import AnabranchError, InvalidArgument, InvalidOption, StoreError, UnreadableExpression


@pytest.fixture
def table(tmp_path: Path) -> str:
    place = str(tmp_path / "table")
    anabranch.append(place, [{"id": 1}])
    return place


def said(kind: type[AnabranchError], call: Callable[[], Any]) -> str:
    with pytest.raises(kind) as refused:
        call()
    return str(refused.value)


@pytest.mark.parametrize(
    "value", [pd.DataFrame({"id": [1]}), 7, None, b"/tmp/table"], ids=lambda each: type(each).__name__
)
def test_a_place_that_is_no_text_is_refused_by_every_function(value: Any) -> None:
    shown = "None" if value is None else f"of the type {type(value).__name__}"
    for call in (
        lambda: anabranch.append(value, [{"id": 1}]),
        lambda: anabranch.history(value),
        lambda: anabranch.files(value),
        lambda: anabranch.check(value),
        lambda: anabranch.restore(value, 0),
        lambda: anabranch.vacuum(value),
        lambda: anabranch.clone(value, "/tmp/other", shallow=True),
    ):
        text = said(InvalidArgument, call)
        assert f"The argument path cannot be {shown}: it takes the path or URL of a table" in text


def test_a_retention_that_is_no_number_is_refused(table: str) -> None:
    for hours in ("7 days", "168", True, [1]):
        text = said(InvalidOption, lambda hours=hours: anabranch.vacuum(table, hours))  # type: ignore[misc]
        assert "it takes a number of hours from 0" in text


def test_a_moment_in_place_of_a_version_is_told_its_own_argument(table: str) -> None:
    text = said(InvalidOption, lambda: anabranch.restore(table, "2024-01-31"))  # type: ignore[arg-type]
    assert "a moment has an argument or option of its own, timestamp" in text


def test_rows_that_are_no_table_are_told_what_would_be_one(table: str) -> None:
    kinds = "It takes an Arrow table, a pandas DataFrame, a list of dicts or a dict of lists."
    for rows in (pd.Series([1], name="id"), {"id": 1}):
        assert kinds in said(InvalidOption, lambda rows=rows: anabranch.append(table, rows))  # type: ignore[misc]


def test_a_file_where_a_table_is_to_be_is_told(tmp_path: Path) -> None:
    file = tmp_path / "flights.csv"
    file.write_text("id\n1\n")
    text = said(StoreError, lambda: anabranch.append(str(file), [{"id": 1}]))
    assert "flights.csv" in text
    assert "A file is there, where a folder is needed: choose another path." in text
    assert file.read_text() == "id\n1\n"


@pytest.mark.parametrize("condition", ["city = 'Oslo", "`id = 1", "id = 1 /* the first"])
def test_a_quote_that_is_not_closed_is_told(table: str, condition: str) -> None:
    text = said(UnreadableExpression, lambda: anabranch.files(table, condition))
    assert "a text, a name in backticks or a comment in it does not end." in text


@pytest.mark.parametrize("value", [None, SparkSession, SparkSession.builder], ids=["None", "class", "builder"])
def test_what_is_no_session_cannot_be_installed(value: Any) -> None:
    text = said(InvalidArgument, lambda: anabranch.install(value))
    assert "it takes a SparkSession" in text
