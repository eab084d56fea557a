"""Anabranch: the transactions that Databricks documents for Delta Lake, on open Delta tables and stock PySpark.

Start with `session`, `DeltaTable` and `append`. What needs PySpark is loaded when it is first used, so that log tools
work without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from anabranch import errors
from anabranch.api.functions import (
    append,
    appender,
    check,
    clone,
    explain,
    files,
    fsck,
    generate,
    history,
    restore,
    vacuum,
)
from anabranch.api.progress import progress
from anabranch.api.table import Table, table

if TYPE_CHECKING:
    from anabranch.api.install import install, uninstall
    from anabranch.api.session import changes, read, session
    from anabranch.statements.sql import sql
    from anabranch.tables import DeltaTable

__version__ = "0.1.0"

__all__ = [
    "DeltaTable",
    "Table",
    "append",
    "appender",
    "changes",
    "check",
    "clone",
    "errors",
    "explain",
    "files",
    "fsck",
    "generate",
    "history",
    "install",
    "progress",
    "read",
    "restore",
    "session",
    "sql",
    "table",
    "uninstall",
    "vacuum",
]

_LAZY = {
    "DeltaTable": "anabranch.tables",
    "changes": "anabranch.api.session",
    "install": "anabranch.api.install",
    "read": "anabranch.api.session",
    "session": "anabranch.api.session",
    "sql": "anabranch.statements.sql",
    "uninstall": "anabranch.api.install",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'anabranch' has no attribute {name!r}")
    with errors.needs_pyspark(f"anabranch.{name}"):
        return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    """Also what is loaded when it is first used, so that shells and notebooks complete it."""
    return sorted({*globals(), *__all__})
