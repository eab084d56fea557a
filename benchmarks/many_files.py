"""A table of ten thousand small files: a point look-up through a DataFrame's filter, and an aggregate over all of it.

All read the same table, whose log is written here by hand; its statistics leave one file for a look-up. With more than
`MOST` files the table is all log (`benchmarks.synthetic`), so only the planning of a look-up is measured, by ours and
deltalake.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable as Theirs
from pyspark.sql import functions as F

import anabranch
from benchmarks import judge, peers, synthetic
from benchmarks.harness import Result, Tell, cost
from benchmarks.race import OURS, ROUNDS, Contender, Figures, Race, figures, race
from benchmarks.scan import Reader, readers

FILES = 10_000
MOST = 100_000
ROWS_PER_FILE = 20
LOOK_UPS, WARM_UPS = 9, 10
"""A look-up is short: it takes some of them until the JVM has compiled what plans it."""
SUMS = ("count(*)", "sum(id)", "sum(amount)")


def run(folder: Path, rows: int, tell: Tell, *, files: int = FILES) -> Result:
    """Measure on so many files; ``rows`` does not matter here."""
    found = _planned(folder, files, tell) if files > MOST else _read(folder, files, tell)
    return Result(
        name="many_files",
        title=f"A table of {files:,} small files",
        setting=f"{'no data files' if files > MOST else f'{ROWS_PER_FILE} rows each'}; {peers.SETTING}, warm,"
        f" {ROUNDS} rounds by turns",
        **vars(found),
        notes=[
            f"A look-up asks for one id, another one each time; {LOOK_UPS} rounds after {WARM_UPS} that warm up.",
            peers.MEMORY_NOTE,
        ],
    )


# -- files that are there ----------------------------------------------------------------------------------------------


def _read(folder: Path, files: int, tell: Tell) -> Figures:
    table = make(folder / "many", files, tell)
    sources = {name: each for name, each in readers(table).items() if name != peers.PLAIN}
    looking_up = [_looking_up(name, each, table, files) for name, each in sources.items()]
    races = [
        race("point look-up", looking_up, tell, rounds=LOOK_UPS, warm_ups=WARM_UPS),
        race("full aggregate", [_adding_up(name, each) for name, each in sources.items()], tell),
    ]
    return figures("many_files", races)


def make(table: Path, files: int, tell: Tell) -> Path:
    """The table: ids rise from file to file, and the log says so."""
    (table / "_delta_log").mkdir(parents=True)
    with (table / "_delta_log" / f"{0:020d}.json").open("w", encoding="utf-8") as log:
        log.writelines(f"{json.dumps(action)}\n" for action in (_PROTOCOL, _METADATA))
        for number in range(files):
            if number % 1000 == 0:
                tell(f"writing file {number:,} of {files:,}")
            log.write(f"{json.dumps(_added(table, number))}\n")
    return table


def _added(table: Path, number: int) -> dict[str, Any]:
    name, ids = f"part-{number:06d}.parquet", np.arange(number * ROWS_PER_FILE, (number + 1) * ROWS_PER_FILE)
    pq.write_table(pa.table({"id": ids, "amount": ids * 7 % 1000}), table / name)
    low, high = {"id": int(ids[0]), "amount": 0}, {"id": int(ids[-1]), "amount": 999}
    stats = {"numRecords": ROWS_PER_FILE, "minValues": low, "maxValues": high, "nullCount": {"id": 0, "amount": 0}}
    size, rest = (table / name).stat().st_size, {"partitionValues": {}, "modificationTime": 0, "dataChange": True}
    return {"add": {"path": name, "size": size, "stats": json.dumps(stats), **rest}}


_FIELDS = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in ("id", "amount")]
_PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
_METADATA = {
    "metaData": {
        "id": "f7b7b0a0-5a0c-4d0c-9a39-7a2c6f6f1c11",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": _FIELDS}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 0,
    }
}


def _looking_up(name: str, reader: Reader, table: Path, files: int) -> Contender:
    """Ours goes through a DataFrame's filter; each asks for the same ids in the same order."""
    ids = iter(range(files // 2 * ROWS_PER_FILE, files * ROWS_PER_FILE, 7))
    found: list[tuple[int, ...]] = []

    def ask(number: int) -> pa.Table:
        if name != OURS:
            return reader.ask(f"SELECT id, amount FROM {{}} WHERE id = {number}")
        frame = peers.session().read.format("delta").load(str(table))
        return frame.filter(F.col("id") == number).select("id", "amount").toArrow()

    def look_up() -> None:
        found.append(judge.whole_numbers(ask(next(ids))))

    return Contender(name, lambda: cost(look_up, peers.of(name)), lambda: found)


def _adding_up(name: str, reader: Reader) -> Contender:
    query = judge.sums(SUMS, "{}")
    found: list[tuple[int, ...]] = []
    work: Callable[[], None] = lambda: found.append(judge.whole_numbers(reader.ask(query)))  # noqa: E731
    return Contender(name, lambda: cost(work, peers.of(name)), lambda: found[-1])


# -- a log alone -------------------------------------------------------------------------------------------------------


def _planned(folder: Path, files: int, tell: Tell) -> Figures:
    tell(f"making the log of a table of {files:,} files")
    table = synthetic.with_checkpoint(folder, files)
    theirs = Theirs(str(table))
    works: dict[str, Callable[[str], int]] = {
        OURS: lambda where: len(anabranch.files(table, where)),
        peers.DELTALAKE: lambda where: len(theirs.file_uris(file_pruning_predicate=where)),
    }
    return figures("many_files", [_planning(works, files, tell)])


def _planning(works: dict[str, Callable[[str], int]], files: int, tell: Tell) -> Race:
    def contender(name: str, work: Callable[[str], int]) -> Contender:
        ids, found = iter(range(files // 2 * synthetic.IDS_PER_FILE, files * synthetic.IDS_PER_FILE)), list[int]()
        return Contender(
            name, lambda: cost(lambda: found.append(work(f"id = {next(ids)}")), peers.of(name)), lambda: found
        )

    return race("plan a look-up", [contender(name, work) for name, work in works.items()], tell)
