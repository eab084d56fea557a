"""Rows along a curve without Spark: the same files however little memory there is, and whoever reads and writes."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch._arrow import orders
from anabranch._arrow.files import Cancelled
from anabranch._arrow.orders import write_along_curve
from anabranch._protocol.layout.curves import bits_per_column, places
from anabranch._protocol.unsupported import Unsupported
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
    found = write_along_curve(task)
    for _, path, _, count in found:
        assert pq.read_metadata(path).num_rows == count
    return [
        (number, pq.read_table(path).to_pylist(), pq.read_table(moves).to_pylist()) for number, path, moves, _ in found
    ]


def left_in(folder: Path) -> list[Path]:
    return [path for each in ("made", "moves") for path in (folder / each).rglob("*.parquet")]


@pytest.mark.slow
@pytest.mark.parametrize("keys", [("a",), ("a", "b")])
def test_less_memory_makes_the_same_files_in_more_passes(
    tmp_path: Path, keys: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How often all rows are read is counted, since that is the price of less memory."""
    read = whole_reads(monkeypatch)
    whole = made_by(task_of(tmp_path, keys=keys))
    assert Counter(read) == {(0,): 1, (1,): 1, (2,): 1}
    assert [number for number, *_ in whole] == list(range(OUTPUTS))
    read.clear()
    assert made_by(task_of(tmp_path, keys=keys, most_bytes=2 << 20)) == whole
    assert Counter(read) == {(0,): 3, (1,): 3, (2,): 3}, "two outputs at a time, and the last one"


def whole_reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Notes the files of each read of all rows with all columns; the first rows of all files are looked at besides."""
    noted, real = list[tuple[int, ...]](), orders.live_batches

    def watched(task: Any) -> Any:
        files = tuple(each["number"] for each in task["files"])
        if "text" in task["wanted"].names and len(files) == 1:
            noted.append(files)
        return real(task)

    monkeypatch.setattr(orders, "live_batches", watched)
    return noted


@pytest.mark.slow
def test_rows_that_are_wider_than_the_first_ones_are_read_again_in_smaller_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = task_of(tmp_path)
    narrow = rows_of(0).set_column(3, "text", pa.array([""] * ROWS))
    pq.write_table(narrow, tmp_path / "0.parquet", store_schema=False)
    whole, read = made_by(task), whole_reads(monkeypatch)
    assert made_by(task | {"most_bytes": 3 << 20}) == whole
    reads = len(read)
    read.clear()
    write_along_curve(task | {"most_bytes": 3 << 20, "files": task["files"][::-1], "folder": str(tmp_path / "again")})
    assert reads > len(read), "the same rows, of which the wide ones come first"


@pytest.mark.slow
@pytest.mark.parametrize("most", [1 << 20, 1 << 18], ids=["an output", "the columns of the curve"])
def test_what_does_not_fit_into_memory_at_all_is_refused_whole(tmp_path: Path, most: int) -> None:
    with pytest.raises(Unsupported, match="exceed the memory limit"):
        write_along_curve(task_of(tmp_path, outputs=1, most_bytes=most))
    assert not left_in(tmp_path)


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("anabranch-order")]


@pytest.mark.slow
def test_where_one_thread_fails_nothing_is_left_and_nobody_writes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, begun = orders.write_batches, list[str]()

    def failing(path: str, task: Any, batches: Any) -> int:
        begun.append(path)
        if len(begun) == 2:
            raise OSError("no space left")
        found = real(path, task, batches)
        until(task["is_called_off"])
        return found

    monkeypatch.setattr(orders, "write_batches", failing)
    with pytest.raises(OSError, match="no space"):
        write_along_curve(task_of(tmp_path))
    assert len(begun) == 2, "one for each thread"
    assert not left_in(tmp_path)
    assert not threads()


@pytest.mark.slow
def test_it_stops_where_it_is_called_off(tmp_path: Path) -> None:
    asked = list[bool]()

    def is_called_off() -> bool:
        asked.append(True)
        return len(asked) > 8

    with pytest.raises(Cancelled):
        write_along_curve(task_of(tmp_path, is_called_off=is_called_off))
    assert not left_in(tmp_path)
    assert not threads()


@pytest.mark.slow
def test_a_file_that_is_another_one_the_second_time_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = orders.live_batches

    def changing(task: Any) -> Any:
        if "text" in task["wanted"].names:  # the order was found, by the columns of the curve
            pq.write_table(rows_of(1).slice(1), tmp_path / "1.parquet", store_schema=False)
        return real(task)

    monkeypatch.setattr(orders, "live_batches", changing)
    task = task_of(tmp_path, threads=1)
    with pytest.raises(Unsupported, match="other rows than before"):
        write_along_curve(task)
    assert not left_in(tmp_path)
