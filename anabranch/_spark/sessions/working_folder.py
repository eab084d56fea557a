"""The working folder of a session: where a path without a scheme lies for Spark.

Which file system is Hadoop's default may stand in files of Hadoop that only the JVM reads, and the working folder is
that of the JVM, which ``os.chdir`` does not change. So Spark is asked for a file that is not there, and says where it
has looked. Guarantees: it is asked once for each value of the setting; where it does not say, the path is refused.
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
    """The URL of the folder in which paths without a scheme begin in a session.

    Raises:
        UnknownStore: Spark does not say where it is.

    Example:
        >>> working_folder(spark)
        'hdfs://namenode:8020/user/ann'
    """
    known: dict[str | None, str] = _folders.setdefault(session_of(spark), {})
    said = spark.conf.get(DEFAULT, None)
    if said not in known:
        known[said] = _find_folder(spark)
    return known[said]


def _find_folder(spark: SparkSession) -> str:
    name = f"anabranch-{uuid.uuid4().hex}"
    try:
        _ = plain_reader(spark).format("binaryFile").load([name, name]).schema  # of one, Spark warns with Java frames
        why = "Spark"
    except Exception as error:  # of a kind for each file system
        found = re.search(rf"([A-Za-z][A-Za-z0-9+.-]*:/[^\n]*)/{name}", str(error))
        if found is not None:
            return found[1]
        why = type(error).__name__
    reason = f"Spark does not say on which file system paths without a scheme are ({why}); write the whole URL."
    raise UnknownStore(location="A path without a scheme", reason=reason) from None
