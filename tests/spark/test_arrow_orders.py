"""Rows along a curve without Spark: the same files however little memory there is, and whoever reads and writes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch.protocol.layout.curves import bits_per_column, places
from anabranch.spark import arrow_orders
from anabranch.spark.arrow_files import CalledOff, Unlike
from anabranch.spark.arrow_orders import ordered
from tests.support.patience import until

ROWS = 20_000
OUTPUTS = 5


def rows_of(file: int) -> pa.Table:
    dice = np.random.default_rng(file)
    return pa.table(
        {
            "a": dice.integers(0, 100, ROWS),
            "b": dice.integers(0, 1_000, ROWS),
            "word": [f"word {i % 7}" for i in range(ROWS)],
            "text": [f"{file} {i:050d}" for i in range(ROWS)],
        }
    )


def task_of(folder: Path, files: int = 3, keys: tuple[str, ...] = ("a", "b"), **said: Any) -> dict[str, Any]:
    """What is told of files of so many rows each."""
    for number in range(files):
        pq.write_table(rows_of(number), folder / f"{number}.parquet", store_schema=False)
    known = {"deleted": None, "first_id": None, "version": None}
    told = {
        "folder": str(folder / "made"),
        "files": [known | {"path": str(folder / f"{i}.parquet"), "number": i} for i in range(files)],
        "wanted": rows_of(0).schema.append(pa.field("origin", pa.int64())),
        "hidden": None,
        "codec": "snappy",
        "group_bytes": 1 << 20,
        "says": {"a": "b"},
        "origin": "origin",
        "keys": [[key] for key in keys],
        "outputs": OUTPUTS,
        "every": 10,
        "bits": bits_per_column(len(keys)),
        "cells": places("zorder", len(keys)),
        "moves": str(folder / "moves"),
        "most_bytes": 1 << 30,
        "threads": 2,
    }
    return told | said


def made_by(task: dict[str, Any]) -> list[tuple[int, list[Any], list[Any]]]:
    """The outputs with their rows, and where these came from."""
    found = ordered(task)
    for _, path, _, count in found:
        assert pq.read_metadata(path).num_rows == count
    return [
        (number, pq.read_table(path).to_pylist(), pq.read_table(moves).to_pylist()) for number, path, moves, _ in found
    ]


def left_in(folder: Path) -> list[Path]:
    return [path for each in ("made", "moves") for path in (folder / each).rglob("*.parquet")]


@pytest.mark.parametrize("keys", [("a",), ("a", "b")])
def test_less_memory_makes_the_same_files_in_more_passes(
    tmp_path: Path, keys: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, passes = arrow_orders._rows, list[tuple[int, int]]()

    def watched(order: Any, first: int, end: int, *rest: Any) -> Any:
        passes.append((first, end))
        return real(order, first, end, *rest)

    monkeypatch.setattr(arrow_orders, "_rows", watched)
    whole = made_by(task_of(tmp_path, keys=keys))
    assert passes == [(0, OUTPUTS)]
    assert [number for number, *_ in whole] == list(range(OUTPUTS))
    passes.clear()
    assert made_by(task_of(tmp_path, keys=keys, most_bytes=2 << 20)) == whole
    assert passes == [(0, 2), (2, 4), (4, 5)]


def test_rows_that_are_wider_than_the_first_ones_are_read_again_in_smaller_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = made_by(task_of(tmp_path))
    monkeypatch.setattr(arrow_orders, "_width_of", lambda task: 1.0)
    assert made_by(task_of(tmp_path, most_bytes=3 << 20)) == whole


@pytest.mark.parametrize("most", [1 << 20, 1 << 18], ids=["an output", "the columns of the curve"])
def test_what_does_not_fit_into_memory_at_all_is_refused_whole(tmp_path: Path, most: int) -> None:
    with pytest.raises(Unlike):
        ordered(task_of(tmp_path, outputs=1, most_bytes=most))
    assert not left_in(tmp_path)


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("anabranch-order")]


def test_where_one_thread_fails_nothing_is_left_and_nobody_writes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, begun = arrow_orders.written, list[str]()

    def failing(path: str, task: Any, batches: Any) -> int:
        begun.append(path)
        if len(begun) == 2:
            raise OSError("no space left")
        found = real(path, task, batches)
        until(task["is_called_off"])
        return found

    monkeypatch.setattr(arrow_orders, "written", failing)
    with pytest.raises(OSError, match="no space"):
        ordered(task_of(tmp_path))
    assert len(begun) == 2, "one for each thread"
    assert not left_in(tmp_path)
    assert not threads()


def test_it_stops_where_it_is_called_off(tmp_path: Path) -> None:
    asked = list[bool]()

    def is_called_off() -> bool:
        asked.append(True)
        return len(asked) > 8

    with pytest.raises(CalledOff):
        ordered(task_of(tmp_path, is_called_off=is_called_off))
    assert not left_in(tmp_path)
    assert not threads()


def test_a_file_that_is_another_one_the_second_time_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = arrow_orders._Order.of

    def changing(task: Any, crew: Any) -> Any:
        found = real(task, crew)
        pq.write_table(rows_of(1).slice(1), tmp_path / "1.parquet", store_schema=False)
        return found

    monkeypatch.setattr(arrow_orders._Order, "of", changing)
    with pytest.raises(Unlike):
        ordered(task_of(tmp_path))
    assert not left_in(tmp_path)
