"""Run the tests of the doors on each supported PySpark and each declared Python: ``make compat``.

Knows `pyproject.toml`, venv and pip. Each pair has an environment of its own in the user's
cache folder, with the dependencies and the tools of the tests, and without this package, which is read from the clone.
A Python that is not on this machine is named and left out.

    python tools/compat.py [PAIR ...] [-- ARGS of pytest]      a pair is such as 4.0:3.11
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pythons

ROOT = Path(__file__).resolve().parent.parent
PAIRS = ("4.0:3.11", "4.1:3.12", "4.2:3.13", "4.3:3.11", "4.3:3.12", "4.3:3.13")
"""Every PySpark once, and the newest on every Python: all twelve pairs would take twice as long and say little more."""

DOORS = ("tests/api", "tests/catalog", "tests/sql", "tests/streaming", "tests/system")
TESTS = (*DOORS, "-m", "spark", "--tier=test")
NO_TOOL_OF_TESTS = ("anabranch", "import-linter", "install-jdk", "moto", "flask", "mypy", "pyspark", "ruff")


def main(arguments: Sequence[str]) -> int:
    """Run each pair, then say how each went. 0 where all went well."""
    at = list(arguments).index("--") if "--" in arguments else len(arguments)
    asked, given = arguments[:at], arguments[at + 1 :]
    told = {pair: _ran(pair, given) for pair in asked or PAIRS}
    print()
    for pair, said in told.items():
        print("PySpark {} on Python {}: {}".format(*pair.split(":"), said))
    return int(not set(told.values()) <= {"passed", "left out, there is no such Python here"})


def _ran(pair: str, given: Sequence[str]) -> str:
    spark, version = pair.split(":")
    base = pythons.found(version)
    if base is None:
        return "left out, there is no such Python here"
    python = _environment(spark, base)
    if python is None:
        return "its environment could not be made"
    environment = {**os.environ, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}
    command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", *TESTS, *given]
    done = subprocess.run(command, cwd=ROOT, env={**environment, "PYTHONPATH": str(ROOT)}, check=False)
    return "passed" if done.returncode == 0 else f"failed, pytest ended with {done.returncode}"


def _environment(spark: str, base: str) -> Path | None:
    """The Python of the environment of a pair, made unless it is there; None where it could not be."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tools = [each for each in project["optional-dependencies"]["dev"] if not each.startswith(NO_TOOL_OF_TESTS)]
    packages = (*project["dependencies"], *tools, "pandas>=2.2,<3", f"pyspark[connect]=={spark}.*")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "anabranch"
    folder = cache / f"compat-{hashlib.sha256(repr((packages, base)).encode()).hexdigest()[:12]}"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        print(f"Making an environment with PySpark {spark} in {folder} ...", flush=True)
        install = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet"]
        for command in ([base, "-m", "venv", "--clear", str(folder)], [*install, *packages]):
            if subprocess.run(command, check=False).returncode != 0:
                return None
        ready.touch()
    return python


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
