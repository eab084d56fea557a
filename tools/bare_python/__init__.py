"""Where the Python of other machines stands, for tests: that of a cluster's workers and of a server of Spark Connect.

Knows names and versions only, and the standard library; `tools/setup.py` makes what is described here. It has what
PySpark's own workers need and nothing of ours, neither this package nor any that it needs beyond these. It is kept in
the user's cache folder, so that all clones and worktrees share it.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

PACKAGES = (
    "pandas>=2.2,<3",
    "pyarrow>=17",
    # The server of Spark Connect starts the function of a stream's batches in a client of its own.
    "googleapis-common-protos>=1.71",
    "grpcio>=1.76",
    "grpcio-status>=1.76",
    "zstandard>=0.25",
)


def folder() -> Path:
    """Its folder, which is a virtual environment; its name changes with everything that would make it another one."""
    facts = repr((PACKAGES, sys.version_info[:2])).encode()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "anabranch" / f"bare-python-{hashlib.sha256(facts).hexdigest()[:12]}"


def python() -> Path:
    return folder() / "bin" / "python"


def is_ready() -> bool:
    return (folder() / "ready").exists()
