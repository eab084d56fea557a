"""Finds the Java that Spark starts, and advises how to install one. Needs no PySpark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from anabranch.errors import MissingJava

OLDEST_JAVA = 17
_VERSION = re.compile(r'version "(\d+)')
_RELEASE = re.compile(r'^JAVA_VERSION="(\d+)', re.MULTILINE)


def check_java() -> str:
    """The ``java`` that Spark will start. Raises MissingJava if there is none, or it is too old."""
    java = find_java()
    version = _version(java)
    if version is None or version < OLDEST_JAVA:
        reason = f"the one at {java} is version {version}." if version else f"{java} does not start."
        raise MissingJava(reason=reason, instead=java_advice())
    return java


def find_java() -> str:
    """The ``java`` at `JAVA_HOME`, or else on `PATH`. Raises MissingJava if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.path.exists(java):
        missing = "there is none on PATH, and JAVA_HOME is not set."
        raise MissingJava(
            reason=f"JAVA_HOME is {home}, but there is no {java}." if home else missing, instead=java_advice()
        )
    return java


def release_of(java: str) -> int | None:
    """The feature release of a ``java``, from the release file of its distribution, without starting a JVM; None if the
    file does not have it.
    """
    folder = Path(java).resolve().parents[1]
    try:
        match = _RELEASE.search((folder / "release").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return int(match[1]) if match else None


def _version(java: str) -> int | None:
    """The feature release that ``java -version`` reports; 1 for Java 8 and older."""
    try:
        process = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return None
    match = _VERSION.search(process.stderr + process.stdout)
    return int(match[1]) if match else None


def java_advice() -> str:
    """How to install Java on this system."""
    how = {
        "darwin": "brew install openjdk@17",
        "linux": "apt-get install openjdk-17-jre-headless (or dnf install java-17-openjdk-headless)",
        "win32": "winget install EclipseAdoptium.Temurin.17.JRE",
    }
    system = how.get(sys.platform, "install a JRE, version 17 or newer")
    anywhere = "pip install install-jdk && python -c \"import jdk; print(jdk.install('17'))\""
    return f"Install one: {system}. Or, without root: {anywhere}, and set JAVA_HOME to the folder that it prints."
