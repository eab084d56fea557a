"""Where the JARs stand by which Spark reaches buckets, and by which a small HDFS runs, for tests.

Knows names and versions only, and the standard library; `tools/setup.py` makes what is described here. The JARs, about
800 MB, are kept in the user's cache folder, so that all clones and worktrees share them.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

POM = Path(__file__).resolve().parent / "pom.xml"


def folder() -> Path:
    """Their folder; its name changes with everything that would make it another one."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "anabranch" / f"connectors-{hashlib.sha256(POM.read_bytes()).hexdigest()[:12]}"


def jars() -> list[Path]:
    """The JARs for Spark; none until all are there."""
    return [each for each in _every() if "minicluster" not in each.name]


def hdfs() -> Path | None:
    """The JAR with a small HDFS."""
    return next((each for each in _every() if "minicluster" in each.name), None)


def _every() -> list[Path]:
    return sorted(folder().glob("jars/*.jar")) if (folder() / "ready").exists() else []
