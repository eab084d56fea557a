"""Compare the outcomes of two engines test by test, and say which differences have a reason.

Knows the form of `reasons.toml`: kinds, each a difference that the documentation names, and reasons, each of one kind
and with the tests that it holds for. A name that ends in `*` stands for all tests that begin so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .runs import Outcome

DATA = Path(__file__).with_name("reasons.toml")


@dataclass(frozen=True, slots=True)
class Reason:
    library: str
    kind: str
    why: str
    tests: tuple[str, ...]

    def holds_for(self, library: str, test: str) -> bool:
        return library == self.library and any(
            test.startswith(each[:-1]) if each.endswith("*") else test == each for each in self.tests
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """What one library's tests said on both engines.

    Attributes:
        differing: tests that pass on delta-spark and not here, each with its reason, or None.
        idle: reasons that hold for no such test.
    """

    library: str
    theirs: int
    ours: int
    both: int
    differing: Mapping[str, Reason | None]
    idle: tuple[Reason, ...]

    @property
    def unexplained(self) -> tuple[str, ...]:
        return tuple(test for test, reason in self.differing.items() if reason is None)

    @property
    def is_well(self) -> bool:
        """Whether tests ran, and each difference has a reason and each reason a difference."""
        return bool(self.theirs) and not self.unexplained and not self.idle


def kinds(data: Path = DATA) -> dict[str, str]:
    """Each kind of difference, with the place in the documentation that names it."""
    return tomllib.loads(data.read_text())["kinds"]


def reasons(data: Path = DATA) -> tuple[Reason, ...]:
    told = tomllib.loads(data.read_text()).get("reasons", [])
    return tuple(Reason(each["library"], each["kind"], each["why"], tuple(each["tests"])) for each in told)


def compare(
    library: str, theirs: Mapping[str, Outcome], ours: Mapping[str, Outcome], known: Sequence[Reason]
) -> Comparison:
    passed = [{test for test, outcome in each.items() if outcome.passed} for each in (theirs, ours)]
    differing = {
        test: next((each for each in known if each.holds_for(library, test)), None)
        for test in sorted(passed[0] - passed[1])
    }
    idle = [each for each in known if each.library == library and each not in differing.values()]
    return Comparison(library, len(passed[0]), len(passed[1]), len(passed[0] & passed[1]), differing, tuple(idle))


def table(comparisons: Sequence[Comparison]) -> str:
    """The numbers of each library, as Markdown."""
    rows = ["| library | pass on delta-spark | pass here | pass on both | differ, with a reason | without |"]
    rows.append("|---|---|---|---|---|---|")
    for each in comparisons:
        without = len(each.unexplained)
        numbers = (each.theirs, each.ours, each.both, len(each.differing) - without, without)
        rows.append(f"| {each.library} | " + " | ".join(map(str, numbers)) + " |")
    return "\n".join(rows)
