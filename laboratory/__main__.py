"""`python -m laboratory`: run histories, catch mutants, write the report; or tell one history by its seed."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from laboratory.campaign import Tally, campaign, caught, prepare
from laboratory.mutants import MUTANTS
from laboratory.plan_generator import plan_for
from laboratory.plans import Plan
from laboratory.report import Caught, page
from laboratory.runs import run
from laboratory.shrinking import shrunk
from laboratory.stories import as_test, story
from laboratory.verdicts import violations

REPORT = Path(__file__).resolve().parent.parent / "docs" / "laboratory-results.md"
MUTANT_HISTORIES = 20_000

app = typer.Typer(add_completion=False)
console = Console()


@app.command()
def main(
    histories: Annotated[int, typer.Option(help="How many histories to run.")] = 200_000,
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    jobs: Annotated[int, typer.Option(help="How many processes.")] = os.cpu_count() or 2,
    seed: Annotated[int | None, typer.Option(help="Tell the history of this seed, made small if it is wrong.")] = None,
    mutants: Annotated[bool, typer.Option(help="Catch the mutants too.")] = True,
    report: Annotated[Path, typer.Option(help="Where the report goes.")] = REPORT,
) -> None:
    """Run the laboratory; the exit code is 1 where anything is wrong."""
    if seed is not None:
        raise typer.Exit(_tell(seed))
    began = time.monotonic()
    tally = _campaign(first, histories, jobs)
    seconds = time.monotonic() - began
    found = [_catch(number) for number in range(len(MUTANTS))] if mutants else []
    report.write_text(page(tally, found, first=first, seconds=seconds, jobs=jobs), encoding="utf-8")
    console.print(f"{tally.histories:,} histories in {seconds:.0f} s, {len(tally.wrong)} violations; see {report.name}")
    survivors = [each.name for each in found if each.histories is None]
    for name in survivors:
        console.print(f"[red]not caught[/red]: {name}")
    raise typer.Exit(1 if tally.wrong or survivors else 0)


def _campaign(first: int, histories: int, jobs: int) -> Tally:
    with Progress(console=console) as progress:
        bar, told = progress.add_task("histories", total=histories), set[tuple[int, str]]()

        def show(so_far: Tally) -> None:
            for seed, what in set(so_far.wrong) - told:
                console.print(f"[red]seed {seed}[/red]: {what}")
            told.update(so_far.wrong)
            progress.update(bar, completed=so_far.histories, description=f"{len(so_far.wrong)} violations")

        return campaign(first, histories, jobs, show)


def _catch(number: int) -> Caught:
    mutant = MUTANTS[number]
    prepare()
    with mutant.alive():
        found = caught(range(MUTANT_HISTORIES))
    console.print(f"{mutant.name}: {'not caught' if found is None else f'caught after {found:,} histories'}")
    return Caught(mutant.name, found)


def _tell(seed: int) -> int:
    prepare()
    history = run(plan_for(seed))
    wrong = violations(history)
    if not wrong:
        print(story(history))
        return 0
    small = shrunk(history.plan, history.turns, lambda plan: _fails_alike(plan, wrong[0].kind))
    print(story(run(replace(small, seed=seed))))
    print(as_test(small))
    return 1


def _fails_alike(plan: Plan, kind: str) -> bool:
    return any(each.kind == kind for each in violations(run(plan)))


if __name__ == "__main__":
    app()
