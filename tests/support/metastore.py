"""A Hive metastore that two engines use by turns: it is a Derby database, which one process at a time may open."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.patience import PATIENCE


def settings(folder: Path) -> dict[str, str]:
    """What a session needs to keep its names in a metastore in this folder."""
    return {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
    }


class Ours:
    """A process with an installed session on a metastore; leave it by ``with``."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.support.metastore", json.dumps(settings(folder))]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=folder, text=True
        )

    def __enter__(self) -> Ours:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(timeout=PATIENCE) == 0

    def ask(self, text: str) -> list[list[Any]]:
        """The rows of a statement; or what a line of Python behind ``py>`` does, with ``spark`` at hand."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(text) + "\n")
        self._process.stdin.flush()
        found = json.loads(self._process.stdout.readline())
        if "error" in found:
            raise AssertionError(f"{text}: {found['error']}")
        rows: list[list[Any]] = found["rows"]
        return rows


def _main(given: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark prints must not stand between the answers
    import anabranch

    spark = anabranch.session("metastore", "local[2]", **json.loads(given), **{"spark.sql.session.timeZone": "UTC"})
    for line in sys.stdin:
        print(json.dumps(_answer(spark, json.loads(line)), default=str), file=answers, flush=True)
    spark.stop()


def _answer(spark: Any, text: str) -> dict[str, Any]:
    import anabranch

    try:
        if text.startswith("py>"):
            found = eval(text.removeprefix("py>"), {"spark": spark, "anabranch": anabranch})
            return {"rows": found if isinstance(found, list) else []}
        return {"rows": [list(row) for row in spark.sql(text).collect()]}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error)[:1000]}"}


if __name__ == "__main__":
    _main(sys.argv[1])
