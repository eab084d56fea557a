"""Where the servers that are written in Go stand, by which the tests reach Google Cloud Storage and a second S3.

Knows names and versions only, and the standard library; `tools/setup.py` makes what is described here. The programs are
kept in the user's cache folder, so that all clones and worktrees share them.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

MODULES = {
    "fake-gcs-server": "github.com/fsouza/fake-gcs-server@v1.56.1",
    "minio": "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c",
}
"""The Go module of each program."""


def folder() -> Path:
    """Their folder; its name changes with everything that would make it another one."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "anabranch" / f"servers-{hashlib.sha256(repr(MODULES).encode()).hexdigest()[:12]}"


def program(name: str) -> Path:
    """The program of this name, where it is or would be."""
    return folder() / name


def why_absent(name: str) -> str:
    """Why a program is not here, or nothing where it is."""
    return "" if program(name).exists() else f"{name} is not installed; `make clouds` does that where there is Go"
