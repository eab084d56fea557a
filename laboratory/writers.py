"""Writer processes that are made to be killed.

Knows forks, system calls and the product's verbs; judges nothing. A `WriterProcess` runs statement after statement on a
real folder. It writes into a journal what it is about to do and what it was told, one `os.write` a line, so that the
last line of a dead writer says where it died. It is killed from outside after a time, or kills itself by a real SIGKILL
at the moment that its `KillPoint` names: a phase, a call of the store, or a system call within one.

A `ForkServer` forks writers from a process that has imported everything and run nothing: Arrow's thread pools, once
they have run, do not survive a fork.
"""

from __future__ import annotations

import builtins
import fnmatch
import json
import logging
import os
import random
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType
from typing import IO, Any
from uuid import UUID

import pyarrow as pa

from anabranch._protocol.compression import DEFAULT_CODEC
from anabranch._storage import disk, open_store
from anabranch._storage.contract import Entry
from anabranch._storage.local import LocalStore
from anabranch._storage.open import mounted
from anabranch._transaction.phases import listen
from anabranch._transaction.retry import RetryPolicy, Runtime
from anabranch.errors import AlreadyExists, DeltaConcurrentModificationException
from anabranch.testing.stores import Call, ObservedStore
from laboratory.blocks import Block
from laboratory.in_arrow import InArrow
from laboratory.places import InMemory
from laboratory.statements import All, Append, Delete, Merge, Plus, Put, Statement, Test, Update, When
from laboratory.verbs import Session, play

_RETRY = RetryPolicy(attempts=1_000, seconds=120.0)
_GROUPS = 5
MOST_STATEMENTS = 5
_POLL_SECONDS = 0.003
_HEARD_CALLS = ("fsync", "link", "unlink", "replace", "mkdir")


@dataclass(frozen=True)
class KillPoint:
    """A writer dies at the ``time``-th moment that fits ``moment``, a pattern with ``*``."""

    moment: str
    time: int = 1


@dataclass(frozen=True)
class WriterProcess:
    """One writer process.

    Args:
        number: tells lives apart; each of its transactions is named by it. Those of odd ones have the backend of tables
            without Spark, the others the laboratory's engine.
        seed: with number, decides its statements.
        transactions: after how many it ends by itself; None for never.
        broken: a name of `BROKEN`.
        in_blocks: whether each of its transactions has several statements.
    """

    number: int
    seed: int
    table: str
    journal: str
    kill_point: KillPoint | None = None
    transactions: int | None = None
    broken: str | None = None
    in_blocks: bool = False


def transaction_for(seed: int, life: int, number: int, *, in_blocks: bool) -> Statement:
    """The ``number``-th transaction of a life: one statement, or two to five."""
    if not in_blocks:
        return statement_of(seed, life, number)
    count = random.Random(f"block {seed} {life} {number}").choice((2, 3, 3, 4, MOST_STATEMENTS))
    return Block(tuple(statement_of(seed, life, number * MOST_STATEMENTS + nth) for nth in range(count)))


def statement_of(seed: int, life: int, number: int) -> Statement:
    """The ``number``-th statement of a life; each later verb gets its share here.

    Rows age by updates and are then deleted, so that tables stay small.
    """
    dice = random.Random(f"{seed} {life} {number}")
    roll, group = dice.random(), Test("p", "=", dice.randrange(_GROUPS))
    if roll < 0.45:
        keys = range(life * 1_000_000 + number * 10, life * 1_000_000 + number * 10 + dice.choice((1, 2, 3)))
        return Append(tuple((key, dice.randrange(_GROUPS), dice.randrange(3)) for key in keys), bulk=roll < 0.12)
    if roll < 0.60:
        return Update((Plus("x"),), group)
    if roll < 0.75:
        rows = ((number * 7 % 40, dice.randrange(_GROUPS), 0), (number * 7 % 40 + 50, dice.randrange(_GROUPS), 1))
        return Merge(rows, ("k",), (When("matched", sets=(Plus("x"),)), When("not matched")))
    if roll < 0.82:
        return Update((Put("p", dice.randrange(_GROUPS)),), All((group, Test("x", ">", 1))))
    return Delete(All((group, Test("x", ">", 2))) if roll < 0.93 else group)


def id_of(life: int, number: int, nth: int) -> UUID:
    """The ``nth`` name that a transaction gives: itself first, then its files."""
    return UUID(int=(life << 96) | (number << 64) | nth)


def transaction_of(txn_id: str) -> tuple[int, int]:
    """The life and number of a transaction, by its name in the log."""
    name = UUID(txn_id).int
    return name >> 96, (name >> 64) & 0xFFFFFFFF


# -- one life ----------------------------------------------------------------------------------------------------------


class Journal:
    """What a writer says, a line each; called with a moment, it also ends the process where that is aimed at."""

    def __init__(self, life: WriterProcess) -> None:
        self._file = os.open(life.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._kill_point, self._left = life.kill_point, life.kill_point.time if life.kill_point else 0

    def say(self, line: str) -> None:
        """Write a line."""
        os.write(self._file, f"{line}\n".encode())

    def __call__(self, moment: str) -> None:
        """This process has come to a moment."""
        self.say(f"at {moment}")
        if self._kill_point and fnmatch.fnmatchcase(moment, self._kill_point.moment):
            self._left -= 1
            if self._left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)


def live(life: WriterProcess, parent: int) -> None:
    """Run statements for as long as the parent process lives, or until one fails as none may."""
    journal = Journal(life)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    logging.getLogger("anabranch").addHandler(_Warnings(journal))
    _hear_system_calls(journal)
    if life.broken:
        BROKEN[life.broken](journal)
    listen(lambda phase: journal(f"phase {phase}"))
    with mounted(_heard_store(life.table, journal)) as location:
        journal.say("ready")
        for number in count(1) if life.transactions is None else range(1, life.transactions + 1):
            if os.getppid() != parent:
                return
            if not _transact(life, number, location, journal):
                return


def _transact(life: WriterProcess, number: int, location: str, journal: Journal) -> bool:
    """Run one statement; False after an error that no neighbour's death may cause."""
    names = count(1)
    runtime = Runtime(
        new_id=lambda: id_of(life.number, number, next(names)),
        user=lambda: f"life {life.number}",
        sleep=lambda seconds: _sleep(seconds, journal),
    )
    place, store = (InArrow() if life.number % 2 else InMemory()), open_store(location)
    engine = place.engine(runtime.new_id, store)
    session = Session(location, store, engine, place, _RETRY, runtime, f"life {life.number}")
    journal.say(f"begin {number}")
    try:
        done = play(transaction_for(life.seed, life.number, number, in_blocks=life.in_blocks), session)
    except DeltaConcurrentModificationException as error:
        journal.say(f"refused {number} {type(error).__name__}")
    except Exception as error:
        journal.say(f"broken {number} {' '.join(repr(error).split())[:300]}")
        return False
    else:
        changed = json.dumps(done.changed, separators=(",", ":"))
        journal.say(f"nothing {number}" if done.version is None else f"ack {number} {done.version} {changed}")
    return True


def _sleep(seconds: float, journal: Journal) -> None:
    """Sleep; before each statement of a block that is no time, and a moment."""
    journal("sleep")
    time.sleep(seconds)


class _Warnings(logging.Handler):
    """What the product logs is written down as well: on a healthy disk it has nothing to warn of."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(logging.WARNING)
        self._journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        """Write it down."""
        self._journal.say(f"warned {' '.join(record.getMessage().split())[:300]}")


# -- moments -----------------------------------------------------------------------------------------------------------


def _heard_store(table: str, journal: Journal) -> ObservedStore:
    def before(call: Call) -> None:
        journal(f"{call.method} {_about(call)}")

    def after(call: Call) -> None:
        journal(f"done {call.method} {_about(call)}")

    return ObservedStore(open_store(table), before, after)


def _about(call: Call) -> str:
    return str(call.about) if isinstance(call.about, str) else f"{len(call.about)} files"


def _hear_system_calls(journal: Journal) -> None:
    """From now on, in this process, what the disk is asked for are moments, too, and files are written in halves."""
    for name in _HEARD_CALLS:
        setattr(os, name, _heard(name, getattr(os, name), journal))
    vars(disk)["open"] = lambda path, mode: _Halves(path, mode, journal)


def _heard(name: str, call: Callable[..., Any], journal: Journal) -> Callable[..., Any]:
    def heard(*about: Any) -> Any:
        on = os.path.basename(about[-1]) if isinstance(about[-1], str) else "a descriptor"
        journal(f"os.{name} {on}")
        result = call(*about)
        journal(f"done os.{name} {on}")
        return result

    return heard


class _Halves:
    """A file whose bytes come in two halves, with a moment between them."""

    def __init__(self, path: str, mode: str, journal: Journal) -> None:
        self._file: IO[bytes] = builtins.open(path, mode)  # noqa: SIM115 (closed by this object's own block)
        self._name, self._journal = os.path.basename(path), journal
        self.flush, self.fileno = self._file.flush, self._file.fileno

    def __enter__(self) -> _Halves:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def write(self, data: bytes) -> None:
        """Write the bytes."""
        self._file.write(data[: len(data) // 2])
        self._file.flush()
        self._journal(f"half {self._name}")
        self._file.write(data[len(data) // 2 :])

    def writelines(self, chunks: Iterable[bytes]) -> None:
        """Write the chunks, as one."""
        self.write(b"".join(chunks))


# -- broken products ---------------------------------------------------------------------------------------------------


def _in_place(journal: Journal) -> None:
    def put_if_absent(self: LocalStore, name: str, data: bytes) -> None:
        path = self._path_to_write(name)
        try:
            with _Halves(path, "xb", journal) as file:
                file.write(data)
        except FileExistsError:
            raise AlreadyExists(name=name, root=self.url) from None

    LocalStore.put_if_absent = put_if_absent  # type: ignore[method-assign]


def _late_files(journal: Journal) -> None:
    put, put_if_absent, head = LocalStore.put, LocalStore.put_if_absent, LocalStore.head
    late: dict[str, bytes] = {}

    def put_later(self: LocalStore, name: str, data: bytes) -> None:
        is_of_append = name.endswith(f".{DEFAULT_CODEC}.parquet")
        if is_of_append:  # what a change writes, it reads again before its commit
            late[name] = data
        else:
            put(self, name, data)

    def put_all(self: LocalStore, name: str, data: bytes) -> None:
        put_if_absent(self, name, data)
        while late:
            journal("committed before its files")
            put(self, *late.popitem())

    def head_as_if(self: LocalStore, name: str) -> Entry | None:
        return Entry(name, len(late[name]), 0, None) if name in late else head(self, name)

    LocalStore.put, LocalStore.put_if_absent = put_later, put_all  # type: ignore[method-assign]
    LocalStore.head = head_as_if  # type: ignore[method-assign]


def _early_ack(journal: Journal) -> None:
    put_if_absent = LocalStore.put_if_absent

    def put_after_ack(self: LocalStore, name: str, data: bytes) -> None:
        if name.endswith(".json"):
            number = transaction_of(json.loads(data.splitlines()[0])["commitInfo"]["txnId"])[1]
            journal.say(f"ack {number} {int(name[-25:-5])} null")
            journal("acknowledged before the put")
        put_if_absent(self, name, data)

    LocalStore.put_if_absent = put_after_ack  # type: ignore[method-assign]


BROKEN: Mapping[str, Callable[[Journal], None]] = {
    "commits are written in place": _in_place,
    "files are written after their commit": _late_files,
    "commits are acknowledged before the put": _early_ack,
}
"""Products with one promise broken, each of which a kill must bring to light."""


# -- the fork server ---------------------------------------------------------------------------------------------------


class ForkServer:
    """Starts lives, kills them, and tells when they have ended; those that still live end with the block."""

    def __enter__(self) -> ForkServer:
        self._pipe, theirs = get_context("spawn").Pipe()
        self._process = get_context("spawn").Process(target=_nurse, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pipe.close()  # the nurse kills who is left, and goes
        self._process.join(30)

    def start(self, life: WriterProcess) -> int:
        """Fork a life; its process's id, which is nobody else's until `ended` has said so."""
        return int(self._ask(("start", life)))

    def kill(self, pid: int) -> int | None:
        """SIGKILL, and `ended`."""
        os.kill(pid, signal.SIGKILL)
        return self.ended(pid, 30.0)

    def ended(self, pid: int, seconds: float = 0.0) -> int | None:
        """How it ended (``-signal.SIGKILL``, or its exit code), or None where it still lives after so many seconds.

        Not to be asked again of one that has ended.
        """
        return self._ask(("ended", pid, seconds))

    def _ask(self, order: tuple[Any, ...]) -> Any:
        self._pipe.send(order)
        return self._pipe.recv()


def _nurse(pipe: Connection) -> None:
    alive: set[int] = set()
    while True:
        try:
            order = pipe.recv()
        except EOFError:
            break
        if order[0] == "start":
            alive.add(pid := _fork(order[1], pipe))
            pipe.send(pid)
        else:
            how = _ends(order[1], order[2])
            alive -= set() if how is None else {order[1]}
            pipe.send(how)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)


def _fork(life: WriterProcess, pipe: Connection) -> int:
    nurse = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        pipe.close()
        live(life, nurse)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _ends(pid: int, seconds: float) -> int | None:
    deadline = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            return None
        time.sleep(_POLL_SECONDS)
