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
from pathlib import Path

from tools import connectors

_LISTENS = re.compile(r"listens on (hdfs://\S+)")
_SOURCE = Path(__file__).with_name("MiniHdfs.java")


def why_absent() -> str:
    """Why there is no HDFS here, or nothing where there is one."""
    if connectors.hdfs() is None:
        return "HDFS is not here; `make clouds` brings it"
    return "" if _java() else "HDFS needs Java, and there is none"


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The URL of a new and empty file system, which keeps its files in a folder."""
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    command = [_java(), "-Xmx512m", "-cp", f"{connectors.hdfs()}:{jars}/*", str(_SOURCE), str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as server:  # type: ignore[call-overload]
        try:
            yield _url_of(server)
        finally:
            server.kill()


def _url_of(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    for line in server.stdout:
        if listens := _LISTENS.search(line):
            return listens[1]
    raise AssertionError("HDFS ended before it listened")


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else shutil.which("java") or ""
