"""Anabranch: the transactions that Databricks documents for Delta Lake, on open Delta tables and stock PySpark.

Start with `session`, `DeltaTable` and `append`, or, without Spark, with `table`. Each name is loaded when it is first
used, so that importing the package takes no time, and what needs no PySpark works without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anabranch import errors
    from anabranch._api.functions import (
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
    from anabranch._api.install import install, uninstall
    from anabranch._api.open_table import table
    from anabranch._api.progress import progress
    from anabranch._api.retrying import retrying
    from anabranch._api.session import changes, read, session
    from anabranch._api.table import Table
    from anabranch._api.transaction import transaction
    from anabranch._sql.sql import sql
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
    "retrying",
    "session",
    "sql",
    "table",
    "transaction",
    "uninstall",
    "vacuum",
]

_WITHOUT_SPARK = {
    "Table": "anabranch._api.table",
    "append": "anabranch._api.functions",
    "appender": "anabranch._api.functions",
    "check": "anabranch._api.functions",
    "clone": "anabranch._api.functions",
    "explain": "anabranch._api.functions",
    "files": "anabranch._api.functions",
    "fsck": "anabranch._api.functions",
    "generate": "anabranch._api.functions",
    "history": "anabranch._api.functions",
    "progress": "anabranch._api.progress",
    "restore": "anabranch._api.functions",
    "retrying": "anabranch._api.retrying",
    "table": "anabranch._api.open_table",
    "transaction": "anabranch._api.transaction",
    "vacuum": "anabranch._api.functions",
}
_WITH_SPARK = {
    "DeltaTable": "anabranch.tables",
    "changes": "anabranch._api.session",
    "install": "anabranch._api.install",
    "read": "anabranch._api.session",
    "session": "anabranch._api.session",
    "sql": "anabranch._sql.sql",
    "uninstall": "anabranch._api.install",
}


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("anabranch.errors")
    if name in _WITHOUT_SPARK:
        import_module("anabranch._api")
        return getattr(import_module(_WITHOUT_SPARK[name]), name)
    if name in _WITH_SPARK:
        import_module("anabranch._api")
        with import_module("anabranch.errors").needs_pyspark(f"anabranch.{name}"):
            return getattr(import_module(_WITH_SPARK[name]), name)
    raise AttributeError(f"module 'anabranch' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Includes names that are loaded on first use, so that shells and notebooks complete them."""
    return sorted({*globals(), *__all__})
