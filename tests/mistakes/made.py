"""A process that makes mistakes in one session, and says of each which error came and what else was on the console.

    python -m tests.mistakes.made FOLDER RESULTS TITLE...

Standard output and error of this process and of its JVM go to a file, so that nothing that either writes is missed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import anabranch
from anabranch import DeltaTable
from tests.mistakes.known import IN_A_SESSION, PRELUDE

_JAVA_WRITES_SECONDS = 0.5
"""Time in which a JVM writes what it has to say of the last mistake."""


class Console:
    """Where everything goes that this process and its children write."""

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_CREAT | os.O_RDWR | os.O_APPEND)
        os.dup2(self._file, 1)
        os.dup2(self._file, 2)

    def at(self) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        return os.fstat(self._file).st_size

    def between(self, start: int, end: int) -> str:
        return os.pread(self._file, end - start, start).decode(errors="replace")


def main(folder: Path, results: Path, titles: list[str]) -> None:
    """Make the mistakes of these titles. What is written late is found behind a later mistake: between the first one
    and the end nothing is left out.
    """
    console = Console(folder / "console.txt")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    spark = anabranch.session("mistakes", "local[2]", **settings)
    names: dict[str, Any] = {"spark": spark, "DeltaTable": DeltaTable, "anabranch": anabranch, "folder": str(folder)}
    exec(PRELUDE, names)
    chosen = [each for each in IN_A_SESSION if each.title in titles]
    start, said = console.at(), dict[str, dict[str, str]]()
    for each in chosen:
        error = made(each.code, names)
        if each is chosen[-1]:
            time.sleep(_JAVA_WRITES_SECONDS)
        end = console.at()
        said[each.title] = {**error, "console": console.between(start, end)}
        start = end
    results.write_text(json.dumps(said), encoding="utf-8")


def made(code: str, names: dict[str, Any]) -> dict[str, str]:
    """The error of a piece of code."""
    try:
        exec(code, names)
    except Exception as error:
        is_ours = isinstance(error, anabranch.errors.AnabranchError)
        return {"error": type(error).__name__ if is_ours else repr(type(error)), "message": str(error)}
    return {"error": "none", "message": ""}


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
