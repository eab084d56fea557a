"""`python -m benchmarks`: run benchmarks, print their ratios, keep their figures."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks.harness import PAGE, Result, Tell, load_all, page, save

ROWS = 20_000_000
NAMES = (
    *("appenders", "small_appends", "checksums", "opening", "vacuum"),
    *("fixed_cost", "untouched", "dml", "merge", "one_file", "scan", "optimize", "feeds", "streams"),
)
"""One module each, with ``run(folder, rows, tell) -> Result``; those with Spark last: its heap would be in the way."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the chosen benchmarks; each one's figures are kept as soon as it is done, if it ran at the full size."""
    chosen = _parsed(arguments)
    console = Console()
    for name in chosen.only or NAMES:
        with _Spinner(console, name) as tell, tempfile.TemporaryDirectory(prefix="anabranch-bench-") as folder:
            result = _benchmark(name)(Path(folder), chosen.rows, tell)
        if chosen.rows == ROWS:  # figures of another size must not stand where the next reader takes them for these
            save(result)
            PAGE.write_text(page(load_all()), encoding="utf-8")
        _show(console, result)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Compare, in one run, by turns.")
    parser.add_argument("--only", action="append", choices=NAMES, help="run this one; may be given more than once")
    parser.add_argument(
        "--rows",
        type=int,
        default=ROWS,
        help="rows of the large tables (default: %(default)s; figures of another size are shown, not kept)",
    )
    return parser.parse_args(arguments)


def _benchmark(name: str) -> Callable[[Path, int, Tell], Result]:
    run: Callable[[Path, int, Tell], Result] = import_module(f"benchmarks.{name}").run
    return run


class _Spinner:
    """A spinner with the time and a line that says what is being measured."""

    def __init__(self, console: Console, name: str) -> None:
        columns = (SpinnerColumn(), TextColumn("[bold]{task.fields[name]}"), TextColumn("{task.description}"))
        self._bar = Progress(*columns, TimeElapsedColumn(), console=console, transient=True)
        self._name = name

    def __enter__(self) -> Tell:
        self._bar.start()
        task = self._bar.add_task("getting ready", name=self._name, total=None)
        return lambda text: self._bar.update(task, description=text)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def _show(console: Console, result: Result) -> None:
    console.print(f"[bold]{result.title}[/bold]: {result.setting}")
    for line in result.lines:
        figures = ", ".join(f"{name} {value:.4g}" for name, value in line.figures.items())
        console.print(f"  {line.what}: {figures}", highlight=False)
    for ratio in result.ratios:
        console.print(f"  {ratio}", style="red" if ratio.is_met is False else "green")
    for note in result.notes:
        console.print(f"  {note}", style="dim")


if __name__ == "__main__":
    main()
