"""Sessions: a local Spark session that is ready for Anabranch.

Knows what a session needs; reads the environment. Never changes a session that somebody else made.
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
"""What Spark shows in place of a value that it takes for a secret."""
_EXTENSIONS, _CATALOG = "spark.sql.extensions", "spark.sql.catalog.spark_catalog"
_with_jars = per_object("sessions that have Delta's own JARs")


def is_connect(spark: SparkSession) -> bool:
    """Whether it is a session of Spark Connect, which has no SparkContext."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def build(app: str = "anabranch", master: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSession:
    """A session that is ready: the one that runs already, or a new local one.

    Of several it is the first, as for Spark's own builder, and not the active one: that may be the session of a
    stream's batch, which is over, with settings that name its last write.

    Args:
        app: its name.
        master: as in Spark; all cores of this machine where None.
        conf: settings of yours, which count more than ours.

    Raises:
        MissingJava: no Java that Spark can run on.

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
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run whatever `python3` is, without pyarrow
    quiet_python()
    chosen, by_site = master or "local[*]", find_site_settings()
    defaults = {name: value for name, value in _defaults(chosen).items() if name not in by_site}
    builder = SparkSession.builder.appName(app).master(chosen)
    for name, value in {**defaults, **quiet(conf or {}, by_site), **(conf or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def has_own_delta(spark: SparkSession) -> bool:
    """Whether Delta's own JARs are there and set up in a session, so that ``format("delta")`` is theirs."""
    if not any(_names_delta(spark, name) for name in (_EXTENSIONS, _CATALOG)):
        return False
    if spark not in _with_jars:
        _with_jars[spark] = _finds_delta(spark)
    return _with_jars[spark]


def check_own_delta(spark: SparkSession) -> None:
    """Raises MissingDeltaJars: the catalog of a session is Delta's own, whose JARs are not there.

    Where only the extension is named, Spark goes on without it, and so do we.
    """
    if _names_delta(spark, _CATALOG) and not has_own_delta(spark):
        raise MissingDeltaJars(setting=_CATALOG, value=spark.conf.get(_CATALOG), other=_EXTENSIONS)


def _names_delta(spark: SparkSession, setting: str) -> bool:
    return "delta" in (spark.conf.get(setting, None) or "").lower()


def _finds_delta(spark: SparkSession) -> bool:
    """Whether Spark finds a format ``delta``. It is asked for no path, so that nothing is looked for anywhere."""
    try:
        _ = plain_reader(spark).format("delta").load().schema
    except Exception as error:  # classic sessions hand on the JVM's own, which has no type in PySpark
        return "DATA_SOURCE_NOT_FOUND" not in str(error)
    return True


def driver_memory(total_bytes: int) -> str:
    """Half of the machine, but at least 1 GB and at most 8."""
    return f"{min(max(total_bytes // 2 // _GIB, 1), 8)}g"


def _defaults(master: str) -> dict[str, str]:
    cores = str(os.cpu_count() or 1)
    settings = {
        "spark.driver.memory": driver_memory(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
        "spark.log.level": "ERROR",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.shuffle.partitions": cores,
        # Else Spark starts one task for each path of a long list before it plans: 24 s for 10 000 files, not 1.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": cores,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",  # it writes into files and notebooks as well
    }
    if master.startswith("local"):
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    return settings


def merges_schema(spark: SparkSession) -> bool:
    """Whether the session lets writes add columns, as delta-spark's setting of this name says."""
    return (spark.conf.get(MERGES_SCHEMA, None) or "").strip().lower() == "true"


def reads_beyond(spark: SparkSession) -> bool:
    """Whether changes may be asked for behind the newest version, as delta-spark's setting of this name says."""
    return (spark.conf.get(READS_BEYOND, None) or "").strip().lower() == "true"


def optimizes_writes(spark: SparkSession) -> bool | None:
    """Whether writes make few files, as delta-spark's setting of this name says; None where it says nothing."""
    said = (spark.conf.get(OPTIMIZES_WRITES, None) or "").strip().lower()
    return said == "true" if said in ("true", "false") else None


def checks_retention(spark: SparkSession) -> bool:
    """Whether VACUUM refuses to retain less than the table says, as delta-spark's setting of this name says."""
    return (spark.conf.get(CHECKS_RETENTION, None) or "true").strip().lower() != "false"


def plain_catalog(spark: SparkSession) -> Catalog:
    """Spark's own catalog, also where ``spark.catalog`` leads to ours."""
    found: Catalog = _plain(spark, "catalog")
    return found


def plain_reader(spark: SparkSession) -> DataFrameReader:
    """Spark's own reader, also where ``spark.read`` leads to ours."""
    found: DataFrameReader = _plain(spark, "read")
    return found


def _plain(spark: SparkSession, name: str) -> Any:
    """A property of Spark's own session, also where it leads to ours."""
    door: Any = getattr(type(spark), name)
    plain = getattr(getattr(door, "fget", None), "anabranch_plain", door)
    return plain.__get__(spark, type(spark))


def plain_sql(spark: SparkSession, text: str, args: Any = None, **frames: DataFrame) -> DataFrame:
    """What Spark itself makes of a statement, also where ``spark.sql`` leads to ours."""
    sql = type(spark).sql
    return getattr(sql, "anabranch_plain", sql)(spark, text, args, **frames)
