"""Real delta-spark, as an engine that we did not write: one JVM for a whole run, in an environment of its own.

``make interop`` makes its environment (``tools/setup.py --interop`` makes that alone); ``tools/interop`` says where
it stands. Statements are SQL; a table is named by its folder: ``delta.`/folder```.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from tests.support.patience import PATIENCE
from tests.support.readers import Row, sorted_rows
from tools import interop

WORKER = Path(__file__).with_name("delta_spark_worker.py")
ROOT = Path(__file__).resolve().parents[2]
REQUIRED = os.environ.get("ANABRANCH_INTEROP") == "required"
"""Whether tests run beside delta-spark, and fail where it is absent, as in ``make interop``."""


class DeltaSparkError(Exception):
    """delta-spark refused a statement: ``condition`` is the name of its error, ``kind`` the exception's class."""

    def __init__(self, answer: dict[str, str]) -> None:
        super().__init__(f"{answer['error']}: {answer['text'][:1000]}")
        self.kind, self.text = answer["error"], answer["text"]
        named = re.search(r"\[([A-Z_0-9]+)", self.text)  # PySpark knows the conditions of its own exceptions only
        self.condition = answer["condition"] or (named.group(1) if named else "")


def why_absent() -> str:
    """Why there is no delta-spark for this run, or nothing where there is one."""
    if not REQUIRED:
        return "tests beside real delta-spark take minutes; `make interop` runs them"
    return "" if interop.is_ready() else "delta-spark is not installed; `make interop` does that where there is Maven"


class DeltaSpark:
    """A session of delta-spark; leave it by ``with``. Settings of yours count more than the worker's.

    Example::

        with DeltaSpark() as theirs:
            theirs.sql("CREATE TABLE delta.`/tmp/t` (id BIGINT) USING delta")
            theirs.rows("/tmp/t")
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="delta-spark-", ignore_cleanup_errors=True)
        command = [str(interop.python()), str(WORKER), str(interop.jars()), self._folder.name]
        command.append(json.dumps(dict(settings or {})))
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK_"))}
        environment["PYSPARK_PYTHON"] = str(interop.python())
        environment.pop("PYTHONPATH", None)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=self._folder.name, text=True
        )

    @property
    def process(self) -> int:
        """The process in which it runs, with its JVM below it."""
        return self._process.pid

    def __enter__(self) -> DeltaSpark:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=PATIENCE)
        self._folder.cleanup()

    def sql(self, *statements: str) -> None:
        """Run statements one after the other.

        Raises:
            DeltaSparkError: one of them was refused.
        """
        for statement in statements:
            self._ask(statement, "")

    def query(self, statement: str, args: Any = None) -> pa.Table:
        """What a statement returns."""
        path = Path(self._folder.name, "answer.arrow")
        self._ask(statement, str(path), args)
        with pa.OSFile(str(path)) as source:
            return pa.ipc.open_file(source).read_all()

    def scan(self, statement: str) -> None:
        """Have all rows of a query computed, and keep none of them."""
        if answer := self._reply({"sql": statement, "rows": None, "noop": True}):
            raise DeltaSparkError(answer)

    def together(self, threads: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        """Run lists of statements at once, a thread each; one that loses to a concurrent one is tried again.

        Returns: of each statement, when it began and ended (seconds of a clock), and how often it was refused.

        Raises:
            DeltaSparkError: a statement was refused for another reason.
        """
        answer = self._reply({"together": [list(each) for each in threads]})
        if "error" in answer:
            raise DeltaSparkError(answer)
        return answer["calls"]

    def contest(self, path: str, writers: Sequence[Sequence[tuple[int, str]]], seconds: float) -> list[dict[str, Any]]:
        """Run numbered statements on the table at ``path`` for so many seconds, a thread for each list, and try again
        what loses to a concurrent one; the calls are those of `benchmarks.conflict_loop`.
        """
        statements = [list(each) for each in writers]
        request = {"contest": statements, "path": path, "seconds": seconds, "root": str(ROOT)}
        return self._reply(request)["calls"]

    def rows(self, path: str, version: int | None = None) -> list[Row]:
        """The rows of the table at ``path``, sorted as ``tests.support.readers`` sorts them."""
        at = "" if version is None else f" VERSION AS OF {version}"
        return sorted_rows(self.query(f"SELECT * FROM delta.`{path}`{at}").to_pylist())

    def detail(self, path: str) -> dict[str, Any]:
        """DESCRIBE DETAIL: among others the protocol and the properties."""
        [found] = self.query(f"DESCRIBE DETAIL delta.`{path}`").to_pylist()
        return {**found, "properties": dict(found["properties"])}

    def seen(self, scenario: str, modules: Iterable[str], folder: Path) -> list[list[Any]]:
        """What a scenario of ``tests/documented`` sees with delta-spark's own ``DeltaTable``, in an empty folder."""
        return self._reply({"scenario": scenario, "modules": [*modules], "root": str(ROOT), "folder": str(folder)})

    def public(self) -> dict[str, dict[str, list[str]]]:
        """The public classes of ``delta.tables`` with their methods, and the parameters of these."""
        return self._reply({"public": True})

    def _ask(self, statement: str, rows: str, args: Any = None) -> None:
        if answer := self._reply({"sql": statement, "rows": rows, "args": args}):
            raise DeltaSparkError(answer)

    def _reply(self, request: Mapping[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"delta-spark ended with {self._process.wait(timeout=PATIENCE)}"
        return json.loads(line)
