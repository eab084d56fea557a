"""Run the tests of libraries that others wrote on delta-spark, on delta-spark and on Anabranch: ``make jobs``.

Knows the standard library, pip, git and where `tools/interop` has PySpark and Delta's JARs. The libraries are fetched
when they are run, each pinned by a hash, and nothing of them is kept in the project. `libraries.toml` says which they
are, `reasons.toml` why a test that passes on delta-spark does not pass here.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def cache() -> Path:
    """The folder that all clones share: what was downloaded, and an environment for each library."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "anabranch" / "jobs"


def work(library: str) -> Path:
    """Where a library's source lies while it is run, and what the runs said.

    It is outside of the clone, since pytest looks for its settings upwards.
    """
    return cache() / "work" / library
