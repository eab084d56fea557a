"""Where the environment with real delta-spark stands, and what is in it.

Knows names and versions only, and the standard library; `tools/setup.py` makes what is described here, and the tests in
`tests/interop` use it. The newest delta-spark wants an older PySpark than the newest, so it has an environment of its
own. That is kept in the user's cache folder, so that all clones and worktrees share one.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

POM = Path(__file__).resolve().parent / "pom.xml"
PACKAGES = ("pyspark==4.2.0", "pyarrow>=17", "delta-spark==4.4.0")
GROUPS = ("io.delta", "io.unitycatalog", "org.locationtech.jts")
"""The groups whose JARs Spark does not bring itself."""


def folder() -> Path:
    """The environment's folder; its name changes with everything that would make it another one."""
    facts = repr((POM.read_text(), PACKAGES, GROUPS, sys.version_info[:2])).encode()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "anabranch" / f"interop-{hashlib.sha256(facts).hexdigest()[:12]}"


def python() -> Path:
    """The Python that has the right PySpark."""
    return folder() / "venv" / "bin" / "python"


def jars() -> Path:
    """The folder of delta-spark's JARs, which is there only when it is complete."""
    return folder() / "jars"


def is_ready() -> bool:
    return (folder() / "ready").exists()
