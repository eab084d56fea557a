"""The open transaction of this thread: what its statements have done so far, and the logs that they see.

Knows transactions, their handlers and private logs; never a row. Inside, each statement runs as it does alone, but its
commit goes to a private log that begins at the version which the transaction read: so the next statement reads what
the ones before have done, and nobody else does. `anabranch._transaction.joining` makes one transaction of all of them.

Guarantees: each table that is used inside is read as of its first use, however often it is read; one of them is
changed, and any other change is refused by name; what is not committed leaves no trace in a log.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from anabranch._log.committers import PrivateCommitter, folder_of, private_committer, view_through
from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.conditions import Condition
from anabranch._protocol.predicates import Always, Predicate
from anabranch._storage.contract import Store
from anabranch._transaction.rebase_handler import RebaseHandler
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import Transaction
from anabranch.errors import DeltaConcurrentModificationException, NotInTransaction

T = TypeVar("T")
_ROW_COUNT = re.compile("num(?:Updated|Deleted|Source)Rows|numTargetRows(?!Copied)[A-Z][A-Za-z]*")
OPERATIONS = frozenset({"WRITE", "UPDATE", "DELETE", "MERGE", "TRUNCATE"})
"""The operations of statements that may stand inside, as their commits name them."""


@dataclass(frozen=True, eq=False)
class Part:
    """One statement's own transaction, its handler, and its version in the private log; None if it changed nothing."""

    ours: Transaction
    handler: RebaseHandler
    version: int | None = None


@dataclass(frozen=True)
class Query:
    """Rows that the program itself has read: those of ``files`` for which ``predicate`` may be TRUE; exactly those for
    which ``condition`` is TRUE, if it is known.
    """

    table: str
    predicate: Predicate
    files: frozenset[str]
    condition: Condition | None = None


Again = Callable[[DeltaConcurrentModificationException, Snapshot], "Callable[[], Any] | None"]
"""The next run, on a snapshot, of work that a conflict refused; None where it may not run again."""


@dataclass(frozen=True, eq=False)
class Statement:
    """One statement that has run: how it runs ``again`` on another version, and the numbers of rows it reported."""

    again: Again
    counts: Sequence[Mapping[str, int]]


@dataclass(eq=False)
class OpenTransaction:
    """One transaction of several statements, while it is open.

    Attributes:
        runtime: clock, random numbers and ids.
        table: the URL of the table that it changes; None until the first change.
        parts: the statements' own transactions, in their order.
        statements: the statements, also those that changed nothing.
        queries: what the program has read besides.
        shared: what commands keep for all statements together, such as their job.
        has_ended: whether it was committed or given up, wherever that was.
    """

    runtime: Runtime
    table: str | None = None
    parts: list[Part] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    shared: dict[Any, Any] = field(default_factory=dict, repr=False)
    has_ended: bool = False
    _is_running: bool = False
    _place: tuple[int, int] = field(default_factory=lambda: _place(), repr=False)
    _committers: dict[str, PrivateCommitter] = field(default_factory=dict, repr=False)
    _bases: dict[str, Snapshot] = field(default_factory=dict, repr=False)

    @property
    def is_here(self) -> bool:
        """Whether this is the thread, and the process, that opened it: contexts are copied to other threads, and a fork
        has all of them, but a transaction belongs to one.
        """
        return self._place == _place()

    @property
    def process(self) -> int:
        """The process that opened it."""
        return self._place[0]

    def view(self, store: Store) -> Store:
        """The store with the log as this transaction sees it; the store itself where there is no table."""
        if store.url not in self._committers:
            base = Log(folder_of(store)).newest()
            if base is None:
                return store
            self._bases[store.url] = base
            private_id, newest = str(self.runtime.new_id()), base.segment.newest
            committer = PrivateCommitter(base.version, newest, private_id, self.runtime.now_ms)
            self._committers[store.url] = committer
            committer.newest_snapshot = base.through(view_through(store, committer))
        return view_through(store, self._committers[store.url])

    @property
    def first_table(self) -> str | None:
        """The table that it changes; until then the first one that was used inside."""
        return self.table or next(iter(self._bases), None)

    def present(self, table: str) -> Snapshot:
        """A table as the next statement sees it."""
        return Log(self.view(self._bases[table].store)).snapshot()

    def base(self, table: str) -> Snapshot:
        """The version of a table that is read inside, as everybody sees it."""
        return self._bases[table]

    def check_statement(self, ours: Transaction, log: Log) -> None:
        """Check that a statement may be part of this transaction. Raises NotInTransaction: it may not."""
        changes, declarations = ours.changes, ours.declarations
        reason = None
        if ours.info.operation not in OPERATIONS or not changes.data_change or changes.means_files:
            reason = "it cannot be part of a transaction of several statements"
        elif ours.base is None or private_committer(log.store) is None:
            reason = "a table cannot be created inside a transaction"
        elif declarations.metadata is not None or declarations.protocol is not None or declarations.domains:
            reason = "it would change the table's columns or properties"
        elif self.table not in (None, ours.table):
            reason = f"the transaction changes the table at {self.table}, and a transaction covers one table"
        if reason is not None:
            what = ours.info.operation.removesuffix(" START")
            raise NotInTransaction(what=what, table=ours.table, reason=f"{reason}.")

    def run(self, work: Callable[[], T], again: Again) -> T:
        """Run one statement; of statements inside a statement only the outer one counts. One that fails has done
        nothing, but its failure may depend on any row.
        """
        if self._is_running:
            return work()
        count, self._is_running = len(self.parts), True
        try:
            result = work()
        except BaseException:
            self._is_running = False
            self._fail(count, len(self.statements))
            raise
        finally:
            self._is_running = False
        self.statements.append(Statement(again, [_row_counts(part.ours) for part in self.parts[count:]]))
        return result

    def run_together(self, work: Callable[[], None]) -> None:
        """Run several statements of which all take effect, or none."""
        parts, statements = len(self.parts), len(self.statements)
        try:
            work()
        except BaseException:
            self._fail(parts, statements)
            raise

    def _fail(self, parts: int, statements: int) -> None:
        """Take back what a failed statement has done; whatever it has read stays read."""
        self.take_back(parts)
        del self.statements[statements:]
        self.note_whole_tables()

    def note_whole_tables(self) -> None:
        """Note that the outcome may depend on any row of any table that is used inside."""
        for table, base in self._bases.items():
            self.queries.append(Query(table, Always(True), frozenset(base.files["path"].to_pylist())))

    def has_made(self, snapshot: Snapshot) -> bool:
        """Whether a version is one that statements of this transaction have made."""
        committer = private_committer(snapshot.store)
        return committer is not None and snapshot.version > committer.base

    def add(self, part: Part) -> None:
        """Note a statement that the private log has, or that has only read."""
        self.table = self.table if part.version is None else part.ours.table
        self.parts.append(part)

    def note_query(self, snapshot: Snapshot, query: Query) -> None:
        """Note that the program reads rows of the present version of a table; older versions never change."""
        committer = private_committer(snapshot.store)
        if committer is not None and not self._is_running and snapshot.version >= committer.base:
            self.queries.append(query)

    def new_paths(self, table: str) -> Iterator[str]:
        """The paths of the files that statements have added to a table."""
        for part in self.parts if table == self.table else ():
            yield from part.ours.changes.adds["path"].to_pylist()

    def make_durable(self, store: Store, names: Collection[str]) -> None:
        """Make those of these data files durable that were not when they were written. Raises StoreError: one of them
        is not there.
        """
        store.sync(sorted(set(names).intersection(self._committers[store.url].unsynced)))

    def take_back(self, count: int) -> None:
        """Give up all statements but the first ``count``, since one that was under way failed."""
        for part in reversed(self.parts[count:]):
            if part.version is not None:
                self._committers[part.ours.table].withdraw(part.version)
            part.handler.discard()
        del self.parts[count:]


def _row_counts(ours: Transaction) -> dict[str, int]:
    """The numbers of changed rows that a statement reports. Rows that were only copied are not among them."""
    output = {"numOutputRows"} if ours.info.operation == "WRITE" else set[str]()
    return {name: count for name, count in ours.info.metrics.items() if _ROW_COUNT.fullmatch(name) or name in output}


_current: ContextVar[OpenTransaction | None] = ContextVar("anabranch_open_transaction", default=None)


def _place() -> tuple[int, int]:
    """This process, and this thread in it."""
    return os.getpid(), threading.get_ident()


def open_transaction() -> OpenTransaction | None:
    """The open transaction of this thread, if there is one."""
    transaction = _current.get()
    return transaction if transaction is not None and transaction.is_here and not transaction.has_ended else None


def uncommitted_paths(table: str) -> frozenset[str]:
    """The paths of the files that this thread's open transaction has added to a table, which have no row ids yet."""
    transaction = open_transaction()
    return frozenset() if transaction is None else frozenset(transaction.new_paths(table))


def enter(transaction: OpenTransaction | None) -> OpenTransaction | None:
    """Make this the open transaction of this thread; returns the one before."""
    before = _current.get()
    _current.set(transaction)
    return before


@contextmanager
def inside(transaction: OpenTransaction | None) -> Iterator[None]:
    """Run a block with this open transaction; None: outside of any, as what must be visible to all at once."""
    before = enter(transaction)
    try:
        yield
    finally:
        enter(before)
