"""Run the tests of a library on one engine, and read how each of them ended.

Knows the command of pytest and the plugin in `plugins`. Each run has a source, a working folder and a folder for
temporary files of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import ROOT, work
from .library import Library

ENGINES = ("delta-spark", "anabranch")
PLUGINS = Path(__file__).with_name("plugins")
SECONDS_OF_A_TEST = 600


@dataclass(frozen=True, slots=True)
class Outcome:
    ended: str
    said: str = ""

    @property
    def passed(self) -> bool:
        return self.ended == "passed"


def run(library: Library, engine: str, python: Path, source: Path, jars: Path, given: Sequence[str]) -> None:
    """Run the tests of the library on the engine; `jars` is the folder of delta-spark's, `given` goes to pytest."""
    environment = _environment(library, engine, python, source, jars)
    _written(library, engine).unlink(missing_ok=True)
    command = [str(python), "-m", "pytest", "-p", "one_engine", "-p", "no:cacheprovider", "-q", "-rN"]
    command += ["-o", "addopts=", f"--timeout={SECONDS_OF_A_TEST}", *library.tests]
    command += [f"--deselect={each}" for each in library.leave]
    with (work(library.name) / f"{engine}.log").open("w") as log:
        subprocess.run(
            [*command, *given], cwd=source, env=environment, stdout=log,
            stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip


def read(written: Path) -> dict[str, Outcome]:
    """The outcomes in a file of the plugin; of several lines of a test the last counts. None were written: none ran."""
    lines = written.read_text().splitlines() if written.exists() else []
    facts = [json.loads(line) for line in lines]
    said: dict[str, str] = {}
    for each in facts:
        said[each["test"]] = said.get(each["test"]) or each["said"]
    return {each["test"]: Outcome(each["outcome"], said[each["test"]]) for each in facts}


def last(library: Library, engine: str) -> dict[str, Outcome]:
    """The outcomes of the last run on the engine."""
    return read(_written(library, engine))


def _written(library: Library, engine: str) -> Path:
    return work(library.name) / f"{engine}.jsonl"


def _environment(library: Library, engine: str, python: Path, source: Path, jars: Path) -> dict[str, str]:
    ours, temporary = work(library.name) / "ours", work(library.name) / "tmp" / engine
    for each in (ours, temporary):
        shutil.rmtree(each, ignore_errors=True)
        each.mkdir(parents=True)
    (ours / "anabranch").symlink_to(ROOT / "anabranch")
    paths = [str(PLUGINS), *([str(ours)] if engine == "anabranch" else [])]
    paths += [str(source / library.path)] if library.path else []
    return {
        **os.environ,
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "PYTHONPATH": os.pathsep.join(paths),
        "TMPDIR": str(temporary),
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "JOBS_ENGINE": engine,
        "JOBS_JARS": ",".join(sorted(map(str, jars.glob("*.jar")))),
        "JOBS_OUTCOMES": str(_written(library, engine)),
        **library.environment,
    }
