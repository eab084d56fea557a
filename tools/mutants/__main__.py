"""The command of `make mutants`: draw, judge, print."""

from __future__ import annotations

import hashlib
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from .drawing import drawn
from .judging import Run
from .mutant import Mutant
from .mutations import mutants_of, mutated
from .results import Results, survivors, table
from .tiers import TEST, TIERS

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("_transaction", "commands", "_log", "_protocol", "_arrow", "_spark")


def main(
    count: Annotated[int, typer.Option(help="How many mutants.")] = 300,
    seed: Annotated[int, typer.Option(help="Which ones: the same seed draws the same ones.")] = 1,
    jobs: Annotated[int, typer.Option(help="How many are judged at a time.")] = 2,
    budget: Annotated[float, typer.Option(help="Seconds of tests for each mutant and tier.")] = 240.0,
    room: Annotated[list[str] | None, typer.Option(help="Only this room of the package; may be repeated.")] = None,
    among: Annotated[
        list[str] | None, typer.Option(help="Only these tests: a file or folder; may be repeated.")
    ] = None,
    first: Annotated[bool, typer.Option("--first", help="Ask the tests of `make test` alone.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Print what is known, and judge nothing.")] = False,
    folder: Annotated[Path, typer.Option(help="Where results are kept.")] = ROOT / "build" / "mutants",
) -> None:
    """Judge a sample of mutants by the tests, and print what survives. A run that was ended goes on where it was."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what runs is ended, too
    sample = drawn({each: _mutants(each) for each in room or ROOMS}, count, seed, _is_whole)
    results = Results(folder / "results.json", _digest())
    tiers = [TEST] if first else list(TIERS)
    for tier in [] if show else tiers:
        Run(ROOT, folder.resolve(), results, jobs, budget, among or ()).judge(tier, sample)
    judged = [known for known in map(results.of, sample) if known is not None]
    print(table(judged, tiers), "", survivors(sorted(judged, key=lambda each: each.mutant)), sep="\n")
    hung = sum(verdict.word == "hung" for each in judged for verdict in each.verdicts.values())
    lasting = [each for each in judged if each.killer() is None]
    beyond = sum(list(each.verdicts.values())[-1].left > 0 for each in lasting)
    print(
        f"\nseed {seed}: {hung} were killed since they hang; {beyond} of {len(lasting)} survivors have tests beyond "
        f"the budget; {len(results.unreliable)} tests were not asked, since they fail without a mutant"
    )


def _mutants(room: str) -> list[Mutant]:
    files = sorted((ROOT / "anabranch" / room).rglob("*.py"))
    return [
        mutant for file in files for mutant in mutants_of(file.relative_to(ROOT).as_posix(), file.read_text("utf-8"))
    ]


def _is_whole(mutant: Mutant) -> bool:
    return mutated((ROOT / mutant.path).read_text("utf-8"), mutant) is not None


def _digest() -> str:
    """What changes whenever a file of the package does."""
    digest = hashlib.sha256()
    for file in sorted((ROOT / "anabranch").rglob("*.py")):
        digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    typer.run(main)
