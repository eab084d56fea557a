"""Streams that are killed: one query writes numbered rows to a table, another one reads that table as a stream and
writes to a second one. Their process is ended by kill -9 at random moments, while updates and OPTIMIZE run beside it.
At the end each row is in both tables exactly once.

A round begins the queries anew on the same checkpoints, as whoever restarts them would.
`python -m laboratory.stream_kills`
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from anabranch.commands.dml.append import Append
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.dml.update import Update
from anabranch.commands.maintenance.check import check
from anabranch.commands.maintenance.optimize import Optimize
from anabranch.commands.opening import open_log
from anabranch.commands.queries.read import Read
from anabranch.errors import AnabranchError
from anabranch.testing import ArrowEngine

ROWS = 20
"""Rows of one file of the source, which is one batch."""

CHILD = """
import sys
import anabranch

folder = sys.argv[1]
spark = anabranch.install(anabranch.session())
arrivals = spark.readStream.schema("id BIGINT, x BIGINT").option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")
table = spark.readStream.format("delta").option("skipChangeCommits", True).option("maxFilesPerTrigger", 2)


def started(rows, sink, **trigger):
    stream = rows.writeStream.format("delta").option("checkpointLocation", f"{folder}/checkpoint of {sink}")
    return stream.trigger(**trigger).start(f"{folder}/{sink}")


first = started(arrivals, "table", availableNow=True)
second = started(table.load(f"{folder}/table"), "copy", processingTime="0 seconds")
print("begins", flush=True)
first.awaitTermination()
second.processAllAvailable()
second.stop()
print("ended", flush=True)
"""
TABLES = ("table", "copy")


def run_rounds(rounds: int, files: int, seed: int, folder: Path) -> list[str]:
    """What was wrong at the end; nothing where each row is there once, in both tables."""
    dice = random.Random(seed)
    for number in range(files):
        _put(folder / "in", number)
    Append(str(folder / "table"), [{"id": -1, "x": 0}]).run()
    with _written_beside(str(folder / "table")):
        for _ in range(rounds):
            _killed(folder, dice)
    code = _query(folder).wait()  # alone, since a query that waits for all that is there never ends beside a writer
    faults = [f"{name}: {fault}" for name in TABLES for fault in _faults(str(folder / name), files)]
    return faults if code == 0 else [f"the last query ended with {code}", *faults]


def _put(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    ids = list(range(number * ROWS, (number + 1) * ROWS))
    pq.write_table(pa.table({"id": ids, "x": [0] * ROWS}), folder / f"{number:05}.parquet")


def _query(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def _killed(folder: Path, dice: random.Random) -> None:
    """One round: the queries begin, and are killed a random moment later, unless they end before. How long they may
    live goes by how long they took to begin, so that they get on by a busy machine too.
    """
    started = time.monotonic()
    query = _query(folder)
    assert query.stdout is not None
    query.stdout.readline()
    took = time.monotonic() - started
    with suppress(subprocess.TimeoutExpired):
        query.wait(timeout=dice.uniform(0, 2 * took))
    query.kill()
    query.wait()


@contextmanager
def _written_beside(table: str) -> Iterator[None]:
    """Updates of every row, and OPTIMIZE, again and again."""
    over = threading.Event()

    def write() -> None:
        engine = ArrowEngine()
        while not over.wait(0.5):
            for command in (Update(table, {"x": lambda row: row["x"] + 1}, EVERY_ROW), Optimize(table)):
                with suppress(AnabranchError):
                    command.run(engine)

    beside = threading.Thread(target=write)
    beside.start()
    try:
        yield
    finally:
        over.set()
        beside.join()


def _faults(table: str, files: int) -> list[str]:
    found = Counter(row["id"] for row in ArrowEngine().rows(Read(table).run()))
    wanted = {-1, *range(files * ROWS)}
    faults = [f"{id} is there {times} times" for id, times in sorted(found.items()) if times > 1]
    faults += [f"{id} is not there" for id in sorted(wanted - found.keys())]
    faults += [f"{id} came from nowhere" for id in sorted(found.keys() - wanted)]
    report = check(open_log(table).snapshot(), deep=True)
    return faults if report.is_clean else [*faults, str(report)]


def main(
    rounds: Annotated[int, typer.Option(help="How often the queries are killed.")] = 100,
    files: Annotated[int, typer.Option(help="How many batches it has to write.")] = 300,
    seed: Annotated[int, typer.Option(help="Decides the moments.")] = 1,
) -> None:
    """Kill a query again and again; the exit code is 1 where a row is lost, or there twice."""
    with tempfile.TemporaryDirectory(prefix="anabranch-streams-") as folder:
        faults = run_rounds(rounds, files, seed, Path(folder))
    print("\n".join(faults[:50]) or f"{files * ROWS:,} rows, each once in both tables, after {rounds} kills")
    raise typer.Exit(1 if faults else 0)


if __name__ == "__main__":
    typer.run(main)
