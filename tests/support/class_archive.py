"""Make the archive of Spark's classes that the tests' JVMs start from, where there is none: `make setup` calls it.

    python -m tests.support.class_archive

Knows how to run Spark once. Guarantee: the archive appears whole or not at all, and without it tests run as well, only
later; so a JVM that cannot make one is no error.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.spark_options import COMPILER, ROOT, archive


def make(path: Path) -> bool:
    """Whether the archive is there now: the classes are those that a round of each verb loads."""
    import pyspark  # here, so that looking for an archive needs nothing

    aside = path.with_suffix(f".{os.getpid()}")
    options = f"{COMPILER} -XX:ArchiveClassesAtExit={aside} -Xlog:cds=off -Xlog:cds+dynamic=off"
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]"]
    with tempfile.TemporaryDirectory() as folder:
        script = str(ROOT / "tests" / "support" / "round_of_verbs.py")
        command = [*submit, "--driver-java-options", options, script, folder]
        subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=folder, capture_output=True)
    if aside.is_file():
        aside.replace(path)
    return path.is_file()


if __name__ == "__main__":
    if not archive().is_file() and not make(archive()):
        print("there is no archive of Spark's classes: tests with Spark start more slowly", file=sys.stderr)
