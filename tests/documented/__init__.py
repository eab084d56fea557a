"""delta-spark's documented Python API, as scenarios that run unchanged on ours and on the real one."""

from __future__ import annotations

MODULES = tuple(
    f"{__name__}.{name}" for name in ("opening", "creating", "changing", "merging", "upkeep", "versions", "protocols")
)
"""Where the scenarios stand; each of these files knows PySpark only, and nothing of ours."""
