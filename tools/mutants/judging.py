"""The run: a tier is measured, then it judges each mutant in a copy of the tree, and its kills are confirmed.

A kill counts only if the test that made it passes without the mutant, run in the same way: a test that does not, as one
that needs more memory or fails now and then, judges nothing any more, and its mutants are judged again.
"""

from __future__ import annotations

import queue
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .choosing import Test, candidates, choice
from .copies import Copy, NothingRuns
from .coverage_map import KINDS, CoverageMap
from .mutant import Mutant
from .mutations import change, mutated
from .results import KILLED, Results, Verdict
from .tiers import SPREAD, TIERS


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

    def measured(self, tier: str) -> CoverageMap:
        """The map of a tier, measured unless an earlier run did."""
        folder = self.folder / tier.replace(" ", "-")
        if not (folder / "whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            for kind in KINDS:
                _say(f"measuring which lines the {kind} tests of {tier} run")
                options = [*TIERS[tier][kind], "-n", str(self.jobs), *SPREAD, *self.among]
                with self._copies(1) as copies:
                    copies[0].measure(folder / kind, options)
            _say(f"{len(CoverageMap(folder).tests)} tests of {tier} pass")
            (folder / "whole").touch()
        return CoverageMap(folder)

    def judge(self, tier: str, mutants: Sequence[Mutant]) -> None:
        """Judge those that neither this tier nor one before has judged, until all kills are confirmed."""
        lines = self.measured(tier)
        while True:
            self._judge_all(tier, lines, [mutant for mutant in mutants if self._waits(mutant, tier)])
            if not self._confirm(tier, lines):
                return

    def _judge_all(self, tier: str, lines: CoverageMap, waiting: Sequence[Mutant]) -> None:
        if not waiting:
            return
        free: queue.Queue[Copy] = queue.Queue()
        with ThreadPoolExecutor(self.jobs) as pool, self._copies(self.jobs) as copies:
            for copy in copies:
                free.put(copy)
            self._wait(pool, [pool.submit(self._judge, mutant, tier, lines, free) for mutant in waiting])

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

    def _judge(self, mutant: Mutant, tier: str, lines: CoverageMap, free: queue.Queue[Copy]) -> None:
        source = (self.root / mutant.path).read_text(encoding="utf-8")
        changed = mutated(source, mutant)
        assert changed is not None, "only whole mutants are drawn"
        copy = free.get()
        try:
            with copy.changed(mutant.path, changed):
                verdict = self._verdict(mutant, tier, lines, source, copy)
        finally:
            free.put(copy)
        self.results.add(mutant, change(source, changed), tier, verdict)
        _say(f"{verdict.word:8} {verdict.seconds:6.1f} s  {mutant}  {verdict.test}")

    def _verdict(self, mutant: Mutant, tier: str, lines: CoverageMap, source: str, copy: Copy) -> Verdict:
        known = self.results.of(mutant)
        tests = [test for test in lines.tests if test.name not in self.results.unreliable]
        running = lines.at(mutant.path, mutant.line, source)
        before = self._tried(known.verdicts, mutant, source) if known else set()
        chosen = choice(candidates(running, lines.within(mutant.path), mutant.path, tests, before), self.budget)
        seconds, tried = 0.0, 0
        for each in chosen.rounds:
            outcome = copy.run(each, TIERS[tier]["spark" if each[0].is_spark else "plain"])
            seconds, tried = seconds + outcome.seconds, tried + len(each)
            if outcome.word in KILLED:
                test = next(iter(outcome.failed), "")
                return Verdict(outcome.word, test, seconds, tried, chosen.left, len(running))
        return Verdict("survived", "", seconds, tried, chosen.left, len(running))

    def _tried(self, verdicts: Mapping[str, Verdict], mutant: Mutant, source: str) -> set[str]:
        """The tests of tiers before that ran the line: they passed, if perhaps on fewer examples."""
        return {name for tier in verdicts for name in self.measured(tier).at(mutant.path, mutant.line, source)}

    def _confirm(self, tier: str, lines: CoverageMap) -> set[str]:
        """Run the tests that killed without any mutant, and take back what those did that fail there too: these."""
        found = [each for each in self.results.judged.values() if each.said(tier) == "failed"]
        killers = {each.verdicts[tier].test for each in found} - self.results.confirmed
        tests = [test for test in lines.tests if test.name in killers]
        bad = {name for is_spark in KINDS.values() for name in self._failing(tier, tests, is_spark)}
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
            outcome = copies[0].run(wanted, TIERS[tier]["spark" if is_spark else "plain"], stop=False)
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
