"""A process that makes mistakes in one session, and says of each which error came and what else was on the console.

    python -m tests.mistakes.made FOLDER RESULTS

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

_JAVA_WRITES_SECONDS = 0.3


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

    def since(self, start: int) -> str:
        return os.pread(self._file, self.at() - start, start).decode()


def main(folder: Path, results: Path) -> None:
    console = Console(folder / "console.txt")
    settings = {"spark.ui.showConsoleProgress": "false", "spark.sql.warehouse.dir": str(folder / "warehouse")}
    spark = anabranch.session("mistakes", "local[2]", **settings)
    names: dict[str, Any] = {"spark": spark, "DeltaTable": DeltaTable, "anabranch": anabranch, "folder": str(folder)}
    exec(PRELUDE, names)
    said = {each.title: made(each.code, names, console) for each in IN_A_SESSION}
    results.write_text(json.dumps(said), encoding="utf-8")


def made(code: str, names: dict[str, Any], console: Console) -> dict[str, str]:
    """The error of a piece of code, and what it left on the console."""
    start = console.at()
    try:
        exec(code, names)
    except Exception as error:
        is_ours = isinstance(error, anabranch.errors.AnabranchError)
        found = {"error": type(error).__name__ if is_ours else repr(type(error)), "message": str(error)}
    else:
        found = {"error": "none", "message": ""}
    time.sleep(_JAVA_WRITES_SECONDS)  # if that is too short, what it writes is found behind a later mistake
    return {**found, "console": console.since(start)}


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
