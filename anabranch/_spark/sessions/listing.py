"""Limits the tasks with which Spark lists the files of a scan before it plans.

Spark queries the store once for each path of a scan. For more than 32 paths it runs a job, with one task for each path
up to a setting of the session that is 10,000 by default: the tasks cost far more than the work in them. Guarantee: a
lower value of the session takes precedence.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from pyspark.sql import SparkSession

from anabranch._spark.sessions.session import is_connect
from anabranch._spark.sessions.setting_overrides import override_setting

SETTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_IN_THE_DRIVER = 32
_PER_TASK = {True: 2000, False: 32}
"""Paths for each task, by whether they are on a disk: a query takes microseconds there, and tens of milliseconds in a
bucket.
"""


def few_tasks(spark: SparkSession, root: str, paths: int) -> AbstractContextManager[None]:
    """Within the block Spark lists this many paths of a table in few tasks. A Connect server lists them later, under
    its own settings.
    """
    if paths <= _IN_THE_DRIVER or is_connect(spark):
        return nullcontext()
    tasks = -(-paths // _PER_TASK[root.startswith(("/", "file:"))])
    return override_setting(spark, SETTING, str(tasks)) if tasks < int(spark.conf.get(SETTING) or 0) else nullcontext()
