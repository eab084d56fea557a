"""A real HDFS for tests: Hadoop's own MiniDFSCluster, a NameNode and a DataNode in a process of its own.

``tools/setup.py --connectors`` brings it; its other JARs are those of PySpark.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from tools import connectors

_LISTENS = re.compile(r"listens on (hdfs://\S+) and (webhdfs://\S+)")
_SOURCE = Path(__file__).with_name("MiniHdfs.java")


def why_absent() -> str:
    """Why there is no HDFS here, or nothing where there is one."""
    if connectors.hdfs() is None or find_spec("hdfs_native") is None:
        return "HDFS is not here; `make clouds` brings it"
    return "" if _java() else "HDFS needs Java, and there is none"


class Urls(NamedTuple):
    """Those of one file system: in Hadoop's own language, and over HTTP."""

    hdfs: str
    webhdfs: str


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The URL of a new and empty file system, which keeps its files in a folder."""
    with serving_both(folder) as urls:
        yield urls.hdfs


@contextlib.contextmanager
def serving_both(folder: Path) -> Iterator[Urls]:
    """Both URLs of such a file system."""
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    command = [_java(), "-Xmx512m", "-cp", f"{connectors.hdfs()}:{jars}/*", str(_SOURCE), str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as server:  # type: ignore[call-overload]
        try:
            yield _urls_of(server)
        finally:
            server.kill()


def _urls_of(server: subprocess.Popen[str]) -> Urls:
    assert server.stdout is not None
    for line in server.stdout:
        if listens := _LISTENS.search(line):
            return Urls(*listens.groups())
    raise AssertionError("HDFS ended before it listened")


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else shutil.which("java") or ""
