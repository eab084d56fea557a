"""Sessions: a local Spark session that is ready for Anabranch.

Knows what a session needs; reads the environment. Never changes a session that somebody else made.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import Catalog

from anabranch.errors import MissingJava
from anabranch.protocol.settings import CHECKS_RETENTION, MERGES_SCHEMA, OPTIMIZES_WRITES, READS_BEYOND

OLDEST_JAVA = 17
_GIB = 1 << 30
_VERSION = re.compile(r'version "(\d+)')


def is_connect(spark: SparkSession) -> bool:
    """Whether it is a session of Spark Connect, which has no SparkContext."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def build(app: str = "anabranch", master: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSession:
    """A session that is ready: the one that runs already, or a new local one.

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
        for name, value in (conf or {}).items():
            running.conf.set(name, value)
        return running
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run whatever `python3` is, without pyarrow
    chosen = master or "local[*]"
    builder = SparkSession.builder.appName(app).master(chosen)
    for name, value in {**_defaults(chosen), **(conf or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def check_java() -> str:
    """The ``java`` that Spark will start. Raises MissingJava: there is none, or it is too old."""
    java = _java()
    version = _version(java)
    if version is None or version < OLDEST_JAVA:
        found = f"the one at {java} is version {version}." if version else f"{java} does not start."
        raise MissingJava(reason=found, instead=_advice())
    return java


def has_own_delta(spark: SparkSession) -> bool:
    """Whether Delta's own JARs are set up in a session, so that ``format("delta")`` is theirs."""
    settings = ("spark.sql.extensions", "spark.sql.catalog.spark_catalog")
    return any("delta" in (spark.conf.get(name, None) or "").lower() for name in settings)


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
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    return settings


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.path.exists(java):
        missing = "there is none on PATH, and JAVA_HOME is not set."
        raise MissingJava(
            reason=f"JAVA_HOME is {home}, but there is no {java}." if home else missing, instead=_advice()
        )
    return java


def _version(java: str) -> int | None:
    """The feature release that a ``java`` says it is; 1 for Java 8 and older."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return None
    match = _VERSION.search(done.stderr + done.stdout)
    return int(match[1]) if match else None


def _advice() -> str:
    how = {
        "darwin": "brew install openjdk@17",
        "linux": "apt-get install openjdk-17-jre-headless (or dnf install java-17-openjdk-headless)",
        "win32": "winget install EclipseAdoptium.Temurin.17.JRE",
    }
    system = how.get(sys.platform, "install a JRE, version 17 or newer")
    anywhere = "pip install install-jdk && python -c \"import jdk; print(jdk.install('17'))\""
    return f"Install one: {system}. Or, without root: {anywhere}, and set JAVA_HOME to the folder that it prints."


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
    door: Any = type(spark).catalog
    plain = getattr(getattr(door, "fget", None), "anabranch_plain", door)
    found: Catalog = plain.__get__(spark, type(spark))
    return found


def plain_sql(spark: SparkSession, text: str, args: Any = None, **frames: DataFrame) -> DataFrame:
    """What Spark itself makes of a statement, also where ``spark.sql`` leads to ours."""
    sql = type(spark).sql
    return getattr(sql, "anabranch_plain", sql)(spark, text, args, **frames)
