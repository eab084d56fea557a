"""A private copy of the tree, in which files may change and pytest runs; the checkout is never touched.

Knows git's list of files, pytest's command line and its exit codes. A process that takes several times what its tests
need has hung: it is ended with its children. Memory is bounded where no JVM is needed, since a loop that does not end
may fill it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .choosing import Test, cost
from .in_pytest import COVERAGE, MEMORY, SAID, TESTS

MEMORY_BYTES = 6 << 30
START_SECONDS = 120.0
PATIENCE = 5.0
"""How many times as long as expected tests may take, besides their start; longer where the machine has much to do."""

PYTEST = (
    *(sys.executable, "-m", "pytest", "-q", "--tb=short", "--hypothesis-seed=0"),
    *("-p", "tools.mutants.in_pytest", "-p", "no:cacheprovider"),
)


class NothingRuns(Exception):
    """pytest cannot run at all, so it says nothing of a mutant."""


@dataclass(frozen=True)
class Outcome:
    """How tests went: ``passed``, ``failed`` or ``hung``; which of them failed (none, where they could not be read, or
    the process died), and the seconds of it all.
    """

    word: str
    failed: Sequence[str]
    seconds: float


class Copy:
    """A copy of the files that git knows or would add, with the environment of this process."""

    def __init__(self, root: Path, place: Path) -> None:
        self.tree, self._place = place / "tree", place
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ended = False
        names = subprocess.check_output(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, text=True
        )
        for name in filter(None, names.split("\0")):
            if (root / name).is_file():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, self.tree / name)
        (self.tree / ".venv").symlink_to(sys.prefix)

    @contextlib.contextmanager
    def changed(self, path: str, text: str) -> Iterator[None]:
        """The copy with another text in a file; no bytecode of either text is taken for the other's."""
        file = self.tree / path
        before = file.read_text(encoding="utf-8")
        try:
            self._write(file, text)
            yield
        finally:
            self._write(file, before)

    def _write(self, file: Path, text: str) -> None:
        file.write_text(text, encoding="utf-8")
        Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)

    def run(self, tests: Sequence[Test], options: Sequence[str], *, stop: bool = True) -> Outcome:
        """Run tests of one kind in one process, up to the first that fails unless ``stop`` is false."""
        chosen = self._place / "tests.json"
        chosen.write_text(json.dumps([test.name for test in tests]), encoding="utf-8")
        told = {TESTS: str(chosen)}
        if not tests[0].is_spark:
            told[MEMORY] = str(MEMORY_BYTES)
        patience = PATIENCE * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        files = dict.fromkeys(test.file for test in tests)
        return self._outcome([*options, *["-x"] * stop, *files], told, START_SECONDS + patience * cost(tests))

    def run_files(self, files: Sequence[str], options: Sequence[str], seconds: float) -> Outcome:
        """Run all tests of files in one process, up to the first that fails, or for so many seconds."""
        return self._outcome([*options, "-x", *files], {}, seconds)

    def _outcome(self, arguments: Sequence[str], told: Mapping[str, str], limit: float) -> Outcome:
        said = self._place / "said"
        said.unlink(missing_ok=True)
        begun = time.monotonic()
        code = self._pytest(arguments, {**told, SAID: str(said)}, limit)
        shutil.rmtree(self.tree / ".hypothesis", ignore_errors=True)  # else one mutant's examples are tried on the next
        failed = said.read_text(encoding="utf-8").splitlines() if said.exists() else []
        return Outcome(_word(code), list(map(json.loads, failed)), round(time.monotonic() - begun, 1))

    def measure(self, folder: Path, options: Sequence[str]) -> None:
        """Run all tests of the options, and write into the folder which lines they run and what they take."""
        folder.mkdir(parents=True)
        code = self._pytest([*options, f"--costs={folder}"], {COVERAGE: str(folder)}, None)
        if code not in (0, 1, 5):
            raise NothingRuns(f"pytest ended with {code}: {(self._place / 'output').read_text()[-2000:]}")

    def end(self) -> None:
        """End what runs here: it says nothing any more, and nothing runs here again."""
        self._is_ended = True
        if self._process is not None:
            _end(self._process)

    def _pytest(self, arguments: Sequence[str], told: Mapping[str, str], limit: float | None) -> int | None:
        """The exit code; None where time ran out. No child outlives it."""
        with (self._place / "output").open("wb") as output:
            self._process = subprocess.Popen(
                [*PYTEST, f"--basetemp={self._place / 'tmp'}", *arguments],
                cwd=self.tree,
                env={**os.environ, "PYTHONPATH": str(self.tree), **told},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            code = None if self._is_ended else self._process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(self._process)
        if self._is_ended:
            raise NothingRuns("the run was ended")
        return code


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children, which are one group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _word(code: int | None) -> str:
    """What an exit code says; 5 is that no test was there, and all others but 0 are a failure of some sort."""
    if code is None:
        return "hung"
    return "passed" if code in (0, 5) else "failed"
