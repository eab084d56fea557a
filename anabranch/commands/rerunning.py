"""Redoing: a command that another transaction refused runs again on the newest version.

Knows commands as functions of a context, and what a conflict reports; nothing of rows. This is what
``anabranch.conflictResolution = redo`` means for whole commands; rows that winners added are redone within the first
run (`anabranch._transaction.conflicts`). Guarantees: each run is the same command on a newer version, as if it had
begun after its winners; one of them commits, or none. A change of metadata or protocol, an application id, a bound that
is used up, and rows that were read before the command are refused as without `redo`. Of commands inside a command only
the outer one runs again.

Source: docs/concepts/redo.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar, cast

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.properties import REDO, REDO_RUNS, RESOLUTION_SECONDS, Properties
from anabranch._protocol.rules.identity import keep_assigned_values
from anabranch._transaction.open_transaction import Again, Part, open_transaction
from anabranch._transaction.rebase_limits import Exceeded
from anabranch._transaction.retry import RetryPolicy, Runtime
from anabranch._transaction.transaction import Transaction
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.engine import Engine
from anabranch.commands.opening import open_log
from anabranch.errors import ConcurrentTransactionException, DeltaConcurrentModificationException

Run = TypeVar("Run", bound=Callable[..., Any])
T = TypeVar("T")
_FINAL = frozenset({"METADATA_CHANGE", "PROTOCOL_CHANGE", "ALLOTTED_TIME_EXCEEDED", "VACUUM_UNDER_WAY"})
"""Sub-conditions of conflicts that another run must not, or cannot, resolve."""
_PAUSES = RetryPolicy(attempts=1, first_pause=0.002, longest_pause=0.2)


@dataclass
class _Runs:
    """The runs of one command that were refused: how many, and how long they took, with the pauses after them."""

    count: int = 0
    seconds: float = 0.0


_current: ContextVar[_Runs | None] = ContextVar("anabranch_redone_runs", default=None)


def with_redone_runs(ours: Transaction) -> Transaction:
    """Ours with metrics of the runs of its command that were refused before; unchanged in a first run."""
    runs = _current.get()
    if runs is None or not runs.count or open_transaction() is not None:
        return ours
    return ours.with_metrics(numRedoneRuns=runs.count, redoneTimeMs=round(runs.seconds * 1000))


def without_counting() -> AbstractContextManager[None]:
    """Within the block commits are not the command's own, so that they do not name its refused runs."""
    return _counting(None)


def rerunnable(run: Run) -> Run:
    """Let a command's ``run`` be run again where it was refused and its table's dial is ``redo``.

    The command was understood for one schema, so it runs again only while metadata and protocol are the same; and not
    where it computes from the rows of an older version, which would be as old in the next run.
    """

    @wraps(run)
    def running(command: Any, engine: Engine | None = None, context: RunContext = NEWEST) -> Any:
        def log() -> Log:
            return open_log(command.table, getattr(command, "storage_options", None))

        def again(conflict: DeltaConcurrentModificationException, newest: Snapshot) -> Callable[[], Any] | None:
            base = context.at if isinstance(context.at, Snapshot) else log().snapshot(conflict.facts["base_version"])
            if conflict.facts["reads_own_table"] or not _is_same_table(base, newest):
                return None
            return lambda: run(command, engine, replace(context, at=newest))

        return rerun(lambda: run(command, engine, context), again, lambda: log().snapshot(), context.runtime)

    return cast(Run, running)


def rerun_statement(
    first: Callable[[], T],
    again: Callable[[], T],
    newest: Callable[[], Snapshot],
    settings: Callable[[], Mapping[str, Any]],
    *,
    reads_others: bool,
) -> T:
    """Run a statement; run it again from its text where it was refused and its table's dial is ``redo``.

    Its queries read the newest version again, so a statement that reads its own table is redone too. Inside a
    transaction the program goes on between a statement and its next run, so that names and settings of the session may
    have another meaning by then: there only what this process has computed from the table alone runs again, under the
    same settings.

    Args:
        first: runs the statement.
        again: understands it anew, for the newest version, and runs it.
        newest: gives the newest version of the table that it changes.
        settings: gives the settings of the session on which values depend.
        reads_others: whether it may read anything but the rows that it changes.
    """
    transaction = open_transaction()
    if transaction is None:
        return rerun(first, lambda conflict, snapshot: again, newest, Runtime())
    before, start, parts = dict(settings()), len(transaction.parts), list[Part]()

    def work() -> T:
        result = first()
        parts.extend(transaction.parts[start:])
        return result

    def following(conflict: DeltaConcurrentModificationException, snapshot: Snapshot) -> Callable[[], T] | None:
        is_computed_here = all(step.reason is None for part in parts for step in part.ours.info.steps.steps)
        return again if is_computed_here and not reads_others and dict(settings()) == before else None

    return transaction.run(work, following)


def _is_same_table(base: Snapshot, newest: Snapshot) -> bool:
    """Whether nothing was changed but rows and the marks of identity columns."""
    return base.protocol == newest.protocol and (
        keep_assigned_values(newest.metadata, base.metadata) == keep_assigned_values(base.metadata, newest.metadata)
    )


def rerun(first: Callable[[], T], again: Again, newest: Callable[[], Snapshot], runtime: Runtime) -> T:
    """Run work, and run it ``again`` while conflicts refuse it and the table's dial is ``redo``. Inside a transaction
    of several statements it is one of them, and runs again with the others.
    """
    if (transaction := open_transaction()) is not None:
        return transaction.run(first, again)
    if _current.get() is not None:
        return first()
    work, began, runs = first, runtime.seconds(), _Runs()
    with _counting(runs):
        while True:
            try:
                return work()
            except DeltaConcurrentModificationException as conflict:
                if not _may_be_redone(conflict):
                    raise
                runtime.sleep(_PAUSES.pause(runs.count, runtime))
                snapshot = newest()
                following = again(conflict, snapshot)
                if following is None:
                    raise
                runs.count, runs.seconds = runs.count + 1, runtime.seconds() - began
                if (bound := _find_used_bound(runs, snapshot.properties)) is not None:
                    raise _with_bound(conflict, bound, runs.count) from None
            work = following


def _may_be_redone(conflict: DeltaConcurrentModificationException) -> bool:
    facts = conflict.facts
    is_final = facts["sub_condition"] in _FINAL and not facts.get("only_ours_changes_metadata")
    is_final = is_final or isinstance(conflict, ConcurrentTransactionException)
    return facts.get("resolution") == REDO and conflict.retryable and not is_final


def _find_used_bound(runs: _Runs, properties: Properties) -> Exceeded | None:
    """The bound that allows no other run behind these."""
    if runs.count > properties.redo_runs:
        return Exceeded(REDO_RUNS, properties.redo_runs, runs.count)
    if runs.seconds > properties.resolution_seconds:
        return Exceeded(RESOLUTION_SECONDS, properties.resolution_seconds, runs.seconds)
    return None


def _with_bound(
    conflict: DeltaConcurrentModificationException, used_up: Exceeded, runs: int
) -> DeltaConcurrentModificationException:
    """The conflict that says as well which bound prevents another run."""
    said = f"Runs so far: {runs}; {used_up.bound} = {used_up.allowed} allows no other."
    more = {"suggestion": f"{conflict.facts['suggestion']} {said}", **vars(used_up)}
    return type(conflict)(**{**conflict.facts, **more})


@contextmanager
def _counting(runs: _Runs | None) -> Iterator[None]:
    token = _current.set(runs)
    try:
        yield
    finally:
        _current.reset(token)
