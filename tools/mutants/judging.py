"""The run: `make test` is measured and judges each mutant in a copy of the tree; `make test-all` judges what survives.

`make test-all` is not measured, which would take hours: it runs the files that have tests which run the line, whole.

A kill counts only if the test that made it passes without the mutant, run in the same way: a test that does not, as one
that needs more memory or fails now and then, judges nothing any more, and its mutants are judged again.
"""

from __future__ import annotations

import functools
import queue
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .choosing import Test, candidates, choice, files_of
from .copies import Copy, NothingRuns, Outcome
from .coverage_map import CoverageMap
from .mutant import Mutant
from .mutations import change, mutated
from .results import KILLED, Results, Verdict
from .tiers import KINDS, SPREAD, TEST, TEST_ALL, TIERS

UNKNOWN_SECONDS = 30.0
"""What a test is expected to take that `make test` leaves out."""


@dataclass(frozen=True)
class Run:
    """What a run is given: the checkout, where its results stand, how many mutants are judged at a time, the seconds of
    tests that a mutant may take, and the test files that are asked, all unless some are named.
    """

    root: Path
    folder: Path
    results: Results
    jobs: int
    budget: float
    among: Sequence[str]

    @functools.cached_property
    def lines(self) -> CoverageMap:
        """Which tests of `make test` run which line, measured unless an earlier run did."""
        folder = self.folder / "lines"
        if not (folder / "whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            for kind, mark in KINDS.items():
                _say(f"measuring which lines the {kind} tests of {TEST} run")
                options = [*TIERS[TEST], *mark, "-n", str(self.jobs), *SPREAD, *self.among]
                with self._copies(1) as copies:
                    copies[0].measure(folder / kind, options)
            _say(f"{len(CoverageMap(folder).tests)} tests of {TEST} pass")
            (folder / "whole").touch()
        return CoverageMap(folder)

    def judge(self, tier: str, mutants: Sequence[Mutant]) -> None:
        """Judge those that neither this tier nor one before has judged, until all kills are confirmed."""
        _say(f"{tier} is asked, by {len(self.lines.tests)} tests that were measured")
        while True:
            self._judge_all(tier, [mutant for mutant in mutants if self._waits(mutant, tier)])
            if not self._confirm(tier):
                return

    def _judge_all(self, tier: str, waiting: Sequence[Mutant]) -> None:
        if not waiting:
            return
        free: queue.Queue[Copy] = queue.Queue()
        with ThreadPoolExecutor(self.jobs) as pool, self._copies(self.jobs) as copies:
            for copy in copies:
                free.put(copy)
            self._wait(pool, [pool.submit(self._judge, mutant, tier, free) for mutant in waiting])

    def _wait(self, pool: ThreadPoolExecutor, running: Sequence[Future[None]]) -> None:
        """Wait for all; where one fails, or this process is to end, begin no other."""
        try:
            for done in as_completed(running):
                done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise

    def _waits(self, mutant: Mutant, tier: str) -> bool:
        known = self.results.of(mutant)
        return known is None or (known.killer() is None and tier not in known.verdicts)

    def _judge(self, mutant: Mutant, tier: str, free: queue.Queue[Copy]) -> None:
        source = (self.root / mutant.path).read_text(encoding="utf-8")
        changed = mutated(source, mutant)
        assert changed is not None, "only whole mutants are drawn"
        copy = free.get()
        try:
            with copy.changed(mutant.path, changed):
                verdict = (self._by_tests if tier == TEST else self._by_files)(mutant, source, copy)
        finally:
            free.put(copy)
        self.results.add(mutant, change(source, changed), tier, verdict)
        _say(f"{verdict.word:8} {verdict.seconds:6.1f} s  {mutant}  {verdict.test}")

    def _by_tests(self, mutant: Mutant, source: str, copy: Copy) -> Verdict:
        """What the tests of `make test` say, one by one within the budget."""
        running, ordered = self._candidates(mutant, source)
        chosen = choice(ordered, self.budget)
        seconds, tried = 0.0, 0
        for each in chosen.rounds:
            outcome = copy.run(each, (*TIERS[TEST], *KINDS["spark" if each[0].is_spark else "plain"]))
            seconds, tried = seconds + outcome.seconds, tried + len(each)
            if outcome.word in KILLED:
                return Verdict(outcome.word, next(iter(outcome.failed), ""), seconds, tried, chosen.left, running)
        return Verdict("survived", "", seconds, tried, chosen.left, running)

    def _by_files(self, mutant: Mutant, source: str, copy: Copy) -> Verdict:
        """What `make test-all` says: whole files within the budget. A test that hangs is one that was not over."""
        running, ordered = self._candidates(mutant, source)
        files = files_of(ordered, mutant.path)
        outcome = copy.run_files(files, TIERS[TEST_ALL], self.budget) if files else Outcome("passed", (), 0.0)
        word = "failed" if outcome.word == "failed" else "survived"
        left = len(files) * (outcome.word == "hung")
        return Verdict(word, next(iter(outcome.failed), ""), outcome.seconds, len(files), left, running)

    def _candidates(self, mutant: Mutant, source: str) -> tuple[int, Sequence[Test]]:
        """How many tests run the line, and those that may notice its change in their order."""
        tests = [test for test in self.lines.tests if test.name not in self.results.unreliable]
        running = self.lines.at(mutant.path, mutant.line, source)
        return len(running), candidates(running, self.lines.within(mutant.path), mutant.path, tests)

    def _confirm(self, tier: str) -> set[str]:
        """Run the tests that killed without any mutant, and take back what those did that fail there too: these."""
        found = [each for each in self.results.judged.values() if each.said(tier) == "failed"]
        killers = {each.verdicts[tier].test for each in found} - self.results.confirmed - {""}
        known = {test.name: test for test in self.lines.tests}
        tests = [known.get(name, Test(name, UNKNOWN_SECONDS, is_spark=True)) for name in sorted(killers)]
        bad = {name for is_spark in (False, True) for name in self._failing(tier, tests, is_spark)}
        for each in found:
            if each.verdicts[tier].test in bad:
                del each.verdicts[tier]
        self.results.unreliable |= bad
        self.results.confirmed |= killers - bad
        self.results.keep()
        return bad

    def _failing(self, tier: str, tests: Sequence[Test], is_spark: bool) -> Sequence[str]:
        wanted = [test for test in tests if test.is_spark == is_spark]
        if not wanted:
            return []
        with self._copies(1) as copies:
            outcome = copies[0].run(wanted, TIERS[tier], stop=False)
        if outcome.word == "hung" or (outcome.word == "failed" and not outcome.failed):
            raise NothingRuns("the tests that killed mutants cannot be run without them")
        return outcome.failed

    @contextmanager
    def _copies(self, count: int) -> Iterator[list[Copy]]:
        """Copies of the tree; in the end nothing runs there, and they are gone."""
        with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as place:
            copies = [Copy(self.root, Path(place) / str(number)) for number in range(count)]
            try:
                yield copies
            finally:
                for copy in copies:
                    copy.end()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
