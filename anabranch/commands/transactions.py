"""A transaction of several statements: begun, filled, and committed as one version, or rolled back.

Knows commands as functions, and what a conflict reports; nothing of how a statement is written. Each statement runs on
the private log of the open transaction (`anabranch._transaction.open_transaction`); the commit joins them and places
them behind their winners as one transaction. Where that is refused and the table's dial is ``redo``, the statements run
again on the newest version, as a single command would.

Guarantees: nothing is visible before the commit, and then all of it at one version; after an error or a rollback no
file of it is left that a commit could name; statements run again only where the program cannot have noticed: it has
read no rows, and each statement reports the same numbers of rows as before.

Source: docs/concepts/transactions.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._log.vectors import vector_of
from anabranch._protocol.actions import FileRow
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.file_sets import Marks, union_of
from anabranch._protocol.layout.paths import store_name
from anabranch._protocol.stats.skipping import FileFacts
from anabranch._storage.contract import Store
from anabranch._transaction.commit import CommitResult, commit
from anabranch._transaction.joining import join_statements
from anabranch._transaction.open_transaction import OpenTransaction, Part, Query, Statement, enter, open_transaction
from anabranch._transaction.phases import mute_listeners, reach
from anabranch._transaction.rebase_handler import RebaseHandler
from anabranch._transaction.retry import Runtime, default_retry
from anabranch._transaction.transaction import Changes, Transaction
from anabranch.commands.dml.auto_compaction import compact_after
from anabranch.commands.engine import Engine
from anabranch.commands.jobs import Job, job_of_transaction
from anabranch.commands.joined_feed import join_feeds
from anabranch.commands.opening import Location, file_set, filter_files, open_log
from anabranch.commands.rerunning import rerun, with_redone_runs
from anabranch.commands.staging import remove
from anabranch.errors import DeltaConcurrentModificationException, NotInTransaction, StoreError


@dataclass(eq=False)
class StatementGroup:
    """Several statements as one transaction: `begin`, the statements, then `commit` or `roll_back`.

    Attributes:
        engine: writes the change data of the whole; None where there is none to write.
        runtime: clock, random numbers and ids.
        is_script: whether all of it runs again from its text, so that its statements do not by themselves.
        committed: the commit; None before it, and where nothing was to be changed.
        store: the store of its table, once it has ended; None where no table was used.
    """

    engine: Engine | None = None
    runtime: Runtime = field(default_factory=Runtime)
    is_script: bool = False
    committed: CommitResult | None = None
    store: Store | None = field(default=None, init=False, repr=False)
    _open: OpenTransaction | None = field(default=None, init=False)
    _muted: ExitStack = field(default_factory=ExitStack, init=False, repr=False)

    def begin(self, table: Location | None = None, storage_options: Mapping[str, str] | None = None) -> None:
        """Open it on this thread; ``table`` is read now, any other one at its first use.

        Raises:
            NotInTransaction: a transaction is open already.
            NotATable: there is no table.
        """
        if open_transaction() is not None:
            reason = "this thread has an open transaction; commit it or roll it back first."
            raise NotInTransaction(what="Another transaction", table=str(table or ""), reason=reason)
        self._open = OpenTransaction(self.runtime)
        if table is not None:
            self._open.table = _bind(self._open, open_log(table, storage_options))
        reach("read")
        enter(self._open)
        self._muted.enter_context(mute_listeners())  # the phases are those of the whole

    def roll_back(self) -> None:
        """Give all up. Does nothing where it is not open."""
        if (opened := self._close(commits=False)) is not None:
            _give_up(opened)

    def commit(self) -> CommitResult | None:
        """Commit all statements as one version; returns None where they changed nothing.

        Raises:
            DeltaConcurrentModificationException: it conflicts with a winner; nothing of it is visible.
            CommitOutcomeUnknown: the store did not answer.
        """
        opened = self._close(commits=True)
        if opened is None or all(part.version is None for part in opened.parts):
            if opened is not None:
                _give_up(opened)
            return None
        assert opened.table is not None, "a statement was committed inside"
        log = Log(opened.base(opened.table).store)
        statements = opened.statements

        def again(conflict: DeltaConcurrentModificationException, newest: Snapshot) -> Callable[[], Any] | None:
            if opened.queries:
                return None
            return lambda: self._commit(self._run_again(statements, conflict, newest), log)

        if self.is_script:
            self.committed = self._commit(opened, log)
        else:
            try:
                self.committed = rerun(lambda: self._commit(opened, log), again, log.snapshot, self.runtime)
            except _NotRedone as noticed:
                raise noticed.conflict from None
        if self.engine is not None:
            compact_after(self.committed, opened.base(opened.table), log, self.engine, self.runtime)
        return self.committed

    def _close(self, *, commits: bool) -> OpenTransaction | None:
        """End the open transaction; where another thread or process than its own does, nothing is committed."""
        opened, self._open = self._open, None
        if opened is None or opened.is_here:
            if opened is not None:
                opened.has_ended = True
                self.store = None if opened.first_table is None else opened.base(opened.first_table).store
                self._muted.close()
                enter(None)
            return opened
        if os.getpid() == opened.process:
            opened.has_ended = True
            _give_up(opened)
        if commits:
            reason = "another thread or process than its own has ended it; nothing of it is committed here."
            raise NotInTransaction(what="The end of a transaction", table=opened.table or "", reason=reason)
        return None

    def _commit(self, opened: OpenTransaction, log: Log) -> CommitResult:
        """Join the statements, and place them behind their winners."""
        assert opened.table is not None
        base, parts = opened.base(opened.table), [part for part in opened.parts if part.ours.table == opened.table]
        queries = [self._as_computable(query) for query in opened.queries if query.table == opened.table]
        handler = JoinedHandler(base, parts, queries, self.engine, job_of_transaction(opened, base.store))
        try:
            statements = [part.ours for part in parts]
            ours = join_statements(base, statements, queries, str(self.runtime.new_id()), handler.find)
            ours, handler.feed_files = join_feeds(ours, parts, self.engine, handler.job)
            ours = with_redone_runs(ours)
            opened.make_durable(log.store, handler.names_to_keep(ours))
            handler.check_alive()
            reach("staged")
        except BaseException:
            handler.discard()
            raise
        return commit(ours, log, handler, default_retry(blind=ours.is_blind), self.runtime)

    def _as_computable(self, query: Query) -> Query:
        """The query, without its condition where that cannot be computed on rows."""
        return query if self.engine is not None else replace(query, condition=None)

    def _run_again(
        self, statements: Sequence[Statement], conflict: DeltaConcurrentModificationException, newest: Snapshot
    ) -> OpenTransaction:
        """Run the statements on the newest version; raises the conflict where the program would notice."""
        opened = OpenTransaction(self.runtime)
        before = enter(opened)
        try:
            opened.table = _bind(opened, Log(newest.store))
            for statement in statements:
                following = statement.again(conflict, opened.present(opened.table))
                if following is None:
                    raise _NotRedone(conflict)
                _run_statement(opened, following, statement, conflict)
                if opened.statements[-1].counts != statement.counts:
                    raise _NotRedone(conflict)
        except BaseException:
            _give_up(opened)
            raise
        finally:
            enter(before)
        return opened


def _run_statement(
    opened: OpenTransaction,
    following: Callable[[], Any],
    statement: Statement,
    conflict: DeltaConcurrentModificationException,
) -> None:
    """Run a statement again. Raises _NotRedone: it fails now, and the program would have to be told. StoreError: the
    store fails.
    """
    try:
        opened.run(following, statement.again)
    except StoreError:
        raise
    except Exception:
        raise _NotRedone(conflict) from None


class _NotRedone(Exception):
    """The program would notice that the statements run again, so that their conflict is raised."""

    def __init__(self, conflict: DeltaConcurrentModificationException) -> None:
        super().__init__(str(conflict))
        self.conflict = conflict


def _give_up(opened: OpenTransaction) -> None:
    """Take all statements back, and end their job."""
    opened.take_back(0)
    if (job := opened.shared.get(Job)) is not None:
        job.discard()


def _bind(opened: OpenTransaction, log: Log) -> str:
    """Read a table inside a transaction, which pins it. Raises NotATable: there is none."""
    view = opened.view(log.store)
    if view is log.store:
        log.snapshot()  # raises, and says why
    return log.table


class JoinedHandler:
    """The handler of several statements as one: each judges rows by its own condition (`RebaseHandler`)."""

    def __init__(
        self, base: Snapshot, parts: Sequence[Part], queries: Sequence[Query], engine: Engine | None, job: Job
    ) -> None:
        self._base, self._parts, self._queries, self._engine, self.job = base, parts, queries, engine, job
        self.leftovers, self.feed_files = list[str](), list[str]()

    def check_alive(self) -> None:
        """Raises StagedFilesVacuumed: a VACUUM counted the statements' job as dead."""
        self.job.check_alive()

    def names_to_keep(self, ours: Transaction) -> list[str]:
        """The names of the staged files that the joined transaction has; the others become ``leftovers``."""
        kept = set(self._names(ours.changes))
        staged = [name for part in self._parts for name in self._names(part.ours.changes)]
        self.leftovers = [name for name in [*staged, *self.feed_files] if name not in kept]
        return list(kept)

    def _names(self, changes: Changes) -> list[str]:
        paths = [*changes.adds["path"].to_pylist(), *changes.change_files["path"].to_pylist()]
        names = (store_name(self._base.table, path) for path in paths)
        return [name for name in names if name]

    def vector(self, file: FileRow) -> Any:
        """The deleted positions of a file."""
        return vector_of(self._base.store, file)

    def could_match(self, files: pa.Table) -> pa.Table:
        """The files that may hold a row which some statement selects, or which the program would have read."""
        paths = set[str]()
        for part in self._parts:
            if part.ours.reads is not None:
                paths |= set(part.handler.could_match(files)["path"].to_pylist())
        facts = FileFacts(files, self._base.schema, self._base.partition_columns)
        for query in self._queries:
            paths |= set(filter_files(files, facts.could_match(query.predicate))["path"].to_pylist())
        return files.filter(pc.is_in(files["path"], value_set=pa.array(sorted(paths), pa.string())))

    def matches(self, files: pa.Table) -> Marks:
        """The rows that some statement or query selects."""
        selected = [self._matches_of(part.handler, files) for part in self._parts if part.ours.reads is not None]
        conditions = (query.condition for query in self._queries if query.condition is not None)
        return union_of([*selected, *(self._find(files, condition) for condition in conditions)])

    def find(self, path: str, condition: Condition) -> BitMap64:
        """The rows of a file of the table that a condition of a query selects."""
        found = self._find(self._base.files.filter(pc.equal(self._base.files["path"], path)), condition)
        return found.get(path, BitMap64())

    def _find(self, files: pa.Table, condition: Condition) -> Marks:
        assert self._engine is not None, "without an engine no condition of a query is known"
        return self._engine.find(file_set(self._base, files), condition)

    def _matches_of(self, handler: RebaseHandler, files: pa.Table) -> Marks:
        candidates = handler.could_match(files)
        return handler.matches(candidates) if len(candidates) else {}

    def redo(self, files: pa.Table, rows: Marks) -> Transaction:
        """Never called."""
        raise AssertionError("statements are redone one after the other, or not at all")

    def sample(self, file: FileRow, rows: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        """The values of a few rows of a file."""
        return self._parts[-1].handler.sample(file, rows)

    def narrower(self, ours: Transaction, file: FileRow | None) -> str | None:
        """A narrower condition, where there is only one statement to narrow."""
        return self._parts[0].handler.narrower(ours, file) if len(self._parts) == 1 else None

    def discard(self) -> None:
        """Remove what was staged."""
        for part in self._parts:
            part.handler.discard()
        remove(self._base.store, self.feed_files)
        self.job.discard()

    def finish(self) -> None:
        """Close the staging of each statement, and remove the files that came and went inside."""
        for part in self._parts:
            part.handler.finish()
        self.job.finish()
        remove(self._base.store, self.leftovers)
