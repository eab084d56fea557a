"""Kills: real processes on one table, ended by SIGKILL at any moment, and what the dead leave.

`python -m laboratory.kills --kills 300 --seed 1` runs it; with ``--in-blocks`` each transaction has several statements.
Knows lives, journals and the second reader of logs. Tables are Serializable, so that the commit order alone has to
explain every version. Promises that are checked:

- what was acknowledged stands in the log once, at its version; what was refused, or had nothing to do, does not;
- what was under way when its writer died is there whole and once, or not at all;
- no log, file, vector or checkpoint is there in part, and each version is what its statements make of the one before;
- a VACUUM leaves nothing that the newest version does not name;
- no neighbour notices: each other writer goes on, with no error but conflicts, and so does one that comes later.
"""

from __future__ import annotations

import logging
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated

import typer

from anabranch._log.file_names import checkpoint_version
from anabranch._log.log import forget
from anabranch._storage import disk
from anabranch.commands.dml.append import Append as AppendCommand
from anabranch.commands.maintenance.check import check_table
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.commands.opening import file_set, open_log
from anabranch.testing.arrow_engine import ArrowEngine
from laboratory.journals import IDLE, STAGES, WriterStory, read_journal, verb
from laboratory.log_reader import Reader, Version
from laboratory.scheduler import LONGEST_SECONDS
from laboratory.statements import COLUMNS, Rows, bag
from laboratory.verbs import table_of
from laboratory.writers import ForkServer, KillPoint, WriterProcess, transaction_for, transaction_of

WRITERS = 4
KILLS_A_TABLE = 60
INTERVAL = 5
_LONGEST_LIFE_SECONDS = 0.25
_AIM_SECONDS = 10.0
_LAST_TRANSACTIONS = INTERVAL + 1
_FIRST: Rows = tuple((k, k % 5, 0) for k in range(10))

AIMS = (
    "list_from *",
    "phase read",
    "put *part-00000-*",
    "half .part-*",
    "half .deletion_vector_*",
    "put job-*/_started_*",
    "done put job-*/part-*",
    "done sync *",
    "phase staged",
    "phase checked",
    "phase put",
    "half .0*.json.*",
    "os.link 0*.json",
    "done os.link 0*.json",
    "done put_if_absent *.json",
    "phase committed",
    "put_if_absent *.checkpoint.parquet",
    "half .0*.checkpoint.*",
    "os.link 0*.checkpoint.parquet",
    "done os.link 0*.checkpoint.parquet",
    "half ._last_checkpoint.*",
    "os.replace _last_checkpoint",
    "put job-*/_committed_*",
    "delete job-*/_started_*",
)
"""Moments that every second writer is sent to die at, in turn; the others are killed by the clock."""
BLOCK_AIMS = ("sleep", "sleep", "sleep", "delete *part-*", "done delete *part-*")
"""More of them: between the statements of a block, and where files go that came and went in it."""


@dataclass(frozen=True)
class KillReport:
    """What came of some kills.

    Attributes:
        by_clock: kills at no named moment.
        idle: transactions that had nothing to do.
        landed, vanished: those under way when their writer was killed that stand in the log, or do not.
        leftovers: hidden files of dead writers.
        moments: (verb, stage) -> kills that hit there.
        violations: broken promises, in words.
    """

    kills: int = 0
    by_clock: int = 0
    acknowledged: int = 0
    idle: int = 0
    refused: int = 0
    landed: int = 0
    vanished: int = 0
    versions: int = 0
    checkpoints: int = 0
    leftovers: int = 0
    moments: Counter[tuple[str, str]] = field(default_factory=Counter)
    violations: tuple[str, ...] = ()

    def __add__(self, other: KillReport) -> KillReport:
        return KillReport(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


def run_kills(
    kills: int,
    seed: int,
    folder: Path,
    *,
    aims: Sequence[str] = AIMS,
    broken: str | None = None,
    in_blocks: bool = False,
) -> KillReport:
    """Kill so many writers of tables in ``folder`` and say what was found; each table takes up to 60.

    Args:
        seed: decides tables, statements, and when and where to kill; not what the processes make of it.
        broken: a name of `laboratory.writers.BROKEN`, for a product that must not pass.
        in_blocks: whether each transaction has several statements.
    """
    total, dice = KillReport(), random.Random(seed)
    turns = [*aims, *(BLOCK_AIMS if in_blocks and aims is AIMS else ())]
    dice.shuffle(turns)
    with ForkServer() as fork_server:
        for number, left in enumerate(range(kills, 0, -KILLS_A_TABLE)):
            is_partitioned, has_vectors = number % 4 == 1, number % 4 != 3
            place, table_seed = folder / f"table-{number}", seed * 1000 + number
            table = _Table(place, table_seed, is_partitioned, has_vectors, broken, in_blocks)
            table.create()
            total += _Killing(table, fork_server, dice, turns).run(min(left, KILLS_A_TABLE))
    return total


@dataclass(frozen=True)
class _Table:
    """One table, and beside it the journals of its writers."""

    folder: Path
    seed: int
    is_partitioned: bool
    has_vectors: bool
    broken: str | None
    in_blocks: bool

    @property
    def path(self) -> str:
        return str(self.folder / "table")

    def create(self) -> None:
        self.folder.mkdir(parents=True)
        properties = {
            "delta.isolationLevel": "Serializable",
            "delta.checkpointInterval": str(INTERVAL),
            "delta.enableDeletionVectors": str(self.has_vectors).lower(),
        }
        AppendCommand(self.path, table_of(_FIRST), ("p",) if self.is_partitioned else None, properties).run()
        forget()  # whoever reads it here later has to read it anew

    def journal(self, life: int) -> Path:
        return self.folder / f"journal-{life}"

    def life(self, number: int) -> WriterProcess:
        journal = str(self.journal(number))
        return WriterProcess(number, self.seed, self.path, journal, broken=self.broken, in_blocks=self.in_blocks)

    def stories(self, lives: int) -> list[WriterStory]:
        return [read_journal(life, self.journal(life), INTERVAL) for life in range(1, lives + 1)]


# -- killing -----------------------------------------------------------------------------------------------------------


class _Killing:
    """The kills of one table: as many lives as kills, `WRITERS` at a time, and one at the end that nobody disturbs."""

    def __init__(self, table: _Table, fork_server: ForkServer, dice: random.Random, turns: list[str]) -> None:
        self._table, self._fork_server, self._dice, self._turns = table, fork_server, dice, turns
        self._alive: dict[int, WriterProcess] = {}
        self._begun = self._by_clock = 0
        self._stuck: list[str] = []

    def run(self, kills: int) -> KillReport:
        for dead in range(kills):
            while self._begun < kills and len(self._alive) < min(WRITERS, kills - dead):
                self._start()
            self._kill_one()
        stuck = self._stuck + self._last()
        return _Verdict(self._table, self._table.stories(self._begun), stuck).report(kills, self._by_clock)

    def _start(self) -> None:
        self._begun += 1
        life = self._table.life(self._begun)
        if self._begun % 2:
            self._turns.append(self._turns.pop(0))
            life = replace(life, kill_point=self._kill_point(self._turns[-1]))
        self._alive[self._fork_server.start(life)] = life

    def _kill_point(self, moment: str) -> KillPoint | None:
        if "vector" in moment and not self._table.has_vectors:
            return None
        rare = "check" in moment or "job" in moment
        return KillPoint(moment, 1 if rare else self._dice.choice((1, 2, 3, 5)))

    def _kill_one(self) -> None:
        ends = ((pid, how) for pid in self._alive if (how := self._fork_server.ended(pid)) is not None)
        pid, how = next(ends, None) or self._killed(self._dice.choice(sorted(self._alive)))
        life = self._alive.pop(pid)
        if how is None:
            self._stuck.append(f"stuck: life {life.number} does not die")
        elif how != -signal.SIGKILL:
            self._stuck.append(f"error: life {life.number} ended by itself, with {how}")

    def _killed(self, pid: int) -> tuple[int, int | None]:
        """Wait for one to kill itself, if it has an aim, or for a random time; then kill it."""
        life = self._alive[pid]
        seconds = _AIM_SECONDS if life.kill_point else self._dice.random() * _LONGEST_LIFE_SECONDS
        how = self._fork_server.ended(pid, seconds)
        if how is not None:
            return pid, how
        if life.kill_point and not _goes_on(Path(life.journal)):
            self._stuck.append(f"stuck: life {life.number} says nothing more")
        self._by_clock += 1
        return pid, self._fork_server.kill(pid)

    def _last(self) -> list[str]:
        """A writer that comes after all the others, undisturbed: nothing waits for the dead."""
        self._begun += 1
        life = replace(self._table.life(self._begun), transactions=_LAST_TRANSACTIONS)
        if self._fork_server.ended(self._fork_server.start(life), LONGEST_SECONDS) == 0:
            ended = read_journal(life.number, Path(life.journal), INTERVAL)
            done = all(each.word != "broken" for each in ended.told.values())
            return [] if done and len(ended.told) == _LAST_TRANSACTIONS else [f"stuck: the last writer: {ended.told}"]
        return ["stuck: the last writer does not come to an end"]


def _goes_on(journal: Path) -> bool:
    """Whether a life does anything: what lasts long may be the machine's fault, but must come to an end."""
    deadline, before = time.monotonic() + LONGEST_SECONDS, _bytes_in(journal)
    while time.monotonic() < deadline:
        if _bytes_in(journal) != before:
            return True
        time.sleep(0.01)
    return False


def _bytes_in(journal: Path) -> int:
    return journal.stat().st_size if journal.exists() else 0


# -- judging -----------------------------------------------------------------------------------------------------------


class _Verdict:
    """Judges one table by its journals."""

    def __init__(self, table: _Table, stories: Sequence[WriterStory], stuck: Sequence[str]) -> None:
        self._table, self._stories, self._stuck = table, stories, stuck
        self._log = open_log(table.path)
        self._reader = Reader(self._log.store)
        self._at: dict[tuple[int, int], list[int]] = {}

    def report(self, kills: int, by_clock: int) -> KillReport:
        found = [*self._stuck, *self._errors()]
        versions: list[Version] = []
        try:
            versions = self._reader.versions()
            self._at = _places(versions)
            found += [f"log: {fault}" for fault in self._reader.faults]
            found += [*self._outcomes(), *self._replay(versions), *self._product(versions), *self._rest()]
        except Exception as error:  # a reader that stumbles is a finding, whatever it stumbles over
            found.append(f"log: it cannot be read: {error!r}")
        dead = self._stories[:kills]
        told = Counter(each.word for t in self._stories for each in t.told.values())
        under_way = [bool(self._at.get((t.life, t.open))) for t in dead if t.open is not None]
        return KillReport(
            kills=len(dead),
            by_clock=by_clock,
            acknowledged=told["ack"],
            idle=told["nothing"],
            refused=told["refused"],
            landed=sum(under_way),
            vanished=len(under_way) - sum(under_way),
            versions=len(versions),
            checkpoints=len(self._checkpoints()),
            leftovers=sum(disk.is_aside(file.name) for file in Path(self._table.path).rglob(".*")),
            moments=Counter((verb(self._table.seed, t, in_blocks=self._table.in_blocks), t.stage) for t in dead),
            violations=tuple(f"{self._table.folder.name}: {each}" for each in found),
        )

    def _errors(self) -> Iterator[str]:
        for each in self._stories:
            yield from (f"warning: life {each.life}: {text}" for text in each.warnings)
            for number, told in each.told.items():
                if told.word == "broken":
                    yield f"error: life {each.life}, transaction {number}: {told.text}"

    def _outcomes(self) -> Iterator[str]:
        begun = {(t.life, number) for t in self._stories for number in range(1, t.begun + 1)}
        yield from (f"unknown: {name} is in the log, and nobody began it" for name in self._at.keys() - begun)
        for name in sorted(begun):
            told, at = self._stories[name[0] - 1].told.get(name[1]), self._at.get(name, [])
            if len(at) > 1:
                yield f"twice: {name} stands in the log at {at}"
            if told is not None and told.word == "ack" and at != [told.version]:
                yield f"lost: {name} was told version {told.version}, and the log has it at {at}"
            if told is not None and told.word != "ack" and at:
                yield f"undead: {name} was told {told.word!r}, and stands in the log at {at}"

    def _replay(self, versions: Sequence[Version]) -> Iterator[str]:
        """Each version is what the statement of its commit makes of the version before it."""
        names = {version: name for name, at in self._at.items() for version in at}
        rows = versions[0].rows
        if bag(rows) != bag(_FIRST):
            yield "order: the table began with other rows"
        for version in versions[1:]:
            life, number = names[version.number]
            transaction = transaction_for(self._table.seed, life, number, in_blocks=self._table.in_blocks)
            rows, changed = transaction.apply(rows)
            told = self._stories[life - 1].told.get(number)
            if told is not None and changed is not None and told.changed != changed:
                yield f"order: {life, number} reported {told.changed} rows, and changed {changed}"
            if bag(rows) != bag(version.rows):
                yield f"order: version {version.number} is not what {life, number} makes of the version before it"
            rows = version.rows

    def _product(self, versions: Sequence[Version]) -> Iterator[str]:
        """The product's own check and reader, on the newest version and on every one that has a checkpoint."""
        for number in sorted({*self._checkpoints(), len(versions) - 1}):
            snapshot = self._log.snapshot(number)
            rows = ArrowEngine().rows(file_set(snapshot))
            if bag(tuple(row[name] for name in COLUMNS) for row in rows) != bag(versions[number].rows):
                yield f"read: version {number} has other rows by its checkpoint"
        yield from (f"check: {finding}" for finding in check_table(self._table.path, deep=True).findings)

    def _rest(self) -> Iterator[str]:
        """After a VACUUM that takes every writer for dead, nothing is there but what the newest version names."""
        Vacuum(self._table.path, 0, check_retention=False, dead_after_seconds=0.0).run()
        names = self._reader.names()
        left = {entry.name for entry in self._log.store.list_all("") if not entry.name.startswith("_delta_log/")}
        yield from (f"left: {name} is there after a VACUUM, and nothing names it" for name in sorted(left - names))
        yield from (f"gone: {name} is named, and not there after a VACUUM" for name in sorted(names - left))

    def _checkpoints(self) -> list[int]:
        found = (checkpoint_version(entry.name) for entry in self._log.store.list_from("_delta_log/0"))
        return [number for number in found if number is not None]


def _places(versions: Sequence[Version]) -> dict[tuple[int, int], list[int]]:
    """The versions at which each transaction stands."""
    found: dict[tuple[int, int], list[int]] = {}
    for version in versions[1:]:
        found.setdefault(transaction_of(version.info["txnId"]), []).append(version.number)
    return found


# -- telling -----------------------------------------------------------------------------------------------------------


def as_text(report: KillReport) -> str:
    """The report as text."""
    verbs = sorted({verb_ for verb_, _ in report.moments})
    stages = [stage for stage in (IDLE, *STAGES) if any(at == stage for _, at in report.moments)]
    lines = [f"{'killed in':<22}" + "".join(f"{stage:>12}" for stage in stages)]
    lines += [f"{v:<22}" + "".join(f"{report.moments[v, stage]:>12}" for stage in stages) for v in verbs]
    lines.append("")
    for each in fields(report):
        if isinstance(number := getattr(report, each.name), int):
            lines.append(f"{each.name:<22}{number:>12}")
    lines.append(f"{'violations':<22}{len(report.violations):>12}")
    return "\n".join([*lines, *report.violations[:50]])


def main(
    kills: Annotated[int, typer.Option(help="How many writers to kill.")] = 300,
    seed: Annotated[int, typer.Option(help="Decides statements, moments and tables.")] = 1,
    in_blocks: Annotated[bool, typer.Option(help="Transactions of several statements.")] = False,
    folder: Annotated[Path | None, typer.Option(help="Where tables and journals stay; by default nowhere.")] = None,
) -> None:
    """Kill writers; the exit code is 1 where anything is wrong."""
    logging.getLogger("anabranch").setLevel(logging.CRITICAL)
    with _folder(folder) as place:
        report = run_kills(kills, seed, place, in_blocks=in_blocks)
    print(as_text(report))
    raise typer.Exit(1 if report.violations else 0)


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="anabranch-kills-") as made:
        yield Path(made)


if __name__ == "__main__":
    typer.run(main)
