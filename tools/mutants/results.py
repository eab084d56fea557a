"""What is kept of a run, so that it can go on where it was ended, and what is printed of it.

Guarantee: whatever ends the process, the file has the verdicts up to then, and is whole.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .mutant import Mutant
from .tiers import TEST, TEST_ALL

KILLED = ("failed", "hung")


@dataclass(frozen=True)
class Verdict:
    """What a tier says of a mutant: ``failed`` or ``hung``, by which test, or ``survived`` so many. ``running`` is how
    many tests of the tier run the line, ``left`` how many tests the budget left out.
    """

    word: str
    test: str
    seconds: float
    tried: int
    left: int
    running: int


@dataclass
class Judged:
    """A mutant, the lines that it changes, and the verdicts of the tiers."""

    mutant: Mutant
    change: Sequence[str]
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    def killer(self) -> str | None:
        """The tier that kills it, the shorter if both do."""
        return next((tier for tier in (TEST, TEST_ALL) if self.said(tier) in KILLED), None)

    def said(self, tier: str) -> str:
        """The word of a tier; nothing where it was not asked."""
        return self.verdicts[tier].word if tier in self.verdicts else ""


class Results:
    """The verdicts of all mutants that were judged, kept in a file. Several threads may use it."""

    def __init__(self, file: Path, package: str) -> None:
        """Raises ValueError where the file is about another state of the package."""
        self._file, self._lock, self.package = file, threading.Lock(), package
        self.judged: dict[str, Judged] = {}
        self.unreliable: set[str] = set()
        self.confirmed: set[str] = set()
        if file.exists():
            self._read(json.loads(file.read_text(encoding="utf-8")))

    def _read(self, kept: dict) -> None:
        if kept["package"] != self.package:
            raise ValueError(f"the package has changed since {self._file} was written; remove its folder to begin anew")
        self.unreliable, self.confirmed = set(kept["unreliable"]), set(kept["confirmed"])
        for each in kept["mutants"]:
            verdicts = {tier: Verdict(**said) for tier, said in each["verdicts"].items()}
            self.judged[str(Mutant(**each["mutant"]))] = Judged(Mutant(**each["mutant"]), each["change"], verdicts)

    def of(self, mutant: Mutant) -> Judged | None:
        """What is known of a mutant."""
        return self.judged.get(str(mutant))

    def add(self, mutant: Mutant, change: Sequence[str], tier: str, verdict: Verdict) -> None:
        """Keep a verdict."""
        with self._lock:
            self.judged.setdefault(str(mutant), Judged(mutant, change)).verdicts[tier] = verdict
            self.keep()

    def keep(self) -> None:
        """Write the file."""
        kept = {
            "package": self.package,
            "unreliable": sorted(self.unreliable),
            "confirmed": sorted(self.confirmed),
            "mutants": [asdict(self.judged[name]) for name in sorted(self.judged)],
        }
        self._file.parent.mkdir(parents=True, exist_ok=True)
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        os.replace(beside, self._file)


def table(judged: Iterable[Judged], tiers: Sequence[str]) -> str:
    """Of each room how many mutants there are, what kills them, and the shares."""
    rooms: dict[str, list[Judged]] = {}
    for each in judged:
        rooms.setdefault(each.mutant.room, []).append(each)
    rows = [_row(room, rooms[room], tiers) for room in sorted(rooms)]
    total = _row("all", [each for room in rooms.values() for each in room], tiers)
    heads = ["room", "mutants", *(f"killed by {tier}{' only' * place}" for place, tier in enumerate(tiers)), "survived"]
    lines = ["| " + " | ".join(row) + " |" for row in (heads, *rows, total)]
    return "\n".join([lines[0], "|---|" + "--:|" * (len(heads) - 1), *lines[1:]])


def _row(name: str, judged: Sequence[Judged], tiers: Sequence[str]) -> list[str]:
    count = len(judged)
    killed = [sum(each.killer() == tier for each in judged) for tier in tiers]
    cells = [f"{each} ({100 * each / (count or 1):.1f} %)" for each in (*killed, count - sum(killed))]
    return [name, str(count), *cells]


def survivors(judged: Iterable[Judged]) -> str:
    """Each mutant that no test notices, with its change."""
    return "\n".join(text for each in judged if each.killer() is None for text in _survivor(each))


def _survivor(judged: Judged) -> list[str]:
    mutant, verdict = judged.mutant, list(judged.verdicts.values())[-1]
    tests = f"{verdict.running} tests run it, {verdict.tried} were tried, {verdict.left} are beyond the budget"
    return [f"{mutant.path}:{mutant.line} {mutant.operator} ({tests})", *("    " + line for line in judged.change)]
