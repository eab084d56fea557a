"""Reports that a DataFrame needs a file that VACUUM has removed.

Knows Spark's message for a missing file, and the version to which our DataFrames are pinned. Guarantee: if the version
is unknown, Spark's own error stays; rows are never read without a file of their version.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame

from anabranch._log.log import Log
from anabranch._protocol.layout.paths import store_name
from anabranch._spark.frames.dataframe_source import versions_in_plan
from anabranch._storage import open_store
from anabranch.errors import AnabranchError, MissingDataFile

_GONE = re.compile(
    r"\[FAILED_READ_FILE\.FILE_NOT_EXIST\] Encountered error while reading file (.+?)\. File does not exist"
)


_STILL_NEEDED = (
    "is not there, although the newest version has it: something else than a VACUUM removed it. Put it back from a "
    "copy; or `anabranch fsck` lists what is missing, and with --repair takes it out of the table, without its rows"
)


def file_in(error: Exception) -> str | None:
    """The URL of the missing file, percent-decoded; None for other errors."""
    if isinstance(error, AnalysisException):
        return path_in(error)
    match = _GONE.search(str(error))
    return None if match is None else unquote(match[1])


def path_in(error: AnalysisException) -> str | None:
    """The path that Spark missed when it listed the files of a query; None for other errors."""
    if error.getCondition() != "PATH_NOT_FOUND":
        return None
    path = (error.getMessageParameters() or {}).get("path", "")
    return re.sub(r"\\(.)", r"\1", path)  # its wildcards are escaped


def is_within(table: str, file: str) -> bool:
    """Whether a file lies in a table's folder."""
    try:
        return store_name(table, file) is not None
    except ValueError:
        return False


def missing(table: str, file: str, version: int | None) -> MissingDataFile:
    """The error for a file of a version that was removed while the version was being read."""
    which = "the version that is read" if version is None else f"version {version}, which is read,"
    old = f"is not there any more: {which} is older than what a VACUUM retained. Read a newer version"
    reason = _STILL_NEEDED if is_live(table, file) else old
    return MissingDataFile(table=table, file=file, version=version, reason=reason)


def is_live(table: str, file: str) -> bool:
    """Whether the newest version still has a file, so that no VACUUM has removed it; False if this cannot be
    determined.
    """
    try:
        snapshot, name = Log(open_store(table)).newest(), store_name(table, file)
        paths = [] if snapshot is None else snapshot.files["path"].to_pylist()
        return name in {store_name(table, path) for path in paths}
    except (AnabranchError, ValueError):
        return False


def missing_for(rows: DataFrame, error: Exception, pinned: tuple[str, int] | None) -> MissingDataFile | None:
    """The error of an action that failed because a file of the pinned version is gone; None for other failures.

    Args:
        rows, error: the failed DataFrame, and its error.
        pinned: the table and version, if known; Spark Connect shows no plan if its files are gone.
    """
    file = file_in(error)
    if file is None:
        return None
    if pinned is not None and is_within(pinned[0], file):
        return missing(pinned[0], file, pinned[1])
    try:
        folder = file
        while "/" in folder.partition("://")[2].rstrip("/") or folder.startswith("/"):
            folder = folder.rpartition("/")[0]
            snapshot = Log(open_store(folder or "/")).newest()
            if snapshot is not None:
                versions = versions_in_plan(rows, snapshot.metadata.id)
                return missing(snapshot.table, file, min(versions)) if versions else None
    except (AnabranchError, PySparkException):
        return None  # Spark's own error is more informative than this one
    return None
