"""Scripts: what a few sessions do on one table, step by step, and what a run of that says.

Knows statements, the commands and the scheduler; nothing of conflicts, and no anomaly by name. A *script* is one
interleaving: each step is one session's, and nobody else moves meanwhile. `play` runs it on real commands, without a
JVM. Guarantee: the verdict is not written by hand. An anomaly is *possible* where no serial order of the sessions, each
taken as one transaction, gives what every session saw and the rows that are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, permutations
from typing import Any

from anabranch._log.log import forget
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._storage import open_store
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import RunContext
from anabranch.commands.dml.append import Append as AppendCommand
from anabranch.commands.dml.delete import Delete as DeleteCommand
from anabranch.commands.dml.update import Update as UpdateCommand
from anabranch.commands.dml.write import Write as WriteCommand
from anabranch.commands.queries.read import Read
from anabranch.errors import DeltaConcurrentModificationException
from anabranch.testing import ArrowEngine, DictStore, at_phase, mounted
from laboratory.log_reader import Reader, Version
from laboratory.oracle import Landed, serial_order
from laboratory.scheduler import Scheduler
from laboratory.statements import (
    COLUMNS,
    EVERYWHERE,
    Append,
    Assignment,
    Delete,
    Overwrite,
    Rows,
    Update,
    Value,
    Where,
    bag,
)
from laboratory.verbs import condition_of, table_of

LEVELS = ("WriteSerializable", "Serializable")
DIALS = ("row", "file")


Statement = Append | Overwrite | Delete | Update


# -- what a script is made of ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Begins:
    """A statement reads its snapshot and does all its work; nothing is committed yet."""

    statement: Statement

    def __str__(self) -> str:
        return f"begins {self.statement}"


@dataclass(frozen=True)
class Ends:
    """The statement that was begun is committed or refused. ``or_gives_up``: a count of no rows counts as a refusal."""

    or_gives_up: bool = False

    def __str__(self) -> str:
        return "ends" + _or_gives_up(self.or_gives_up)


@dataclass(frozen=True)
class Aborts:
    """The statement that was begun, if any, fails before its commit, and the session with it."""

    def __str__(self) -> str:
        return "aborts"


@dataclass(frozen=True)
class Runs:
    """A statement from its beginning to its end."""

    statement: Statement
    or_gives_up: bool = False

    def __str__(self) -> str:
        return str(self.statement) + _or_gives_up(self.or_gives_up)


@dataclass(frozen=True)
class Sees:
    """The session reads: from the snapshot of its first read, or ``afresh`` from the newest version."""

    where: Where = EVERYWHERE
    afresh: bool = False

    def __str__(self) -> str:
        return f"SELECT WHERE {self.where}" + (", newest version" if self.afresh else "")


def _or_gives_up(yes: bool) -> str:
    return "; no row: gives up" if yes else ""


Act = Begins | Ends | Aborts | Runs | Sees
Steps = tuple[tuple[int, Act], ...]


@dataclass(frozen=True)
class Script:
    """One interleaving on a table that begins with ``rows``; each session is meant as one transaction.

    ``about`` is the anomaly's name in words, or what to do instead.
    """

    name: str
    about: str
    steps: Steps
    rows: Rows = ((1, 1, 10), (2, 2, 20))

    def of(self, who: int) -> list[tuple[int, Act]]:
        """The steps of one session, each with its place in the script."""
        return [(at, act) for at, (each, act) in enumerate(self.steps) if each == who]

    @property
    def sessions(self) -> list[int]:
        return sorted({who for who, _ in self.steps})


@dataclass(frozen=True)
class Table:
    """A kind of table: its dials, and whether its rows come in one file or each in its own."""

    level: str
    dial: str
    vectors: bool = True
    one_file: bool = True

    def __str__(self) -> str:
        return f"{self.level}, {self.dial}{'' if self.vectors else ', no vectors'}{'' if self.one_file else ', files'}"

    @property
    def properties(self) -> Mapping[str, str]:
        return {
            "delta.isolationLevel": self.level,
            "anabranch.conflictResolution": self.dial,
            "delta.enableDeletionVectors": str(self.vectors).lower(),
        }


# -- what a run says ---------------------------------------------------------------------------------------------------


@dataclass
class Fate:
    """What became of one session: what each of its steps saw, and its end."""

    who: int
    saw: list[tuple[Act, Any]] = field(default_factory=list)
    refused: DeltaConcurrentModificationException | None = None
    aborted: bool = False
    gave_up: bool = False
    landed: list[Landed] = field(default_factory=list)
    wrote: bool = False

    @property
    def is_out(self) -> bool:
        """Whether it ended without being committed."""
        return bool(self.refused) or self.aborted or self.gave_up

    @property
    def told(self) -> str:
        """What it was told at the end."""
        if self.refused:
            return type(self.refused).__name__
        return "gave up" if self.gave_up else "aborted" if self.aborted else "committed" if self.wrote else "read"


@dataclass(frozen=True)
class Run:
    """Everything that was seen of a script on a table."""

    script: Script
    table: Table
    fates: Mapping[int, Fate]
    versions: Sequence[Version]
    faults: Sequence[str]

    @property
    def rows(self) -> Rows:
        """The rows that are left."""
        return tuple(sorted(self.versions[-1].rows))

    @property
    def told(self) -> tuple[str, ...]:
        """What each session was told at its end."""
        return tuple(fate.told for fate in self.fates.values())

    def saw(self, who: int) -> list[Rows]:
        """What the reads of a session gave."""
        return [tuple(sorted(seen)) for act, seen in self.fates[who].saw if isinstance(act, Sees)]

    @property
    def orders(self) -> list[tuple[int, ...]]:
        """The serial orders of the sessions, each one transaction, that explain it all."""
        there = [fate.who for fate in self.fates.values() if not fate.is_out]
        return [order for order in permutations(there) if self._in_time(order) and self._explains(order)]

    @property
    def verdict(self) -> str:
        """``prevented`` or ``possible``."""
        return "prevented" if self.orders else "possible"

    @property
    def every_statement_has_its_place(self) -> bool:
        """Whether the statements, each a transaction of its own, have a serial order at the table's level."""
        landed = [each for fate in self.fates.values() for each in fate.landed]
        seen = {version.number: version.rows for version in self.versions}
        return serial_order(self.script.rows, landed, seen, level=self.table.level) is not None

    def _in_time(self, order: Sequence[int]) -> bool:
        """Whether nobody stands behind one that began after its own end."""
        span = {who: (self.script.of(who)[0][0], self.script.of(who)[-1][0]) for who in order}
        return not any(span[b][1] < span[a][0] for i, a in enumerate(order) for b in order[i + 1 :])

    def _explains(self, order: Sequence[int]) -> bool:
        rows = self.script.rows
        for who in order:
            for act, seen in self.fates[who].saw:
                if isinstance(act, Sees):
                    if bag(_selected(rows, act.where)) != bag(seen):
                        return False
                    continue
                rows, changed = act.statement.apply(rows)
                if None not in (seen, changed) and seen != changed:
                    return False
        return bag(rows) == bag(self.rows)


def _selected(rows: Rows, where: Where) -> Rows:
    return tuple(row for row in rows if where.truth(row) is True)


# -- playing -----------------------------------------------------------------------------------------------------------


class _Aborted(Exception):
    """The session's own error."""


class _Turns:
    """The schedule of a script: each step belongs to one session, up to the moment at which the step ends."""

    def __init__(self, steps: Steps) -> None:
        self._steps, self._at = steps, 0

    def choose(self, step: int, ready: Sequence[int], current: int | None, moment: str) -> int:
        """Who goes on; tasks count from 0."""
        until = "staged" if isinstance(self._steps[self._at][1], Begins) else "next"
        if moment in (until, "ended"):
            self._at += 1
        chosen = self._steps[self._at][0] - 1
        return chosen if chosen in ready else ready[0]  # a session that broke off has steps left


def play(script: Script, table: Table, location: str | None = None) -> Run:
    """Run a script on a new table of this kind, at ``location`` or in memory."""
    if location is not None:
        return _Play(script, table, location).run()
    with mounted(DictStore(f"memory://anomalies/t{next(_numbers)}")) as mounted_at:
        try:
            return _Play(script, table, mounted_at).run()
        finally:
            forget(mounted_at)


_numbers = count()
_CHANCE = Runtime(sleep=lambda seconds: None, user=lambda: None)


class _Play:
    """One run: a task of the scheduler for each session."""

    def __init__(self, script: Script, table: Table, location: str) -> None:
        self._script, self._table, self._location = script, table, location
        self._scheduler = Scheduler(_Turns(script.steps))
        self._fates = {who: Fate(who) for who in script.sessions}
        self._pinned: dict[int, FileSet] = {}

    def run(self) -> Run:
        for rows in [self._script.rows] if self._table.one_file else [(row,) for row in self._script.rows]:
            AppendCommand(self._location, table_of(rows), None, self._table.properties).run(
                context=RunContext(runtime=_CHANCE)
            )
        self._scheduler.run([partial(self._play, fate) for fate in self._fates.values()])
        reader = Reader(open_store(self._location))
        versions = reader.versions()
        return Run(self._script, self._table, self._fates, versions, reader.faults)

    def _play(self, fate: Fate) -> None:
        steps = self._script.of(fate.who)
        for number, (at, act) in enumerate(steps):
            if fate.is_out and isinstance(act, Begins):
                self._scheduler.pause("staged")
            elif fate.is_out:
                pass
            elif isinstance(act, Begins):
                self._begin(fate, at, act, *steps[number + 1])
            elif not isinstance(act, Ends):
                self._act(fate, at, at, act)
            if number < len(steps) - 1 and not isinstance(act, Begins):
                self._scheduler.pause("next")

    def _begin(self, fate: Fate, at: int, act: Begins, end_at: int, end: Act) -> None:
        if isinstance(end, Aborts):
            try:
                with at_phase("staged", _fail):
                    self._statement(act.statement)
            except _Aborted:
                return
        assert isinstance(end, Ends), "what was begun has to end"
        self._act(fate, at, end_at, Runs(act.statement, end.or_gives_up))

    def _act(self, fate: Fate, began: int, ended: int, act: Act) -> None:
        if isinstance(act, Aborts):
            fate.aborted = True
        elif isinstance(act, Sees):
            fate.saw.append((act, self._rows(fate, act)))
        elif isinstance(act, Runs):
            try:
                version, changed = self._statement(act.statement)
            except DeltaConcurrentModificationException as refused:
                fate.refused = refused
                return
            fate.saw.append((act, changed))
            fate.gave_up = act.or_gives_up and changed == 0
            fate.wrote = fate.wrote or not fate.gave_up
            if version is not None:
                fate.landed.append(Landed(fate.who, act.statement, version, began, ended, changed))

    def _statement(self, statement: Statement) -> tuple[int | None, int | None]:
        """The version at which it stands and the rows that it changed, if it says so."""
        if isinstance(statement, Append | Overwrite):
            mode = "append" if isinstance(statement, Append) else "overwrite"
            written = WriteCommand(self._location, table_of(statement.rows), mode).run(
                ArrowEngine(), RunContext(runtime=_CHANCE)
            )
            return (written.version if written else None), None
        where = condition_of(str(statement.where))
        if isinstance(statement, Delete):
            outcome = DeleteCommand(self._location, where).run(ArrowEngine(), RunContext(runtime=_CHANCE))
        else:
            sets = {each.column: partial(_assigned, each) for each in statement.sets}
            outcome = UpdateCommand(self._location, sets, where).run(ArrowEngine(), RunContext(runtime=_CHANCE))
        return (outcome.committed.version if outcome.committed else None), outcome.rows

    def _rows(self, fate: Fate, act: Sees) -> Rows:
        if act.afresh or fate.who not in self._pinned:
            self._pinned[fate.who] = Read(self._location).run()
        rows = ArrowEngine().rows(self._pinned[fate.who])
        return _selected(tuple(tuple(row[name] for name in COLUMNS) for row in rows), act.where)


def _assigned(assignment: Assignment, row: Mapping[str, Any]) -> Value:
    return assignment.of(tuple(row[name] for name in COLUMNS))


def _fail() -> None:
    raise _Aborted


def interleavings(script: Script) -> Iterator[Script]:
    """The script with its steps in every order that keeps each session's own; whole statements are cut in two."""
    cut = {who: [each for _, act in script.of(who) for each in _cut(act)] for who in script.sessions}
    return (replace(script, steps=steps) for steps in _merged(cut))


def _cut(act: Act) -> tuple[Act, ...]:
    return (Begins(act.statement), Ends(act.or_gives_up)) if isinstance(act, Runs) else (act,)


def _merged(left: Mapping[int, Sequence[Act]]) -> Iterator[Steps]:
    if not any(left.values()):
        yield ()
    for who, acts in left.items():
        if acts:
            for rest in _merged({**left, who: acts[1:]}):
                yield ((who, acts[0]), *rest)
