"""Missing files: the error when a DataFrame needs a file that VACUUM has removed.

Knows Spark's message for a missing file, and the version that a DataFrame of ours is pinned to. Guarantee: where the
version is unknown, Spark's own error stays; nothing is ever read without a file that its version has.
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
    """The URL of the missing file, percent-decoded; None where the error is another one."""
    if isinstance(error, AnalysisException):
        return path_in(error)
    match = _GONE.search(str(error))
    return None if match is None else unquote(match[1])


def path_in(error: AnalysisException) -> str | None:
    """The path that Spark missed when it looked for the files of a query; None where the error is another one."""
    if error.getCondition() != "PATH_NOT_FOUND":
        return None
    path = (error.getMessageParameters() or {}).get("path", "")
    return re.sub(r"\\(.)", r"\1", path)  # wildcards are escaped in there


def is_within(table: str, file: str) -> bool:
    """Whether a file lies in a table's folder."""
    try:
        return store_name(table, file) is not None
    except ValueError:
        return False


def missing(table: str, file: str, version: int | None) -> MissingDataFile:
    """The error for a file of a version that was removed while somebody read."""
    which = "the version that is read" if version is None else f"version {version}, which is read,"
    old = f"is not there any more: {which} is older than what a VACUUM retained. Read a newer version"
    reason = _STILL_NEEDED if is_live(table, file) else old
    return MissingDataFile(table=table, file=file, version=version, reason=reason)


def is_live(table: str, file: str) -> bool:
    """Whether the newest version still names a file, so that no VACUUM has removed it; False where nobody can say."""
    try:
        snapshot, name = Log(open_store(table)).newest(), store_name(table, file)
        return snapshot is not None and name in {store_name(table, each) for each in snapshot.files["path"].to_pylist()}
    except (AnabranchError, ValueError):
        return False


def missing_for(rows: DataFrame, error: Exception, pinned: tuple[str, int] | None) -> MissingDataFile | None:
    """The error of an action that failed because a file of the pinned version is gone; None for other failures.

    Args:
        rows, error: what failed, and how.
        pinned: the table and version where they are known; of a plan whose files are gone Spark Connect shows nothing.
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
        return None  # Spark's own error says more than this one
    return None
