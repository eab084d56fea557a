"""The story: four chapters on the terminal, from the race to the proof and the counterexample."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table

from anabranch.api.delta_table import DeltaTable
from anabranch.api.session import session
from anabranch.cli.demo.flights import flights, late_arrivals, schedule_changes
from anabranch.cli.demo.race import Race, Writer, writers
from anabranch.commands.dml.write import Write
from anabranch.spark.engine import SparkEngine

FILES = 4
RESCHEDULED = ("AA", "WN")


def demo(keep: Path | None = None, console: Console | None = None) -> bool:
    """Run the demo; True if every claim that it makes was seen to hold. ``keep`` is a folder for the tables."""
    console = console or Console()
    began = time.monotonic()
    console.rule("[bold]Anabranch: two writers change different rows of one file, and both commit")
    with console.status("starting Spark …"):
        spark = session("anabranch demo")
    with _folder(keep) as folder:
        holds = _Story(spark, folder, console).tell()
    kept = f"; the tables are in {keep}" if keep else ""
    console.print(f"\n[dim]{time.monotonic() - began:.0f} s{kept}[/dim]")
    return holds


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    made = Path(tempfile.mkdtemp(prefix="anabranch-demo-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


class _Story:
    """What the chapters share: a session, a folder, a console and the writers."""

    def __init__(self, spark: SparkSession, folder: Path, console: Console) -> None:
        self._spark, self._folder, self._console = spark, folder, console
        self._engine = SparkEngine(spark)
        self._rows = flights()
        changes = {carrier: schedule_changes(self._rows, carrier) for carrier in RESCHEDULED}
        self._writers = writers(self._engine, late_arrivals(self._rows), changes)

    def tell(self) -> bool:
        """All chapters; True if all claims hold."""
        race, pinned, before = self._row_level()
        holds = [self._account(race, pinned, before), self._same_as_serial(race), self._clean(race), self._file_level()]
        return all(holds)

    def _row_level(self) -> tuple[Race, DataFrame, int]:
        self._console.print(f"\n[bold]1. {len(self._writers)} writers at once on one table, nothing partitioned[/bold]")
        path = self._create("flights")
        pinned = DeltaTable.forPath(self._spark, path).toDF()
        before = pinned.count()
        self._console.print(
            f"{before:,} flights in {FILES} files, version 0; every writer reads version 0, then all go."
        )
        return self._race(path, self._writers), pinned, before

    def _account(self, race: Race, pinned: DataFrame, before: int) -> bool:
        now, still = DeltaTable.forPath(self._spark, race.path).toDF().count(), pinned.count()
        all_in = not race.refusals
        self._claim(all_in, "every writer committed, in the order shown; none waited for another, none ran twice")
        moved = any(run.writer.name == "zorder" and run.committed is not None for run in race.runs)
        self._claim(moved, "among them OPTIMIZE ZORDER BY, which moved every row while the others marked theirs")
        self._claim(still == before, f"a reader pinned to version 0 still sees {still:,} rows; the newest has {now:,}")
        return all_in and moved and still == before

    def _same_as_serial(self, race: Race) -> bool:
        with self._console.status("the same commands one after another, on a second table …"):
            path = self._create("serial")
            for writer in self._writers:
                writer.run(path)
            serial, concurrent = (DeltaTable.forPath(self._spark, p).toDF() for p in (path, race.path))
            different = serial.exceptAll(concurrent).count() + concurrent.exceptAll(serial).count()
        return self._claim(different == 0, f"one after another they give the same rows ({different} differ)")

    def _clean(self, race: Race) -> bool:
        report = DeltaTable.forPath(self._spark, race.path).check(deep=True)
        return self._claim(
            report.is_clean, str(report).split(" of ")[0] + f": {report.files} files, {report.vectors} vectors, clean"
        )

    def _file_level(self) -> bool:
        self._console.print(
            "\n[bold]2. The same writers with anabranch.conflictResolution = file, as in open-source Delta[/bold]"
        )
        path = self._create("file", **{"anabranch.conflictResolution": "file"})
        race = self._race(path, self._writers)
        refused = race.refusals
        if refused:
            self._console.print(Panel(str(refused[0]), title=type(refused[0]).__name__, border_style="red"))
        return self._claim(
            bool(refused), f"{len(refused)} of {len(race.runs)} writers were refused, though no two touch one row"
        )

    def _create(self, name: str, **properties: str) -> str:
        path = str(self._folder / name)
        shutil.rmtree(path, ignore_errors=True)
        rows = self._engine.rows(self._rows).repartition(FILES)
        Write(path, rows, "error", properties=properties).run(self._engine)
        return path

    def _race(self, path: str, crew: list[Writer]) -> Race:
        race = Race(path)
        runner = threading.Thread(target=race.start, args=(crew,))
        with Live(console=self._console, refresh_per_second=8) as live:
            runner.start()
            while runner.is_alive():
                live.update(_table(race))
                runner.join(0.1)
            live.update(_table(race))
        self._console.print()
        return race

    def _claim(self, holds: bool, text: str) -> bool:
        self._console.print(("[green]✓[/green] " if holds else "[red]✗[/red] ") + text)
        return holds


def _table(race: Race) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("writer", "does", "outcome", "seconds"):
        table.add_column(title, justify="right" if title == "seconds" else "left", overflow="fold")
    for run in sorted(race.runs, key=lambda run: run.committed.version if run.committed else 99):
        colour = "red" if run.refused else "green" if run.committed else "yellow"
        seconds = f"{run.seconds:.1f}" if run.seconds else ""
        table.add_row(run.writer.name, run.writer.says, f"[{colour}]{run.outcome}[/{colour}]", seconds)
    return table
