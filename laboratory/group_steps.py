"""What transactions over several tables do step by step, in each way to commit them.

Knows the values of `table_groups`; knows nothing of the product, nor of how histories are judged. Pure: a step gives
new values, and the same step of one transaction is computed once, whatever the others have done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from laboratory.table_groups import (
    ENDS,
    TABLES,
    Change,
    Commit,
    Log,
    Process,
    Program,
    Rows,
    Shared,
    State,
    Transaction,
    Way,
    rows_of,
    tables_read,
)

Step = tuple[str, Process, Shared]


def first_state(program: Program) -> State:
    """Nothing has happened."""
    return State(Shared(), tuple(map(Process, range(len(program)))))


def next_states(way: Way, program: Program, state: State) -> Iterator[tuple[str, State]]:
    """Every step that may come next, by what it does, and the state after it. At most one transaction crashes."""
    for transaction, process in zip(program, state.processes, strict=True):
        if process.phase in ENDS:
            continue
        if process.after is None:
            process = process._replace(after=frozenset(each.who for each in state.processes if each.phase == "ended"))
        name = name_of(program, process.who)
        if process.staged and not state.crashed:
            crashed = _given_up(process, state.shared.log, "crashed")
            yield f"{name} crashes", State(state.shared, _with(state.processes, crashed), crashed=True)
        for did, after, shared in _steps(way, transaction, process, state.shared):
            yield f"{name} {did}", State(shared, _with(state.processes, after), state.crashed)


def name_of(program: Program, who: int) -> str:
    """What a transaction is called in examples: T1, T2 …, and R where it only reads."""
    return f"T{who + 1}" if program[who].effect else "R"


def _with(processes: tuple[Process, ...], process: Process) -> tuple[Process, ...]:
    return (*processes[: process.who], process, *processes[process.who + 1 :])


def _given_up(process: Process, log: Log, phase: str) -> Process:
    """The process as it ends without effect, or with half of it; nothing more is known of one without effect."""
    has_effect = any(commit.who == process.who for commit in log)
    return process._replace(phase=phase) if has_effect else Process(process.who, phase)


@cache
def _steps(way: Way, transaction: Transaction, process: Process, shared: Shared) -> tuple[Step, ...]:
    return tuple(_PHASES[process.phase](way, transaction, process, shared))


# -- reading -----------------------------------------------------------------------------------------------------------


def _reads(way: Way, transaction: Transaction, process: Process, shared: Shared) -> Iterator[Step]:
    is_writer = transaction.effect is not None
    takes_cut = not transaction.is_stranger and (way.writer_takes_cut if is_writer else way.observer_takes_cut)
    knows = not transaction.is_stranger and (is_writer or way.observer_knows)
    tables = tables_read(transaction)[len(process.read_at) :][: None if takes_cut else 1]
    newest = tuple(len(shared.log) if knows else shared.published[TABLES.index(table)] for table in tables)
    for at in {newest} if way.newest else {newest, (0,) * len(tables)}:
        did = ("reads " if at == newest else "reads an old cut of ") + " and ".join(tables)
        read = process._replace(read_at=process.read_at + at)
        yield did if tables else "begins", _staged(way, transaction, read, shared), shared


def _staged(way: Way, transaction: Transaction, process: Process, shared: Shared) -> Process:
    """The process after a read; with what it is to commit if that was the last."""
    tables = tables_read(transaction)
    if len(process.read_at) < len(tables):
        return process
    at = dict(zip(tables, process.read_at, strict=True))
    seen = tuple(read.of(rows_of(shared.log[: at[read.table]], read.table)) for read in transaction.reads)
    changes = transaction.changes(seen, process.who)
    staged = tuple(Commit(process.who, change, not transaction.reads) for change in changes)
    phase = "judges" if way.commit == "group" else "commits"
    return process._replace(phase=phase if staged else "ended", seen=seen, staged=staged)


# -- judging -----------------------------------------------------------------------------------------------------------


def _judges(way: Way, transaction: Transaction, process: Process, shared: Shared) -> Iterator[Step]:
    if _is_refused(way, transaction, process, shared.log, _judged_tables(way, process)):
        yield "is refused", _given_up(process, shared.log, "refused"), shared
        return
    judged = _in_order(transaction, process, shared.log)
    yield "is judged", judged._replace(phase="commits", judged=len(shared.log)), shared


def _in_order(transaction: Transaction, process: Process, log: Log) -> Process:
    """The process after it was judged to be in order, and whether a judge of whole tables had refused it."""
    winners = {
        table: tuple(commit for commit in log[at:] if commit.who != process.who)
        for table, at in zip(tables_read(transaction), process.read_at, strict=True)
    }
    by_rows = any(_touches(commits, (table,)) for table, commits in winners.items())
    return process._replace(by_rows=process.by_rows or by_rows)


def _judged_tables(way: Way, process: Process) -> tuple[str, ...]:
    return TABLES if way.judges_reads else _written(process)


def _written(process: Process) -> tuple[str, ...]:
    return tuple(commit.change.table for commit in process.staged)


def _touches(commits: Log, tables: tuple[str, ...]) -> bool:
    return any(commit.change.table in tables for commit in commits)


def _is_refused(way: Way, transaction: Transaction, process: Process, log: Log, tables: tuple[str, ...]) -> bool:
    return any(
        _touches(log[at:], (table,)) if way.by == "tables" else _conflicts(way, transaction, process, log, table, at)
        for table, at in zip(tables_read(transaction), process.read_at, strict=True)
        if table in tables
    )


def _conflicts(way: Way, transaction: Transaction, process: Process, log: Log, table: str, at: int) -> bool:
    """Whether the net effect of the winners after a position touches rows that ours read or marks."""
    now = rows_of(log[: _judged_to(way, log, table, at)], table)
    marks = frozenset(row for commit in process.staged if commit.change.table == table for row in commit.change.marks)
    pairs = zip(transaction.reads, process.seen or (), strict=True)
    seen = [(read, rows) for read, rows in pairs if read.table == table]
    return (
        (way.marks and bool(marks - now))
        or (way.removed and any(rows - marks - now for _, rows in seen))
        or (way.added and any(read.of(now) - rows for read, rows in seen))
    )


def _judged_to(way: Way, log: Log, table: str, at: int) -> int:
    """The position behind which there are only winners that ours passes."""
    end = len(log)
    while way.passes != "none" and end > at:
        commit = log[end - 1]
        is_elsewhere = way.passes == "table" and commit.change.table != table
        if not commit.is_blind and not is_elsewhere:
            break
        end -= 1
    return end


# -- committing --------------------------------------------------------------------------------------------------------


def _commits(way: Way, transaction: Transaction, process: Process, shared: Shared) -> Iterator[Step]:
    if transaction.is_stranger or way.commit == "each":
        yield _commits_a_table(way, transaction, process, shared)
    elif way.commit == "record":
        yield _records(way, transaction, process, shared)
    elif not process.done and _is_late(way, transaction, process, shared.log):
        yield from _judges(way, transaction, process, shared)
    else:
        yield _is_ratified(way, transaction, process, shared)


def _commits_a_table(way: Way, transaction: Transaction, process: Process, shared: Shared) -> Step:
    commit = process.staged[process.done]
    table = commit.change.table
    log = _without_unpublished(shared, table) if way.commit == "record" else shared.log
    if _is_refused(way, transaction, process, log, (table,)):
        return f"is refused at {table}", _given_up(process, shared.log, "refused"), shared
    done = process.done + 1
    phase = "ended" if done == len(process.staged) else "commits"
    after = _publish(Shared((*log, commit), shared.published), table, len(log) + 1)
    committed = _in_order(transaction, process, log)._replace(phase=phase, done=done)
    return f"commits {table}", committed, after


def _records(way: Way, transaction: Transaction, process: Process, shared: Shared) -> Step:
    if _is_refused(way, transaction, process, shared.log, _judged_tables(way, process)):
        return "is refused", _given_up(process, shared.log, "refused"), shared
    recorded = _in_order(transaction, process, shared.log)._replace(phase="publishes", judged=len(shared.log))
    return f"records {' and '.join(_written(process))}", recorded, shared._replace(log=shared.log + process.staged)


def _publishes(way: Way, transaction: Transaction, process: Process, shared: Shared) -> Iterator[Step]:
    """Publish the next commit of a record, and with it what was recorded before it for the same table."""
    position, commit = process.judged + process.done, process.staged[process.done]
    phase = "ended" if process.done + 1 == len(process.staged) else "publishes"
    after, table = process._replace(phase=phase, done=process.done + 1), commit.change.table
    if shared.log[position] == commit:
        yield f"publishes {table}", after, _publish(shared, table, position + 1)
    else:
        yield f"finds its version of {table} taken", after, shared


def _publish(shared: Shared, table: str, position: int) -> Shared:
    at = TABLES.index(table)
    position = max(position, shared.published[at])
    return shared._replace(published=(*shared.published[:at], position, *shared.published[at + 1 :]))


def _without_unpublished(shared: Shared, table: str) -> Log:
    """The log where one who knows no records takes the next version of a table: what was recorded for it is lost."""
    published = shared.published[TABLES.index(table)]
    lost = Change(table, Rows(), Rows())
    return tuple(
        commit._replace(change=lost) if at >= published and commit.change.table == table else commit
        for at, commit in enumerate(shared.log)
    )


def _is_late(way: Way, transaction: Transaction, process: Process, log: Log) -> bool:
    """Whether what the catalog compares has changed since the transaction was judged."""
    written = _written(process)
    touched = written + tables_read(transaction)
    compared = {"nothing": (), "written": written, "touched": touched, "catalog": TABLES}[way.compares]
    return _touches(log[process.judged :], compared)


def _is_ratified(way: Way, transaction: Transaction, process: Process, shared: Shared) -> Step:
    commits = process.staged[process.done :][: None if way.at_once else 1]
    done = process.done + len(commits)
    phase = "ended" if done == len(process.staged) else "commits"
    log = shared.log + tuple(_as_put(way, transaction, process, shared.log, commit) for commit in commits)
    what = " and ".join(commit.change.table for commit in commits)
    return f"is ratified for {what}", process._replace(phase=phase, done=done), shared._replace(log=log)


def _as_put(way: Way, transaction: Transaction, process: Process, log: Log, commit: Commit) -> Commit:
    """The commit as it is put. If nothing is carried over, its table becomes what it was when ours read it."""
    table, marks, adds = commit.change
    at = dict(zip(tables_read(transaction), process.read_at, strict=True)).get(table)
    if way.carries or at is None:
        return commit
    base, now = rows_of(log[:at], table), rows_of(log, table)
    return commit._replace(change=Change(table, marks | (now - base), adds | (base - now - marks)))


_PHASES: dict[str, Callable[[Way, Transaction, Process, Shared], Iterator[Step]]] = {
    "reads": _reads,
    "judges": _judges,
    "commits": _commits,
    "publishes": _publishes,
}
