"""Consoles: what a session that Anabranch makes writes there, and which settings of the site count more than ours.

Knows Spark's configuration files and its loggers. A mistake is one exception in Python; so such a session does not also
write the frames of Java that a failed task leaves. Guarantee: what a site or user says of logging stays, and a session
that somebody else made is never touched.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path

import pyspark
from pyspark.logger import PySparkLogger

LOGGING = Path(__file__).parents[1] / "log4j2.properties"
"""What log4j is told: errors, without those of failed tasks."""

_JAVA_DEFAULTS = "spark.driver.defaultJavaOptions"  # Spark puts the user's own options behind these
_LEVEL = "spark.log.level"
_FROM_ENVIRONMENT = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
CONTEXT_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark's loggers that write each error of a query."""
_NAME = re.compile(r"^\s*(spark\.[\w.]+)", re.MULTILINE)


def find_site_settings(environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """The settings that Spark's configuration files or `PYSPARK_SUBMIT_ARGS` name; Spark's own level of logging among
    them where a file or the environment configures log4j, and a server that the environment names.
    """
    folder = _folder(environment)
    named = set(_NAME.findall(_text(folder / "spark-defaults.conf"))) | _of_submit(environment)
    configured = any(folder.glob("log4j2.*"))
    if configured or any("log4j" in environment.get(each, "") for each in _FROM_ENVIRONMENT):
        named.add(_LEVEL)
    if environment.get("SPARK_REMOTE"):
        named.add("spark.remote")
    return frozenset(named)


def outlives_sessions(by_site: Collection[str]) -> bool:
    """Whether a new session may know names of tables: the site configures a catalog, or a server."""
    return any(name.startswith(("spark.sql.catalog", "spark.remote", "spark.api.mode")) for name in by_site)


def quiet(conf: Mapping[str, str], by_site: Collection[str]) -> dict[str, str]:
    """The settings with which a new JVM writes no frames of failed tasks; none where somebody configures its logging.

    Args:
        conf: settings of the user.
        by_site: the names of settings that the site says.
    """
    said = {*conf, *by_site}
    if _LEVEL in said or _JAVA_DEFAULTS in said:
        return {}
    return {_JAVA_DEFAULTS: f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"}


def quiet_python() -> None:
    """Let PySpark not write each error with its frames to the console beside raising it; a level that somebody has set
    stays.
    """
    for name in CONTEXT_LOGGERS:
        logger = PySparkLogger.getLogger(name)
        if logger.level in (logging.NOTSET, logging.WARNING):  # the latter is PySpark's own
            logger.setLevel(logging.CRITICAL)


def spark_home(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of the Spark that this Python starts."""
    return Path(environment.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def _folder(environment: Mapping[str, str]) -> Path:
    if said := environment.get("SPARK_CONF_DIR"):
        return Path(said)
    return spark_home(environment) / "conf"


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _of_submit(environment: Mapping[str, str]) -> set[str]:
    try:
        words = shlex.split(environment.get("PYSPARK_SUBMIT_ARGS", ""))
    except ValueError:
        return set()
    return {word.partition("=")[0] for word in words if word.startswith("spark.")}
