"""Runs the statements that begin and end a transaction, and blocks of statements that are one.

Knows the open transaction of this thread, and statements only as texts that are run. A transaction that SQL began holds
for the thread, whatever session runs its statements; its table is the first one that a statement changes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from pyspark.sql import DataFrame

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._sql.executor.running import StatementContext
from anabranch._sql.grammar.parameters import arguments_by_statement
from anabranch._sql.grammar.transactions import Atomic, Begin, Commit, TransactionText
from anabranch._transaction.open_transaction import open_transaction
from anabranch._transaction.retry import Runtime
from anabranch.commands.rerunning import rerun
from anabranch.commands.transactions import StatementGroup
from anabranch.errors import NotInTransaction

_begun: ContextVar[StatementGroup | None] = ContextVar("anabranch_transaction_of_sql", default=None)


RunText = Callable[[str, Any], Any]
"""Runs a statement of a block with the values of its parameters."""


def run(statement: TransactionText, args: Any, on: StatementContext, run_text: RunText) -> DataFrame:
    """Run one of these statements, which has these values for its parameters. The result has no rows.

    Raises:
        NotInTransaction: none is open, one is open already, or a ``with`` block opened it.
        AnabranchError: as the statements; a block that fails has done nothing.
    """
    if isinstance(statement, Atomic):
        _run_block(statement, args, on, run_text)
    elif isinstance(statement, Begin):
        _begin(on)
    else:
        _end(commits=isinstance(statement, Commit))
    return on.nothing()


def _begin(on: StatementContext) -> None:
    group = StatementGroup(on.engine)
    group.begin()
    _begun.set(group)


def _end(*, commits: bool) -> None:
    what, group = "COMMIT" if commits else "ROLLBACK", _begun.get()
    if group is None:
        is_open = open_transaction() is not None
        reason = (
            "the transaction ends with the block that began it, `with` or BEGIN ATOMIC."
            if is_open
            else "BEGIN TRANSACTION opens one, and none is open."
        )
        raise NotInTransaction(what=what, table="", reason=reason)
    _begun.set(None)
    if commits:
        group.commit()
    else:
        group.roll_back()


def _run_block(block: Atomic, args: Any, on: StatementContext, run_text: RunText) -> None:
    """Run a block; inside a transaction it is a part of that one. Under ``redo`` it runs again from its text."""
    if (transaction := open_transaction()) is not None:
        transaction.run_together(lambda: _run_all(block, args, run_text))
        return
    group = StatementGroup(on.engine, is_script=True)

    def work() -> None:
        group.begin()
        try:
            _run_all(block, args, run_text)
        except BaseException:
            group.roll_back()
            raise
        group.commit()

    def newest() -> Snapshot:
        assert group.store is not None, "a conflict is over a table, which was used inside"
        return Log(group.store).snapshot()

    rerun(work, lambda conflict, snapshot: work, newest, Runtime())


def _run_all(block: Atomic, args: Any, run_text: RunText) -> None:
    for statement, its_args in zip(block.statements, arguments_by_statement(block.statements, args), strict=True):
        run_text(statement, its_args)
