"""How the tests' JVMs run: a session's worth of small queries, most of them once.

What a second compiler would win later is lost on compiling, so there is one compiler, with room for all that it makes.
Spark's classes come from an archive, which `tests.support.class_archive` makes once for each clone: a JVM reads it in
place of parsing and checking 20,000 classes. A JVM that finds the archive made for others passes it over by itself.
"""

from __future__ import annotations

import hashlib
import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPILER = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"


def archive() -> Path:
    """Where the archive for this Java and this PySpark is, or would be."""
    try:
        spark = version("pyspark")
    except PackageNotFoundError:
        spark = "none"
    java = Path(os.environ.get("JAVA_HOME", "none")) / "release"
    facts = [spark, COMPILER, str(java), java.read_text(encoding="utf-8") if java.is_file() else ""]
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
    return ROOT / ".venv" / f"spark-classes-{key}.jsa"


def _quick_java() -> str:
    path = archive()
    if not path.is_file() or " " in str(path):
        return COMPILER
    return f"{COMPILER} -XX:SharedArchiveFile={path} -Xlog:cds=off -Xlog:cds+dynamic=off"


QUICK_JAVA = _quick_java()
