"""The story of the demo on the terminal: a race, the same race with file-level conflicts, and the proof.

Fits into 80 columns. Spark's output goes to a file next to the tables.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table

from anabranch._api.delta_table import DeltaTable
from anabranch._api.functions import clone
from anabranch._api.session import session
from anabranch._cli.demo.bank import ACCOUNTS, EACH, TURNS, WRITERS, count_together, transfer_together
from anabranch._cli.demo.flights import flights, late_arrivals, schedule_changes
from anabranch._cli.demo.race import Race, Run, writers
from anabranch._cli.sessions import java_prints_to
from anabranch._spark.engine import SparkEngine
from anabranch.commands.dml.write import Write
from anabranch.errors import InvalidOption

FILES = 4
TABLES = ("flights", "serial", "file", "counter", "accounts")
LOG = "spark.log"
RESCHEDULED = ("AA", "WN")
# Java's second compiler takes a core from the writers and pays off only after minutes. Half of the collector's pauses
# come from a heap and a space for classes that begin small.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms1g -XX:MetaspaceSize=256m"
FOR_A_SHORT_LIFE = {"spark__driver__extraJavaOptions": _JAVA}


def demo(keep: Path | None = None, console: Console | None = None) -> bool:
    """Runs the demo; True if every claim held. ``keep`` is a folder for the tables."""
    console = console or Console()
    start = time.monotonic()
    console.rule("[bold]Anabranch: writers of one file, and all of them commit")
    with _folder(keep) as folder, ThreadPoolExecutor(1) as executor:
        rows = executor.submit(flights)
        options = {} if SparkSession.getActiveSession() else FOR_A_SHORT_LIFE
        with console.status("starting Spark …"), java_prints_to(folder / LOG):
            spark = session("anabranch demo", **options)
        holds = _Story(spark, rows.result(), folder, console).tell(executor)
    note = f"; the tables are in {keep}" if keep else ""
    console.print(f"\n[dim]{time.monotonic() - start:.0f} s{note}[/dim]")
    return holds


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        check_free(keep)
        yield keep
        return
    temporary = Path(tempfile.mkdtemp(prefix="anabranch-demo-"))
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_free(folder: Path) -> None:
    """Raises InvalidOption if the folder has files that the demo would overwrite."""
    existing = [name for name in (LOG, *TABLES) if os.path.lexists(folder / name)]
    if existing:
        reason = f"there is {' and '.join(existing)} already. Name another folder."
        raise InvalidOption(option="--keep", value=str(folder), reason=reason)


class _Story:
    """The state shared by the chapters: a session, a folder, a console and the writers."""

    def __init__(self, spark: SparkSession, rows: pa.Table, folder: Path, console: Console) -> None:
        self._spark, self._rows, self._folder, self._console = spark, rows, folder, console
        self._engine = SparkEngine(spark)
        changes = {carrier: schedule_changes(rows, carrier) for carrier in RESCHEDULED}
        self._writers = writers(self._engine, late_arrivals(rows), changes)

    def tell(self, executor: ThreadPoolExecutor) -> bool:
        """Runs all chapters; True if all claims hold. The proof runs during the second race, to save time."""
        raced, alone, filed, counter, accounts = TABLES
        table = self._create(raced)
        serial, by_files = self._copy(table, alone), self._copy(table, filed, resolution="file")
        first = self._row_level(table)
        one_by_one = executor.submit(self._run_one_by_one, serial)
        second = self._file_level(by_files)
        self._console.print("\n[bold]3. Was the first race correct?[/bold]")
        with self._console.status("the same commands one after another, on a copy …"):
            one_by_one.result()
        proofs = [first, second, self._same_rows(table, serial), self._clean(table)]
        return all([*proofs, self._count(str(self._folder / counter)), self._transfer(str(self._folder / accounts))])

    def _create(self, name: str) -> str:
        path = str(self._folder / name)
        with self._console.status("writing the table …"):
            Write(path, self._engine.rows(self._rows).repartition(FILES), "error").run(self._engine)
        return path

    def _copy(self, source: str, name: str, *, resolution: str = "row") -> str:
        path = str(self._folder / name)
        clone(source, path, shallow=False, properties={"anabranch.conflictResolution": resolution})
        return path

    def _row_level(self, path: str) -> bool:
        pinned = DeltaTable.forPath(self._spark, path).toDF()
        before = pinned.count()
        self._console.print(f"\n[bold]1. {len(self._writers)} writers at once on one table without partitions[/bold]")
        self._console.print(f"{before:,} flights in {FILES} files. All writers read version 0, then all go.\n")
        race = self._race(path)
        now, still = DeltaTable.forPath(self._spark, path).toDF().count(), pinned.count()
        all_in = self._claim(not race.refusals, "all committed in this order; none waited, and none ran twice")
        moved = any(run.writer.name == "optimize" and run.committed is not None for run in race.runs)
        self._claim(moved, "one was OPTIMIZE ZORDER BY: it moved all rows while others changed them")
        same = self._claim(still == before, f"a reader of version 0 still sees {still:,} rows; now there are {now:,}")
        return all_in and moved and same

    def _file_level(self, path: str) -> bool:
        self._console.print("\n[bold]2. The same writers with conflicts by files, as in open-source Delta[/bold]")
        self._console.print("anabranch.conflictResolution = file\n")
        race = self._race(path)
        refused = race.refusals
        if refused:
            self._console.print(Panel(str(refused[0]), title=type(refused[0]).__name__, border_style="red"))
        return self._claim(bool(refused), f"{len(refused)} of {len(race.runs)} were refused, and no two change one row")

    def _run_one_by_one(self, path: str) -> None:
        for writer in self._writers:
            writer.run(path)

    def _same_rows(self, path: str, serial: str) -> bool:
        frames = [DeltaTable.forPath(self._spark, location).toDF() for location in (path, serial)]
        different = differing_rows(*frames)
        return self._claim(
            different == 0, f"the same writers one after another give the same rows ({different} differ)"
        )

    def _clean(self, path: str) -> bool:
        report = DeltaTable.forPath(self._spark, path).check(deep=True)
        counts = f"{report.files} files, {report.vectors} deletion vectors, {len(report.findings)} problems"
        return self._claim(report.is_clean, f"a check of every row and statistic: {counts}")

    def _count(self, path: str) -> bool:
        self._console.print("\n[bold]4. All writers change the same row[/bold]")
        self._console.print(
            f"anabranch.conflictResolution = redo; {WRITERS} writers raise one counter, {TURNS} times each\n"
        )
        with self._console.status("counting …"):
            scene, count = count_together(path)
        text = f"the counter is {count}: {scene.redone} runs were redone, {scene.refused} commands refused"
        return self._claim(count == WRITERS * TURNS and not scene.refused, text)

    def _transfer(self, path: str) -> bool:
        self._console.print("\n[bold]5. Transactions of several statements[/bold]")
        self._console.print("with anabranch.transaction(path): two UPDATEs and an INSERT; writers as before\n")
        with self._console.status("moving money …"):
            scene, sums = transfer_together(path)
        text = f"{len(sums) - 1} transfers are as many versions: {scene.redone} redone, {scene.refused} refused"
        done = self._claim(not scene.refused, text)
        return (
            self._claim(set(sums) == {ACCOUNTS * EACH}, f"all accounts hold {sums[-1]} together at each version")
            and done
        )

    def _race(self, path: str) -> Race:
        race = Race(path)
        runner = threading.Thread(target=race.start, args=(self._writers,))
        with Live(console=self._console, auto_refresh=False) as live:
            runner.start()
            while runner.is_alive():
                live.update(table_of(race), refresh=True)
                runner.join(0.25)
            live.update(table_of(race), refresh=True)
        self._console.print()
        return race

    def _claim(self, holds: bool, text: str) -> bool:
        self._console.print(("[green]✓[/green] " if holds else "[red]✗[/red] ") + text)
        return holds


def differing_rows(left: DataFrame, right: DataFrame) -> int:
    """The number of rows that only one side has, counting duplicates."""
    signed = [df.toArrow() for df in (left, right)]
    names = signed[0].column_names
    signed = [table.append_column("n", pa.array([n] * len(table))) for table, n in zip(signed, (1, -1), strict=True)]
    sums = pa.concat_tables(signed).group_by(names, use_threads=False).aggregate([("n", "sum")])
    return pc.sum(pc.abs(sums["n_sum"])).as_py() or 0


def table_of(race: Race) -> Table:
    """The display of a race: a line per writer, the committed ones first."""
    table = Table(box=None, pad_edge=False)
    for title in ("writer", "does", "version", "carried over"):
        table.add_column(title, overflow="fold")
    table.add_column("seconds", justify="right")
    for run in sorted(race.runs, key=lambda run: run.committed.version if run.committed else len(race.runs) + 1):
        seconds = f"{run.seconds:.1f}" if run.seconds else ""
        table.add_row(run.writer.name, run.writer.says, _outcome(run), _format_version_range(run), seconds)
    return table


def _outcome(run: Run) -> str:
    if run.refused is not None:
        return "[red]refused[/red]"
    return f"[green]{run.committed.version}[/green]" if run.committed else f"[yellow]{run.phase}[/yellow]"


def _format_version_range(run: Run) -> str:
    """The versions that came first, as a range; they ascend without a gap."""
    over = run.committed.rebased_over if run.committed else ()
    return f"{over[0]} to {over[-1]}" if len(over) > 1 else "".join(map(str, over))
