"""Listing: how Spark looks at the files of a scan before it plans.

Spark asks the store about each path of a scan once. For more than 32 paths it runs a job, with one task for each path
up to a setting of the session that is 10,000 by default: the tasks cost far more than what they do. Guarantee: the
session's own value counts where it is the lower one.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from pyspark.sql import SparkSession

from anabranch._spark.sessions.held_settings import hold_setting
from anabranch._spark.sessions.session import is_connect

SETTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_IN_THE_DRIVER = 32
_PER_TASK = {True: 2000, False: 32}
"""By whether they are on a disk: a look there takes microseconds, and in a bucket tens of milliseconds."""


def few_tasks(spark: SparkSession, root: str, paths: int) -> AbstractContextManager[None]:
    """Spark lists so many paths of a table in few tasks while the block lasts; a server of Connect lists them later,
    as its own settings have it.
    """
    if paths <= _IN_THE_DRIVER or is_connect(spark):
        return nullcontext()
    wanted = -(-paths // _PER_TASK[root.startswith(("/", "file:"))])
    return hold_setting(spark, SETTING, str(wanted)) if wanted < int(spark.conf.get(SETTING) or 0) else nullcontext()
