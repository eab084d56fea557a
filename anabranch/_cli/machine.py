"""Facts about this machine: Python, PySpark, Java, the Python of workers, packages. Starts no JVM.

Imports PySpark only if it is installed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module, metadata

from anabranch import __version__
from anabranch._cli import diagnosis
from anabranch._cli.diagnosis import Check
from anabranch._spark.sessions.java import find_java, java_advice, release_of
from anabranch.errors import MissingJava

_REQUIRED = re.compile(r"^([\w-]+)\s*([<>=\d.,\s]*)$")
_OPTIONAL = {
    "pandas": ("toPandas and rows from pandas", "pip install 'anabranch[spark]'"),
    "hdfs-native": ("hdfs://", "pip install 'anabranch[hdfs]'"),
    "deltalake": ("reading tables beside Anabranch", ""),
}
_JARS = {
    "s3": ("hadoop-aws-*.jar",),
    "az": ("hadoop-azure-*.jar",),
    "abfss": ("hadoop-azure-*.jar",),
    "gs": ("hadoop-gcp-*.jar", "gcs-connector-*.jar"),
}
_PROGRAM = """
import sys
sys.path = [entry for entry in sys.path if entry]
import json
try:
    import pyarrow
except ImportError:
    pyarrow = None
print(json.dumps([sys.version_info[:3], getattr(pyarrow, "__version__", None)]))
"""
"""Imports nothing from the working folder, which Python puts first, and which may be anybody's."""
_SECONDS = 60


def machine_checks() -> Iterator[Check]:
    """All checks that need no store."""
    spark = pyspark_version()
    yield Check("Anabranch", "ok", __version__)
    yield diagnosis.python_check(tuple(sys.version_info[:3]))
    yield diagnosis.pyspark_check(spark)
    yield _java(has_pyspark=spark is not None)
    if spark is not None:
        yield workers(os.environ.get("PYSPARK_PYTHON") or sys.executable)
    yield from (diagnosis.package_check(name, version_of(name), bounds) for name, bounds in requirements())
    for name, (purpose, advice) in _OPTIONAL.items():
        yield diagnosis.optional_check(name, version_of(name), purpose, advice)


def pyspark_version() -> str | None:
    """The version of PySpark; None if it cannot be imported."""
    try:
        return str(import_module("pyspark").__version__)
    except ModuleNotFoundError:
        return None


def version_of(package: str) -> str | None:
    """The version of an installed package; None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def connector(scheme: str) -> Check:
    """Checks Spark's connector for the stores of a scheme, by the JARs next to its own and the site's configuration."""
    if pyspark_version() is None:
        return diagnosis.connector_check(scheme, (), None, named=False, has_pyspark=False)
    from anabranch._spark.sessions.connectors import package_of  # needs PySpark
    from anabranch._spark.sessions.consoles import find_site_settings, spark_home

    package = package_of("abfss" if scheme == "az" else scheme)
    jars = sorted(jar.name for pattern in _JARS.get(scheme, ()) for jar in (spark_home() / "jars").glob(pattern))
    named = any(name.startswith("spark.jars") for name in find_site_settings())
    return diagnosis.connector_check(scheme, tuple(jars), package, named=named, has_pyspark=True)


def _java(*, has_pyspark: bool) -> Check:
    try:
        path = find_java()
    except MissingJava as error:
        return diagnosis.java_check(None, None, error.reason, error.instead, has_pyspark=has_pyspark)
    return diagnosis.java_check(path, release_of(path), "", java_advice(), has_pyspark=has_pyspark)


def workers(command: str) -> Check:
    """Checks that the workers' Python, started by this command, is the same as this one and has pyarrow."""
    own = tuple(sys.version_info[:3])
    try:
        result = subprocess.run([command, "-c", _PROGRAM], capture_output=True, text=True, timeout=_SECONDS, check=True)
        version, pyarrow = json.loads(result.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        return diagnosis.workers_check(command, None, None, own, type(error).__name__)
    return diagnosis.workers_check(command, tuple(version), pyarrow, own)


def requirements() -> list[tuple[str, str]]:
    """The required packages of Anabranch, with bounds; nothing if it runs from its sources."""
    try:
        lines = metadata.requires("anabranch") or []
    except metadata.PackageNotFoundError:
        return []
    return [(match[1], match[2].replace(" ", "")) for line in lines if (match := _REQUIRED.match(line)) is not None]
