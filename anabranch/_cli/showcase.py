"""Commands that show what the product can do: demo, matrix."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from anabranch._cli.arguments import Json
from anabranch._cli.output import console, print_json
from anabranch.errors import needs_pyspark

if TYPE_CHECKING:
    from anabranch.testing.matrix import Cell, Matrix


def demo(
    keep: Annotated[Path | None, typer.Option(help="Keep the tables in this folder.")] = None, as_json: Json = False
) -> None:
    """Run concurrent writers on real data, and prove that nothing was lost. With --json that is on standard error."""
    with needs_pyspark("This command"):
        from anabranch._cli.demo.story import demo as tell  # needs Spark, which `matrix` does not

    holds = tell(keep, Console(stderr=True) if as_json else console)
    if as_json:
        print_json({"holds": holds, "tables": None if keep is None else str(keep)})
    raise typer.Exit(0 if holds else 1)


def matrix(
    resolution: Annotated[
        Literal["row", "file"] | None, typer.Option(help="Run only the matrix of this conflict resolution.")
    ] = None,
    level: Annotated[
        Literal["WriteSerializable", "Serializable"] | None, typer.Option(help="Run only at this isolation level.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the documented matrices of conflicts on this machine. Exit code 1 if a cell differs."""
    from anabranch.testing import matrix as runner  # no other command needs the tools for tests

    found = []
    dials, levels = (resolution,) if resolution else runner.DIALS, (level,) if level else runner.LEVELS
    for each in runner.matrices(dials, levels):
        found.append(each)
        if not as_json:
            _print_matrix(each)
    same = all(each.as_documented for each in found)
    if as_json:
        print_json({"asDocumented": same, "matrices": [runner.as_json(each) for each in found]})
    else:
        console.print("Every cell is as documented, or beyond it." if same else "Some cell is not as documented.")
    raise typer.Exit(0 if same else 1)


def _print_matrix(found: Matrix) -> None:
    """A row for each kind of ours, a column for each kind of winner; below it each run that went another way."""
    winners = list(dict.fromkeys(cell.winner for cell in found.cells))
    table = Table("ours", *(f"winner: {each}" for each in winners), box=SIMPLE, show_lines=True)
    for ours in dict.fromkeys(cell.ours for cell in found.cells):
        table.add_row(ours, *(_in_words(cell) for cell in found.cells if cell.ours == ours))
    console.print(f"anabranch.conflictResolution = {found.dial}, {found.level}", style="bold", highlight=False)
    console.print(table)
    for run in (run for cell in found.cells for run in cell.runs if not run.as_documented):
        said = f"committed, {'right' if run.right_rows else 'wrong'} rows" if run.condition is None else run.condition
        console.print(f"✗ {run.ours} against {run.winner}, {run.where}: {said}", style="red", highlight=False)


def _in_words(cell: Cell) -> str:
    beyond = ": beyond the matrix, here they cannot" if cell.is_beyond else ""
    happened = f"{cell.refusal_count} of {len(cell.runs)} runs refused{beyond}"
    return f"{'✓' if cell.as_documented else '✗'} {cell.documented}\n  {happened}"
