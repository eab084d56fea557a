"""Creates a local Spark session that is ready for Anabranch, and reads settings of sessions.

Knows what a session needs; reads the environment. Never changes a session that somebody else created.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.catalog import Catalog

from anabranch._protocol.settings import CHECKS_RETENTION, MERGES_SCHEMA, OPTIMIZES_WRITES, READS_BEYOND
from anabranch._spark.sessions.consoles import find_site_settings, quiet, quiet_python
from anabranch._spark.sessions.java import check_java
from anabranch.errors import MissingDeltaJars
from anabranch.errors.process_state import per_object

_GIB = 1 << 30
HIDDEN = "*********(redacted)"
"""Spark's replacement for a value that it takes for a secret."""
_EXTENSIONS, _CATALOG = "spark.sql.extensions", "spark.sql.catalog.spark_catalog"
_with_jars = per_object("sessions that have Delta's own JARs")


def is_connect(spark: SparkSession) -> bool:
    """Whether it is a session of Spark Connect, which has no SparkContext."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def build(app: str = "anabranch", master: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSession:
    """A session that is ready: the running one, or a new local one.

    Of several running sessions it is the first, as for Spark's own builder, and not the active one: that may be the
    session of a stream's finished batch, with settings that name its last write.

    Args:
        app: name of the application.
        master: as in Spark; None: all cores of this machine.
        conf: the user's settings, which take precedence over the defaults.

    Raises:
        MissingJava: there is no Java on which Spark can run.

    Example:
        >>> spark = build("demo", "local[2]", {"spark.sql.session.timeZone": "UTC"})
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        running = running if is_connect(running) else SparkSession.builder.getOrCreate()
        for name, value in (conf or {}).items():
            running.conf.set(name, value)
        return running
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # otherwise workers run any `python3`, without pyarrow
    quiet_python()
    chosen_master, by_site = master or "local[*]", find_site_settings()
    defaults = {name: value for name, value in _defaults(chosen_master).items() if name not in by_site}
    builder = SparkSession.builder.appName(app).master(chosen_master)
    for name, value in {**defaults, **quiet(conf or {}, by_site), **(conf or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def has_own_delta(spark: SparkSession) -> bool:
    """Whether Delta's own JARs are present and configured in a session, so that ``format("delta")`` is theirs."""
    if not any(_names_delta(spark, name) for name in (_EXTENSIONS, _CATALOG)):
        return False
    if spark not in _with_jars:
        _with_jars[spark] = _finds_delta(spark)
    return _with_jars[spark]


def check_own_delta(spark: SparkSession) -> None:
    """Raises MissingDeltaJars if a session's catalog is Delta's own, but its JARs are missing.

    If only the extension is configured, Spark continues without it, and so do we.
    """
    if _names_delta(spark, _CATALOG) and not has_own_delta(spark):
        raise MissingDeltaJars(setting=_CATALOG, value=spark.conf.get(_CATALOG), other=_EXTENSIONS)


def _names_delta(spark: SparkSession, setting: str) -> bool:
    return "delta" in (spark.conf.get(setting, None) or "").lower()


def _finds_delta(spark: SparkSession) -> bool:
    """Whether Spark has a format ``delta``. Without a path, so that Spark does not search for files."""
    try:
        _ = plain_reader(spark).format("delta").load().schema
    except Exception as error:  # classic sessions pass on the JVM's own error, which has no type in PySpark
        return "DATA_SOURCE_NOT_FOUND" not in str(error)
    return True


def driver_memory(total_bytes: int) -> str:
    """Half of the machine's memory, but at least 1 GB and at most 8."""
    return f"{min(max(total_bytes // 2 // _GIB, 1), 8)}g"


def _defaults(master: str) -> dict[str, str]:
    cores = str(os.cpu_count() or 1)
    settings = {
        "spark.driver.memory": driver_memory(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
        "spark.log.level": "ERROR",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.shuffle.partitions": cores,
        # Otherwise Spark starts a task for each path of a long list before it plans: 24 s for 10 000 files, not 1.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": cores,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",  # it writes into files and notebooks as well
    }
    if master.startswith("local"):
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    return settings


def merges_schema(spark: SparkSession) -> bool:
    """Whether the session lets writes add columns, by delta-spark's setting of this name."""
    return (spark.conf.get(MERGES_SCHEMA, None) or "").strip().lower() == "true"


def allows_reads_beyond_newest(spark: SparkSession) -> bool:
    """Whether changes may be requested beyond the newest version, by delta-spark's setting of this name."""
    return (spark.conf.get(READS_BEYOND, None) or "").strip().lower() == "true"


def optimizes_writes(spark: SparkSession) -> bool | None:
    """Whether writes make few files, by delta-spark's setting of this name; None if it is not set."""
    value = (spark.conf.get(OPTIMIZES_WRITES, None) or "").strip().lower()
    return value == "true" if value in ("true", "false") else None


def checks_retention(spark: SparkSession) -> bool:
    """Whether VACUUM refuses to retain less than the table demands, by delta-spark's setting of this name."""
    return (spark.conf.get(CHECKS_RETENTION, None) or "true").strip().lower() != "false"


def plain_catalog(spark: SparkSession) -> Catalog:
    """Spark's own catalog, even if ``spark.catalog`` is replaced by ours."""
    catalog: Catalog = _plain(spark, "catalog")
    return catalog


def plain_reader(spark: SparkSession) -> DataFrameReader:
    """Spark's own reader, even if ``spark.read`` is replaced by ours."""
    reader: DataFrameReader = _plain(spark, "read")
    return reader


def _plain(spark: SparkSession, name: str) -> Any:
    """A property of Spark's own session, even if it is replaced by ours."""
    descriptor: Any = getattr(type(spark), name)
    plain = getattr(getattr(descriptor, "fget", None), "anabranch_plain", descriptor)
    return plain.__get__(spark, type(spark))


def plain_sql(spark: SparkSession, text: str, args: Any = None, **frames: DataFrame) -> DataFrame:
    """Run a statement with Spark's own ``sql``, even if ``spark.sql`` is replaced by ours."""
    sql = type(spark).sql
    return getattr(sql, "anabranch_plain", sql)(spark, text, args, **frames)
