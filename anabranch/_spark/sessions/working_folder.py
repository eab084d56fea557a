"""Finds the working folder of a session, in which Spark resolves paths without a scheme.

Hadoop's default file system may be configured in files that only the JVM reads, and the working folder is that of the
JVM, which ``os.chdir`` does not change. So Spark is asked to read a file that does not exist, and its error names the
place. Guarantees: this happens once for each value of the setting; if the error does not name a place, the path is
refused.
"""

from __future__ import annotations

import re
import uuid

from pyspark.sql import SparkSession

from anabranch._spark.sessions.known_sessions import session_of
from anabranch._spark.sessions.session import plain_reader
from anabranch.errors import UnknownStore
from anabranch.errors.process_state import per_object

DEFAULT = "fs.defaultFS"
_folders = per_object("working folders of sessions")


def working_folder(spark: SparkSession) -> str:
    """The URL of the folder in which a session resolves paths without a scheme.

    Raises:
        UnknownStore: Spark does not report where it is.

    Example:
        >>> working_folder(spark)
        'hdfs://namenode:8020/user/ann'
    """
    by_setting: dict[str | None, str] = _folders.setdefault(session_of(spark), {})
    default = spark.conf.get(DEFAULT, None)
    if default not in by_setting:
        by_setting[default] = _find_folder(spark)
    return by_setting[default]


def _find_folder(spark: SparkSession) -> str:
    name = f"anabranch-{uuid.uuid4().hex}"
    try:
        _ = plain_reader(spark).format("binaryFile").load([name, name]).schema  # one path would log Java frames
        why = "Spark"
    except Exception as error:  # its type depends on the file system
        match = re.search(rf"([A-Za-z][A-Za-z0-9+.-]*:/[^\n]*)/{name}", str(error))
        if match is not None:
            return match[1]
        why = type(error).__name__
    reason = f"Spark does not say on which file system paths without a scheme are ({why}); write the whole URL."
    raise UnknownStore(location="A path without a scheme", reason=reason) from None
