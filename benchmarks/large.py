"""The large table of the Spark benchmarks: random rows, written once, and copies of it that cost no space."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa

import anabranch
from benchmarks.harness import Tell
from benchmarks.targets import TENTH

FILES = 8
PERCENT = "percent = 17"
"""A condition that 1% of the rows meet, scattered over all files; no statistics help."""
LEAST_ROWS = 1_000_000
"""A tenth of fewer rows is so small a table that it would tell of fixed costs alone."""

_WORDS = [f"word{i:02d}" for i in range(50)]


def few(rows: int) -> str:
    """A condition that about 1000 rows meet, scattered over all files; no statistics help."""
    return f"few = {rows // 2000}"


def make(folder: Path, rows: int, *, vectors: bool, tell: Tell) -> Path:
    """A table of ``rows`` rows and 6 columns in 8 files; the same bytes each time."""
    path = folder / ("large-vectors" if vectors else "large")
    properties = {"delta.enableDeletionVectors": str(vectors).lower()}
    for file in range(FILES):
        tell(f"writing file {file + 1} of {FILES} of a table of {rows:,} rows")
        ids = np.arange(file * (rows // FILES), (file + 1) * (rows // FILES))
        given = rows_of(ids, np.random.default_rng(file), rows)
        anabranch.append(path, given, properties=properties if file == 0 else None)
    return path


def rows_of(ids: np.ndarray, dice: np.random.Generator, total: int) -> pa.Table:
    """Random rows of these ids, for a table of ``total`` rows."""
    count = len(ids)
    return pa.table(
        {
            "id": ids,
            "percent": dice.integers(0, 100, count),
            "few": dice.integers(0, max(2, total // 1000), count),
            "amount": dice.integers(0, 100_000, count) / 100,
            "word": pa.array(_WORDS).take(pa.array(dice.integers(0, len(_WORDS), count))),
            "day": pa.array(dice.integers(19_000, 20_000, count), pa.int32()).cast(pa.date32()),
        }
    )


def copy(table: Path, to: Path) -> Path:
    """A table of its own that shares the data files by hard links: no engine ever writes into one."""
    shutil.copytree(table, to, copy_function=_linked)
    return to


def _linked(source: str, target: str) -> None:
    if source.endswith(".parquet") and "_delta_log" not in source:
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def data_files(table: Path) -> list[str]:
    """The Parquet files of a table that was only appended to."""
    return sorted(str(path) for path in table.glob("*.parquet"))


def megabytes(table: Path) -> int:
    """The size of those files."""
    return sum(os.path.getsize(path) for path in data_files(table)) // 1_000_000


def sizes(rows: int) -> dict[str, int]:
    """How many rows changes are measured on, by what is said behind the task: all, and a tenth if that is much."""
    return {"": rows, **({TENTH: rows // 10} if rows // 10 >= LEAST_ROWS else {})}


def described(folder: Path, rows: int) -> str:
    """The size of the table in a folder, in words."""
    return f"{rows:,} rows, 6 columns, {FILES} files, {megabytes(folder / 'large')} MB"
