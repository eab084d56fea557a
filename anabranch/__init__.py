"""Anabranch: the transactions that Databricks documents for Delta Lake, on open Delta tables and stock PySpark.

Start with `session`, `DeltaTable` and `append`, or, without Spark, with `table`. Each name is loaded when it is first
used, so that importing the package takes no time, and what needs no PySpark works without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from anabranch.api.install import install, uninstall
    from anabranch.api.open_table import table
    from anabranch.api.progress import progress
    from anabranch.api.session import changes, read, session
    from anabranch.api.table import Table
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

_WITHOUT_SPARK = {
    "Table": "anabranch.api.table",
    "append": "anabranch.api.functions",
    "appender": "anabranch.api.functions",
    "check": "anabranch.api.functions",
    "clone": "anabranch.api.functions",
    "explain": "anabranch.api.functions",
    "files": "anabranch.api.functions",
    "fsck": "anabranch.api.functions",
    "generate": "anabranch.api.functions",
    "history": "anabranch.api.functions",
    "progress": "anabranch.api.progress",
    "restore": "anabranch.api.functions",
    "table": "anabranch.api.open_table",
    "vacuum": "anabranch.api.functions",
}
_WITH_SPARK = {
    "DeltaTable": "anabranch.tables",
    "changes": "anabranch.api.session",
    "install": "anabranch.api.install",
    "read": "anabranch.api.session",
    "session": "anabranch.api.session",
    "sql": "anabranch.statements.sql",
    "uninstall": "anabranch.api.install",
}


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("anabranch.errors")
    if name in _WITHOUT_SPARK:
        import_module("anabranch.api")
        return getattr(import_module(_WITHOUT_SPARK[name]), name)
    if name in _WITH_SPARK:
        import_module("anabranch.api")
        with import_module("anabranch.errors").needs_pyspark(f"anabranch.{name}"):
            return getattr(import_module(_WITH_SPARK[name]), name)
    raise AttributeError(f"module 'anabranch' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Also what is loaded when it is first used, so that shells and notebooks complete it."""
    return sorted({*globals(), *__all__})
