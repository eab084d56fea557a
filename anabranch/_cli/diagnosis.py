"""Requirements of the machine, pure: turns facts into checks with advice. Inspects nothing itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "failed"]
Version = tuple[int, ...]

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
OLDEST_SPARK, NEWEST_SPARK = (4, 0), (4, 3)
OLDEST_JAVA = 17
MOST_SKEW_MS = 60_000
"""Maximum difference between clocks, in milliseconds, before the timestamps of commits become misleading."""

_BOUND = re.compile(r"(>=|<)\s*([\d.]+)")
_NUMBER = re.compile(r"\d+")
_RANK: dict[State, int] = {"ok": 0, "warning": 1, "failed": 2}


@dataclass(frozen=True)
class Check:
    """One line of the doctor's report.

    Attributes:
        name: the subject of the check.
        found: the result.
        advice: what to do; empty if nothing.
    """

    name: str
    state: State
    found: str
    advice: str = ""


def worst(checks: Iterable[Check]) -> State:
    """The worst state of several checks."""
    return max((check.state for check in checks), key=_RANK.__getitem__, default="ok")


def numbers(version: str) -> Version:
    """The numbers of a version.

    Example:
        >>> numbers("4.1.0rc2")
        (4, 1, 0)
    """
    matches = (_NUMBER.match(part) for part in version.split("."))
    return tuple(int(match[0]) for match in matches if match is not None)


def text_of(version: Version) -> str:
    """A version as text."""
    return ".".join(map(str, version))


def python_check(version: Version) -> Check:
    """Checks this Python."""
    name, shown = "Python", text_of(version)
    if version[:2] < OLDEST_PYTHON:
        return Check(name, "failed", shown, f"Use Python {text_of(OLDEST_PYTHON)} or newer.")
    if version[:2] > NEWEST_PYTHON:
        return Check(name, "warning", shown, f"It is tested up to Python {text_of(NEWEST_PYTHON)}.")
    return Check(name, "ok", shown)


def pyspark_check(version: str | None) -> Check:
    """Checks PySpark; without it, only the tools for logs work."""
    if version is None:
        advice = "Only what needs no Spark works. For the rest: pip install 'anabranch[spark]'."
        return Check("PySpark", "warning", "not installed", advice)
    if numbers(version)[:2] < OLDEST_SPARK:
        return Check("PySpark", "failed", version, "It must be 4.0 or newer: pip install 'pyspark>=4.0'.")
    if numbers(version)[:2] > NEWEST_SPARK:
        return Check("PySpark", "warning", version, f"It is tested up to PySpark {text_of(NEWEST_SPARK)}.")
    return Check("PySpark", "ok", version)


def java_check(path: str | None, release: int | None, reason: str, advice: str, *, has_pyspark: bool) -> Check:
    """Checks the Java that Spark would start; it matters only with PySpark.

    Args:
        path, release: those of the Java that was found; None if there is none, or it does not report its version.
        reason, advice: why there is none, and how to get one.
    """
    missing: State = "failed" if has_pyspark else "warning"
    if path is None:
        return Check("Java", missing, reason.rstrip("."), advice)
    if release is None:
        return Check("Java", "warning", f"{path}, of an unknown version", "--spark tries it.")
    if release < OLDEST_JAVA:
        return Check("Java", missing, f"{path}, version {release}", f"It must be {OLDEST_JAVA} or newer. {advice}")
    return Check("Java", "ok", f"{path}, version {release}")


def workers_check(command: str, version: Version | None, pyarrow: str | None, own: Version, reason: str = "") -> Check:
    """Checks the Python that Spark's workers on this machine would use.

    Args:
        command: the command that starts a worker's Python.
        version, pyarrow: its version, and that of its pyarrow; None if it does not start, or has none.
        own: the version of this Python.
        reason: why it does not start.
    """
    name, advice = "Python of workers", "Set PYSPARK_PYTHON to a Python with the same packages as this one."
    if version is None:
        return Check(name, "failed", f"{command} does not start: {reason}", advice)
    shown = f"{command}, {text_of(version)}"
    if version[:2] != own[:2]:
        return Check(
            name, "failed", f"{shown}, but this one is {text_of(own)}", f"Spark wants one minor version. {advice}"
        )
    if pyarrow is None:
        return Check(name, "warning", f"{shown}, without pyarrow", f"Some jobs are slower so. {advice}")
    return Check(name, "ok", f"{shown}, pyarrow {pyarrow}")


def package_check(name: str, version: str | None, bounds: str) -> Check:
    """Checks a required package; ``bounds`` is like ``>=30,<31``."""
    install = f"pip install '{name}{bounds}'"
    if version is None:
        return Check(name, "failed", "not installed", f"{install}.")
    fits = all(_fits(numbers(version), sign, numbers(bound)) for sign, bound in _BOUND.findall(bounds))
    return Check(name, "ok", version) if fits else Check(name, "failed", version, f"It must be {bounds}: {install}.")


def optional_check(name: str, version: str | None, purpose: str, install: str) -> Check:
    """Checks an optional package, which may be missing."""
    if version is None:
        return Check(name, "ok", f"not installed; only for {purpose}", install)
    return Check(name, "ok", version)


def connector_check(scheme: str, jars: tuple[str, ...], package: str | None, named: bool, has_pyspark: bool) -> Check:
    """Checks Spark's connector for a kind of store.

    Args:
        jars: its files next to Spark's own.
        package: its Maven coordinates, with the version if known; None if Spark includes it.
        named: whether the site's configuration names JARs or packages, which may include it.
    """
    name = "Spark's connector"
    if package is None or not has_pyspark:
        reason = "Spark brings its own" if has_pyspark else "not needed without PySpark"
        return Check(name, "ok", f"{scheme}: {reason}")
    if jars:
        return Check(name, "ok", f"{scheme}: {', '.join(jars)}")
    if named:
        return Check(name, "ok", f"{scheme}: among the packages that spark-defaults.conf names, perhaps")
    version = "" if re.search(r":\d", package) else ", in the version of Spark's own Hadoop"
    advice = f"Start Spark with spark.jars.packages = {package}{version}."
    return Check(name, "warning", f"{scheme}: not beside Spark's JARs", advice)


def skew_check(modified_ms: int, before_ms: int, after_ms: int) -> Check:
    """Compares the store's clock with this machine's, by a file that was written between two local times."""
    ahead = max(modified_ms - after_ms, 0) - max(before_ms - modified_ms, 0)
    difference = "the same as here" if abs(ahead) < 1000 else f"{ahead / 1000:+.0f} s from here"
    if abs(ahead) <= MOST_SKEW_MS:
        return Check("clock of the store", "ok", difference)
    advice = "Set the clock of this machine by NTP: versions are dated by the store's, and VACUUM counts by it."
    return Check("clock of the store", "warning", difference, advice)


def _fits(version: Version, sign: str, bound: Version) -> bool:
    return version >= bound if sign == ">=" else version < bound
