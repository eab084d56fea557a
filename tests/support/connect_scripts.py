"""Scripts on Spark Connect, with its real server: each in a process of its own, which has one kind of session."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.spark_options import QUICK_JAVA

ROOT = Path(__file__).parents[2]
_OWN = {
    "PYTHONPATH": str(ROOT),
    "PYSPARK_PYTHON": sys.executable,
    "JAVA_TOOL_OPTIONS": f"{QUICK_JAVA} -Dspark.ui.enabled=false",
}
"""Its server has this package, whatever other servers of the run have."""


def run_on_connect(module: str, folder: Path, *arguments: object) -> Any:
    """What the script says in its last line."""
    pytest.importorskip("grpc", reason="Spark Connect's client needs grpcio")
    with the_port():
        ran = subprocess.run(
            [sys.executable, "-m", module, str(folder), *map(str, arguments)],
            capture_output=True,
            text=True,
            env={**os.environ, **_OWN},
            cwd=folder,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout.splitlines()[-1])


@contextmanager
def the_port() -> Iterator[None]:
    """One process at a time, since a local server takes one port, which PySpark chooses for it."""
    with Path(tempfile.gettempdir(), "anabranch-tests-of-connect.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
