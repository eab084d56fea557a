"""Decides what a session that Anabranch creates writes to the console, and finds settings that take precedence over
ours.

Knows Spark's configuration files and its loggers. A mistake is one exception in Python; so such a session does not also
write the Java stack traces of failed tasks. Guarantee: logging that a site or user configures stays, and a session that
somebody else created is never touched.
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
"""Configuration for log4j: errors, without those of failed tasks."""

_JAVA_DEFAULTS = "spark.driver.defaultJavaOptions"  # Spark puts the user's own options behind these
_LEVEL = "spark.log.level"
_FROM_ENVIRONMENT = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
CONTEXT_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark's loggers that write each error of a query."""
_NAME = re.compile(r"^\s*(spark\.[\w.]+)", re.MULTILINE)


def find_site_settings(environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Names of settings in Spark's configuration files or `PYSPARK_SUBMIT_ARGS`. Spark's log level counts as set if a
    file or the environment configures log4j; so does a remote server that the environment names.
    """
    folder = _folder(environment)
    names = set(_NAME.findall(_text(folder / "spark-defaults.conf"))) | _of_submit(environment)
    configured = any(folder.glob("log4j2.*"))
    if configured or any("log4j" in environment.get(variable, "") for variable in _FROM_ENVIRONMENT):
        names.add(_LEVEL)
    if environment.get("SPARK_REMOTE"):
        names.add("spark.remote")
    return frozenset(names)


def outlives_sessions(by_site: Collection[str]) -> bool:
    """Whether a new session may know names of tables, because the site configures a catalog or a server."""
    return any(name.startswith(("spark.sql.catalog", "spark.remote", "spark.api.mode")) for name in by_site)


def quiet(conf: Mapping[str, str], by_site: Collection[str]) -> dict[str, str]:
    """Settings that keep a new JVM from writing stack traces of failed tasks; none if its logging is configured.

    Args:
        conf: settings of the user.
        by_site: names of settings that the site configures.
    """
    configured = {*conf, *by_site}
    if _LEVEL in configured or _JAVA_DEFAULTS in configured:
        return {}
    return {_JAVA_DEFAULTS: f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"}


def quiet_python() -> None:
    """Stop PySpark from printing each error's stack trace besides raising it; a level that somebody has set stays."""
    for name in CONTEXT_LOGGERS:
        logger = PySparkLogger.getLogger(name)
        if logger.level in (logging.NOTSET, logging.WARNING):  # the latter is PySpark's own
            logger.setLevel(logging.CRITICAL)


def spark_home(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of the Spark that this Python starts."""
    return Path(environment.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def _folder(environment: Mapping[str, str]) -> Path:
    if folder := environment.get("SPARK_CONF_DIR"):
        return Path(folder)
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
