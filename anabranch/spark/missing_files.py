"""Vanished files: what is said when a DataFrame needs a file that VACUUM has removed.

Knows how Spark says that a file is not there, and which version a DataFrame of ours is pinned to. Guarantee: whatever
cannot be told is left as Spark said it; nothing is ever read without a file that its version has.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from pyspark.sql import DataFrame

from anabranch.errors import AnabranchError, MissingDataFile
from anabranch.log.log import Log
from anabranch.protocol.layout.paths import store_name
from anabranch.spark.dataframe_source import SOME_VERSION, version_read
from anabranch.storage import open_store

_GONE = re.compile(
    r"\[FAILED_READ_FILE\.FILE_NOT_EXIST\] Encountered error while reading file (.+?)\. File does not exist"
)


def file_in(error: Exception) -> str | None:
    """The URL of the file that is not there, if that is what Spark says, not percent-encoded."""
    match = _GONE.search(str(error))
    return None if match is None else unquote(match[1])


def is_within(table: str, file: str) -> bool:
    """Whether a file is one of a table's folder."""
    try:
        return store_name(table, file) is not None
    except ValueError:
        return False


def missing(table: str, file: str, version: int | None) -> MissingDataFile:
    """The error for a file of a version that was removed while somebody read."""
    which = "the version that is read" if version is None else f"version {version}, which is read,"
    reason = f"is not there any more: {which} is older than what a VACUUM retained. Read the table anew"
    return MissingDataFile(table=table, file=file, version=version, reason=reason)


def vanished(rows: DataFrame, error: Exception) -> MissingDataFile | None:
    """What a failed action of a DataFrame says, where it failed because a file of a pinned version is gone."""
    file = file_in(error)
    if file is None:
        return None
    try:
        folder = file
        while "/" in folder.partition("://")[2].rstrip("/") or folder.startswith("/"):
            folder = folder.rpartition("/")[0]
            snapshot = Log(open_store(folder or "/")).newest()
            if snapshot is not None:
                version = version_read(rows, snapshot.table, snapshot.metadata.id)
                known = version is not None and version < SOME_VERSION
                return missing(snapshot.table, file, version) if known else None
    except AnabranchError:
        return None  # Spark's own error says more than this one
    return None
