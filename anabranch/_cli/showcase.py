"""Commands that demonstrate the product: demo, matrix."""

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
        from anabranch._cli.demo.story import demo as run_demo  # needs Spark, which `matrix` does not

    holds = run_demo(keep, Console(stderr=True) if as_json else console)
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
    from anabranch.testing import matrix as runner  # no other command needs the testing tools

    matrices = []
    dials, levels = (resolution,) if resolution else runner.DIALS, (level,) if level else runner.LEVELS
    for result in runner.matrices(dials, levels):
        matrices.append(result)
        if not as_json:
            _print_matrix(result)
    same = all(result.as_documented for result in matrices)
    if as_json:
        print_json({"asDocumented": same, "matrices": [runner.as_json(result) for result in matrices]})
    else:
        console.print("Every cell is as documented, or beyond it." if same else "Some cell is not as documented.")
    raise typer.Exit(0 if same else 1)


def _print_matrix(matrix: Matrix) -> None:
    """Prints a row per kind of our transaction and a column per kind of winner, then each run with another outcome."""
    winners = list(dict.fromkeys(cell.winner for cell in matrix.cells))
    table = Table("ours", *(f"winner: {winner}" for winner in winners), box=SIMPLE, show_lines=True)
    for ours in dict.fromkeys(cell.ours for cell in matrix.cells):
        table.add_row(ours, *(_in_words(cell) for cell in matrix.cells if cell.ours == ours))
    console.print(f"anabranch.conflictResolution = {matrix.dial}, {matrix.level}", style="bold", highlight=False)
    console.print(table)
    for run in (run for cell in matrix.cells for run in cell.runs if not run.as_documented):
        outcome = (
            f"committed, {'right' if run.right_rows else 'wrong'} rows" if run.condition is None else run.condition
        )
        console.print(f"✗ {run.ours} against {run.winner}, {run.where}: {outcome}", style="red", highlight=False)


def _in_words(cell: Cell) -> str:
    beyond = ": beyond the matrix, here they cannot" if cell.is_beyond else ""
    happened = f"{cell.refusal_count} of {len(cell.runs)} runs refused{beyond}"
    return f"{'✓' if cell.as_documented else '✗'} {cell.documented}\n  {happened}"
