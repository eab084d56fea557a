"""Which tests judge a mutant: those that run its line, as many as a budget of seconds allows.

Knows tests by name and cost, and where the tests of a module are. A module's own test file comes first, whole, since
what a fixture runs, or a cache keeps, counts for the first test only; then come those of the folder, then all others.
A line that runs on import only, as that of a constant, is judged by the module's own test file, then by the tests that
run any of its lines, then by those of the folder.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

PER_FILE_SECONDS = 0.5
"""What it takes pytest to import one more test file."""
FIRST = 10.0
"""Seconds of the tests that are tried first: most mutants end there, and a process with all tests starts slowly."""


@dataclass(frozen=True)
class Test:
    """A test that passes, with its seconds; ``is_spark`` where it needs a JVM."""

    name: str
    seconds: float
    is_spark: bool = False

    __test__ = False

    @property
    def file(self) -> str:
        """The file that has the test."""
        return self.name.partition("::")[0]


@dataclass(frozen=True)
class Choice:
    """Tests in rounds, each a process of its own and only for what survives the one before; ``left`` are those beyond
    the budget.
    """

    rounds: Sequence[Sequence[Test]]
    left: int


def candidates(at_line: Collection[str], in_module: Collection[str], path: str, tests: Iterable[Test]) -> list[Test]:
    """The tests that may notice a change of a line, in the order in which they are tried: among those of one rank the
    cheaper before the dearer.
    """
    ranks = {test: _rank(test, at_line, in_module, mirrored(path)) for test in tests}
    wanted = [test for test, rank in ranks.items() if rank is not None]
    return sorted(wanted, key=lambda test: (ranks[test], test.seconds, test.name))


def _rank(test: Test, at_line: Collection[str], in_module: Collection[str], own: str) -> int | None:
    is_near = PurePosixPath(test.file).parent == PurePosixPath(own).parent
    if test.file == own:
        return 0
    if at_line:
        return 2 - is_near if test.name in at_line else None
    return 1 if test.name in in_module else 2 if is_near else None


def files_of(ordered: Iterable[Test], path: str) -> list[str]:
    """The files that have such tests: the module's own, then the cheapest first by what these tests take in each."""
    seconds: dict[str, float] = {}
    for test in ordered:
        seconds[test.file] = seconds.get(test.file, 0.0) + test.seconds
    return sorted(seconds, key=lambda file: (file != mirrored(path), seconds[file], file))


def mirrored(path: str) -> str:
    """The test file of a module: of ``anabranch/_log/x.py`` it is ``tests/log/test_x.py``."""
    _, room, *parts = PurePosixPath(path).with_suffix("").parts
    parts = [room.lstrip("_"), *parts]
    name = parts[-2] if parts[-1] == "__init__" else parts[-1]
    return str(PurePosixPath("tests", *parts[:-1], f"test_{name}.py"))


def choice(ordered: Sequence[Test], budget: float) -> Choice:
    """Rounds within the budget. Tests without a JVM go first and leave half of it to those with one, if there are."""
    plain = [test for test in ordered if not test.is_spark]
    spark = [test for test in ordered if test.is_spark]
    first = within(plain, min(FIRST, budget))
    rest = within(plain[len(first) :], (budget / 2 if spark else budget) - cost(first))
    last = within(spark, budget - cost(first) - cost(rest))
    rounds = [each for each in (first, rest, last) if each]
    return Choice([in_files(each) for each in rounds], len(ordered) - sum(map(len, rounds)))


def within(ordered: Sequence[Test], budget: float) -> Sequence[Test]:
    """As many of the first as the budget allows; at least one, if it allows anything."""
    spent, files = 0.0, set[str]()
    for place, test in enumerate(ordered):
        spent += test.seconds + PER_FILE_SECONDS * (test.file not in files)
        files.add(test.file)
        if spent > budget:
            return ordered[: max(place, int(budget > 0))]
    return ordered


def cost(tests: Sequence[Test]) -> float:
    """What the tests take in one process, without its start."""
    return sum(test.seconds for test in tests) + PER_FILE_SECONDS * len({test.file for test in tests})


def in_files(tests: Sequence[Test]) -> list[Test]:
    """File by file, since tests of a file share what is made for them; a file comes with its first test."""
    first = {test.file: place for place, test in reversed(list(enumerate(tests)))}
    return sorted(tests, key=lambda test: first[test.file])
