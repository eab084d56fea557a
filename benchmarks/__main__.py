"""`python -m benchmarks`: run benchmarks, print their ratios, keep their figures, and write the page.

Each benchmark runs in a process of its own, so that none begins with a heap that another one left.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks import conflicts_page, page
from benchmarks.harness import Result, Tell, save
from tools import interop

ROWS = 20_000_000
QUICK_ROWS = 2_000_000
NAMES = (
    *("appenders", "small_appends", "checksums", "opening", "vacuum", "fixed_cost", "transactions"),
    *("untouched", "write", "scan", "codecs", "dml", "merge", "merge_shapes", "shapes", "alone", "optimize"),
    *("one_file", "contention", "many_files", "conflicts", "curves", "tpch", "feeds", "streams"),
)
"""One module each, with ``run(folder, rows, tell) -> Result``."""
QUICK = ("small_appends", "write", "scan", "dml", "merge")
OPTIONS = {"tpch": ("scale",), "many_files": ("files",), "curves": ("files",), "conflicts": ("seconds",)}
"""What else the ``run`` of some takes, by the name of the option."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen benchmarks; 1 where contenders did not end with the same rows, or a benchmark broke."""
    chosen = _parsed(arguments)
    if not interop.is_ready():
        sys.exit("delta-spark is not installed; `make bench` does that where there is Maven")
    names = chosen.only or (QUICK if chosen.quick else NAMES)
    if len(names) == 1 or chosen.quick:
        return max(_run(name, chosen) for name in names)
    return max(_in_its_own_process(name, chosen) for name in names)


def _run(name: str, chosen: argparse.Namespace) -> int:
    """Figures of another size must not stand where the next reader takes them for those of the full one."""
    console, rows, options = Console(), chosen.rows or (QUICK_ROWS if chosen.quick else ROWS), _options(name, chosen)
    with _Spinner(console, name) as tell, tempfile.TemporaryDirectory(prefix="anabranch-bench-") as folder:
        result = import_module(f"benchmarks.{name}").run(Path(folder), rows, tell, **options)
    if rows == ROWS and not options and not chosen.quick:
        save(result)
        page.write()
        conflicts_page.write()
    _show(console, result)
    return 1 if result.differences else 0


def _in_its_own_process(name: str, chosen: argparse.Namespace) -> int:
    options = [f"--{key}={value}" for key, value in {"rows": chosen.rows, **_options(name, chosen)}.items() if value]
    return 1 if subprocess.run([sys.executable, "-m", "benchmarks", "--only", name, *options]).returncode else 0


def _options(name: str, chosen: argparse.Namespace) -> dict[str, Any]:
    given = {key: getattr(chosen, key) for key in OPTIONS.get(name, ())}
    return {key: value for key, value in given.items() if value is not None}


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Compare, in one run, by turns.")
    parser.add_argument("--only", action="append", choices=NAMES, help="run this one; may be given more than once")
    parser.add_argument("--quick", action="store_true", help=f"a choice, with {QUICK_ROWS:,} rows, in one process")
    parser.add_argument("--scale", type=float, help="scale factor of TPC-H (default: 1 at the full size)")
    parser.add_argument("--files", type=int, help="files of the table of many files, and the most of the curves")
    parser.add_argument("--seconds", type=float, help="seconds of each line of the contest of conflicts")
    parser.add_argument(
        "--rows", type=int, help=f"rows of the large tables (default: {ROWS:,}; other sizes are shown and not kept)"
    )
    return parser.parse_args(arguments)


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
    for difference in result.differences:
        console.print(f"  NOT THE SAME ROWS: {difference}", style="bold red")


if __name__ == "__main__":
    sys.exit(main())
