"""Mutants of transactions of several statements: the product with one rule broken, each of which the histories of
`laboratory.several_statements` must catch.

Knows the product's inside, on purpose, as `laboratory.mutants` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, WeakSet

import pyarrow as pa

from anabranch._log.committers import PrivateCommitter, private_committer, view_through
from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.change_feed import DELETE, INSERT, POSTIMAGE, PREIMAGE
from anabranch._protocol.conditions import Condition, always
from anabranch._protocol.dials import NO_DIALS
from anabranch._protocol.layout.file_sets import Marks
from anabranch._storage.contract import Store
from anabranch._transaction import commit, transaction
from anabranch._transaction.commit_actions import commit_lines
from anabranch._transaction.joining import join_statements
from anabranch._transaction.open_transaction import OpenTransaction, Part, Query
from anabranch._transaction.retry import Runtime
from anabranch._transaction.row_ids import row_ids
from anabranch._transaction.transaction import Transaction
from anabranch.commands import joined_feed, row_changes, transactions
from anabranch.commands.context import RunContext
from anabranch.commands.queries import read as queries
from anabranch.commands.transactions import JoinedHandler
from laboratory.mutants import Mutant

_read, _run = RunContext.snapshot, OpenTransaction.run
Statements = Sequence[Transaction]


def _nothing(*anything: Any, **more: Any) -> None:
    return None


def _selecting_nothing(*anything: Any) -> Condition:
    return always(False)


# -- joining -----------------------------------------------------------------------------------------------------------


def _first_alone(base: Snapshot, statements: Statements, queries: Sequence[Query], *rest: Any) -> Transaction:
    return join_statements(base, statements[:1], queries, *rest)


def _nothing_buried(base: Snapshot, statements: Statements, queries: Sequence[Query], *rest: Any) -> Transaction:
    ours = join_statements(base, statements, queries, *rest)
    return replace(ours, changes=replace(ours.changes, buried={}))


def _reads_of_the_last(base: Snapshot, statements: Statements, queries: Sequence[Query], *rest: Any) -> Transaction:
    return replace(join_statements(base, statements, queries, *rest), reads=statements[-1].reads)


class _LastJudges(JoinedHandler):
    """Winners' rows are shown to the last statement alone."""

    def __init__(self, base: Snapshot, parts: Sequence[Part], queries: Sequence[Query], *rest: Any) -> None:
        super().__init__(base, parts, queries, *rest)
        self.last = JoinedHandler(base, parts[-1:], queries, *rest)

    def could_match(self, files: pa.Table) -> pa.Table:
        return self.last.could_match(files)

    def matches(self, files: pa.Table) -> Marks:
        return self.last.matches(files)


def _reading_nothing_idle(ours: Transaction, handler: Any) -> None:
    handler.discard()


def _not_folded(feeds: Iterable[joined_feed.Feed], keys: Any) -> list[tuple[str, int]]:
    return [change for feed in feeds for change in _recorded(feed)]


def _recorded(feed: joined_feed.Feed) -> Iterator[tuple[str, int]]:
    yield from ((DELETE, row) for row in feed.deletes)
    yield from ((INSERT, row) for row in feed.inserts)
    yield from (change for old, new in feed.pairs for change in ((PREIMAGE, old), (POSTIMAGE, new)))


# -- inside ------------------------------------------------------------------------------------------------------------


def _without_what_it_wrote(context: RunContext, log: Log) -> Snapshot:
    committer = private_committer(log.store)
    return _read(context, log) if committer is None else log.snapshot(committer.base)


def _with_ids(ours: Transaction, vectors: Any, **more: Any) -> Iterator[str]:
    """Commits of the private log assign row ids, which the next statement takes for those of its rows."""
    assert ours.base is not None, "no table is created inside"
    return commit_lines(ours, vectors, row_ids(ours, (), ours.base.version + 1), **more)


# -- running again -----------------------------------------------------------------------------------------------------


def _counts_nothing(opened: OpenTransaction, work: Callable[[], Any], again: Any) -> Any:
    result = _run(opened, work, again)
    opened.statements[-1:] = [replace(each, counts=()) for each in opened.statements[-1:]]
    return result


def _appending_twice() -> Callable[..., Any]:
    """A blind append that runs again runs twice."""
    ran = WeakSet[Any]()

    def run(opened: OpenTransaction, work: Callable[[], Any], again: Any) -> Any:
        result, is_second = _run(opened, work, again), again in ran
        ran.add(again)
        is_append = bool(opened.parts) and opened.parts[-1].ours.is_blind
        return _run(opened, work, again) if is_second and is_append else result

    return run


class _OnOldBase(OpenTransaction):
    """What runs again begins at the version of the first run."""

    first: ClassVar = WeakKeyDictionary[Any, Snapshot]()

    def view(self, store: Store) -> Store:
        base = self.first.get(self.runtime.new_id)
        if base is not None and store.url not in self._committers:
            private_id, newest = str(self.runtime.new_id()), base.segment.newest
            committer = PrivateCommitter(base.version, newest, private_id, self.runtime.now_ms)
            self._bases[store.url], self._committers[store.url] = base, committer
            committer.newest_snapshot = base.through(view_through(store, committer))
        view = super().view(store)
        self.first.setdefault(self.runtime.new_id, self._bases[store.url])
        return view


class _WithOldRows(OpenTransaction):
    """What runs again begins with the appends of the first run."""

    first: ClassVar = WeakKeyDictionary[Any, OpenTransaction]()

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        first = self.first.setdefault(runtime.new_id, self)
        self.parts += [] if first is self else [part for part in first.parts if part.ours.is_blind]


BLOCK_MUTANTS: tuple[Mutant, ...] = (
    Mutant("a statement reads past what its transaction wrote", ((RunContext, "snapshot", _without_what_it_wrote),)),
    Mutant("what runs again keeps what it had added", ((transactions, "OpenTransaction", _WithOldRows),)),
    Mutant("the first statement alone is committed", ((transactions, "join_statements", _first_alone),)),
    Mutant("a feed has rows that came and went", ((joined_feed, "fold", _not_folded),)),
    Mutant("what changed no row has read nothing", ((row_changes, "give_up", _reading_nothing_idle),)),
    Mutant("what the program has seen is not read", ((OpenTransaction, "note_query", _nothing),)),
    Mutant("of a query that is known in part no row is read", ((queries, "may_hold", _selecting_nothing),)),
    Mutant("a new row that was deleted comes back", ((transactions, "join_statements", _nothing_buried),)),
    Mutant("an append that runs again is doubled", ((OpenTransaction, "run", _appending_twice()),)),
    Mutant(
        "only what the last statement read counts",
        ((transactions, "join_statements", _reads_of_the_last), (transactions, "JoinedHandler", _LastJudges)),
    ),
    Mutant("whatever a second run reports will do", ((OpenTransaction, "run", _counts_nothing),)),
    Mutant("row ids that were assigned inside are kept", ((commit, "commit_lines", _with_ids),)),
    Mutant("what runs again begins at the old version", ((transactions, "OpenTransaction", _OnOldBase),)),
    Mutant("nobody hears the dials that are asked for", ((transaction, "current_dials", lambda: NO_DIALS),)),
)
"""All of them."""
